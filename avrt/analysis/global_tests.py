"""Global scheduling on several slots: sufficient tests from the literature, preemptive.

Each answers "meets" or "unknown", never "misses": none of them is necessary, and the sets they
accept overlap without one containing another. They take sporadic tasks without jitter; where
there is jitter the least distance of two releases takes the place of the period. Fractions
throughout, so nothing is lost to rounding.

| test | for | source |
|---|---|---|
| `gfb` | EDF, by density | Goossens, Funk & Baruah 2003; Bertogna et al. 2005 |
| `bak` | EDF | Baker 2003, theorem 12 |
| `bcl` | EDF | Bertogna, Cirinei & Lipari 2005, theorem 7 |
| `response_times_fp` | fixed priorities | Bertogna & Cirinei 2007, theorem 8 |
| `tardiness_ns` | EDF above its limits | Devi & Anderson 2005, theorem 2 |
| `fluid` | any policy: whether some schedule exists | Baruah et al. 1996 (Pfair) |
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.analysis.interference import carried_break_ns, carried_work_ns, least_waiting_ns
from avrt.analysis.tasks import utilisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.figure import Verdict
    from avrt.analysis.tasks import Task


def _separation_ns(task: Task) -> int:
    """Return the least distance of two releases."""
    return max(1, task.earliest_ns(1))


def _is_constrained(tasks: Sequence[Task]) -> bool:
    return all(task.deadline_ns <= _separation_ns(task) for task in tasks)


def _said(holds: bool) -> Verdict:  # noqa: FBT001 - it is what is said
    return "meets" if holds else "unknown"


def gfb(tasks: Sequence[Task], slots: int) -> Verdict:
    """Judge by density: their sum is at most `m - (m - 1) * largest`."""
    densities = [Fraction(t.wcet_ns, min(t.deadline_ns, _separation_ns(t))) for t in tasks]
    return _said(sum(densities) <= slots - (slots - 1) * max(densities))


def bak(tasks: Sequence[Task], slots: int) -> Verdict:
    """Judge by the load that a window can carry when some job is late at its end."""
    if not _is_constrained(tasks):
        return "unknown"
    return _said(all(_bak_holds(task, tasks, slots) for task in tasks))


def _bak_holds(task: Task, tasks: Sequence[Task], slots: int) -> bool:
    density = Fraction(task.wcet_ns, task.deadline_ns)
    if density > 1:
        return False
    load = Fraction(0)
    for other in tasks:
        period_ns = _separation_ns(other)
        rate = Fraction(other.wcet_ns, period_ns)
        share = rate * (1 + Fraction(period_ns - other.deadline_ns, task.deadline_ns))
        if density < rate:
            share += (other.wcet_ns - density * period_ns) / task.deadline_ns
        load += min(Fraction(1), share)
    return load <= slots * (1 - density) + density


def bcl(tasks: Sequence[Task], slots: int) -> Verdict:
    """Judge by the interference that jobs due no later can give each task."""
    if not _is_constrained(tasks):
        return "unknown"
    return _said(all(_bcl_holds(task, tasks, slots) for task in tasks))


def _bcl_holds(task: Task, tasks: Sequence[Task], slots: int) -> bool:
    slack = task.deadline_ns - task.wcet_ns
    if slack < 0:
        return False
    interference, is_below = 0, False
    for other in tasks:
        if other is not task:
            part = _due_within(other, task.deadline_ns)
            interference += min(part, slack)
            is_below |= 0 < part <= slack
    return interference < slots * slack or (interference == slots * slack and is_below)


def _due_within(task: Task, window_ns: int) -> int:
    """Return the most work of jobs due within a window whose end is one of their due times."""
    period_ns = _separation_ns(task)
    count = max(0, (window_ns - task.deadline_ns) // period_ns + 1)
    return count * task.wcet_ns + min(task.wcet_ns, max(0, window_ns - count * period_ns))


def response_times_fp(
    tasks: Sequence[Task], slots: int, *, use_slack: bool = True
) -> list[int | None]:
    """Return response bounds of constrained tasks in priority order; None from the first without.

    A task that is known to end early leaves less to carry into a window of a lower one.
    """
    bounds: list[int | None] = []
    above: list[tuple[Task, int]] = []
    for task in tasks:
        bound = _response_fp(task, above, slots)
        bounds.append(bound)
        if bound is None:
            break
        above.append((task, bound if use_slack else task.deadline_ns))
    return bounds + [None] * (len(tasks) - len(bounds))


def _response_fp(task: Task, above: Sequence[tuple[Task, int]], slots: int) -> int | None:
    if task.deadline_ns > _separation_ns(task):
        return None
    wcet_ns = task.wcet_ns

    def works_at(waiting_ns: int) -> list[int]:
        return [carried_work_ns(t, wcet_ns + waiting_ns, end_ns) for t, end_ns in above]

    def break_after(waiting_ns: int) -> int:
        breaks = [carried_break_ns(t, wcet_ns + waiting_ns, end_ns) for t, end_ns in above]
        return min(breaks, default=2 * task.deadline_ns) - wcet_ns

    waiting_ns = least_waiting_ns(works_at, break_after, slots, (0, task.deadline_ns - wcet_ns))
    return None if waiting_ns is None else wcet_ns + waiting_ns


def tardiness_ns(tasks: Sequence[Task], slots: int) -> list[int] | None:
    """Return how late each implicit-deadline task can be under global EDF, None above capacity."""
    total = utilisation(tasks)
    if total > slots or any(task.wcet_ns > task.period_ns for task in tasks):
        return None
    rates = sorted((task.utilisation for task in tasks), reverse=True)
    wcets = sorted((task.wcet_ns for task in tasks), reverse=True)
    busy = -(-total.numerator // total.denominator) - 1
    excess = sum(wcets[:busy]) - wcets[-1]
    late = max(Fraction(0), excess / (slots - sum(rates[: max(0, busy - 1)], Fraction(0))))
    rounded = -(-late.numerator // late.denominator)
    return [rounded + task.wcet_ns for task in tasks]


def fluid(tasks: Sequence[Task], slots: int) -> bool:
    """Whether giving each task its density all the time would do: then some schedule exists.

    Necessary too where deadlines are periods.
    """
    densities = [Fraction(t.wcet_ns, min(t.deadline_ns, t.period_ns)) for t in tasks]
    return sum(densities) <= slots and max(densities) <= 1
