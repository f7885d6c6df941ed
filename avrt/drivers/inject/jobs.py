"""Taps around jobs: stages that raise, answer wrong, take longer, or never end.

A worker like any other that tells the tap of a task what is wrong with its next call, before the
call is queued on the task's stream; the tap sits in front of the stage, which knows nothing of it.
So a fault goes the way that a real one goes: what is raised is caught by the stream, a wrong value
is stamped, published and voted on. A job is hit by its index, or by when it was dispatched.

| kind      | what becomes of the jobs that are hit                               |
|-----------|---------------------------------------------------------------------|
| raise     | the stage raises                                                    |
| memory    | the stage finds no memory at its first try                          |
| no_memory | the stage finds no memory, however often it tries                   |
| never     | their work never ends; they keep their stream and their slot        |
| wrong     | `by` is added to every number of their output; of a device: of all  |
|           | that start on it, and of what twins of stages make there            |
| nan       | a share of the numbers of their output is none                      |
| repeat    | their output is that of the last job before                         |
| flip      | one bit of one number of their output is flipped                    |
| ghost     | their list of objects has one more                                  |
| miss      | their list of objects has one less                                  |
| swerve    | their plan takes another way                                        |
| weights   | one bit of the stage's weights is flipped before each, and stays so |
| voter     | the voter of their stage raises                                     |
| slow      | they take `factor` times as long; of a device: all that start on it |

What is published is hit on the bus, when its digest is made already: by its number among the
messages of its source or stage, or by its time; `flip` flips one bit of one of its numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Protocol, TypeAlias

from avrt.drivers.draws import generator
from avrt.drivers.inject.edits import EDITS, edited
from avrt.drivers.inject.values import with_added, with_flip, with_nan
from avrt.drivers.inject.weights import can_flip, flip
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
    from avrt.model.commands import Dispatch, Publish, Vote
    from avrt.model.events import Arrived, Voted
    from avrt.model.message import Message
    from avrt.model.spec import PipelineSpec
    from avrt.safety.voter import Answer


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
        self._at_vote = [fault for fault in faults if fault.kind == "voter"]
        at_jobs = [f for f in faults if f.place == "stage" and f not in self._at_vote]
        self._faults = {
            task: [fault for fault in at_jobs if fault.target in {task, stage.name}]
            for stage in spec.stages
            for task in stage.task_names
        }
        self._on_bus = [fault for fault in faults if fault.place == "bus"]
        self._taps = {task: _Tap(task, applied) for task in self._faults}
        self._classes = _Classes()
        for name, stage in stages.items():
            task, _, variant = name.partition("@")
            self._taps[task].stages[variant] = stage
            self._classes.put_before(stage, self._taps[task].call)
        super().__init__(spec, stages, timing, figures, recorder, hang_timeout_ns)
        self.shadows = Shadows()

    def tapped(self, device: str, stages: Mapping[str, BoundStage]) -> Mapping[str, BoundStage]:
        """Return fresh stages for a device; what they compute is as wrong as it is there."""
        for stage in stages.values():
            self._classes.put_before(stage, partial(self._answer, device))
        return stages

    def _answer(
        self, device: str, _stage: BoundStage, process: _Process, inputs: Mapping[str, object]
    ) -> object:
        """Call a stage on a device, beside the jobs."""
        payload = process(**inputs)
        for fault in self._at_device(device, self.now_ns):
            payload = _with(fault, payload, 0)
        return payload

    def vote(self, command: Vote, at_ns: int) -> Voted:
        voter = vars(self._ballots.voters[command.stage])
        for fault in self._at_vote:
            if fault.target == command.stage and fault.covers(command.index, at_ns):
                self._applied.note(fault, at_ns)
                voter["vote"] = _raise_at
        try:
            return super().vote(command, at_ns)
        finally:
            voter.pop("vote", None)

    def prepare(
        self, command: Dispatch, at_ns: int, told: Callable[[Result], object]
    ) -> Callable[[], None]:
        tap = self._taps[command.task]
        own = [fault for fault in self._hits(command, at_ns) if fault.kind not in TIMES]
        tap.coming.append((command.index, at_ns, own))

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

    def arrival(self, message: Message[object]) -> Arrived:
        stamp = message.stamp
        return super().arrival(self._carried(message, stamp.publish_ns))

    def _publish(self, command: Publish, at_ns: int) -> None:
        super()._publish(command, at_ns)
        published = self._messages[command.buffer]
        self._messages[command.buffer] = self._carried(published, at_ns)

    def _carried(self, message: Message[object], at_ns: int) -> Message[object]:
        """Return a message as the bus hands it to its readers."""
        stamp = message.stamp
        for fault in self._on_bus:
            if fault.target == stamp.source and fault.covers(stamp.sequence, at_ns):
                self._applied.note(fault, at_ns)
                rng = generator(fault.seed, f"{fault.kind} {stamp.sequence}")
                message = replace(message, payload=with_flip(message.payload, rng))
        return message

    def _hits(self, command: Dispatch, at_ns: int) -> list[Injection]:
        """Return the faults of a job, and note that it is hit."""
        tap = self._taps[command.task]
        faults = [f for f in self._faults[command.task] if f.covers(command.index, at_ns)]
        found = [fault for fault in faults if tap.can(fault, command.variant)]
        for fault in found:
            if fault.kind not in EDITS:
                self._applied.note(fault, at_ns)
        return [*self._at_device(command.device, at_ns), *found]

    def _at_device(self, device: str, at_ns: int) -> list[Injection]:
        """Return the faults of whatever a device computes now, and note that it does."""
        found = [f for f in self._devices if f.target == device and f.covers(0, at_ns)]
        for fault in found:
            self._applied.note(fault, at_ns)
        return found


def _raise_at(*question: object) -> Answer:
    raise InjectedError(f"question {question[0]}")


class _Process(Protocol):
    def __call__(self, **inputs: object) -> object: ...


_Answer: TypeAlias = "Callable[[BoundStage, _Process, Mapping[str, object]], object]"


class _Tap:
    """What is wrong with the calls of one task.

    Attributes:
        coming: of each queued call, the job's index, when it was dispatched and its faults, the
            next one first.
        stages: what is called, by variant.
    """

    def __init__(self, task: str, applied: Applied) -> None:
        self.coming: deque[tuple[int, int, list[Injection]]] = deque()
        self.stages: dict[str, BoundStage] = {}
        self._task = task
        self._applied = applied
        self._last: object | None = None
        self._tried = -1

    def can(self, fault: Injection, variant: str) -> bool:
        """Tell whether a fault can hit a job: weights are flipped only where there are any."""
        return fault.kind != "weights" or can_flip(self.stages[variant].weight_arrays(), fault.bit)

    def call(self, stage: BoundStage, process: _Process, inputs: Mapping[str, object]) -> object:
        """Call a stage, and return what the faults of the job make of its output."""
        index, at_ns, faults = self.coming[0]
        for fault in faults:
            if fault.kind == "weights":
                rng = generator(fault.seed, f"{fault.kind} {index}")
                flip(stage.weight_arrays(), fault.bit, rng)
        if any(fault.kind == "raise" for fault in faults):
            raise InjectedError(f"job {index} of {self._task}")
        is_first, self._tried = self._tried != index, index
        if any(f.kind == "no_memory" or (f.kind == "memory" and is_first) for f in faults):
            raise MemoryError(f"job {index} of {self._task}")
        payload = process(**inputs)
        if any(fault.kind == "repeat" for fault in faults) and self._last is not None:
            payload = self._last
        self._last = payload
        for fault in faults:
            made = _with(fault, payload, index)
            if fault.kind in EDITS and made is not payload:
                self._applied.note(fault, at_ns)
            payload = made
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
            return edited(fault, payload)


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
        self._calls[id(stage)] = lambda inputs: answer(stage, process, inputs)
        object.__setattr__(stage, "__class__", self._class_of(type(stage)))

    def _class_of(self, kind: type) -> type:
        if kind not in self._made:
            calls = self._calls

            def process(self: object, **inputs: object) -> object:
                return calls[id(self)](inputs)

            self._made[kind] = type(kind.__name__, (kind,), {"process": process})
        return self._made[kind]
