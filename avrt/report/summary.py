"""Everything a report says about one run, and the run object that `--json` prints.

The same summary is made while a run goes on and, later, from its record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

from avrt.logs.merge import TopicCount
from avrt.logs.raw import Anomaly
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.recorded import FLIGHT, WHAT_IF, read_overheads, read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.logs.record.run_record import EXECUTION, FLAWS, SENSORS
from avrt.metrics.distribution import Distribution
from avrt.metrics.incidents import INCIDENTS, told
from avrt.metrics.levels import level_figures
from avrt.metrics.resources import Level, ResourceLoad
from avrt.metrics.run import RunFigures
from avrt.model.codec import decode, from_json
from avrt.model.commands import Record
from avrt.model.guard import FlawRecord, SensorRecord
from avrt.report.bounds import BoundsCheck, check_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from avrt.metrics.incidents import Incident
    from avrt.metrics.levels import LevelFigures
    from avrt.model.commands import Command
    from avrt.model.spec import PipelineSpec

UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading something that was written otherwise, or damaged since, may raise."""
NO_WAKEUPS = Distribution().summary()


@dataclass(frozen=True, slots=True)
class FlightSummary:
    """What the flight recorder of a live run wrote.

    Attributes:
        files: paths, one for each time in which something went wrong.
        unwritten: incidents that are in none.
        failure: why it could not go on writing, or "".
    """

    files: tuple[str, ...] = ()
    unwritten: int = 0
    failure: str = ""


@dataclass(slots=True)
class RunSummary:
    """One run.

    Attributes:
        timing: "modelled", "recorded", "measured": where execution times come from.
        begin_ns: pipeline time of the first decision that is known; 0 but for a flight record.
        end_ns: pipeline time of the last decision.
        hangs: jobs whose stage hung; with any the run is not reproducible.
        not_recorded: by stage, outputs that are not in the record, and why the first is not.
        wakeup_late_ns: at the wall clock, how late the driver was at planned instants; pipeline ns.
        damage: what was wrong with the log or the record, one line each.
        complete: the run came to its own end and its record was closed.
        record_failure: why a live run could not go on recording; "" when it could.
        flight: what the flight recorder of a live run without a record wrote.
        resources: what a live run used of its host.
        incident: what a flight record was written for, where the record has it.
    """

    pipeline: PipelineSpec
    figures: RunFigures
    timing: str
    conditions: Mapping[str, str]
    begin_ns: int = 0
    end_ns: int = 0
    topics: Mapping[str, TopicCount] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)
    decisions: str = ""
    payloads: str = ""
    hangs: int = 0
    interrupted: bool = False
    not_recorded: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    wakeup_late_ns: Mapping[str, int | None] = field(default_factory=lambda: dict(NO_WAKEUPS))
    damage: list[str] = field(default_factory=list)
    record: str | None = None
    complete: bool = True
    record_failure: str = ""
    flight: FlightSummary = field(default_factory=FlightSummary)
    resources: ResourceLoad = field(default_factory=ResourceLoad)
    incident: Incident | None = None
    _bounds: BoundsCheck | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def bounds(self) -> BoundsCheck:
        """The run against what the analyses promise; for a run that is over, computed once."""
        if self._bounds is None:
            self._bounds = check_bounds(self.figures)
        return self._bounds

    @property
    def levels(self) -> LevelFigures | None:
        """At which levels of its ladder the run was; None without a ladder."""
        return level_figures(self.pipeline, self.figures.modes, self.begin_ns, self.end_ns)

    @property
    def reproducible(self) -> bool:
        """Whether the same call gives the same decisions again."""
        return self.timing != "measured" and not self.hangs and not self.interrupted

    @property
    def broken_guarantees(self) -> list[str]:
        """The stages with guarantee "hard" that have jobs which were not met."""
        return [
            stage.name
            for stage in self.pipeline.stages
            if stage.guarantee == "hard" and self.figures.stages[stage.name].not_met
        ]

    def data(self) -> dict[str, object]:
        """Return the run object: plain data, times in ns."""
        figures = self.figures.summary()
        limits = {"stages": _stage_limits(self.pipeline), "chains": _chain_limits(self.pipeline)}
        for part, promised in limits.items():
            group = figures[part]
            assert isinstance(group, dict)
            figures[part] = {name: {**promised[name], **group[name]} for name in promised}
        return {
            "pipeline": self.pipeline.name,
            "log": {
                "topics": {name: asdict(topic) for name, topic in self.topics.items()},
                "anomalies": [asdict(anomaly) for anomaly in self.anomalies],
            },
            **figures,
            "levels": None if self.levels is None else self.levels.summary(),
            "bounds": self.bounds.data(),
            "timing": self.timing,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "digests": {"decisions": self.decisions, "payloads": self.payloads},
            "reproducible": self.reproducible,
            "broken_guarantees": self.broken_guarantees,
            "hangs": self.hangs,
            "interrupted": self.interrupted,
            "not_recorded": {
                name: {"count": count, "why": why}
                for name, (count, why) in self.not_recorded.items()
            },
            "wakeup_late_ns": dict(self.wakeup_late_ns),
            "complete": self.complete,
            "damage": self.damage,
            "record": self.record,
            "record_failure": self.record_failure,
            "flight": {**asdict(self.flight), "files": list(self.flight.files)},
            "incident_ns": None if self.incident is None else self.incident.at_ns,
            "host": asdict(self.resources),
            "conditions": dict(self.conditions),
        }


Limits = dict[str, dict[str, int | None]]


def _stage_limits(spec: PipelineSpec) -> Limits:
    """Return what was declared of each stage."""
    return {s.name: {"deadline_ns": s.deadline_ns, "wcet_ns": s.wcet_ns} for s in spec.stages}


def _chain_limits(spec: PipelineSpec) -> Limits:
    """Return what was promised of each chain."""
    return {
        chain.name: {"reaction_limit_ns": chain.reaction_ns, "age_limit_ns": chain.age_ns}
        for chain in spec.chains
    }


def read_summary(path: str | Path) -> RunSummary:
    """Return the summary of a recorded run; of one that was cut short, as far as it goes.

    Raises:
        InputError: the file is no run record.
    """
    with RunFile(path) as run:
        spec = read_pipeline(run, path)
        overheads = read_overheads(run.conditions, path)
        figures = RunFigures(
            spec,
            overheads,
            is_repeated=WHAT_IF in run.conditions,
            is_whole=FLIGHT not in run.conditions,
        )
        summary = RunSummary(
            spec, figures, run.conditions.get("timing", ""), run.conditions, record=str(path)
        )
        _read_journal(run, summary)
        _read_execution(run, summary)
        _read_sensors(run, summary)
        summary.complete = run.complete and run.result is not None
        if run.result is not None:
            _read_result(run.result, summary)
        summary.complete = summary.complete and not summary.interrupted
        summary.damage += [str(error) for error in run.damage]
        return summary


def _read_journal(run: RunFile, summary: RunSummary) -> None:
    """Take in every entry that is sound; the others are counted."""
    left_out, begin_ns = 0, None
    for line in run.journal():
        try:
            if line.damaged:
                left_out += 1
                summary.figures.assumptions.unseen()
                continue
            entry = parse_entry(line.text)
            summary.figures.watch(entry.at_ns, entry.events, entry.commands)
            for command in entry.commands:
                summary.figures.take(command)
            _look_for_incident(entry.commands, summary)
        except UNUSABLE as error:
            summary.damage.append(f"journal entry {line.index} cannot be used: {error}")
            return
        if FLIGHT in summary.conditions and begin_ns is None:
            summary.begin_ns = begin_ns = entry.at_ns
        summary.end_ns = entry.at_ns
    if left_out:
        summary.damage.append(f"{left_out} damaged journal entries are not in the figures")


def _look_for_incident(commands: Sequence[Command], summary: RunSummary) -> None:
    """Note what a flight record was written for, when it comes; its conditions have the words."""
    what = summary.conditions.get(FLIGHT)
    if what is None or summary.incident is not None:
        return
    for command in commands:
        record = command.record if isinstance(command, Record) else None
        if isinstance(record, INCIDENTS) and told(record) == what:
            summary.incident = record
            return


def _read_execution(run: RunFile, summary: RunSummary) -> None:
    for line in run.lines(EXECUTION):
        try:
            if not line.damaged:
                item = json.loads(line.text)
                fault = item.get("fault")
                stage = summary.figures.stages[item["task"]]
                stage.measured(_whole(item["host_ns"]), None if fault is None else str(fault))
        except UNUSABLE as error:
            summary.damage.append(f"execution {line.index} cannot be used: {error!r}")
            return


def _read_sensors(run: RunFile, summary: RunSummary) -> None:
    """Take in what guards noted; what is damaged or of no guard is told."""
    figures = summary.figures
    for topic in (SENSORS, FLAWS):
        for line in run.lines(topic):
            try:
                if line.damaged:
                    raise ValueError("expected undamaged notes, found a wrong CRC")
                data = from_json(line.text)
                if topic == SENSORS:
                    figures.sensor(decode(SensorRecord, data))
                else:
                    figures.flaw(decode(FlawRecord, data))
            except UNUSABLE as error:
                summary.damage.append(f"note {line.index} of {topic} cannot be used: {error!r}")
                break


def _read_result(result: Mapping[str, str], summary: RunSummary) -> None:
    """Take what only the run itself knew from the run object that it left."""
    try:
        run = json.loads(result["run"])
        topics = {str(name): _topic(topic) for name, topic in run["log"]["topics"].items()}
        anomalies = [_anomaly(anomaly) for anomaly in run["log"]["anomalies"]]
        not_recorded = {
            str(name): (_whole(item["count"]), str(item["why"]))
            for name, item in run["not_recorded"].items()
        }
        warm_ns = {
            name: run["stages"][name]["warmup"]["warm_ns"] for name in summary.figures.stages
        }
        told = {
            name: {
                str(text): _whole(n) for text, n in run["stages"][name].get("anomalies", {}).items()
            }
            for name in summary.figures.stages
        }
        for name, ns in warm_ns.items():
            summary.figures.stages[name].warm_ns = None if ns is None else _whole(ns)
            summary.figures.stages[name].anomalies = told[name]
        late = run.get("wakeup_late_ns", NO_WAKEUPS)
        wakeup_late_ns = {
            name: None if late[name] is None else _whole(late[name]) for name in NO_WAKEUPS
        }
        host = _load(run.get("host", {}))
        summary.decisions = str(result["decisions"])
        summary.payloads = str(run["digests"]["payloads"])
        summary.hangs, summary.interrupted = _whole(run["hangs"]), bool(run["interrupted"])
        summary.damage += [str(problem) for problem in list(run["damage"])]
    except UNUSABLE as error:
        summary.damage.append(f"the recorded result is damaged: {error!r}")
        return
    summary.topics, summary.anomalies = topics, anomalies
    summary.not_recorded = not_recorded
    summary.wakeup_late_ns = wakeup_late_ns
    summary.resources = host


def _load(data: Mapping[str, object]) -> ResourceLoad:
    if not data:
        return ResourceLoad()
    levels, misses = data["levels"], data["misses"]
    if not (isinstance(levels, dict) and isinstance(misses, dict)):
        raise TypeError("expected levels and misses by name")
    return ResourceLoad(
        _whole(data["samples"]),
        {str(name): Level(**level) for name, level in levels.items()},
        {str(name): _whole(count) for name, count in misses.items()},
        str(data["evidence"]),
    )


def _topic(data: Mapping[str, object]) -> TopicCount:
    names = [f.name for f in fields(TopicCount) if f.name != "type"]
    return TopicCount(str(data["type"]), *(_whole(data[name]) for name in names))


def _anomaly(data: Mapping[str, object]) -> Anomaly:
    topic, at_ns = data["topic"], data["at_ns"]
    return Anomaly(
        str(data["kind"]),
        None if topic is None else str(topic),
        None if at_ns is None else _whole(at_ns),
        _whole(data["count"]),
        str(data["detail"]),
    )


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {value!r:.40}")
    return value
