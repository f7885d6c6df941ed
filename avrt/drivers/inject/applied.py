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
    def times_ns(self) -> list[int]:
        """When each of them first did, in order."""
        return sorted(self._first_ns.values())
