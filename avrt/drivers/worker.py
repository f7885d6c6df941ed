"""The work of a run: stages that really compute, and the messages between them.

A job's computation is submitted to its stage's stream when the kernel dispatches it; the messages
that the kernel knows by handle are kept here, from the moment that a job makes them until the
kernel reclaims them. Whoever drives the kernel decides when a result is waited for: the virtual
loop in `start` and `end`, the wall-clock loop when a computation says that it has ended.

When a source's clock has begun anew (a log in a loop), a stage whose trigger says so (without one,
any input) first gets back the state that it had after its warm-up: nothing that it believed then
holds now.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from avrt.drivers.ballots import Ballots, voter_of
from avrt.drivers.draft import Draft, draft_of, epoch_of, input_shape, message_of
from avrt.drivers.gate import Gate
from avrt.drivers.streams import stream_of
from avrt.drivers.takeovers import Takeovers
from avrt.drivers.weights import check_weights, other_weights
from avrt.errors import WEIGHTS, HardwareFault, InputError, SoftwareFault, SpecError
from avrt.exec.process import Interrupts
from avrt.exec.runner import Result
from avrt.exec.scrub import scrub_plan
from avrt.exec.stream import wait
from avrt.model.commands import Command, Dispatch, EnterMode, Publish, Reclaim, Vote
from avrt.model.events import Arrived, Completed, DeviceLost, Event, Failed, Hung, Started, Voted
from avrt.payload import Tracks
from avrt.payload.digest import PayloadDigest, checksum_of, digest_of
from avrt.safety.outputs import SoleOutputs
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from avrt.config.binding import BoundStage
    from avrt.drivers.ballots import MakeVoter
    from avrt.drivers.draft import Inputs
    from avrt.drivers.execution import Timing
    from avrt.drivers.recorder import Recorder
    from avrt.drivers.shadows import Shadows
    from avrt.exec.stream import Stream
    from avrt.logs.merge import SourceMessage
    from avrt.metrics.run import RunFigures
    from avrt.model.message import Message
    from avrt.model.spec import PipelineSpec, StageSpec


@dataclass(slots=True)
class _Running:
    """A job whose computation was started."""

    stage: StageSpec
    task: str
    index: int
    inputs: Inputs
    start_ns: int
    release_ns: int
    device: str
    future: Future[Result] | None = None
    result: Result | None = None


class StageWorker:
    """Computes dispatched jobs and keeps the messages that the kernel knows by handle.

    Attributes:
        damage: the log's damage that ended the feed, or None.
        hangs: jobs that hung.
        lost_devices: devices that broke and are not known to work again.
        device_lost: is told of each device that breaks.
        stream_hung: is told of each task whose stream hung.
        shadows: hands jobs on to whoever follows them; None where nobody will.
        digest: of all published payloads; None where none is made.
        gate: what every message passes.
        hang_timeout_ns: host time after which a stage counts as hung.
    """

    heeds = True

    def __init__(  # noqa: PLR0913, PLR0917 - what a run is made of
        self,
        spec: PipelineSpec,
        stages: Mapping[str, BoundStage],
        timing: Timing,
        figures: RunFigures,
        recorder: Recorder,
        hang_timeout_ns: int,
        host_ns: Callable[[int], int] | None = None,
        prepare: Callable[[str], object] | None = None,
        *,
        digested: bool = True,
        keeps: bool = False,
        voter: MakeVoter = voter_of,
    ) -> None:
        """Start the stages' streams.

        `stages` has one for each task, and `task@variant` for each variant of its stage.
        `host_ns` turns readings of the host's clock into pipeline time; None in virtual time, where
        work ends when its end is reported. `prepare` sets each stream's thread up. `digested` says
        whether a digest of all payloads is made, `keeps` whether streams keep checkpoints for those
        that are made anew, `voter` makes the voter of a redundant stage.
        """
        self._stages = {task: stage for stage in spec.stages for task in stage.task_names}
        self._timing = timing
        self._figures = figures
        self._recorder = recorder
        self.hang_timeout_ns = hang_timeout_ns
        self._host_ns = host_ns
        self.damage: InputError | None = None
        self.hangs = 0
        self.lost_devices: set[str] = set()
        self.device_lost: Callable[[str], None] | None = None
        self.stream_hung: Callable[[str], None] | None = None
        self.shadows: Shadows | None = None
        self.interrupts = Interrupts()
        self.gate = Gate(spec, figures, recorder)
        self._handles = count()
        self._messages: dict[int, Message[object]] = {}
        self._drafts: dict[int, Draft] = {}
        self._running: dict[int, _Running] = {}
        self._published = {stage.name: 0 for stage in spec.stages}
        self._epochs = dict.fromkeys(self._stages, 0)
        self.digest = PayloadDigest() if digested else None
        tests = [(stage.name, stages[task].accepts) for task, stage in self._stages.items()]
        accepts = {name: test for name, test in reversed(tests) if test is not None}
        sole = [stage for stage in spec.stages if stage.redundancy is None]
        self._sole = SoleOutputs({stage.name: stages[stage.name].accepts for stage in sole})
        self._digest = digest_of if digested else checksum_of if spec.checksums else None
        self._ballots = Ballots(spec, accepts, self._keep, self._digest, make=voter)
        self._frames = {task: stages[task].output_frame for task in self._stages}
        self._spec = spec
        self._prepare = prepare
        self._keeps = keeps
        self._streams = {task: self._stream(task, stages) for task in self._stages}
        self._takeovers = Takeovers(spec, stages, self._streams)
        self._made = stages

    def _stream(self, task: str, stages: Mapping[str, BoundStage]) -> Stream:
        """Return a new stream of a task."""
        return stream_of(
            self._spec,
            self._stages[task],
            task,
            stages,
            prepare=self._prepare,
            digest=self._digest,
            scrub=scrub_plan(self._spec, self._stages[task]),
            keeps=self._keeps,
        )

    def made_anew(self, task: str, stages: Mapping[str, BoundStage]) -> Stream:
        """Return a stream for a task that hung, warmed up, with the state of its last checkpoint.

        Not on the driver's thread: it may take long.

        Raises:
            FaultError: the stage fails in its warm-up, or has other weights than before.
        """
        stream = self._stream(task, stages)
        fault = stream.warm().result().fault or other_weights(stream, self._streams[task])
        if fault is not None:
            stream.close()
            raise fault
        stream.resume(self._streams[task].checkpoint)
        return stream

    def replace(self, task: str, stream: Stream) -> None:
        """Let a stream take the place of one that hung, whose thread is left behind."""
        self._streams[task].close()
        self._streams[task] = stream

    def warm(self) -> None:
        """Warm the stages up one after the other, each on its own stream.

        Raises:
            SpecError: a stage fails, or its weights are not as they must be; names it.
        """
        for task, stream in self._streams.items():
            name = self._stages[task].name
            warmed = stream.warm().result()
            if (fault := warmed.fault) is not None:
                call = fault.kind if fault.kind in {"freeze", WEIGHTS} else "warm"
                raise SpecError(f"{call}() failed: {fault.detail}", ("stages", name, "run"))
            self._figures.stages[name].warm_ns = warmed.host_ns
        check_weights(self._spec, self._made, self._streams)

    def conditions(self) -> dict[str, str]:
        """Return what the thread of each stage computes with."""
        streams = self._streams.items()
        told = {f"stream.{name}": stream.told for name, stream in streams}
        return told | {f"weights.{name}": s.scrub.told for name, s in streams if s.scrub.told}

    def feed(
        self, log: Iterable[SourceMessage], progress: Callable[[int], None] | None
    ) -> Iterator[tuple[int, Event]]:
        """Yield the log's messages as arrivals, those that the gate admits; damage is kept."""
        try:
            for item in log:
                self._recorder.input(item)
                self.interrupts.check()
                if progress is not None:
                    progress(item.log_ns)
                self.gate.until(item.log_ns)
                seen = self.gate.look_at(item)
                if self.gate.admits(seen):
                    message = message_of(seen.item, checked=self._spec.checksums)
                    yield item.log_ns, self.arrival(message)
        except InputError as damage:
            self.damage = damage

    def arrival(self, message: Message[object]) -> Arrived:
        """Keep a source's message; return the event that tells the kernel of it."""
        handle, stamp = next(self._handles), message.stamp
        self._messages[handle] = message
        return Arrived(stamp.source, stamp.sequence, stamp.capture_ns, stamp.publish_ns, handle)

    # What the loop asks for

    def prepare(
        self, command: Dispatch, at_ns: int, told: Callable[[Result], object]
    ) -> Callable[[], None]:
        """Return what begins the computation of a job on its stage's stream.

        `told` takes what came of it, on the stream's thread.
        """
        stage = self._stages[command.task]
        inputs = {
            item.name: None if handle is None else self._messages[handle]
            for item, handle in zip(stage.inputs, command.inputs, strict=True)
        }
        anew = self._begins_anew(command.task, inputs)
        self._ballots.began(command.task, command.index, command.job, command.due_ns)
        self._running[command.job] = _Running(
            stage, command.task, command.index, inputs, at_ns, command.release_ns, command.device
        )
        stream = self._streams[command.task]
        device, variant = command.device, command.variant
        begin = partial(stream.begin, inputs, told, anew=anew, device=device, variant=variant)
        if self.shadows is None:
            return begin
        return self.shadows.beginning(command, inputs, stream, begin, anew=anew)

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        future: Future[Result] = Future()
        self.prepare(command, at_ns, future.set_result)()
        running = self._running[command.job]
        running.future = future
        cost_ns = self._timing.cost_ns(command.task, command.index, command.variant)
        if cost_ns is not None:
            return cost_ns
        result = self._awaited(running)
        return self.hang_timeout_ns if result is None else result.host_ns

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        running = self._running[job]
        result = self._awaited(running)
        if result is None:
            return self.hung(job, at_ns)
        del self._running[job]
        result = self._sole.tested(running.task, result)
        self._shadowed(job, result)
        self._note_execution(running, result, at_ns)
        if result.fault is not None:
            self._ballots.faulted(running.task, running.index, result.fault)
            return Failed(job, result.fault.kind)
        draft = draft_of(
            running.stage,
            running.inputs,
            result,
            frame=self._frames[running.task],
            release_ns=running.release_ns,
            start_ns=running.start_ns,
        )
        handle = self._keep(draft)
        self._ballots.made(running.task, running.index, handle, draft, at_ns)
        done_ns = at_ns if self._host_ns is None else self._host_ns(result.end_host_ns)
        return Completed(job, handle, done_ns)

    def reported(self, job: int, result: Result, at_ns: int) -> list[Event]:
        """Tell when a job began on its device and how it ended; a broken device is lost."""
        running = self._running[job]
        running.result, device = result, running.device
        assert self._host_ns is not None
        began = Started(job, self._host_ns(result.start_host_ns))
        events: list[Event] = [began, self.end(job, at_ns)]
        if isinstance(result.fault, HardwareFault) and device not in self.lost_devices:
            self.lost_devices.add(device)
            if self.device_lost is not None:
                self.device_lost(device)
            events.append(DeviceLost(device))
        return events

    def hung(self, job: int, at_ns: int) -> Hung:
        """Give up a job that has not answered for the hang timeout."""
        self.hangs += 1
        limit = format_ns(self.hang_timeout_ns)
        fault = SoftwareFault("hang", f"no answer within {limit} of host time (--hang-timeout)")
        result = Result(None, fault, self.hang_timeout_ns)
        running = self._running.pop(job)
        self._shadowed(job, None)
        self._ballots.failed(running.task, running.index)
        self._note_execution(running, result, at_ns)
        if self.stream_hung is not None:
            self.stream_hung(running.task)
        return Hung(job)

    def forget(self, job: int) -> None:
        """Drop a job that is lost with its device, and what it holds."""
        running = self._running.pop(job)
        self._shadowed(job, None)
        self._ballots.failed(running.task, running.index, "skipped")

    def idle(self) -> None:
        if self.shadows is not None:
            self.shadows.idle()

    def abandon(self, job: int, at_ns: int) -> None:
        running = self._running.pop(job)
        self._ballots.given_up(running.task, running.index, at_ns)
        result = self._awaited(running)
        self._shadowed(job, result)
        if result is not None:
            self._note_execution(running, result, at_ns)

    def vote(self, command: Vote, at_ns: int) -> Voted:
        answer = self._ballots.vote(command, at_ns)
        self._takeovers.restore(self._ballots.takeovers)
        return answer

    def obey(self, command: Command, at_ns: int) -> list[Event]:
        match command:
            case Publish():
                self._publish(command, at_ns)
            case EnterMode():
                self._takeovers.entered(command.mode)
            case Reclaim():
                self._messages.pop(command.buffer, None)
                self._drafts.pop(command.buffer, None)
            case _:
                pass
        return []

    def close(self) -> None:
        """End the worker threads; a hung one is left behind."""
        for stream in self._streams.values():
            stream.close()
        if self.shadows is not None:
            self.shadows.close()

    def _shadowed(self, job: int, result: Result | None) -> None:
        if self.shadows is not None:
            self.shadows.ended(job, result)

    def _keep(self, draft: Draft) -> int:
        """Keep an output that is not published yet; return its handle."""
        handle = next(self._handles)
        self._drafts[handle] = draft
        return handle

    def _awaited(self, running: _Running) -> Result | None:
        """Return what a job's computation gave, None if it hung; it is waited for once only."""
        if running.future is not None:
            with self.interrupts.allowed():
                running.result = wait(running.future, self.hang_timeout_ns)
            running.future = None
        return running.result

    def _publish(self, command: Publish, at_ns: int) -> None:
        draft = self._drafts.pop(command.buffer)
        sequence = self._published[draft.stage]
        self._published[draft.stage] = sequence + 1
        message = draft.publish(sequence, at_ns, checked=self._spec.checksums)
        self._messages[command.buffer] = message
        if self.digest is not None:
            self.digest.add(draft.stage, sequence, draft.digest)
        self._recorder.output(draft.stage, message)
        if isinstance(message.payload, Tracks):
            self._figures.stages[draft.stage].told(message.payload.anomalies)

    def _note_execution(self, running: _Running, result: Result, at_ns: int) -> None:
        fault = None if result.fault is None else str(result.fault)
        shape = input_shape(running.stage, running.inputs)
        self._figures.stages[running.stage.name].measured(result.host_ns, fault, shape)
        self._recorder.execution(running.task, running.index, result, at_ns)

    def _begins_anew(self, task: str, inputs: Inputs) -> bool:
        """Tell whether the job is of a later epoch than any before."""
        epoch = epoch_of(self._stages[task], inputs)
        if epoch <= self._epochs[task]:
            return False
        self._epochs[task] = epoch
        self._sole.forget(task)
        return True
