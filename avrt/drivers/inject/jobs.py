"""Taps around jobs: stages that raise, answer wrong, take longer, or never end.

A worker like any other that tells the tap of a task what is wrong with its next call, before the
call is queued on the task's stream; the tap sits in front of the stage, which knows nothing of it.
So a fault goes the way that a real one goes: what is raised is caught by the stream, a wrong value
is stamped, published and voted on. A job is hit by its index, or by when it was dispatched.

| kind   | what becomes of the jobs that are hit                                 |
|--------|-----------------------------------------------------------------------|
| raise  | the stage raises                                                      |
| never  | their work never ends; they keep their stream and their slot          |
| wrong  | `by` is added to every number of their output; of a device: of all    |
|        | that start on it, and of what twins of stages make there              |
| nan    | a share of the numbers of their output is none                        |
| repeat | their output is that of the last job before                           |
| flip   | one bit of one number of their output is flipped                      |
| slow   | they take `factor` times as long; of a device: all that start on it   |
"""

from __future__ import annotations

from collections import deque
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Protocol, TypeAlias

from avrt.drivers.draws import generator
from avrt.drivers.inject.values import with_added, with_flip, with_nan
from avrt.drivers.shadows import Shadows
from avrt.drivers.worker import StageWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.config.binding import BoundStage
    from avrt.drivers.execution import Timing
    from avrt.drivers.inject.applied import Applied
    from avrt.drivers.recorder import Recorder
    from avrt.exec.runner import Result
    from avrt.metrics.run import RunFigures
    from avrt.model.campaign import Injection
    from avrt.model.commands import Dispatch
    from avrt.model.spec import PipelineSpec


TIMES = frozenset(("slow", "never"))


class InjectedError(Exception):
    """What a tapped stage raises."""


class TappedWorker(StageWorker):
    """Computes jobs, some of them wrong.

    Attributes:
        now_ns: the pipeline time of the present instant, for what is computed beside the jobs.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a run is made of
        self,
        spec: PipelineSpec,
        stages: Mapping[str, BoundStage],
        timing: Timing,
        figures: RunFigures,
        recorder: Recorder,
        hang_timeout_ns: int,
        faults: Sequence[Injection],
        applied: Applied,
    ) -> None:
        """Put a tap in front of every stage: stages of one class stay of one class."""
        self._applied = applied
        self.now_ns = 0
        self._devices = [f for f in faults if f.place == "device" and f.kind in {"slow", "wrong"}]
        self._faults = {
            task: [f for f in faults if f.place == "stage" and f.target in {task, stage.name}]
            for stage in spec.stages
            for task in stage.task_names
        }
        self._taps = {task: _Tap(task) for task in self._faults}
        self._classes = _Classes()
        for name, stage in stages.items():
            self._classes.put_before(stage, self._taps[name.partition("@")[0]].call)
        super().__init__(spec, stages, timing, figures, recorder, hang_timeout_ns)
        self.shadows = Shadows()

    def tapped(self, device: str, stages: Mapping[str, BoundStage]) -> Mapping[str, BoundStage]:
        """Return fresh stages for a device; what they compute is as wrong as it is there."""
        for stage in stages.values():
            self._classes.put_before(stage, partial(self._answer, device))
        return stages

    def _answer(self, device: str, process: _Process, inputs: Mapping[str, object]) -> object:
        """Call a stage on a device, beside the jobs."""
        payload = process(**inputs)
        for fault in self._at_device(device, self.now_ns):
            payload = _with(fault, payload, 0)
        return payload

    def prepare(
        self, command: Dispatch, at_ns: int, told: Callable[[Result], object]
    ) -> Callable[[], None]:
        tap = self._taps[command.task]
        own = [fault for fault in self._hits(command, at_ns) if fault.kind not in TIMES]
        tap.coming.append((command.index, own))

        def heard(result: Result) -> None:
            tap.coming.popleft()
            told(result)

        return super().prepare(command, at_ns, heard)

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        cost_ns = super().start(command, at_ns)
        for fault in self._hits(command, at_ns):
            if fault.kind not in TIMES:
                continue
            if fault.kind == "never" or cost_ns is None:
                return None
            cost_ns = max(1, ceil(cost_ns * fault.factor))
        return cost_ns

    def _hits(self, command: Dispatch, at_ns: int) -> list[Injection]:
        """Return the faults of a job, and note that it is hit."""
        found = [f for f in self._faults[command.task] if f.covers(command.index, at_ns)]
        for fault in found:
            self._applied.note(fault, at_ns)
        return [*self._at_device(command.device, at_ns), *found]

    def _at_device(self, device: str, at_ns: int) -> list[Injection]:
        """Return the faults of whatever a device computes now, and note that it does."""
        found = [f for f in self._devices if f.target == device and f.covers(0, at_ns)]
        for fault in found:
            self._applied.note(fault, at_ns)
        return found


class _Process(Protocol):
    def __call__(self, **inputs: object) -> object: ...


_Answer: TypeAlias = "Callable[[_Process, Mapping[str, object]], object]"


class _Tap:
    """What is wrong with the calls of one task.

    Attributes:
        coming: of each queued call, the job's index and its faults, the next one first.
    """

    def __init__(self, task: str) -> None:
        self.coming: deque[tuple[int, list[Injection]]] = deque()
        self._task = task
        self._last: object | None = None

    def call(self, process: _Process, inputs: Mapping[str, object]) -> object:
        """Call a stage, and return what the faults of the job make of its output."""
        index, faults = self.coming[0]
        if any(fault.kind == "raise" for fault in faults):
            raise InjectedError(f"job {index} of {self._task}")
        payload = process(**inputs)
        if any(fault.kind == "repeat" for fault in faults) and self._last is not None:
            payload = self._last
        self._last = payload
        for fault in faults:
            payload = _with(fault, payload, index)
        return payload


def _with(fault: Injection, payload: object, index: int) -> object:
    rng = generator(fault.seed, f"{fault.kind} {index}")
    match fault.kind:
        case "wrong":
            return with_added(payload, fault.by)
        case "nan":
            return with_nan(payload, fault.share, rng)
        case "flip":
            return with_flip(payload, rng)
        case _:
            return payload


class _Classes:
    """The classes of tapped stages, one for each class of the user's: others compare classes.

    The class of an instance is changed and not its attributes, which may be part of its state.
    """

    def __init__(self) -> None:
        self._made: dict[type, type] = {}
        self._calls: dict[int, Callable[[Mapping[str, object]], object]] = {}

    def put_before(self, stage: BoundStage, answer: _Answer) -> None:
        """Let something answer for a stage, given its `process` and the inputs."""
        process = stage.process
        vars(stage).pop("process", None)
        self._calls[id(stage)] = lambda inputs: answer(process, inputs)
        object.__setattr__(stage, "__class__", self._class_of(type(stage)))

    def _class_of(self, kind: type) -> type:
        if kind not in self._made:
            calls = self._calls

            def process(self: object, **inputs: object) -> object:
                return calls[id(self)](inputs)

            self._made[kind] = type(kind.__name__, (kind,), {"process": process})
        return self._made[kind]
