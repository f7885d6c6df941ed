"""When the jobs of a stage are released, counted from the nominal arrival of what began them.

Along triggers a release inherits the period of its *root*, the source or timer at the beginning,
and comes as early as its predecessor can publish and as late as it may (Tindell & Clark 1994,
holistic analysis): the difference is its release jitter. Publication at the deadline takes the
predecessor's own variation away. Two publications of a task are a best case of it apart, for its
jobs run one after another.

A synchronised set needs each of its required inputs, so it comes no more often than the rarest of
them, and at the latest when its timeout or its slowest input has come; without a required input
every message can make a set of its own.

A source's captures are nominal arrivals, and a message arrives the source's latency later, and up
to the declared jitter of the stages that it releases. A timer stage captures when it starts, unless
it publishes at its deadline; what is due after a capture, or times out after one, is so much later.
The times of a set count from its earliest capture.

Frozen plain data; the fixed point over all stages is in `holistic`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.model.spec import PipelineSpec, SourceSpec, StageSpec


@dataclass(frozen=True, slots=True)
class Arrival:
    """Releases of a stage, or publications of a source or stage.

    Attributes:
        root: the source or timer stage that began it; "" for a synchronised set, or where messages
            are left out: then they stand in no known relation to others.
        earliest_ns, latest_ns: from the root's nominal arrival, or a set's earliest capture.
        gap_ns: least distance of two of them, 0 when none is known.
        captured_ns: how long after that the capture is at the latest; never before.
        latency_ns: from the root's nominal arrival to all that comes of it, at least.
    """

    root: str
    period_ns: int
    earliest_ns: int
    latest_ns: int
    gap_ns: int = 0
    captured_ns: int = 0
    latency_ns: int = 0

    @property
    def next_ns(self) -> int:
        """When something can come of the root's next nominal arrival."""
        return self.period_ns + self.latency_ns

    @property
    def jitter_ns(self) -> int:
        return self.latest_ns - self.earliest_ns


def source_publications(spec: PipelineSpec) -> dict[str, Arrival | None]:
    """Return what each source sends; None for one that declares no rate."""
    return {source.name: _messages(source) for source in spec.sources}


def _messages(source: SourceSpec) -> Arrival | None:
    if source.period_ns is None:
        return None
    late_ns = source.latency_ns
    return Arrival(source.name, source.period_ns, late_ns, late_ns, latency_ns=late_ns)


def released(stage: StageSpec, published: Mapping[str, Arrival | None]) -> Arrival | None:
    """Return when a stage is released, None if something upstream is not known."""
    if stage.period_ns is not None:
        return Arrival(stage.name, stage.period_ns, 0, stage.jitter_ns)
    trigger = stage.trigger_input
    if trigger is None:
        return _synchronised(stage, published)
    before = published[trigger.source]
    if before is None:
        return None
    latest_ns = before.latest_ns + stage.jitter_ns
    gap_ns = 0 if stage.jitter_ns else before.gap_ns
    release = replace(before, latest_ns=latest_ns, gap_ns=gap_ns)
    return release if stage.every == 1 else _thinned(release, stage.every)


def _thinned(release: Arrival, every: int) -> Arrival:
    """Return the releases by each n-th message: of another message than those of other stages."""
    return replace(release, root="", period_ns=every * release.period_ns)


def publication(stage: StageSpec, release: Arrival, done_ns: int) -> Arrival:
    """Return when the outputs of a stage appear.

    `done_ns` is when a job is done at the latest, from the root's nominal arrival.
    """
    best_ns = stage.bcet_ns or 1
    earliest_ns = release.earliest_ns + best_ns
    latest_ns = done_ns
    gap_ns = best_ns
    if stage.publish == "at_deadline":
        gap_ns = 0
        from_capture = stage.deadline_from == "capture"
        due_ns = stage.deadline_ns
        earliest_ns = max(earliest_ns, due_ns + (0 if from_capture else release.earliest_ns))
        due_from_ns = release.captured_ns if from_capture else release.latest_ns
        latest_ns = max(latest_ns, due_ns + due_from_ns)
    return replace(
        release,
        earliest_ns=earliest_ns,
        latest_ns=latest_ns,
        gap_ns=gap_ns,
        captured_ns=_captured_ns(stage, release, done_ns),
    )


def _captured_ns(stage: StageSpec, release: Arrival, done_ns: int) -> int:
    """Return how late the capture of an output can be.

    No policy knows how long a job will take: one that started too late to end in time after its
    wcet would do so in some legal run. Of one that may be aborted only the best case is known.
    A set without an input that has become too old begins with its next capture.
    """
    if stage.sync is not None:
        may_lack = any(item.optional and item.max_age_ns is not None for item in stage.inputs)
        return stage.sync.tolerance_ns if may_lack else 0
    if stage.period_ns is None:
        return release.captured_ns
    if stage.publish == "at_deadline":
        return 0
    if stage.on_miss == "abort" or stage.segments:
        return done_ns - (stage.bcet_ns or 1)
    return done_ns - min(stage.wcet_ns, stage.budget_ns or stage.wcet_ns)


def every_set(stage: StageSpec, published: Mapping[str, Arrival | None]) -> Arrival | None:
    """Return the releases of all sets of a synchronised stage, also of those that stay incomplete.

    Those are skipped when their turn comes; until then they wait like others.
    """
    inputs = [published[item.source] for item in stage.inputs]
    known = [arrival for arrival in inputs if arrival is not None]
    if stage.sync is None or len(known) < len(inputs):
        return None
    return _each_alone(stage, known)


def _synchronised(stage: StageSpec, published: Mapping[str, Arrival | None]) -> Arrival | None:
    inputs = [published[item.source] for item in stage.inputs]
    known = [arrival for arrival in inputs if arrival is not None]
    if len(known) < len(inputs):
        return None
    latest_ns = _latest_ns(stage, known)
    required = [
        arrival for item, arrival in zip(stage.inputs, known, strict=True) if not item.optional
    ]
    if not required:
        return _each_alone(stage, known)
    rarest = max(required, key=lambda arrival: arrival.period_ns)
    earliest_ns = min(rarest.earliest_ns - rarest.captured_ns, latest_ns)
    return Arrival("", rarest.period_ns, earliest_ns, latest_ns)


def _latest_ns(stage: StageSpec, inputs: Sequence[Arrival]) -> int:
    """Return how long after the earliest capture of a set it is released."""
    assert stage.sync is not None
    slowest_ns = max(arrival.latest_ns for arrival in inputs)
    return max(stage.sync.timeout_ns, slowest_ns) + stage.jitter_ns


def _each_alone(stage: StageSpec, inputs: Sequence[Arrival]) -> Arrival:
    """Return one arrival that has at least as many releases in any window as all of these."""
    latest_ns = _latest_ns(stage, inputs)
    rate = sum(Fraction(1, arrival.period_ns) for arrival in inputs)
    period_ns = max(1, int(1 / rate))
    lead = sum(Fraction(latest_ns + i.captured_ns, i.period_ns) for i in inputs)
    jitter_ns = ceil(period_ns * (lead + len(inputs) - 1))
    return Arrival("", period_ns, 0, max(latest_ns, jitter_ns))
