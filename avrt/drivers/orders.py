"""What somebody who may orders in a live run: stop, stands, moves, reset."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from avrt.errors import SpecError, did_you_mean
from avrt.model.events import ORDERS, Ordered

if TYPE_CHECKING:
    from avrt.drivers.wall import Inbox
    from avrt.model.events import Order


class Orders:
    """Orders to one live run, from any thread; those given before it begins come first.

    "stop" leads to the last level of the ladder. Only a vehicle that stands leaves that, after a
    "reset"; "stands" and "moves" say what it does.
    """

    def __init__(self) -> None:
        self._early: list[Order] = []
        self._inbox: Inbox | None = None
        self._lock = threading.Lock()

    def give(self, order: str) -> None:
        """Give an order; it counts from when the driver takes it in.

        Raises:
            SpecError: there is no such order.
        """
        known = next((one for one in ORDERS if one == order), None)
        if known is None:
            raise SpecError(f"no such order {order!r}; {did_you_mean(order, ORDERS)}")
        with self._lock:
            if self._inbox is None:
                self._early.append(known)
            else:
                self._put(self._inbox, known)

    def attach(self, inbox: Inbox) -> None:
        """Hand orders to a driver from now on."""
        with self._lock:
            self._inbox = inbox
            for order in self._early:
                self._put(inbox, order)

    @staticmethod
    def _put(inbox: Inbox, order: Order) -> None:
        inbox.put(lambda _now_ns: (Ordered(order),))
