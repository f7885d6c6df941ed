"""The public API: a pipeline from YAML or Python, and what can be done with it.

pipeline = Pipeline.load("pipelines/kitti.yaml")
report = pipeline.replay("drive.mcap", out="run.mcap")
print(report.jobs)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.config import binding
from avrt.config.pipeline import LoadedPipeline, from_keys, load
from avrt.drivers.conditions import read_conditions
from avrt.drivers.execution import MeasuredTiming, ModelTiming, RecordedTiming
from avrt.errors import InputError, SpecError
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.record import RunRecord
from avrt.model.codec import encode, to_json
from avrt.model.stage import FunctionStage, Stage, process_inputs, stage
from avrt.report.summary import RunSummary
from avrt.units import NS_PER_S, duration_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.config.binding import BoundStage
    from avrt.drivers.execution import Timing
    from avrt.drivers.replay import ReplayResult
    from avrt.model.records import MissRecord
    from avrt.model.spec import PipelineSpec

__all__ = ["Pipeline", "Report", "Stage", "stage"]

HANG_TIMEOUT_NS = 10 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed.

    Attributes:
        summary: everything, as objects.
        damage: what was wrong with the log, when it ended the run early.
    """

    summary: RunSummary
    damage: InputError | None = None

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
        self._sources[name] = keys

    def add(self, target: object, *, name: str | None = None, **keys: object) -> None:
        """Add a stage: a `Stage` class or a function, with the keys it has in a pipeline file.

        What `@stage` gave the function counts unless it is given here again. `name` defaults to
        the function's.
        """
        title = name or str(getattr(target, "__name__", type(target).__name__))
        contract = target.contract.keys if isinstance(target, FunctionStage) else {}
        self._stages[title] = {**contract, **keys}
        self._targets[title] = target
        process_inputs(target)

    def chain(self, name: str, **keys: object) -> None:
        """Add an end-to-end promise with the keys it has in a pipeline file."""
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
        self._each_stage(spec, check_only=True)
        return spec

    def build(self) -> dict[str, BoundStage]:
        """Return one fresh instance per stage."""
        return self._each_stage(self.spec, check_only=False)

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

        spec = self.check()
        costs = _timing(timing, spec)
        hang_ns = HANG_TIMEOUT_NS if hang_timeout is None else _duration(hang_timeout)
        with open_log(log) as reader:
            merged = self._placed(lambda: MergedLog(reader, spec.sources))
            stages = self.build()
            conditions = read_conditions(log=Path(log).name, timing=costs.label, **_devices(spec))
            record = self._open_record(out, merged.zero_ns, conditions)
            try:
                result = replay(
                    spec,
                    stages,
                    merged,
                    costs,
                    record=record,
                    hang_timeout_ns=hang_ns,
                    progress=progress,
                )
                summary = _summary(spec, merged, result, costs, conditions)
                summary.record = None if out is None else str(out)
                if record is not None:
                    record.close({"decisions": result.decisions, "run": to_json(summary.data())})
            finally:
                if record is not None:
                    record.close()
        return Report(summary, result.damage)

    def _open_record(
        self, out: str | Path | None, zero_ns: int, conditions: Mapping[str, str]
    ) -> RunRecord | None:
        if out is None:
            return None
        return RunRecord(
            out,
            zero_ns=zero_ns,
            conditions=conditions,
            pipeline_json=to_json(encode(self.spec)),
            pipeline_yaml=None if self._loaded is None else self._loaded.text,
        )

    def _each_stage(self, spec: PipelineSpec, *, check_only: bool) -> dict[str, BoundStage]:
        folder = None if self._loaded is None else Path(self._loaded.path).parent
        made: dict[str, BoundStage] = {}
        for item in spec.stages:
            try:
                if item.name in self._targets:
                    target = self._targets[item.name]
                    if check_only:
                        binding.check_target(item, target)
                    else:
                        made[item.name] = binding.build_target(item, target)
                elif check_only:
                    binding.check_binding(item, folder)
                else:
                    made[item.name] = binding.build(item, folder)
            except SpecError as error:
                raise self._at(error) from None
        return made

    def _placed(self, call: Callable[[], MergedLog]) -> MergedLog:
        try:
            return call()
        except SpecError as error:
            raise self._at(error) from None

    def _at(self, error: SpecError) -> SpecError:
        return error if self._loaded is None else self._loaded.placed(error)


def _devices(spec: PipelineSpec) -> dict[str, str]:
    """Return what the conditions must say of devices that replay does not drive."""
    others = [f"{d.name} ({d.type})" for d in spec.devices if d.type.startswith("cuda")]
    told = f"{', '.join(others)}: not driven in this version, stages computed on the CPU"
    return {"devices": told} if others else {}


def _timing(text: str, spec: PipelineSpec) -> Timing:
    kind, _, path = text.partition(":")
    if kind == "recorded" and path:
        return RecordedTiming(spec, path)
    if text == "model":
        return ModelTiming(spec)
    if text == "measured":
        return MeasuredTiming()
    raise SpecError(f"expected a timing of model, measured or recorded:RUN, found {text!r}")


def _duration(text: str) -> int:
    try:
        return duration_ns(text)
    except ValueError as error:
        raise SpecError(str(error)) from None


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
        damage=[] if result.damage is None else [str(result.damage)],
        complete=not result.interrupted,
    )
