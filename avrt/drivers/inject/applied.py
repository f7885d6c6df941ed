"""When each fault of a run first did something: what latencies count from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.campaign import Injection


class Applied:
    """The faults of one run that had an effect on a message, a job or a device."""

    def __init__(self) -> None:
        self._first_ns: dict[Injection, int] = {}

    def note(self, fault: Injection, at_ns: int) -> None:
        """Take in that a fault hits something at a pipeline time."""
        self._first_ns[fault] = min(at_ns, self._first_ns.get(fault, at_ns))

    @property
    def first_ns(self) -> int | None:
        """When the first of them did; None when none ever did."""
        return min(self._first_ns.values(), default=None)

    @property
    def count(self) -> int:
        """How many of them did."""
        return len(self._first_ns)
