"""The figures of a run, drawn from its records: outcomes, responses, misses explained, chains.

The same class reads records while a run goes on and from the journal of one that is over, so a
report made later says the same.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from avrt.metrics.assumptions import Assumptions
from avrt.metrics.distribution import Distribution
from avrt.metrics.sensors import SensorFigures
from avrt.metrics.sets import SetFigures
from avrt.metrics.streams import Streams
from avrt.metrics.votes import VoteFigures
from avrt.model.commands import Dispatch, Record
from avrt.model.records import (
    OUTCOMES,
    AnyRecord,
    ChainBroken,
    ChainRecord,
    FaultRecord,
    JobRecord,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
    SyncRecord,
    TableRecord,
    VoteRecord,
    WindowRecord,
)
from avrt.model.scenario import NO_OVERHEADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.guard import FlawRecord, SensorRecord
    from avrt.model.scenario import OverheadSpec
    from avrt.model.spec import PipelineSpec

MISSES_KEPT = 20
ANOMALIES_KEPT = 32  # kinds a stage
TAKEN_ALONG = "what overheads cost in the recorded run is part of what its jobs take here"
MIDDLE = "what was broken before this record begins is not known"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class StageFigures:
    """One stage: what became of its jobs, and why the late ones were late.

    Attributes:
        highs: the jobs with a longer response than all before; the first job above any limit is
            one of them.
    """

    def __init__(self, *, is_whole: bool = True) -> None:
        """Begin with no jobs; of a run that is seen from its middle on, the first one is not 0."""
        self.highs: list[JobRecord] = []
        self._is_whole = is_whole
        self._released: dict[str, range] = {}
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.response = Distribution()
        self.execution = Distribution()
        self.host_execution = Distribution()
        self.host_execution_by_shape: dict[str, Distribution] = {}
        self.warm_ns: int | None = None
        self.first_ns: int | None = None
        self.first_fault: str | None = None
        self.reported_late = 0
        self.overruns = 0
        self.start_late = Distribution()
        self.violations = 0
        self.absent: Counter[str] = Counter()
        self.anomalies: dict[str, int] = {}
        self._anomaly_of: dict[str, str] = {}
        self.causes: Counter[tuple[str, str]] = Counter()
        self.votes = VoteFigures()

    @property
    def worst_ns(self) -> int | None:
        """The longest response of a job that gave a result."""
        return self.highs[-1].response_ns if self.highs else None

    def job(self, record: JobRecord) -> None:
        self.seen(record.task, record.index)
        self.outcomes[record.outcome] += 1
        if record.reason:
            self.reasons[f"{record.outcome}: {record.reason}"] += 1
        if record.outcome in {"met", "late"}:
            self.response.add(record.response_ns)
            if not self.highs or record.response_ns > self.highs[-1].response_ns:
                self.highs.append(record)
            self.execution.add(record.executed_ns)
        self.reported_late += record.reported_late
        self.absent.update(record.absent)

    def miss(self, record: MissRecord) -> None:
        for interval in record.intervals:
            self.causes[interval.kind, interval.by] += interval.duration_ns

    def seen(self, task: str, index: int) -> None:
        """Note a released job; the jobs of a task are counted from 0."""
        first = 0 if self._is_whole else index
        known = self._released.get(task, range(first, first))
        self._released[task] = range(min(known.start, index), max(known.stop, index + 1))

    @property
    def released(self) -> int:
        """Jobs known to be released: one that has neither started nor ended is not."""
        return sum(map(len, self._released.values()))

    def measured(self, host_ns: int, fault: str | None = None, shape: str = "") -> None:
        """Note what a job took here, and what went wrong; the first time is warm-up, kept apart.

        `shape` says how large its input was, where that is known.
        """
        if self.first_fault is None:
            self.first_fault = fault
        if self.first_ns is None:
            self.first_ns = host_ns
        else:
            self.host_execution.add(host_ns)
            if shape:
                self.host_execution_by_shape.setdefault(shape, Distribution()).add(host_ns)

    def told(self, anomalies: Iterable[str]) -> None:
        """Note what an output says is wrong; texts that differ in numbers only count as the first.

        No more than ANOMALIES_KEPT different ones are kept.
        """
        for text in anomalies:
            kind = NUMBER.sub("#", text)
            if kind in self._anomaly_of or len(self._anomaly_of) < ANOMALIES_KEPT:
                first = self._anomaly_of.setdefault(kind, text)
                self.anomalies[first] = self.anomalies.get(first, 0) + 1

    def jobs(self) -> dict[str, int]:
        """Return the count of each outcome; what is released and has none is open."""
        counts: dict[str, int] = {"released": self.released}
        counts.update((outcome, self.outcomes[outcome]) for outcome in OUTCOMES)
        counts["open"] = self.released - sum(self.outcomes.values())
        return counts

    @property
    def not_met(self) -> int:
        """Jobs that ended as anything but met."""
        return sum(self.outcomes.values()) - self.outcomes["met"]

    def summary(self) -> dict[str, object]:
        return {
            "jobs": self.jobs(),
            "reasons": dict(sorted(self.reasons.items())),
            "response_ns": self.response.summary(),
            "execution_ns": self.execution.summary(),
            "host_execution_ns": self.host_execution.summary(),
            "warmup": {"warm_ns": self.warm_ns, "first_job_ns": self.first_ns},
            "first_fault": self.first_fault,
            "reported_late": self.reported_late,
            "overruns": self.overruns,
            "start_late_ns": self.start_late.summary(),
            "window_violations": self.violations,
            "absent_inputs": dict(sorted(self.absent.items())),
            "anomalies": dict(self.anomalies),
            "votes": self.votes.summary(),
            "late_because": [
                {"kind": kind, "by": by, "ns": total_ns}
                for (kind, by), total_ns in sorted(
                    self.causes.items(), key=lambda item: (-item[1], item[0])
                )
            ],
        }


class ChainFigures:
    """One chain: how its promises went.

    Attributes:
        highs: the outputs with a longer reaction or age than all before.
    """

    def __init__(self) -> None:
        self.highs: list[ChainRecord] = []
        self.reaction = Distribution()
        self.age = Distribution()
        self.path = Distribution()
        self.broken: Counter[str] = Counter()

    @property
    def worst_ns(self) -> int | None:
        return longest_ns(self.highs[-1]) if self.highs else None

    def output(self, record: ChainRecord) -> None:
        for figure, value in (
            (self.reaction, record.reaction_ns),
            (self.age, record.age_ns),
            (self.path, record.path_ns),
        ):
            if value is not None:
                figure.add(value)
        if longest_ns(record) > (self.worst_ns or 0):
            self.highs.append(record)

    def summary(self) -> dict[str, object]:
        return {
            "reaction_ns": self.reaction.summary(),
            "age_ns": self.age.summary(),
            "path_ns": self.path.summary(),
            "broken": sum(self.broken.values()),
            "broken_promises": dict(sorted(self.broken.items())),
        }


class RunFigures:
    """All figures of one run.

    Args:
        spec: the pipeline.
        overheads: what scheduling costs in the run, by device.
        is_repeated: it is a what-if, in which jobs take what they took in another run.
        is_whole: it is seen from its beginning.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        overheads: Mapping[str, OverheadSpec] = NO_OVERHEADS,
        *,
        is_repeated: bool = False,
        is_whole: bool = True,
    ) -> None:
        self.spec = spec
        self.overheads = overheads
        self.why_unbounded = TAKEN_ALONG if is_repeated and overheads else ""
        if not is_whole:
            self.why_unbounded = MIDDLE
        self.assumptions = Assumptions(spec, overheads)
        self.stages = {stage.name: StageFigures(is_whole=is_whole) for stage in spec.stages}
        self.chains = {chain.name: ChainFigures() for chain in spec.chains}
        self.streams = Streams(spec)
        self.sensors: dict[str, SensorFigures] = {}
        self.misses: list[MissRecord] = []
        self.miss_count = 0
        self.modes: list[ModeRecord] = []
        self.faults: Counter[str] = Counter()
        self.resources: list[ResourceRecord] = []
        self.sets = {s.name: SetFigures(s) for s in spec.stages if s.sync is not None}
        self._stage_of = {task: stage.name for stage in spec.stages for task in stage.task_names}

    def watch(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one call of the kernel whole: whether the run keeps to what was declared."""
        self.assumptions.note(at_ns, events, commands)

    def take(self, command: Command) -> None:
        """Take in one command of the kernel: it says what happened, or what begins."""
        if isinstance(command, Record):
            self.add(command.record)
        elif isinstance(command, Dispatch):
            self.stage_of(command.task).seen(command.task, command.index)

    def sensor(self, record: SensorRecord) -> None:
        """Take in the state of a sensor with a guard, at the beginning or when it changes."""
        self.sensors.setdefault(record.source, SensorFigures()).change(record)

    def flaw(self, record: FlawRecord) -> None:
        """Take in a message that was not as it should be."""
        self.sensors.setdefault(record.source, SensorFigures()).flaw(record)

    def add(self, record: AnyRecord) -> None:  # noqa: C901, PLR0912 - one case a record
        """Take in one record."""
        match record:
            case JobRecord():
                self.stages[record.stage].job(record)
                self.streams.job(record)
            case MissRecord():
                self._miss(record)
            case ChainRecord():
                self.chains[record.chain].output(record)
            case ChainBroken():
                self.chains[record.chain].broken[record.promise] += 1
            case OverrunRecord():
                self.stage_of(record.task).overruns += 1
            case TableRecord():
                self.stage_of(record.task).start_late.add(record.late_ns)
            case WindowRecord():
                self.stage_of(record.task).violations += 1
            case FaultRecord():
                self.faults[f"{record.task}: {record.fault}"] += 1
            case SyncRecord():
                self.sets[record.stage].add(record)
            case ResourceRecord():
                self.resources.append(record)
            case VoteRecord():
                self.stages[record.stage].votes.vote(record)
            case ModeRecord():
                self.modes.append(record)

    def stage_of(self, task: str) -> StageFigures:
        """Return the figures of the stage that a task belongs to."""
        return self.stages[self._stage_of[task]]

    def jobs(self) -> dict[str, int]:
        """Return the outcomes over all stages; they sum to `released`."""
        total: Counter[str] = Counter()
        for stage in self.stages.values():
            total.update(stage.jobs())
        return {name: total[name] for name in ("released", *OUTCOMES, "open")}

    @property
    def broken_promises(self) -> int:
        """How many deadlines, (m,k) windows and chain limits were not kept."""
        chains = sum(sum(chain.broken.values()) for chain in self.chains.values())
        windows = sum(stage.violations for stage in self.stages.values())
        jobs = sum(stage.not_met for stage in self.stages.values())
        return jobs + chains + windows

    def summary(self) -> dict[str, object]:
        """Return the run object's part that records decide."""
        return {
            "jobs": self.jobs(),
            "misses": self.miss_count,
            "stages": {name: stage.summary() for name, stage in self.stages.items()},
            "chains": {name: chain.summary() for name, chain in self.chains.items()},
            **self.streams.summary(),
            "modes": [
                {"mode": m.mode, "at_ns": m.at_ns, "cause": m.cause, "entered": m.entered}
                for m in self.modes
            ],
            "sensors": {name: sensor.summary() for name, sensor in self.sensors.items()},
            "faults": dict(sorted(self.faults.items())),
            "resources": [
                {"name": r.name, "at_ns": r.at_ns, "state": r.state} for r in self.resources
            ],
            "sets": {name: sets.summary() for name, sets in self.sets.items()},
        }

    def _miss(self, record: MissRecord) -> None:
        self.miss_count += 1
        self.stage_of(record.task).miss(record)
        if len(self.misses) < MISSES_KEPT:
            self.misses.append(record)


def longest_ns(record: ChainRecord) -> int:
    """Return the longer of an output's reaction and age: one bound holds for both."""
    return max(record.reaction_ns or 0, record.age_ns or 0)
