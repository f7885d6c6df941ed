"""Everything that is due at a known time, in one heap.

Entries at the same time are ordered by kind, in the order the contract gives the phases of an
instant: deadlines and aborts, publications at deadlines, shedding, synchronised sets, timer
releases, budgets; chain promises are judged last because a publication at that instant keeps them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DUE, PUBLISH, SHED, SYNC, RELEASE, BUDGET, CHAIN = range(7)

Entry = tuple[int, int, int, object]


class Timers:
    """A heap of `(at_ns, kind, serial, subject)`; the serial makes the order total."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._serial = 0

    def add(self, at_ns: int, kind: int, subject: object) -> None:
        self._serial += 1
        heappush(self._heap, (at_ns, kind, self._serial, subject))

    def pop_due(self, now_ns: int) -> Entry | None:
        """Take the next entry at or before now, if there is one."""
        heap = self._heap
        return heappop(heap) if heap and heap[0][0] <= now_ns else None

    def next_ns(self, is_live: Callable[[Entry], bool]) -> int | None:
        """Return the time of the next entry that still matters, dropping those that do not."""
        heap = self._heap
        while heap and not is_live(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None
