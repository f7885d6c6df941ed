"""A pipeline from a file, or built in Python with the same keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from avrt.analysis.planner import planned
from avrt.api.arguments import (
    LiveRequest,
    checked_loops,
    hang_timeout_ns,
    kept_around,
    lasting_ns,
    paced_clock,
    wall_clock,
)
from avrt.config import binding
from avrt.config.pipeline import LoadedPipeline, from_keys, load
from avrt.config.redundancy import check_copies
from avrt.errors import FaultError, InputError, SpecError
from avrt.exec.runner import guarded
from avrt.model.levels import as_variant
from avrt.model.stage import FunctionStage, process_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.api.report import Report
    from avrt.config.binding import BoundStage
    from avrt.drivers.orders import Orders
    from avrt.metrics.progress import Progress
    from avrt.metrics.sets import DroppedSet
    from avrt.model.spec import PipelineSpec, StageSpec

T = TypeVar("T")


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
        self.loaded: LoadedPipeline | None = None

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Read a pipeline file.

        Raises:
            SpecError: says in one line where and what is wrong.
        """
        return cls.of(load(path))

    @classmethod
    def fitting(cls, log: str | Path) -> Pipeline:
        """Return a pipeline made to fit a log; its text tells what was assumed.

        Raises:
            SpecError: there is nothing in the log that a stage could read.
            InputError: the log cannot be used.
        """
        from avrt.api.fitting import fitting_pipeline  # noqa: PLC0415 - opens logs

        return cls.of(fitting_pipeline(Path(log)))

    @classmethod
    def of(cls, loaded: LoadedPipeline) -> Pipeline:
        """Return the pipeline of a file that was read."""
        pipeline = cls(loaded.spec.name)
        pipeline.loaded = loaded
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
        """The pipeline as the kernel sees it: with the table that policy "table" executes.

        Raises:
            SpecError: something that was added does not fit, or there is no right table.
        """
        return self.planned(self.declared)

    def planned(self, spec: PipelineSpec) -> PipelineSpec:
        """Return this pipeline, perhaps changed, with the table that it executes, if any."""
        return self.placed(lambda: planned(spec))

    @property
    def declared(self) -> PipelineSpec:
        """The pipeline as it was written."""
        if self.loaded is not None:
            return self.loaded.spec
        keys = dict(self._keys, stages=self._stages)
        if self._sources:
            keys["sources"] = self._sources
        if self._chains:
            keys["chains"] = self._chains
        return from_keys(keys)

    def check(self) -> PipelineSpec:
        """Return the spec after checking that every stage can be found and fits its inputs."""
        self.check_stages()
        return self.spec

    def check_stages(self) -> PipelineSpec:
        """Check that every stage can be found and fits its inputs; return what was declared.

        A stage that nothing computes yet (no `run`) can be analysed and simulated.
        """
        spec = self.declared
        for stage in spec.stages:
            for number, _ in enumerate(stage.task_names):
                item = stage.copy(number)
                for one in (item, *(as_variant(item, variant) for variant in item.variants)):
                    if one.run or one.name in self._targets:
                        self._bind(one, binding.check_target, binding.check_binding)
            if stage.redundancy is not None and stage.redundancy.runs:
                self._check_copies(stage)
        return spec

    def _check_copies(self, stage: StageSpec) -> None:
        copies = [stage.copy(number) for number, _ in enumerate(stage.task_names)]
        folder = None if self.loaded is None else Path(self.loaded.path).parent
        self.placed(lambda: check_copies(stage, [binding.returned(c, folder) for c in copies]))

    def build(self) -> dict[str, BoundStage]:
        """Return one fresh instance per task: one a stage, or one a copy of a redundant stage.

        Variants come as `task@variant`.
        """
        tasks = [task for stage in self.declared.stages for task in stage.task_names]
        return {name: made for task in tasks for name, made in self.build_task(task).items()}

    def build_task(self, task: str) -> dict[str, BoundStage]:
        """Return a fresh instance of one task, and one of each variant as `task@variant`."""
        stage = next(stage for stage in self.declared.stages if task in stage.task_names)
        item = stage.copy(stage.task_names.index(task))
        made = {task: self._bind(item, binding.build_target, binding.build)}
        for variant in item.variants:
            one = as_variant(item, variant)
            name = f"{task}@{variant.name}"
            made[name] = self._bind(one, binding.build_target, binding.build)
        return made

    def replay(  # noqa: PLR0913 - all after the log is optional and named
        self,
        log: str | Path,
        *,
        out: str | Path | None = None,
        flight: str | Path | None = None,
        keep_around_misses: str | None = None,
        timing: str | None = None,
        clock: str = "virtual",
        rate: float = 1.0,
        force: bool = False,
        loops: int = 1,
        start: str | None = None,
        strict: bool = False,
        hang_timeout: str | None = None,
        progress: Callable[[int], None] | None = None,
        trace: str | Path | None = None,
        dropped: Callable[[DroppedSet], object] | None = None,
    ) -> Report:
        """Run a recorded log through the pipeline.

        Args:
            log: path of a sensor log.
            out: where to write the run record; none is written by default.
            flight: folder for records of what is around misses, faults and mode changes, where
                there is no `out`; none are written by default.
            keep_around_misses: how long before and after, such as "5 s", which is the default.
            timing: in virtual time "model" (every job takes its wcet, the default), "measured"
                (what it takes here) or "recorded:RUN" (what it took in that run); at the wall clock
                it is always measured.
            clock: "virtual", or "wall": messages come when they came, streams run side by side.
            rate: pipeline seconds in a second of the wall clock.
            force: at the wall clock, run even what is known to miss; the conditions say so.
            loops: how often the log is played; each time what was believed is forgotten.
            start: how long after its first message it is played from, such as "5 s".
            strict: stop where the log is damaged; by default its good messages are played.
            hang_timeout: host time after which a stage counts as hung, such as "10 s".
            progress: told the pipeline time of each message, ns.
            trace: where to write a trace for Perfetto; none is written by default.
            dropped: told of each synchronised set that lacks a required input.

        Raises:
            SpecError: the pipeline, a topic or an argument is wrong.
            InputError: the log cannot be used at all.
            DamagedInputError: the log is strict and damaged before its first message.
        """
        from avrt.api.replay import Playback, Replay  # noqa: PLC0415 - brings torch, 1.4 s

        playback = Playback(checked_loops(loops), lasting_ns("start", start) or 0, strict)
        kept = kept_around(flight if out is None else None, keep_around_misses)
        replay = Replay(self, log, out, timing, wall_clock(clock, rate), playback, kept=kept)
        timeout_ns = hang_timeout_ns(hang_timeout)
        return replay.run(timeout_ns, progress, force=force, trace=trace, dropped=dropped)

    def run(  # noqa: PLR0913 - all optional and named
        self,
        log: str | Path | None = None,
        *,
        world: str | None = None,
        seed: int = 0,
        rate: float = 1.0,
        loops: int = 1,
        strict: bool = False,
        duration: str | None = None,
        record: str | Path | None = None,
        flight: str | Path | None = None,
        keep_around_misses: str | None = None,
        force: bool = False,
        hang_timeout: str | None = None,
        preparing: Callable[[int], None] | None = None,
        look: Callable[[Progress], None] | None = None,
        orders: Orders | None = None,
        dropped: Callable[[DroppedSet], object] | None = None,
    ) -> Report:
        """Run the pipeline in real time; Ctrl-C ends it as the end of its sources would.

        Args:
            log: a sensor log that feeds the sources, each message when it comes.
            world: a scene of the built-in world that feeds them instead.
            seed: of that scene.
            rate: pipeline seconds in a second.
            loops: how often the log is played, or how many drives the world makes.
            strict: stop where the log is damaged; by default its good messages are played.
            duration: pipeline time after which no job is released, such as "60 s".
            record: where to write the run record; none is written by default.
            flight: folder for records of what is around misses and faults, without a record.
            keep_around_misses: how long before and after, such as "5 s", which is the default.
            force: run even what is known to miss; the conditions say so.
            hang_timeout: host time after which a stage counts as hung, such as "10 s".
            preparing: told how much of the world is made before the run begins, ns.
            look: told how the run stands, several times a second.
            orders: takes orders for the ladder while the run goes on.
            dropped: told of each synchronised set that lacks a required input, by another thread.

        Raises:
            SpecError: the pipeline, a topic or an argument is wrong; InputError: the log is.
        """
        from avrt.api.live import Live  # noqa: PLC0415 - brings torch

        request = LiveRequest(
            log=None if log is None else Path(log),
            world=world, seed=seed, loops=checked_loops(loops), strict=strict,
            duration_ns=lasting_ns("duration", duration),
            record=None if record is None else Path(record),
            kept=kept_around(flight, keep_around_misses),
            force=force, hang_timeout_ns=hang_timeout_ns(hang_timeout),
            preparing=preparing, look=look, orders=orders, dropped=dropped,
        )  # fmt: skip
        return Live(self, paced_clock(rate), request).run()

    def guarded(self, stage: str, call: Callable[[], T], what: str) -> T:
        """Call what a user's stage may fail in; a failure is a SpecError that names the stage."""
        done = self.placed(lambda: guarded(call, (SpecError, InputError, KeyboardInterrupt)))
        if isinstance(done, FaultError):
            raise self.at(SpecError(f"{what}: {done.detail}", ("stages", stage, "run")))
        return done

    def placed(self, call: Callable[[], T]) -> T:
        """Call what may find a fault in the pipeline, and give the error its line in the file."""
        try:
            return call()
        except SpecError as error:
            raise self.at(error) from None

    def at(self, error: SpecError) -> SpecError:
        """Return an error with its line in the pipeline's file."""
        return error if self.loaded is None else self.loaded.placed(error)

    def _check_new(self, group: str, members: Mapping[str, object], name: str) -> None:
        """Refuse a name that is taken, and any addition to a pipeline that was loaded."""
        if self.loaded is not None:
            raise SpecError(f"{self.loaded.path} was loaded whole; add this there", (group, name))
        if name in members:
            raise SpecError("given twice; names are unique", (group, name))

    def _bind(
        self,
        item: StageSpec,
        from_target: Callable[[StageSpec, object], T],
        from_run: Callable[[StageSpec, Path | None], T],
    ) -> T:
        """Check or make one stage; whatever a user's module or class raises names the stage."""
        folder = None if self.loaded is None else Path(self.loaded.path).parent

        def bind() -> T:
            has_runs = item.redundancy is not None and bool(item.redundancy.runs)
            keys = self._stages.get(item.name)
            runs_own = isinstance(keys, dict) and keys.get("run", "") != item.run
            if item.name in self._targets and not (has_runs or runs_own):
                return from_target(item, self._targets[item.name])
            return from_run(item, folder)

        return self.guarded(item.name, bind, "it cannot be loaded or made")
