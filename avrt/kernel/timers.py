"""Everything that is due at a known time, in one heap.

Entries at one time are ordered by phase, as the contract orders an instant: deadlines and aborts,
last times to vote, publications at deadlines, shedding, timer releases; planned starts of a table
only wake the kernel, since every call has its dispatch pass. Timeouts of synchronised sets, budgets
and promises of chains are only noted here and judged later in the instant, because an arrival or a
publication at that instant keeps them. A driver that wakes late meets the entries in the order of
their nominal times within each phase. An entry whose subject has moved on (a job that ended or lost
its slot, a set that was released, a vote that is decided) is dropped when it is met.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.kernel.job import Job

DUE, VOTE, PUBLISH, SHED, SYNC, RELEASE, BUDGET, CHAIN, START = range(9)

Entry = tuple[int, int, int, object]


class Timers:
    """A heap of `(at_ns, phase, number, subject)`; the number makes the order total."""

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        self._number = 0

    def add(self, at_ns: int, phase: int, subject: object) -> None:
        self._number += 1
        heappush(self.heap, (at_ns, phase, self._number, subject))


def is_awaited(entry: Entry, job: Job) -> bool:
    """Whether a job's timer still means something."""
    at_ns, phase, _, _ = entry
    if job.outcome is not None or phase == DUE:
        return job.outcome is None
    if phase == BUDGET:
        return job.budget_end_ns == at_ns and job.since_ns is not None
    return job.start_ns is None
