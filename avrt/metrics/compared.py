"""Outputs of a run with faults, each against what the golden run published for its time.

Outputs of critical stages are matched by their capture time, to half of their usual step, so that a
stamp may jitter. One is
* good, if it is what the golden run published for that time, or rests on newer inputs;
* other, if it was made at a level of the ladder that runs its stage, or one before it, in another
  way: it is not compared, and counts as good;
* less, if it says so itself: held, made without an input, agreed on by too few copies, or resting
  on older inputs;
* wrong, if it rests on the same inputs and its payload differs beyond what its kind allows, or if
  its stamps are of a time that the golden run has no output of, or that has not come yet;
* lost, if it is one that the golden run published and that is missing, while its stage runs as it
  did there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from avrt.metrics.observed import QUALITIES, Course

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from avrt.metrics.observed import Observed, Output, Quality, Rules

COUNTED_GOOD: tuple[Quality, ...] = ("good", "other")


class Compared:
    """The outputs of a run with faults, each against its counterpart.

    Attributes:
        outputs: of each stage, when those of each quality were published, and for what is lost,
            when the golden run published it; what is before the injection is good.
        recovered_ns: from the injection until the outputs of all stages were good again; 0 if they
            always were, None if those of one never were.
        gaps_ns: times without an output of a stage that runs.
        silence_ns: the longest time for which one that runs was silent at the end.
    """

    def __init__(self, golden: Observed, faulty: Observed, rules: Rules, since_ns: int) -> None:
        self._rules = rules
        self._since_ns = since_ns
        everything = [output for own in golden.outputs.values() for output in own]
        self._end_ns = max((output.publish_ns for output in everything), default=0)
        entered = [(at_ns, level) for at_ns, level in faulty.levels if at_ns < self._end_ns]
        self._levels = [(0, rules.first), *entered]
        self.recovered_ns: int | None = 0
        self.outputs: dict[str, dict[Quality, array[int]]] = {}
        self.gaps_ns: list[int] = []
        self.silence_ns = 0
        for stage, known in golden.outputs.items():
            found = faulty.outputs.get(stage, [])
            self._compare(stage, known, found)
            self._measure(stage, [output.publish_ns for output in found])

    @property
    def course(self) -> Course:
        levels = self._levels if self._rules.first else []
        return Course(self.outputs, levels, self._rules.last, self._end_ns)

    def times_ns(self, quality: Quality) -> list[int]:
        """Return when outputs of this quality were published, or were to be, stage by stage."""
        return [at_ns for own in self.outputs.values() for at_ns in own[quality]]

    def _is_same(self, stage: str, at_ns: int) -> bool:
        """Whether a stage runs then as at the first level."""
        level = next(level for since_ns, level in reversed(self._levels) if since_ns <= at_ns)
        return stage in self._rules.same_at[level]

    def _compare(self, stage: str, known: Sequence[Output], found: Sequence[Output]) -> None:
        near_ns = half_step_ns([output.capture_ns for output in known])
        by_capture, captures = _Nearest(known, near_ns), _Nearest(found, near_ns)
        own: dict[Quality, array[int]] = {quality: array("q") for quality in QUALITIES}
        self.outputs[stage] = own
        for output in found:
            is_before = output.publish_ns < self._since_ns
            quality = self._quality(stage, output, by_capture.of(output.capture_ns))
            own["good" if is_before else quality].append(output.publish_ns)
        own["lost"].extend(
            output.publish_ns
            for output in known
            if output.publish_ns >= self._since_ns
            and captures.of(output.capture_ns) is None
            and self._is_same(stage, output.publish_ns)
        )
        self._recover(own)

    def _recover(self, own: Mapping[Quality, Sequence[int]]) -> None:
        """Take in when a stage was good for the last time, and bad."""
        bad_ns = [at_ns for q in QUALITIES if q not in COUNTED_GOOD for at_ns in own[q]]
        if self.recovered_ns is None or not bad_ns:
            return
        last_ns = max(bad_ns)
        after = [at_ns for q in COUNTED_GOOD for at_ns in own[q] if at_ns > last_ns]
        if after:
            self.recovered_ns = max(self.recovered_ns, min(after) - self._since_ns)
        else:
            self.recovered_ns = None

    def _quality(self, stage: str, output: Output, known: Output | None) -> Quality:
        if output.degraded and not (known is not None and known.degraded):
            return "less"
        if not self._is_same(stage, output.publish_ns):
            return "other"
        if known is None or any(o.newest_ns > output.publish_ns for o in output.origins.values()):
            return "wrong"
        older, newer = self._other_inputs(output, known)
        if older:
            return "less"
        if not newer and self._rules.differs(stage, known.payload, output.payload):
            return "wrong"
        return "good"

    def _other_inputs(self, output: Output, known: Output) -> tuple[bool, bool]:
        """Tell whether an output rests on older inputs than the golden one, and on newer ones."""
        steps = [
            (found.newest_ns - other.newest_ns, self._rules.near_ns.get(source, 0))
            for source, other in known.origins.items()
            if (found := output.origins.get(source)) is not None
        ]
        is_less = len(steps) < len(known.origins)
        older = is_less or any(step_ns < -near_ns for step_ns, near_ns in steps)
        return older, any(step_ns > near_ns for step_ns, near_ns in steps)

    def _measure(self, stage: str, published_ns: Sequence[int]) -> None:
        """Note how long a stage was silent while it ran."""
        for first_ns, last_ns in self._running(stage):
            within = [at_ns for at_ns in published_ns if first_ns <= at_ns < last_ns]
            before = [at_ns for at_ns in within if at_ns <= self._since_ns]
            times = [*before[-1:], *(at_ns for at_ns in within if at_ns > self._since_ns)]
            begin_ns = times[0] if before else max(first_ns, self._since_ns)
            if last_ns < begin_ns:
                continue
            self.gaps_ns += [b - a for a, b in pairwise([begin_ns, *times, last_ns])]
            if last_ns == self._end_ns:
                self.silence_ns = max(self.silence_ns, last_ns - max([begin_ns, *times]))

    def _running(self, stage: str) -> Iterator[tuple[int, int]]:
        """Yield from when to when a stage runs, levels that follow each other joined."""
        begin_ns: int | None = None
        for (first_ns, level), (last_ns, _) in pairwise([*self._levels, (self._end_ns, "")]):
            runs = stage in self._rules.runs_at[level]
            if runs and begin_ns is None:
                begin_ns = first_ns
            elif not runs and begin_ns is not None:
                yield begin_ns, first_ns
                begin_ns = None
            if last_ns == self._end_ns and begin_ns is not None:
                yield begin_ns, self._end_ns
                begin_ns = None


class _Nearest:
    """Outputs by capture time, to within some time."""

    def __init__(self, outputs: Sequence[Output], near_ns: int) -> None:
        self._outputs = sorted(outputs, key=lambda output: output.capture_ns)
        self._captures = [output.capture_ns for output in self._outputs]
        self._near_ns = near_ns

    def of(self, capture_ns: int) -> Output | None:
        place = bisect_left(self._captures, capture_ns)
        near = self._outputs[max(0, place - 1) : place + 1]
        best = min(near, key=lambda output: abs(output.capture_ns - capture_ns), default=None)
        is_near = best is not None and abs(best.capture_ns - capture_ns) <= self._near_ns
        return best if is_near else None


def half_step_ns(times_ns: Sequence[int]) -> int:
    """Return half of the shortest time between two different ones of these; 0 of one."""
    steps = [b - a for a, b in pairwise(sorted(set(times_ns)))]
    return min(steps, default=0) // 2
