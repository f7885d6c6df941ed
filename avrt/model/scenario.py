"""A scenario before it runs: a pipeline, how its jobs and messages behave, what must come of it.

Plain data, as `avrt.config.scenario` reads it. Times are pipeline ns; what is named (stages,
sources, devices, chains) exists in the pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from avrt.model.records import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from avrt.model.execution import StageModel
    from avrt.model.spec import PipelineSpec

ArrivalKind = Literal["periodic", "sporadic", "burst", "log"]
FaultKind = Literal[
    "source_out", "slow_device", "device_lost", "device_back", "clock_step", "stream_lost", "order"
]
Relation = Literal["at most", "at least", "exactly"]
Scope = Literal["all", "stages", "chains"]
Window = tuple[int, int]
"""From when, to when exclusive, ns: the jobs released meanwhile."""

SHARE = "_share"
COUNTS = ("released", *OUTCOMES, "missed", "violations")
"""Figures that count jobs, and (m,k) violations; missed is every outcome but met."""
SHARES = tuple(f"{name}{SHARE}" for name in (*OUTCOMES, "missed"))
RATE = "_rate"
RATES = (f"met{RATE}",)
"""Jobs a second of a window; without one, of the whole duration."""
RESPONSES = ("p50", "p95", "p99", "max")
BROKEN = ("broken",)
ENDS = ("reaction", "age")
"""Figures of a chain: the longest of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalSpec:
    """How the messages of one source come.

    Attributes:
        period_ns: of periodic captures; the mean distance of sporadic ones; from one burst to the
            next.
        distance_ns: the least distance of sporadic captures; that of captures within a burst.
        size: captures in a burst.
        offset_ns: the first capture.
        delay_ns: from every capture to its arrival at least.
        jitter_ns: what comes on top of it at most, uniform. Messages of a source do not overtake
            each other.
        drift_ppb: how much longer than declared the period is, parts in 10^9.
        drop_share: how likely each message is lost.
        drop_indices: these are lost, counted from 0.
        log: path of the log or run record whose messages come again.
    """

    source: str
    kind: ArrivalKind
    period_ns: int = 0
    distance_ns: int = 0
    size: int = 1
    offset_ns: int = 0
    delay_ns: int = 0
    jitter_ns: int = 0
    drift_ppb: int = 0
    drop_share: float = 0.0
    drop_indices: frozenset[int] = frozenset()
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """One thing that goes wrong.

    Attributes:
        target: the source, device or stage that it befalls, or what is ordered.
        end_ns: when it is over, exclusive; None for never.
        factor: of a slow device: how many times as long a job takes that starts meanwhile.
        step_ns: of a clock step: how far the source's stamps move.
    """

    kind: FaultKind
    target: str
    at_ns: int
    end_ns: int | None = None
    factor: float = 1.0
    step_ns: int = 0

    def covers(self, at_ns: int) -> bool:
        """Whether it lasts at this time."""
        return self.at_ns <= at_ns and (self.end_ns is None or at_ns < self.end_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadSpec:
    """What scheduling costs on one device, ns; see `avrt.drivers.overheads` for who pays when.

    Attributes:
        release_ns: a job's release, once a job.
        decision_ns: each time a job is chosen for a slot.
        switch_ns: each time another job takes over a slot.
        launch_ns: each time a job, or a segment of it, is handed to the device.
    """

    release_ns: int = 0
    decision_ns: int = 0
    switch_ns: int = 0
    launch_ns: int = 0

    def begin_ns(self, segment: int, *, keeps_slot: bool) -> int:
        """Return what the start of a segment costs; only a later one can keep its job's slot."""
        if segment == 0:
            return self.start_ns
        return self.segment_ns - (self.switch_ns if keeps_slot else 0)

    @property
    def start_ns(self) -> int:
        """What the first start of a job costs."""
        return self.release_ns + self.segment_ns

    @property
    def segment_ns(self) -> int:
        """What the start of a later segment costs, if another job was on the slot."""
        return self.decision_ns + self.launch_ns + self.switch_ns

    @property
    def resume_ns(self) -> int:
        """What a resume after a preemption costs."""
        return self.decision_ns + self.switch_ns


NO_OVERHEADS: Mapping[str, OverheadSpec] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must hold of a figure of the run.

    Attributes:
        scope: of all stages together, of one stage, of one chain.
        name: the stage or chain; "" for all.
        figure: as the user wrote it: `late`, `late_share`, `p99`, `reaction`.
        limit: a count, a share, a rate in Hz, or ns.
        told: the limit as the user wrote it.
        window: of these jobs only; None for all of the run.
    """

    scope: Scope
    name: str
    figure: str
    relation: Relation
    limit: Fraction
    told: str
    window: Window | None = None

    def holds(self, found: Fraction | int) -> bool:
        """Whether a figure is within the limit."""
        match self.relation:
            case "at most":
                return found <= self.limit
            case "at least":
                return found >= self.limit
            case "exactly":
                return found == self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSpec:
    """Everything a simulation needs to know before time starts.

    Attributes:
        duration_ns: releases happen before this time only.
        execution: by stage.
        arrivals: one for every source of the pipeline.
        overheads: by device; on a device that is not here scheduling costs nothing.
    """

    name: str
    pipeline: PipelineSpec
    duration_ns: int
    seed: int
    execution: Mapping[str, StageModel]
    arrivals: tuple[ArrivalSpec, ...]
    faults: tuple[FaultSpec, ...] = ()
    expect: tuple[Expectation, ...] = ()
    overheads: Mapping[str, OverheadSpec] = field(default_factory=dict)
