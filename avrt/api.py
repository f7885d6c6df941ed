"""The public API: a pipeline from YAML or Python, and what can be done with it.

pipeline = Pipeline.load("pipelines/kitti.yaml")
report = pipeline.replay("drive.mcap", out="run.mcap")
print(report.jobs)
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from avrt.config import binding
from avrt.config.pipeline import LoadedPipeline, from_keys, load
from avrt.drivers.conditions import read_conditions
from avrt.drivers.execution import MeasuredTiming, ModelTiming, RecordedTiming
from avrt.drivers.hosts import fit_to_host
from avrt.errors import AvrtError, FaultError, InputError, SpecError
from avrt.exec.runner import HANG_TIMEOUT_NS, guarded
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.record import EXECUTION, JOURNAL, OUTPUT, VIEW, RunRecord
from avrt.model.codec import encode, to_json
from avrt.model.stage import FunctionStage, Stage, process_inputs, stage
from avrt.report.summary import RunSummary
from avrt.report.terminal import as_text
from avrt.units import duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from avrt.config.binding import BoundStage
    from avrt.drivers.execution import Timing
    from avrt.drivers.replay import ReplayResult
    from avrt.model.records import MissRecord
    from avrt.model.spec import PipelineSpec, StageSpec

T = TypeVar("T")

__all__ = ["Pipeline", "Report", "Stage", "stage"]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed.

    Attributes:
        summary: everything, as objects.
        damage: what was wrong with the log, when it ended the run early.
    """

    summary: RunSummary
    damage: InputError | None = None

    def __str__(self) -> str:
        """The report as a person reads it."""
        return as_text(self.summary)

    @property
    def data(self) -> dict[str, object]:
        """The run object, plain data as `--json` prints it."""
        return self.summary.data()

    @property
    def jobs(self) -> dict[str, int]:
        """Outcomes over all stages; they sum to `released`."""
        return self.summary.figures.jobs()

    @property
    def misses(self) -> tuple[MissRecord, ...]:
        """The first misses, explained."""
        return tuple(self.summary.figures.misses)


class Pipeline:
    """A pipeline, from a file (`load`) or built here with the same keys as the file has.

    pipeline = Pipeline("hello")
    pipeline.source("lidar", type="lidar", topic="/points", rate="10 Hz")
    pipeline.add(detect, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    """

    def __init__(self, name: str, **keys: object) -> None:
        """Begin a pipeline; `keys` are top-level keys of the file, such as `policy="rm"`."""
        self._keys: dict[str, object] = {"pipeline": name, **keys}
        self._sources: dict[str, object] = {}
        self._stages: dict[str, object] = {}
        self._chains: dict[str, object] = {}
        self._targets: dict[str, object] = {}
        self._loaded: LoadedPipeline | None = None

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Read a pipeline file.

        Raises:
            SpecError: says in one line where and what is wrong.
        """
        loaded = load(path)
        pipeline = cls(loaded.spec.name)
        pipeline._loaded = loaded
        return pipeline

    def source(self, name: str, **keys: object) -> None:
        """Add a source with the keys it has in a pipeline file."""
        self._check_new("sources", self._sources, name)
        self._sources[name] = keys

    def add(self, target: object, *, name: str | None = None, **keys: object) -> None:
        """Add a stage: a `Stage` class or a function, with the keys it has in a pipeline file.

        What `@stage` gave the function counts unless it is given here again. `name` defaults to
        the function's.
        """
        title = name or str(getattr(target, "__name__", type(target).__name__))
        self._check_new("stages", self._stages, title)
        process_inputs(target)
        contract = target.contract.keys if isinstance(target, FunctionStage) else {}
        self._stages[title] = {**contract, **keys}
        self._targets[title] = target

    def chain(self, name: str, **keys: object) -> None:
        """Add an end-to-end promise with the keys it has in a pipeline file."""
        self._check_new("chains", self._chains, name)
        self._chains[name] = keys

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline as the kernel sees it.

        Raises:
            SpecError: something that was added does not fit.
        """
        if self._loaded is not None:
            return self._loaded.spec
        keys = dict(self._keys, stages=self._stages)
        if self._sources:
            keys["sources"] = self._sources
        if self._chains:
            keys["chains"] = self._chains
        return from_keys(keys)

    def check(self) -> PipelineSpec:
        """Return the spec after checking that every stage can be found and fits its inputs."""
        spec = self.spec
        for item in spec.stages:
            self._bind(item, binding.check_target, binding.check_binding)
        return spec

    def build(self) -> dict[str, BoundStage]:
        """Return one fresh instance per stage."""
        stages = self.spec.stages
        return {s.name: self._bind(s, binding.build_target, binding.build) for s in stages}

    def replay(
        self,
        log: str | Path,
        *,
        out: str | Path | None = None,
        timing: str = "model",
        hang_timeout: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Report:
        """Run a recorded log through the pipeline in virtual time.

        Args:
            log: path of a sensor log.
            out: where to write the run record; none is written by default.
            timing: "model" (every job takes its wcet), "measured" (what it takes here) or
                "recorded:RUN" (what it took in that run).
            hang_timeout: host time after which a stage counts as hung, such as "10 s".
            progress: told the pipeline time of each message, ns.

        Raises:
            SpecError: the pipeline, a topic or an argument is wrong.
            InputError: the log cannot be used at all.
        """
        from avrt.drivers.replay import replay  # noqa: PLC0415 - brings torch, 1.4 s

        spec, devices = fit_to_host(self.check())
        hang_ns = HANG_TIMEOUT_NS if hang_timeout is None else _duration(hang_timeout)
        costs = _timing(timing, spec)
        if out is not None:
            self._check_out(out, log, timing, spec)
        with open_log(log) as reader:
            merged = self._placed(lambda: MergedLog(reader, spec.sources))
            stages = self.build()
            more = {"devices": devices, "timing_run": costs.source}
            told = {name: text for name, text in more.items() if text}
            conditions = read_conditions(log=Path(log).name, timing=costs.label, **told)
            with self._recording(out, spec, merged.zero_ns, conditions) as record:
                result = self._placed(
                    lambda: replay(
                        spec,
                        stages,
                        merged,
                        costs,
                        record=record,
                        hang_timeout_ns=hang_ns,
                        progress=progress,
                    )
                )
                summary = _summary(spec, merged, result, costs, conditions)
                summary.record = None if out is None else str(out)
                if record is not None:
                    record.close({"decisions": result.decisions, "run": to_json(summary.data())})
        return Report(summary, result.damage)

    @contextmanager
    def _recording(
        self,
        out: str | Path | None,
        spec: PipelineSpec,
        zero_ns: int,
        conditions: Mapping[str, str],
    ) -> Iterator[RunRecord | None]:
        """Open the run record, if there is to be one, and close it however the run ends."""
        if out is None:
            yield None
            return
        try:
            with RunRecord(
                out,
                zero_ns=zero_ns,
                conditions=conditions,
                pipeline_json=to_json(encode(spec)),
                pipeline_yaml=None if self._loaded is None else self._loaded.text,
            ) as record:
                yield record
        except OSError as error:
            raise SpecError(f"cannot write the run record {out}: {error.strerror}") from None

    def _check_out(self, out: str | Path, log: str | Path, timing: str, spec: PipelineSpec) -> None:
        """Refuse to write the record over what the run reads, or two things into one topic."""
        read = [Path(log)] if self._loaded is None else [Path(log), Path(self._loaded.path)]
        recorded = str(timing).partition(":")[2]
        if recorded:
            read.append(Path(recorded))
        for path in read:
            if Path(out).exists() and path.exists() and path.samefile(out):
                raise SpecError(f"the run record would overwrite {path}; give another path")
        own = {f"{prefix}{stage.name}" for stage in spec.stages for prefix in (OUTPUT, VIEW)}
        for source in spec.sources:
            if source.topic in {JOURNAL, EXECUTION, *own}:
                what = f"the run record has a {source.topic} of its own; rename the stage"
                raise self._at(SpecError(what, ("sources", source.name, "topic")))

    def _check_new(self, group: str, members: Mapping[str, object], name: str) -> None:
        """Refuse a name that is taken, and any addition to a pipeline that was loaded."""
        if self._loaded is not None:
            raise SpecError(f"{self._loaded.path} was loaded whole; add this there", (group, name))
        if name in members:
            raise SpecError("given twice; names are unique", (group, name))

    def _bind(
        self,
        item: StageSpec,
        from_target: Callable[[StageSpec, object], T],
        from_run: Callable[[StageSpec, Path | None], T],
    ) -> T:
        """Check or make one stage; whatever a user's module or class raises names the stage."""
        folder = None if self._loaded is None else Path(self._loaded.path).parent

        def bind() -> T:
            if item.name in self._targets:
                return from_target(item, self._targets[item.name])
            return from_run(item, folder)

        bound = self._placed(lambda: guarded(bind, (AvrtError, KeyboardInterrupt)))
        if isinstance(bound, FaultError):
            what = f"it cannot be loaded or made: {bound.detail}"
            raise self._at(SpecError(what, ("stages", item.name, "run")))
        return bound

    def _placed(self, call: Callable[[], T]) -> T:
        """Call what may find a fault in the pipeline, and give the error its line in the file."""
        try:
            return call()
        except SpecError as error:
            raise self._at(error) from None

    def _at(self, error: SpecError) -> SpecError:
        return error if self._loaded is None else self._loaded.placed(error)


def _timing(text: str, spec: PipelineSpec) -> Timing:
    kind, _, path = str(text).partition(":")
    if kind == "recorded" and path:
        return RecordedTiming(spec, path)
    if text == "model":
        return ModelTiming(spec)
    if text == "measured":
        return MeasuredTiming()
    raise SpecError(f"expected a timing of model, measured or recorded:RUN, found {text!r}")


def _duration(text: str) -> int:
    try:
        found_ns = duration_ns(str(text))
    except ValueError as error:
        raise SpecError(f"hang timeout: {error}") from None
    if found_ns < 1:
        raise SpecError(f"hang timeout: expected more than 0, found {text!r}")
    return found_ns


def _summary(
    spec: PipelineSpec,
    merged: MergedLog,
    result: ReplayResult,
    timing: Timing,
    conditions: Mapping[str, str],
) -> RunSummary:
    return RunSummary(
        spec,
        result.figures,
        timing.label,
        conditions,
        end_ns=result.end_ns,
        topics=merged.topics(),
        anomalies=merged.anomalies,
        decisions=result.decisions,
        payloads=result.payloads,
        hangs=result.hangs,
        interrupted=result.interrupted,
        not_recorded=result.not_recorded,
        damage=[] if result.damage is None else [str(result.damage)],
        complete=not result.interrupted,
    )
