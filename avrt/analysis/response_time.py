"""Worst response times on one processor: fixed priorities, FIFO, earliest deadline first.

A response counts from the release; what jitter adds before it counts in `from_nominal`. All
three look for the longest busy window, in which the processor never idles and no work of lower
order is done but what blocks at its start, and follow every job of the task in it: where a
deadline may be longer than a period, the first job is not always the worst (Lehoczky 1990).

* fixed priorities: Joseph & Pandya 1986; Lehoczky 1990 for arbitrary deadlines; Audsley et al.
  1993 for jitter; Davis, Burns, Bril & Lukkien 2007 without preemption; Bril, Lukkien &
  Verhaegh 2009 with limited preemption. Self-suspension counts as execution for the task itself
  and as jitter `response - wcet` for lower ones (Chen et al. 2019, section 4.2).
* EDF: Spuri 1996, with the non-preemptive start of George, Rivierre & Spuri 1996.
* FIFO: the backlog at each release of the synchronous busy period; the order of a tie is against
  the task.

Equal fixed priorities are FIFO in the kernel; here each goes before the other, which is a bound.
Offsets between tasks are not used: that bounds every set of offsets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.analysis.tasks import STEPS_MAX, busy_period_ns, overloaded, steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task

POINTS_MAX = 4_000  # releases of the task that are looked at in one busy period
JOBS_MAX = 10_000  # of the task in one busy window

Finishes = tuple[int, ...]
"""When each job of a task ends, counted from the start of the longest busy window."""


def from_release(task: Task, finishes: Finishes) -> int:
    """Return the worst response, from release to completion."""
    return max(end_ns - task.earliest_ns(index) for index, end_ns in enumerate(finishes))


def from_nominal(task: Task, finishes: Finishes) -> int:
    """Return the worst time from the nominal arrival, before any jitter, to completion."""
    late_ns = task.jitter_ns
    return max(end_ns + late_ns - index * task.period_ns for index, end_ns in enumerate(finishes))


def fixed_priority(
    task: Task, higher: Sequence[Task], lower: Sequence[Task] = ()
) -> Finishes | None:
    """Return the finishes of a task in its longest busy window, None where there is no bound.

    Args:
        task: the task under analysis.
        higher: all others of its priority or a higher one.
        lower: all others of lower priority.
    """
    blocking_ns = max([task.blocking_ns, *(other.longest_ns - 1 for other in lower)])
    if overloaded((*higher, task)):
        return None
    jobs = _job_count(task, higher, blocking_ns)
    if jobs is None:
        return None
    rates = [(t.period_ns, t.jitter_ns, t.wcet_ns) for t in higher if not t.gap_ns]
    gapped = [t for t in higher if t.gap_ns]
    own_ns = blocking_ns + task.suspension_ns - task.last_ns
    start_ns = own_ns + sum(t.wcet_ns for t in higher)
    finishes: list[int] = []
    for index in range(jobs):
        own_ns += task.wcet_ns
        start_ns += task.wcet_ns
        last_ns = _start_of_last(own_ns, start_ns, rates, gapped)
        if last_ns is None:
            return None
        start_ns = last_ns
        finishes.append(last_ns + task.last_ns)
        if task.last_ns == 1 and finishes[-1] <= task.earliest_ns(index + 1):
            break
    return tuple(finishes)


def fixed_priority_set(tasks: Sequence[Task]) -> list[Finishes | None]:
    """Return the finishes of every task of a set; they are given from the most urgent on.

    What suspends itself delays lower tasks as if it came later by what its response exceeds its
    wcet; below one that suspends itself without a bound, nothing has one.
    """
    found: list[Finishes | None] = []
    above: list[Task] = []
    for place, task in enumerate(tasks):
        finishes = None
        if len(above) == place:
            finishes = fixed_priority(task, above, tasks[place + 1 :])
        found.append(finishes)
        if not task.suspension_ns:
            above.append(task)
        elif finishes is not None:
            later_ns = from_nominal(task, finishes) - task.wcet_ns
            above.append(replace(task, jitter_ns=later_ns))
    return found


def _start_of_last(
    own_ns: int, start_ns: int, rates: list[tuple[int, int, int]], gapped: list[Task]
) -> int | None:
    """Return when the last part of a job starts at the latest: a least fixed point."""
    for _ in range(STEPS_MAX):
        next_ns = own_ns
        for period_ns, jitter_ns, wcet_ns in rates:
            next_ns += ((start_ns + jitter_ns) // period_ns + 1) * wcet_ns
        for other in gapped:
            next_ns += other.releases(start_ns + 1) * other.wcet_ns
        if next_ns == start_ns:
            return start_ns
        start_ns = next_ns
    return None


def _job_count(task: Task, higher: Sequence[Task], blocking_ns: int) -> int | None:
    """Return how many jobs of the task the busy window can hold.

    With preemption the window ends at the first job that is done before the next one comes, so
    nobody need know beforehand.
    """
    if task.last_ns == 1:
        return JOBS_MAX
    window_ns = busy_period_ns((*higher, task), blocking_ns)
    return None if window_ns is None else min(JOBS_MAX, task.releases(window_ns))


def earliest_deadline_first(task: Task, others: Sequence[Task]) -> int | None:
    """Return the worst response of a task under EDF, None where there is no bound.

    Its worst job is released `at_ns` after the start of a busy period in which all others are
    released together; only where some count of jobs due with it steps up need one look.
    """
    members = (*others, task)
    window_ns = busy_period_ns(members, max((t.longest_ns - 1 for t in others), default=0))
    if window_ns is None:
        return None
    points = {0, *steps(task, 0, window_ns)}
    for other in others:
        points.update(steps(other, other.deadline_ns - task.due_max_ns, window_ns))
        if len(points) > POINTS_MAX:
            return None
    worst_ns = task.wcet_ns
    for at_ns in sorted(points):
        if window_ns - at_ns <= worst_ns:  # whatever is released later ends with the busy period
            break
        end_ns = _end_by_deadline(task, others, at_ns)
        if end_ns is None:
            return None
        worst_ns = max(worst_ns, end_ns - at_ns)
    return worst_ns


def _end_by_deadline(task: Task, others: Sequence[Task], at_ns: int) -> int | None:
    """Return when a job released `at_ns` into the busy period ends at the latest."""
    due_ns = at_ns + task.due_max_ns
    soonest_ns = at_ns + task.deadline_ns
    blocking_ns = max((t.longest_ns - 1 for t in others if t.due_max_ns > soonest_ns), default=0)
    blocking_ns = max(blocking_ns, task.blocking_ns)
    own_ns = blocking_ns + task.releases(at_ns + 1) * task.wcet_ns - task.last_ns
    rates: list[tuple[int, int, int, int]] = []
    gapped: list[tuple[Task, int]] = []
    for other in others:
        cap = other.releases(due_ns - other.deadline_ns + 1)
        if cap and other.gap_ns:
            gapped.append((other, cap))
        elif cap:
            rates.append((other.period_ns, other.jitter_ns, other.wcet_ns, cap))
    start_ns = own_ns
    for _ in range(STEPS_MAX):
        next_ns = own_ns
        for period_ns, jitter_ns, wcet_ns, cap in rates:
            count = (start_ns + jitter_ns) // period_ns + 1
            next_ns += (min(cap, count)) * wcet_ns
        for other, cap in gapped:
            next_ns += min(cap, other.releases(start_ns + 1)) * other.wcet_ns
        if next_ns == start_ns:
            return start_ns + task.last_ns
        start_ns = next_ns
    return None


def first_in_first_out(task: Task, others: Sequence[Task]) -> int | None:
    """Return the worst response of every task of a FIFO processor, None where there is no bound.

    A job waits for all that was released before it, or with it.
    """
    members = (*others, task)
    window_ns = busy_period_ns(members)
    if window_ns is None:
        return None
    points = {0}
    for member in members:
        points.update(steps(member, 0, window_ns))
        if len(points) > POINTS_MAX:
            return None
    return max(
        sum(member.releases(at_ns + 1) * member.wcet_ns for member in members) - at_ns
        for at_ns in points
    )
