"""Processor demand: does EDF on one processor meet every deadline?

The demand of a window is the execution of all jobs released and due inside it. With preemption a
set is schedulable by EDF, and by anything at all, exactly when no window asks for more than its
length (Baruah, Rosier & Howell 1990); with release jitter and deadlines from the release the
same holds with `(t - D + J) / P` (Spuri 1996). Quick processor-demand analysis walks from the
longest window down and jumps to the demand it finds, so it looks at few windows (Zhang & Burns
2009, theorem 5). Without preemption a window also carries the longest part of a job due later
that has just started (Jeffay, Stanat & Martel 1991).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.tasks import STEPS_MAX, busy_period_ns, overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task

WINDOWS_MAX = 1_000_000


def demand_ns(tasks: Sequence[Task], window_ns: int) -> int:
    """Return the most execution released and due within a window, both ends included."""
    return sum(t.releases(window_ns - t.deadline_ns + 1) * t.wcet_ns for t in tasks)


def blocking_ns(tasks: Sequence[Task], window_ns: int) -> int:
    """Return how long a job that is due after the window can hold the processor within it."""
    return max((t.longest_ns - 1 for t in tasks if t.due_max_ns > window_ns), default=0)


def quick_demand_test(tasks: Sequence[Task]) -> bool | None:
    """Return whether preemptive EDF meets every deadline; None where the window is too long."""
    if overloaded(tasks):
        return False
    longest_ns = busy_period_ns(tasks)
    if longest_ns is None:
        return None
    shortest_ns = min(t.deadline_ns for t in tasks)
    window_ns = _deadline_before(tasks, longest_ns + 1)
    for _ in range(STEPS_MAX):
        if window_ns is None:
            return True
        demand = demand_ns(tasks, window_ns)
        if demand > window_ns:
            return False
        if demand <= shortest_ns:
            return True
        window_ns = demand if demand < window_ns else _deadline_before(tasks, window_ns)
    return None


def first_overload_ns(tasks: Sequence[Task]) -> int | None:
    """Return the shortest window that asks for more than its length; None when there is none.

    With non-preemptable parts, the shortest that can be late because of one.
    """
    limit_ns = busy_period_ns(tasks, max(t.longest_ns - 1 for t in tasks))
    window_ns = 0
    for _ in range(WINDOWS_MAX):
        following = [_deadline_after(task, window_ns) for task in tasks]
        window_ns = min(following)
        if limit_ns is not None and window_ns > limit_ns:
            return None
        if demand_ns(tasks, window_ns) + blocking_ns(tasks, window_ns) > window_ns:
            return window_ns
    return None


def _deadline_before(tasks: Sequence[Task], before_ns: int) -> int | None:
    """Return the latest window end before this one at which demand steps up."""
    latest = None
    for task in tasks:
        count = task.releases(before_ns - task.deadline_ns)
        if count:
            due_ns = task.deadline_ns + task.earliest_ns(count - 1)
            latest = due_ns if latest is None else max(latest, due_ns)
    return latest


def _deadline_after(task: Task, after_ns: int) -> int:
    count = task.releases(after_ns - task.deadline_ns + 1)
    return task.deadline_ns + task.earliest_ns(count)
