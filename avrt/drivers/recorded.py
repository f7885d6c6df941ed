"""What a scenario takes from files: execution times of recorded runs, arrivals of recorded logs.

Execution times are what jobs took on the host that made the record, whatever time that run charged.
A histogram leaves out a stage's first job, which is warm-up; a trace keeps it, so that job k stays
job k. Arrivals of a run record come from its journal, those of any other log from its messages.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.drivers.scenario import Prepared
from avrt.errors import InputError, SpecError, did_you_mean
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.logs.record.run_record import EXECUTION, JOURNAL
from avrt.model.events import Arrived
from avrt.model.execution import ByDevice, Mixture, Recorded, Sampled, Traced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.drivers.scenario import PreparedModel
    from avrt.model.execution import DrawnModel, ExecutionModel, StageModel
    from avrt.model.scenario import ScenarioSpec
    from avrt.model.spec import SourceSpec

Times = list[tuple[int, int]]


def prepare(spec: ScenarioSpec) -> Prepared:
    """Read what a scenario takes from runs and logs.

    Raises:
        SpecError: a run has no such stage, or a log no such topic.
        InputError: a file is missing, damaged, or no log.
    """
    models = {stage: _prepared(model) for stage, model in spec.execution.items()}
    by_log: dict[str, list[SourceSpec]] = {}
    for item in spec.arrivals:
        if item.kind == "log":
            by_log.setdefault(item.log, []).append(spec.pipeline.source(item.source))
    logged: dict[str, Times] = {}
    for path, sources in by_log.items():
        logged.update(_read_arrivals(path, sources))
    files = (*by_log, *_runs(spec.execution.values()))
    return Prepared(spec, models, logged, tuple(Path(file) for file in files))


def _runs(models: Iterable[StageModel]) -> Iterator[str]:
    """Yield the run records that models name."""
    for model in models:
        if isinstance(model, Recorded):
            yield model.run
        elif isinstance(model, Mixture):
            yield from _runs(model.models)
        elif isinstance(model, ByDevice):
            yield from _runs(model.models.values())


def _prepared(model: StageModel) -> PreparedModel:
    """Return what a scenario says of a stage with its recorded times read."""
    if isinstance(model, ByDevice):
        return {device: _drawn(part) for device, part in model.models.items()}
    return _drawn(model)


def _drawn(model: ExecutionModel) -> DrawnModel:
    """Return a model with its recorded times read."""
    match model:
        case Recorded():
            return _read_times(model)
        case Mixture():
            return Mixture(model.weights, tuple(_drawn(part) for part in model.models))
        case _:
            return model


def _read_times(model: Recorded) -> DrawnModel:
    times: dict[str, dict[int, int]] = {}
    with RunFile(model.run) as run:
        for line in run.lines(EXECUTION):
            place = f"{model.run}, execution {line.index}"
            if line.damaged:
                raise InputError("expected an undamaged entry, found a wrong CRC", place)
            try:
                item = json.loads(line.text)
                times.setdefault(str(item["task"]), {})[int(item["index"])] = int(item["host_ns"])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"expected an execution time, found {error!r}", place) from None
    if model.stage not in times:
        near = did_you_mean(model.stage, times) if times else "no stage computed there"
        raise SpecError(f"no stage {model.stage!r} was executed in {model.run}; {near}")
    in_order = [ns for _, ns in sorted(times[model.stage].items())]
    if model.in_order:
        return Traced(tuple(in_order))
    return Sampled(tuple(sorted(in_order[1:] or in_order)))


def _read_arrivals(path: str, sources: Sequence[SourceSpec]) -> dict[str, Times]:
    """Return (arrival, capture) of each source's messages, pipeline ns of that log or run."""
    found: dict[str, Times] = {source.name: [] for source in sources}
    with open_log(path) as reader:
        if JOURNAL not in reader.topics():
            for message in MergedLog(reader, sources):
                found[message.source].append((message.log_ns, message.capture_ns))
            return found
    _read_journal(path, found)
    return found


def _read_journal(path: str, found: dict[str, Times]) -> None:
    with RunFile(path) as run:
        for line in run.journal():
            try:
                entry = parse_entry(line.text)
            except ValueError as error:
                raise InputError(str(error), f"{path}, journal entry {line.index}") from None
            for event in entry.events:
                if isinstance(event, Arrived) and event.source in found:
                    found[event.source].append((entry.at_ns, event.capture_ns))
    for source, times in found.items():
        if not times:
            raise SpecError(f"no message of source {source!r} in {path}; name a run that has it")
