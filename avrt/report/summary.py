"""Everything a report says about one run, and the run object that `--json` prints.

The same summary is made while a run goes on and, later, from its record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from avrt.logs.journal import parse_entry
from avrt.logs.merge import TopicCount
from avrt.logs.raw import Anomaly
from avrt.logs.record import EXECUTION
from avrt.logs.recorded import read_pipeline
from avrt.logs.run_file import RunFile
from avrt.metrics.run import RunFigures
from avrt.model.commands import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from avrt.model.spec import PipelineSpec


@dataclass(slots=True)
class RunSummary:
    """One run.

    Attributes:
        timing: "modelled", "recorded", "measured": where execution times come from.
        end_ns: pipeline time of the last decision.
        hangs: jobs whose stage hung; with any the run is not reproducible.
        damage: what was wrong with the log or the record, one line each.
        complete: the run came to its own end and its record was closed.
    """

    pipeline: PipelineSpec
    figures: RunFigures
    timing: str
    conditions: Mapping[str, str]
    end_ns: int = 0
    topics: Mapping[str, TopicCount] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)
    decisions: str = ""
    payloads: str = ""
    hangs: int = 0
    interrupted: bool = False
    damage: list[str] = field(default_factory=list)
    record: str | None = None
    complete: bool = True

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
        for name, part in (("stages", self.pipeline.stages), ("chains", self.pipeline.chains)):
            group = figures[name]
            assert isinstance(group, dict)
            for spec in part:
                group[spec.name] = {**limits(spec), **group[spec.name]}
        return {
            "pipeline": self.pipeline.name,
            "log": {
                "topics": {name: asdict(topic) for name, topic in self.topics.items()},
                "anomalies": [asdict(anomaly) for anomaly in self.anomalies],
            },
            **figures,
            "timing": self.timing,
            "end_ns": self.end_ns,
            "digests": {"decisions": self.decisions, "payloads": self.payloads},
            "reproducible": self.reproducible,
            "broken_guarantees": self.broken_guarantees,
            "hangs": self.hangs,
            "interrupted": self.interrupted,
            "complete": self.complete,
            "damage": self.damage,
            "record": self.record,
            "conditions": dict(self.conditions),
        }


def limits(spec: object) -> dict[str, int | None]:
    """Return what was promised of a stage or a chain."""
    names = ("deadline_ns", "wcet_ns") if hasattr(spec, "deadline_ns") else ()
    promises = {name: getattr(spec, name) for name in names}
    if not names:
        promises["reaction_limit_ns"] = getattr(spec, "reaction_ns", None)
        promises["age_limit_ns"] = getattr(spec, "age_ns", None)
    return promises


def read_summary(path: str | Path) -> RunSummary:
    """Return the summary of a recorded run; of one that was cut short, as far as it goes.

    Raises:
        InputError: the file is no run record.
    """
    with RunFile(path) as run:
        spec = read_pipeline(run, path)
        figures = RunFigures(spec)
        summary = RunSummary(
            spec, figures, run.conditions.get("timing", ""), run.conditions, record=str(path)
        )
        _read_journal(run, summary)
        for line in run.lines(EXECUTION):
            if not line.damaged:
                item = json.loads(line.text)
                figures.stages[item["task"]].measured(item["host_ns"])
        summary.complete = run.complete and run.result is not None
        if run.result is not None:
            _read_result(run.result, summary)
        summary.damage += [str(error) for error in run.damage]
        return summary


def _read_journal(run: RunFile, summary: RunSummary) -> None:
    for line in run.journal():
        try:
            entry = parse_entry(line.text)
        except ValueError as error:
            summary.damage.append(f"journal entry {line.index}: {error}")
            return
        summary.end_ns = entry.at_ns
        for command in entry.commands:
            if isinstance(command, Record):
                summary.figures.add(command.record)


def _read_result(result: Mapping[str, str], summary: RunSummary) -> None:
    summary.decisions = result.get("decisions", "")
    try:
        run = json.loads(result.get("run", "{}"))
        summary.payloads = run["digests"]["payloads"]
        summary.hangs, summary.interrupted = run["hangs"], run["interrupted"]
        summary.damage += run["damage"]
        topics = run["log"]["topics"]
        summary.topics = {name: TopicCount(**topic) for name, topic in topics.items()}
        summary.anomalies = [Anomaly(**anomaly) for anomaly in run["log"]["anomalies"]]
        for name, stage in run["stages"].items():
            summary.figures.stages[name].warm_ns = stage["warmup"]["warm_ns"]
    except (ValueError, KeyError, TypeError) as error:
        summary.damage.append(f"the recorded result is damaged: {error!r}")
