"""When a device that broke is tried again: after a second, then twice as long each time it breaks.

A probe of the device decides whether it works. The wait before the next try is back at the shortest
one after the device has worked for as long as the longest.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from avrt import clock
from avrt.exec.runner import guarded
from avrt.model.events import DeviceBack, Event
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.drivers.wall import Inbox

WAIT_NS_MIN = NS_PER_S
WAIT_NS_MAX = 64 * NS_PER_S


class Revival:
    """Tries lost devices again and tells the driver when one works.

    Args:
        inbox: of the driver.
        probe: tells whether a device works; whatever it raises means no.
        back: is told, on the driver's thread, of each device that does.
        stopped: is set when nobody cares any more.
    """

    def __init__(
        self,
        inbox: Inbox,
        probe: Callable[[str], bool],
        back: Callable[[str], None],
        stopped: threading.Event,
    ) -> None:
        self._inbox = inbox
        self._probe = probe
        self._back = back
        self._stopped = stopped
        self._wait_ns: dict[str, int] = {}
        self._back_ns: dict[str, int] = {}

    def lost(self, device: str) -> None:
        """Begin to try a device; called on the driver's thread."""
        known_ns, now_ns = self._wait_ns.get(device), clock.now_ns()
        worked_ns = now_ns - self._back_ns.get(device, now_ns)
        if known_ns is None or worked_ns >= WAIT_NS_MAX:
            self._wait_ns[device] = WAIT_NS_MIN
        else:
            self._wait_ns[device] = min(2 * known_ns, WAIT_NS_MAX)
        name = f"avrt-revive-{device}"
        threading.Thread(target=self._try, args=(device,), name=name, daemon=True).start()

    def _try(self, device: str) -> None:
        wait_ns = self._wait_ns[device]
        while not self._stopped.wait(wait_ns / NS_PER_S):
            if guarded(lambda: self._probe(device)) is True:
                self._inbox.put(lambda _now_ns: self._found(device))
                return
            wait_ns = min(2 * wait_ns, WAIT_NS_MAX)

    def _found(self, device: str) -> Sequence[Event]:
        self._back_ns[device] = clock.now_ns()
        self._back(device)
        return (DeviceBack(device),)
