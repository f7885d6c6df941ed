"""A processor that is there for part of the time: a periodic reservation and what runs in it.

A reservation gives `budget` in every `period`, at any time within it. At the worst it has just
given its budget as early as it could and then gives it as late as it may, so a window sees nothing
for `2 (P - Q)` at first (Shin & Lee 2003, supply-bound function). A response inside of it ends
when the least supply covers the work (Casini, Blass, Luetkebohle & Brandenburg 2019, lemma 3, for
callbacks of a ROS 2 executor that are ordered by priority).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.analysis.response_time import JOBS_MAX
from avrt.analysis.tasks import STEPS_MAX, overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task


@dataclass(frozen=True, slots=True)
class Supply:
    """A periodic reservation: `budget_ns` of every `period_ns`."""

    period_ns: int
    budget_ns: int

    def least_ns(self, window_ns: int) -> int:
        """Return the execution that every window of that length surely gives."""
        awake_ns = window_ns - 2 * (self.period_ns - self.budget_ns)
        if awake_ns <= 0:
            return 0
        full, rest_ns = divmod(awake_ns, self.period_ns)
        return full * self.budget_ns + min(rest_ns, self.budget_ns)

    def window_ns(self, work_ns: int) -> int:
        """Return the shortest window that surely gives that much execution."""
        if work_ns <= 0:
            return 0
        full = (work_ns - 1) // self.budget_ns
        rest_ns = work_ns - full * self.budget_ns
        return 2 * (self.period_ns - self.budget_ns) + full * self.period_ns + rest_ns


def response_in_supply(
    task: Task, higher: Sequence[Task], supply: Supply, blocking_ns: int = 0
) -> int | None:
    """Return the worst response of a task in a reservation, from its release; None if unbounded.

    All whose jobs are looked at in one busy window come before the reservation is idle again.
    """
    if overloaded(scaled(t, supply) for t in (*higher, task)):
        return None
    worst_ns = end_ns = 0
    for index in range(JOBS_MAX):
        own_ns = blocking_ns + (index + 1) * task.wcet_ns
        found_ns = _end_ns(own_ns, end_ns, higher, supply)
        if found_ns is None:
            return None
        end_ns = found_ns
        worst_ns = max(worst_ns, end_ns - task.earliest_ns(index))
        if end_ns <= task.earliest_ns(index + 1):
            return worst_ns
    return None


def scaled(task: Task, supply: Supply) -> Task:
    """Return the task as heavy as it is for the part of a processor that there is."""
    return replace(
        task,
        wcet_ns=task.wcet_ns * supply.period_ns,
        period_ns=task.period_ns * supply.budget_ns,
    )


def _end_ns(own_ns: int, start_ns: int, higher: Sequence[Task], supply: Supply) -> int | None:
    end_ns = max(start_ns, supply.window_ns(own_ns))
    for _ in range(STEPS_MAX):
        work_ns = own_ns + sum(other.releases(end_ns) * other.wcet_ns for other in higher)
        next_ns = supply.window_ns(work_ns)
        if next_ns <= end_ns:
            return end_ns
        end_ns = next_ns
    return None
