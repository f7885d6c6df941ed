"""How long a job takes in virtual time.

* modelled: the declared wcet;
* recorded: what it took in another run, by task and job index;
* measured: what it takes here; stages then run one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from avrt.errors import InputError
from avrt.logs.journal import parse_entry
from avrt.logs.run_file import RunFile
from avrt.model.commands import Record
from avrt.model.records import JobRecord

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.model.spec import PipelineSpec

TimingLabel = Literal["modelled", "recorded", "measured"]


class Timing(Protocol):
    """Execution times of jobs, ns."""

    label: TimingLabel

    def cost_ns(self, task: str, index: int) -> int | None:
        """Return what a job takes, or None if only running it tells."""


class ModelTiming:
    """Every job takes its declared wcet."""

    label: TimingLabel = "modelled"

    def __init__(self, spec: PipelineSpec) -> None:
        self._wcet_ns = {stage.name: stage.wcet_ns for stage in spec.stages}

    def cost_ns(self, task: str, index: int) -> int | None:
        del index
        return self._wcet_ns[task]


class MeasuredTiming:
    """Every job takes what it takes here."""

    label: TimingLabel = "measured"

    def cost_ns(self, task: str, index: int) -> int | None:
        del task, index
        return None


class RecordedTiming:
    """Every job takes what it took in a recorded run; unknown ones take their wcet."""

    label: TimingLabel = "recorded"

    def __init__(self, spec: PipelineSpec, path: str | Path) -> None:
        self._fallback = ModelTiming(spec)
        self._cost_ns: dict[tuple[str, int], int] = {}
        with RunFile(path) as run:
            for line in run.journal():
                try:
                    entry = parse_entry(line.text)
                except ValueError as error:
                    place = f"{path}, journal entry {line.index}"
                    raise InputError(str(error), place, line.index) from None
                for command in entry.commands:
                    if isinstance(command, Record) and isinstance(command.record, JobRecord):
                        self._note(command.record)

    def cost_ns(self, task: str, index: int) -> int | None:
        known = self._cost_ns.get((task, index))
        return self._fallback.cost_ns(task, index) if known is None else known

    def _note(self, job: JobRecord) -> None:
        if job.outcome in {"met", "late"}:
            self._cost_ns[job.task, job.index] = max(1, job.executed_ns)
