"""Responses on a processor that is there for part of the time, see `avrt.model.supply`.

A response ends when the least supply covers the work (Shin & Lee 2003; Casini, Blass, Luetkebohle &
Brandenburg 2019, lemma 3, for callbacks of a ROS 2 executor that are ordered by priority).

The busy window counts every job of higher order that is released while it lasts, so it holds with
preemption and without; and with all others taken as of higher order it holds in any order. Without
preemption one job of lower order may hold the slot at first: whole, because it may have taken its
slot before the window and received nothing there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.response_time import JOBS_MAX
from avrt.analysis.tasks import STEPS_MAX, overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task
    from avrt.model.supply import Supply


def response_in_supply(
    task: Task, higher: Sequence[Task], supply: Supply, blocking_ns: int = 0
) -> int | None:
    """Return the worst response of a task in a reservation, from its release; None if unbounded.

    All whose jobs are looked at in one busy window come before the reservation is idle again.
    """
    if overloaded((*higher, task), supply.share):
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


def _end_ns(own_ns: int, start_ns: int, higher: Sequence[Task], supply: Supply) -> int | None:
    end_ns = max(start_ns, supply.window_ns(own_ns))
    for _ in range(STEPS_MAX):
        work_ns = own_ns + sum(other.releases(end_ns) * other.wcet_ns for other in higher)
        next_ns = supply.window_ns(work_ns)
        if next_ns <= end_ns:
            return end_ns
        end_ns = next_ns
    return None
