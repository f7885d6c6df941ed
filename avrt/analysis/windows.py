"""A response bound for any number of slots, from the release of a job and not from a busy window.

While a job waits, every slot of its device executes something else. So it has its turn, at the
latest, when a window from its release is longer than all that others can execute in it, divided
by the slots. How much that is depends on what is known of the others:

* any order: whatever they have pending (of use for LLF, and where criticality may change the
  order);
* by priority: work that goes before the job, and without preemption up to one part of a lower
  task on each slot, started before the release;
* EDF: work due no later than the job;
* one job: a task released from the same source or timer, whose every job is done before the
  next message comes, meets the job with one of its own at most (Tindell 1994, transactions);
* nothing: what the job rests on is done, and what rests on it has not begun.

With preemption this is the response-time iteration of Bertogna & Cirinei 2007 (theorem 6 for
EDF, 8 for fixed priorities), with the others' bounds as the slack; without, a window to the
start instead of the end, after Guan et al. 2008. A task's jobs run one after another; where one
may not be done before the next is released, the window begins with the first of the row, and on
several slots lower jobs may begin beside each.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from avrt.analysis.interference import carried_break_ns, carried_work_ns, least_waiting_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task

JOBS_MAX = 1000  # of the task in one row
FAR_FACTOR = 100  # waiting for that many periods and deadlines: no bound is in sight


@dataclass(frozen=True, slots=True)
class Rival:
    """Another task of the device, as seen from the one under analysis.

    Attributes:
        response_ns: a bound on its own responses, None where there is none.
        goes_first: whether jobs of it go before the task's at all.
        until_ns: only those do that are released up to so long after it; None means all.
        is_single: at most one of its jobs meets a job of the task.
        can_block: one of its jobs may have started before, though it is ordered after.
        group: rivals of one group are never pending together, so they fill one slot at most.
    """

    task: Task
    response_ns: int | None
    goes_first: bool = True
    until_ns: int | None = None
    is_single: bool = False
    can_block: bool = False
    group: int = -1


def window_bound(task: Task, rivals: Sequence[Rival], slots: int) -> int | None:
    """Return a bound on the response of a task, None where there is none.

    The task and its rivals are all preemptive, or none of them is. Where jobs of the task may
    wait for one another, the window begins with the first of such a row.
    """
    first = [rival for rival in rivals if rival.goes_first]
    if any(rival.response_ns is None and not rival.is_single for rival in first):
        return None
    parts = [rival.task.longest_ns - 1 for rival in rivals if rival.can_block]
    blocking = nlargest(slots, parts)
    worst_ns = waiting_ns = 0
    for index in range(JOBS_MAX):
        found_ns = _waiting_ns(task, (first, blocking), slots, index, waiting_ns)
        if found_ns is None:
            return None
        waiting_ns = found_ns
        end_ns = waiting_ns + (index + 1) * task.wcet_ns
        worst_ns = max(worst_ns, end_ns - task.earliest_ns(index))
        if end_ns <= task.earliest_ns(index + 1):
            return worst_ns
        blocking += nlargest(slots - 1, parts)  # lower jobs may have begun beside this one
    return None


def _waiting_ns(
    task: Task, others: tuple[list[Rival], list[int]], slots: int, index: int, least_ns: int
) -> int | None:
    """Return how long job number `index` of a row and those before it wait in all.

    `others` are the rivals that go first and the parts that may block; `least_ns` is waited at
    the least.
    """
    first, parts = others
    to_start = task.last_ns == task.wcet_ns
    own_ns = index * task.wcet_ns + (1 if to_start else task.wcet_ns)
    limit_ns = FAR_FACTOR * (task.period_ns + max(0, task.deadline_ns))

    def works_at(waiting_ns: int) -> list[int]:
        works: dict[int, int] = {}
        for place, rival in enumerate(first):
            key = rival.group if rival.group >= 0 else -1 - place
            works[key] = works.get(key, 0) + _work(rival, waiting_ns + own_ns, index)
        return [*works.values(), *parts]

    def break_after(waiting_ns: int) -> int:
        breaks = [_break(rival, waiting_ns + own_ns) for rival in first]
        return min([limit_ns + 2, *(at_ns - own_ns for at_ns in breaks)])

    return least_waiting_ns(works_at, break_after, slots, (least_ns, limit_ns))


def _break(rival: Rival, window_ns: int) -> int:
    """Return the next longer window at which a rival's work changes its course."""
    if rival.is_single:
        return window_ns + FAR_FACTOR * rival.task.period_ns
    assert rival.response_ns is not None
    return carried_break_ns(rival.task, window_ns, rival.response_ns)


def _work(rival: Rival, window_ns: int, index: int) -> int:
    """Return the most work of a rival that goes before a job of the task in a window.

    Which due times count is known for the first of a row only.
    """
    task, response_ns = rival.task, rival.response_ns
    if rival.is_single:
        return task.wcet_ns
    assert response_ns is not None
    work_ns = carried_work_ns(task, window_ns, response_ns)
    if rival.until_ns is None or index:
        return work_ns
    return min(work_ns, _work_until(task, rival.until_ns + response_ns))


def _work_until(task: Task, span_ns: int) -> int:
    """Return the work of jobs released within a span, whose first ends where the window begins.

    The span reaches back from the last release that counts by a response of the task.
    """
    if span_ns <= 0:
        return 0
    length_ns = span_ns + task.jitter_ns
    count = (length_ns - 1) // task.period_ns
    return count * task.wcet_ns + min(task.wcet_ns, length_ns - count * task.period_ns)
