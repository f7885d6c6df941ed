"""How long a job can be kept waiting by what others execute, on any number of slots.

While it waits every slot is busy with others, and no entry of them fills more than one slot at a
time (a task, or tasks that are never pending together). So waiting for `w` ns more is possible
only as long as the entries' work, each cut at `w + 1`, fills all slots for that long (Bertogna &
Cirinei 2007, lemma 3, with the cut of section 3).

Between two break points every entry's work is a concave function of the window's length, and so
is what is left over; a stretch is therefore decided by its two ends, and no fixed point has to
creep along it by single ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.tasks import STEPS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.analysis.tasks import Task


def carried_work_ns(task: Task, window_ns: int, response_ns: int) -> int:
    """Return the most work of a task in a window, its first job ending as late as it may.

    That job executes just before its end and all others as soon as they come (Bertogna &
    Cirinei 2007, lemma 4); jitter lets them come sooner.
    """
    length_ns = window_ns + response_ns - task.wcet_ns + task.jitter_ns
    count, rest_ns = divmod(length_ns, task.period_ns)
    return max(0, count * task.wcet_ns + min(task.wcet_ns, rest_ns))


def carried_break_ns(task: Task, window_ns: int, response_ns: int) -> int:
    """Return the next longer window at which that work begins or ends to grow."""
    rest_ns = (window_ns + response_ns - task.wcet_ns + task.jitter_ns) % task.period_ns
    end_ns = task.wcet_ns if rest_ns < task.wcet_ns < task.period_ns else task.period_ns
    return window_ns + end_ns - rest_ns


def least_waiting_ns(
    works_at: Callable[[int], Sequence[int]],
    break_after: Callable[[int], int],
    slots: int,
    bounds: tuple[int, int],
) -> int | None:
    """Return the shortest time after which the job cannot be waiting any more.

    Args:
        works_at: waiting time so far to the work of every entry.
        break_after: the next waiting time at which some entry's work changes its course.
        slots: of the device.
        bounds: what is waited at the least; where to give up.
    """
    waiting_ns, limit_ns = bounds
    for _ in range(STEPS_MAX):
        if waiting_ns > limit_ns:
            return None
        works = works_at(waiting_ns)
        if not _all_busy(works, waiting_ns, slots):
            return waiting_ns
        next_ns = break_after(waiting_ns)
        if not _all_busy(works_at(next_ns - 1), next_ns - 1, slots):
            return _first_idle_ns(works_at, slots, waiting_ns, next_ns - 1)
        waiting_ns = max(next_ns, _filled_ns(works, slots))
    return None


def _all_busy(works: Sequence[int], waiting_ns: int, slots: int) -> bool:
    """Whether this work can keep all slots busy one ns longer than the job has waited."""
    cut_ns = waiting_ns + 1
    return sum(min(work_ns, cut_ns) for work_ns in works) >= slots * cut_ns


def _filled_ns(works: Sequence[int], slots: int) -> int:
    """Return how long this work, no more, can keep all slots busy.

    The longest `k` entries each fill a slot; the rest share the others.
    """
    ordered = sorted(works, reverse=True)
    return min(sum(ordered[count:]) // (slots - count) for count in range(slots))


def _first_idle_ns(
    works_at: Callable[[int], Sequence[int]], slots: int, busy_ns: int, idle_ns: int
) -> int:
    while idle_ns - busy_ns > 1:
        middle_ns = (busy_ns + idle_ns) // 2
        if _all_busy(works_at(middle_ns), middle_ns, slots):
            busy_ns = middle_ns
        else:
            idle_ns = middle_ns
    return idle_ns
