"""Replay: a recorded log through the pipeline, in virtual time, with stages that really compute.

Under modelled and recorded timing the real computation overlaps virtual time: it starts at
dispatch and is waited for only when its virtual completion is reached. Under measured timing each
job is waited for at once, so stages run one at a time. Decisions depend on virtual time only, so a
loaded machine makes a replay slower and never different; a stage that hangs for `hang_timeout_ns`
of host time is the one exception, and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from avrt.drivers.virtual import VirtualLoop
from avrt.errors import AvrtError, FaultError, InputError, SoftwareFault, SpecError
from avrt.exec.process import Interrupts, frozen_garbage, set_threads
from avrt.exec.runner import HANG_TIMEOUT_NS, Result, Stream, guarded, wait
from avrt.kernel import Kernel
from avrt.logs.journal import Journal
from avrt.logs.record import EXECUTION
from avrt.metrics.run import RunFigures
from avrt.model.commands import Command, Dispatch, Publish, Reclaim, Vote
from avrt.model.events import Arrived, Completed, Event, Failed, Hung, Voted
from avrt.model.message import Message, Origin, Stamp, merge_origins
from avrt.payload.digest import PayloadDigest
from avrt.payload.seal import sealed
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from avrt.config.binding import BoundStage
    from avrt.drivers.execution import Timing
    from avrt.logs.merge import MergedLog, SourceMessage
    from avrt.logs.raw import RawMessage
    from avrt.logs.record import RunRecord
    from avrt.model.spec import PipelineSpec, StageSpec


@dataclass(slots=True)
class ReplayResult:
    """What a replay showed.

    Attributes:
        damage: the log's damage that ended the replay early, or None.
        hangs: jobs that hung; with any, the run is not reproducible.
        not_recorded: by stage, outputs that are not in the record, and why the first is not.
    """

    figures: RunFigures
    decisions: str = ""
    payloads: str = ""
    end_ns: int = 0
    damage: InputError | None = None
    hangs: int = 0
    interrupted: bool = False
    not_recorded: dict[str, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished output that is not published yet."""

    stage: str
    payload: object
    digest: bytes
    capture_ns: int
    capture_end_ns: int
    frame: str
    origins: Mapping[str, Origin]
    degraded: bool

    def publish(self, sequence: int, publish_ns: int) -> Message[object]:
        stamp = Stamp(
            self.stage, sequence, self.capture_ns, self.capture_end_ns, publish_ns, self.frame
        )
        return Message(stamp, self.payload, self.origins, self.degraded)


def replay(  # noqa: PLR0913 - all after the log is optional and named
    spec: PipelineSpec,
    stages: Mapping[str, BoundStage],
    log: MergedLog,
    timing: Timing,
    *,
    record: RunRecord | None = None,
    hang_timeout_ns: int = HANG_TIMEOUT_NS,
    progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Run a log through a pipeline.

    Args:
        spec: a checked pipeline.
        stages: one instance per stage of the pipeline, by name.
        log: its sources' messages in order.
        timing: how long jobs take in virtual time.
        record: takes everything that happens.
        hang_timeout_ns: host time after which a stage counts as hung.
        progress: told the pipeline time of each message.

    Raises:
        SpecError: the pipeline needs something that replay cannot do, or a stage cannot warm up.
    """
    for stage in spec.stages:
        if stage.redundancy is not None:
            key = ("stages", stage.name, "redundancy")
            raise SpecError("replay has no voter in this version; remove 'redundancy'", key)
    set_threads(max(device.threads for device in spec.devices))
    result = ReplayResult(RunFigures(spec))

    def listen(at_ns: int, commands: Sequence[Command]) -> None:
        result.end_ns = at_ns
        for command in commands:
            result.figures.take(command)

    journal = Journal(None if record is None else lambda at, line: record.journal(line, at), listen)
    worker = ReplayWorker(spec, stages, timing, result, record, hang_timeout_ns)
    feed = worker.feed(log, progress)
    try:
        worker.warm()
        with frozen_garbage(), worker.interrupts:
            loop = VirtualLoop(spec, Kernel(spec), feed, worker, journal)
            try:
                loop.run()
            except KeyboardInterrupt:
                result.interrupted = True
                loop.stop()
    except KeyboardInterrupt:
        result.interrupted = True
    finally:
        worker.close()
    result.decisions = journal.digest
    result.payloads = worker.digest.hexdigest()
    return result


@dataclass(slots=True)
class _Running:
    """A job whose computation was started."""

    stage: StageSpec
    index: int
    inputs: Mapping[str, Message[object] | None]
    start_ns: int
    release_ns: int
    future: Future[Result]
    waited: bool = False
    result: Result | None = None


class ReplayWorker:
    """Computes dispatched jobs and keeps the messages that the kernel knows by handle."""

    def __init__(
        self,
        spec: PipelineSpec,
        stages: Mapping[str, BoundStage],
        timing: Timing,
        result: ReplayResult,
        record: RunRecord | None,
        hang_timeout_ns: int,
    ) -> None:
        self._stages = {stage.name: stage for stage in spec.stages}
        self._timing = timing
        self._result = result
        self._record = record
        self._hang_timeout_ns = hang_timeout_ns
        self.interrupts = Interrupts()
        self._handles = count()
        self._messages: dict[int, Message[object]] = {}
        self._recorded: dict[str, RawMessage] = {}
        self._drafts: dict[int, Draft] = {}
        self._running: dict[int, _Running] = {}
        self._published = dict.fromkeys(self._stages, 0)
        self.digest = PayloadDigest()
        self._streams = {name: Stream(name, stages[name]) for name in self._stages}

    def warm(self) -> None:
        """Warm the stages up one after the other, each on its own stream.

        Raises:
            SpecError: a stage fails; names it.
        """
        for name, stream in self._streams.items():
            warmed = stream.warm().result()
            if warmed.fault is not None:
                what = f"warm() failed: {warmed.fault.detail}"
                raise SpecError(what, ("stages", name, "run"))
            self._result.figures.stages[name].warm_ns = warmed.host_ns

    def feed(
        self, log: MergedLog, progress: Callable[[int], None] | None
    ) -> Iterator[tuple[int, Event]]:
        """Yield the log's messages as arrivals; damage ends the feed and is kept."""
        try:
            for item in log:
                handle = next(self._handles)
                stamp = Stamp(
                    item.source,
                    item.sequence,
                    item.capture_ns,
                    item.capture_ns,
                    item.log_ns,
                    item.frame,
                )
                origins = {item.source: Origin(item.capture_ns, item.capture_ns)}
                self._messages[handle] = Message(stamp, sealed(item.payload), origins)
                self._record_input(item)
                self.interrupts.check()
                if progress is not None:
                    progress(item.log_ns)
                yield (
                    item.log_ns,
                    Arrived(item.source, item.sequence, item.capture_ns, item.log_ns, handle),
                )
        except InputError as damage:
            self._result.damage = damage

    def _record_input(self, item: SourceMessage) -> None:
        if self._record is None:
            return
        for raw in (item.raw_info, item.raw):
            if raw is not None and self._recorded.get(raw.topic) is not raw:
                self._recorded[raw.topic] = raw  # sources may share a topic
                self._record.input(raw.topic, raw)

    # What the loop asks for

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        stage = self._stages[command.task]
        inputs = {
            item.name: None if handle is None else self._messages[handle]
            for item, handle in zip(stage.inputs, command.inputs, strict=True)
        }
        future = self._streams[command.task].submit(inputs)
        running = _Running(stage, command.index, inputs, at_ns, command.release_ns, future)
        self._running[command.job] = running
        cost_ns = self._timing.cost_ns(command.task, command.index)
        if cost_ns is not None:
            return cost_ns
        result = self._wait(running)
        return self._hang_timeout_ns if result is None else result.host_ns

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        running = self._running.pop(job)
        result = self._awaited(running)
        if result is None:
            self._result.hangs += 1
            self._note_hang(running, at_ns)
            return Hung(job)
        self._note_execution(running, result, at_ns)
        if result.fault is not None:
            return Failed(job, result.fault.kind)
        handle = next(self._handles)
        self._drafts[handle] = _draft(running, result)
        return Completed(job, handle, at_ns)

    def abandon(self, job: int, at_ns: int) -> None:
        running = self._running.pop(job)
        result = self._awaited(running)
        if result is not None:
            self._note_execution(running, result, at_ns)

    def vote(self, command: Vote) -> Voted:
        raise AssertionError(f"replay refuses redundant stages: {command}")

    def obey(self, command: Command, at_ns: int) -> list[Event]:
        match command:
            case Publish():
                self._publish(command, at_ns)
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

    def _awaited(self, running: _Running) -> Result | None:
        """Return what a job's computation gave, None if it hung; it is waited for once only."""
        return running.result if running.waited else self._wait(running)

    def _wait(self, running: _Running) -> Result | None:
        with self.interrupts.allowed():
            running.result = wait(running.future, self._hang_timeout_ns)
        running.waited = True
        return running.result

    def _publish(self, command: Publish, at_ns: int) -> None:
        draft = self._drafts.pop(command.buffer)
        sequence = self._published[draft.stage]
        self._published[draft.stage] = sequence + 1
        message = draft.publish(sequence, at_ns)
        self._messages[command.buffer] = message
        self.digest.add(draft.stage, sequence, draft.digest)
        if self._record is not None:
            self._record_output(self._record, draft.stage, message)

    def _record_output(self, record: RunRecord, stage: str, message: Message[object]) -> None:
        """Record an output; one that has no form in the record is counted."""
        done = guarded(
            lambda: record.output(stage, message), (OSError, AvrtError, KeyboardInterrupt)
        )
        if done is True:
            return
        why = done.detail if isinstance(done, FaultError) else "it has no form in JSON"
        known, why = self._result.not_recorded.get(stage, (0, why))
        self._result.not_recorded[stage] = (known + 1, why)

    def _note_hang(self, running: _Running, at_ns: int) -> None:
        limit = format_ns(self._hang_timeout_ns)
        fault = SoftwareFault("hang", f"no answer within {limit} of host time (--hang-timeout)")
        self._note_execution(running, Result(None, fault, self._hang_timeout_ns), at_ns)

    def _note_execution(self, running: _Running, result: Result, at_ns: int) -> None:
        name = running.stage.name
        fault = None if result.fault is None else str(result.fault)
        self._result.figures.stages[name].measured(result.host_ns, fault)
        if self._record is not None:
            item: dict[str, object] = {
                "task": name,
                "index": running.index,
                "host_ns": result.host_ns,
            }
            if fault is not None:
                item["fault"] = fault
            self._record.note(EXECUTION, item, at_ns)


def _draft(running: _Running, result: Result) -> Draft:
    """Stamp an output: it carries its trigger's capture time, a timer's the time it read."""
    stage = running.stage
    given = [message for message in running.inputs.values() if message is not None]
    trigger = running.inputs.get(stage.trigger) if stage.trigger is not None else None
    if trigger is None and given and stage.sync is not None:
        trigger = min(given, key=lambda message: message.stamp.capture_ns)
    if trigger is not None:
        capture_ns, capture_end_ns = trigger.stamp.capture_ns, trigger.stamp.capture_end_ns
    else:
        capture_ns = running.release_ns if stage.publish == "at_deadline" else running.start_ns
        capture_end_ns = capture_ns
    origins = merge_origins(message.origins for message in given)
    if not stage.inputs:
        origins = {stage.name: Origin(capture_ns, capture_ns)}
    return Draft(
        stage=stage.name,
        payload=result.payload,
        digest=result.digest,
        capture_ns=capture_ns,
        capture_end_ns=capture_end_ns,
        frame=trigger.stamp.frame if trigger is not None else "",
        origins=origins,
        degraded=len(given) < len(stage.inputs) or any(message.degraded for message in given),
    )
