"""What a fault did to a run: the run with it against the same run without.

Which outputs are good, and which are wrong, `compared` tells. The class is the first that holds:

| class             | when                                                                    |
|-------------------|-------------------------------------------------------------------------|
| crash             | the run did not come to its end                                         |
| hang              | a critical stage that runs is silent at the end, for longer than may be |
| silent_corruption | a wrong output was published, nothing had told of a fault by then since |
|                   | the last fault began, nor shortly before (`Rules.told_ns`), and no      |
|                   | sensor is known to be out or blocked                                    |
| safe_stop         | the run ended at the last level                                         |
| degraded          | another level was entered, an output says that it is less, or a stage   |
|                   | whose outputs were wrong or missing was never good again                |
| recovered         | outputs were wrong (and something had told) or did not come             |
| masked            | all outputs are good                                                    |
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.compared import Compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.metrics.observed import Course, Detection, Observed, Rules
    from avrt.model.campaign import Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """What a fault did to one run; times count from the injection.

    Attributes:
        detected: what told of it first.
        recovered_ns: until all outputs were good again: 0 if all were, None if never.
        gap_ns: the longest time without an output of a critical stage that runs, from then on.
        levels: those that were entered.
        course: the same over time.
    """

    outcome: Outcome
    injected_ns: int | None
    detected: Detection | None
    detected_ns: int | None
    recovered_ns: int | None
    lost: int
    incorrect: int
    gap_ns: int
    levels: tuple[str, ...]
    crash: str
    course: Course


def judge(golden: Observed, faulty: Observed, rules: Rules) -> Judged:
    """Compare a run with faults with the run without; what told there, too, tells of no fault."""
    since_ns = min(faulty.injected_ns, default=0)
    known = set(golden.detections)
    told = [d for d in faulty.detections if d.at_ns >= since_ns and d not in known]
    first = min(told, key=lambda d: d.at_ns, default=None)
    seen = Compared(golden, faulty, rules, since_ns)
    told_ns = sorted(d.at_ns for d in told)
    wrong_ns = seen.times_ns("wrong")
    is_silent = any(
        not _is_told(at_ns, told_ns, faulty.injected_ns, rules.told_ns)
        and not _is_out(at_ns, faulty.sensors)
        for at_ns in wrong_ns
    )
    return Judged(
        _outcome(faulty, seen, rules, is_silent=is_silent),
        min(faulty.injected_ns, default=None),
        first,
        None if first is None else first.at_ns - since_ns,
        seen.recovered_ns,
        len(seen.times_ns("lost")),
        len(wrong_ns),
        max(seen.gaps_ns, default=0),
        tuple(level for _, level in faulty.levels),
        faulty.crash,
        seen.course,
    )


def _is_told(at_ns: int, told_ns: Sequence[int], injected_ns: Sequence[int], holds_ns: int) -> bool:
    """Whether anything told of a fault by then, since the last one began to have an effect.

    What told so shortly before counts, too: of two faults the first still has its effect.
    """
    begun_ns = max((began_ns for began_ns in injected_ns if began_ns <= at_ns), default=0)
    begun_ns = min(begun_ns, at_ns - holds_ns)
    place = bisect_left(told_ns, begun_ns)
    return place < len(told_ns) and told_ns[place] <= at_ns


def _is_out(at_ns: int, sensors: Iterable[tuple[int, str, bool]]) -> bool:
    """Whether a sensor is known not to be ok at a time: everybody who reads its mode is told."""
    is_ok = {source: ok for changed_ns, source, ok in sensors if changed_ns <= at_ns}
    return not all(is_ok.values())


def _outcome(faulty: Observed, seen: Compared, rules: Rules, *, is_silent: bool) -> Outcome:
    levels = [level for _, level in faulty.levels]
    is_stopped = bool(levels) and levels[-1] == rules.last
    cases: tuple[tuple[bool, Outcome], ...] = (
        (bool(faulty.crash), "crash"),
        (seen.silence_ns > rules.silent_ns, "hang"),
        (is_silent, "silent_corruption"),
        (is_stopped, "safe_stop"),
        (bool(levels or seen.times_ns("less")) or seen.recovered_ns is None, "degraded"),
        (bool(seen.times_ns("lost") or seen.times_ns("wrong")), "recovered"),
    )
    return next((outcome for holds, outcome in cases if holds), "masked")
