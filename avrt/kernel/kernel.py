"""The scheduling kernel: events in, commands out.

It never reads a clock, sleeps, draws a random number, starts a thread, opens a file, touches a
tensor or calls a stage; it learns the time only from `handle(at_ns, events)`. Simulation, replay
and the live runtime are loops around this one class, so each decides exactly alike.

Within one call the order is: completions and losses, then deadlines, publications at deadlines,
shedding and set timeouts, then releases in pipeline-file order, then budgets and mode changes,
then one dispatch pass over the devices. Timers that the driver reached late are taken in the order
of their nominal times. A deadline check closes its instant: a completion reported by a *later*
call at the due time itself is late.

The total order among jobs is `(policy key, running first, task index, job index)`; no set or hash
decides anything, so a journal is the same under any PYTHONHASHSEED.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, assert_never

from avrt.kernel import timers
from avrt.kernel.buffers import Buffers
from avrt.kernel.chains import Watch
from avrt.kernel.job import Activation, Job, Task
from avrt.kernel.ladder import nominal_mode
from avrt.kernel.legality import Legality
from avrt.kernel.lifecycle import Lifecycle
from avrt.kernel.queues import DeviceQueue
from avrt.kernel.releases import Releases
from avrt.kernel.state import State
from avrt.kernel.sync import SyncSet
from avrt.model.commands import Command, Discard, Record, Vote
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Event,
    Failed,
    Hung,
    ModeRequested,
    Read,
    SegmentEnded,
    Started,
    StreamLost,
    Voted,
)
from avrt.model.records import FaultRecord, ModeRecord, ResourceRecord, VoteRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from avrt.model.spec import PipelineSpec


class Kernel:
    """Decides what runs when, for one pipeline.

    Args:
        spec: a pipeline that passed `avrt.model.graph.check`.
        recorded: sources and stages whose messages a reader outside the graph keeps until it says
            `Read`.
    """

    def __init__(self, spec: PipelineSpec, *, recorded: Sequence[str] = ()) -> None:
        devices = {d.name: DeviceQueue(d, spec.policy) for d in spec.devices}
        for device in spec.devices:
            if device.fallback is not None:
                devices[device.name].fallback = devices[device.fallback]
        tasks = _make_tasks(spec, devices)
        self._state = State(Buffers(frozenset(recorded)), nominal_mode(spec, tasks))
        self._devices = devices
        self._tasks = {task.name: task for task in tasks}
        self._voting: dict[int, Activation] = {}
        self._overruns: list[Job] = []
        self._lifecycle = Lifecycle(self._state, list(devices.values()), tasks)
        self._releases = Releases(spec, self._state, self._lifecycle, tasks)
        self._lifecycle.bind = self._releases.bind
        self._lifecycle.released = self._releases.inputs_released
        self._lifecycle.ended = self._activation_ended
        self._source_order = {source.name: i for i, source in enumerate(spec.sources)}
        self._legality = Legality(
            self._state,
            self._source_order,
            self._tasks,
            devices,
            self._lifecycle.working,
            self._voting,
        )

    @property
    def now_ns(self) -> int:
        return self._state.now_ns

    @property
    def next_wakeup_ns(self) -> int | None:
        """When the kernel next needs a call without an event, or None if only events move it."""
        return self._state.timers.next_ns(self._is_live)

    @property
    def working_jobs(self) -> tuple[int, ...]:
        """Jobs dispatched whose work has not been reported ended, in order of dispatch."""
        return tuple(self._lifecycle.working)

    def handle(self, at_ns: int, events: Sequence[Event] = ()) -> list[Command]:
        """Move to `at_ns`, take in what happened, and return what to do, in order.

        Args:
            at_ns: pipeline time; the same instant may come again, it never goes back.
            events: all events of that instant, in any order.

        Raises:
            KernelError: an event is illegal now; nothing has changed.
        """
        self._legality.check(at_ns, events)
        state = self._state
        state.now_ns = at_ns
        out: list[Command] = []
        state.out = out
        later = [event for event in events if isinstance(event, _RELEASES)]
        for event in _in_order([e for e in events if not isinstance(e, _RELEASES)]):
            self._apply(event)
        self._fire_timers()
        for event in self._arrivals_in_order(later):
            self._apply(event)
        while self._releases.release_pending():
            self._fire_timers()
        for job in self._overruns:
            if job.outcome is None and job.running_since_ns is not None:
                self._lifecycle.budget_spent(job)
        self._overruns.clear()
        self._lifecycle.dispatch()
        return out

    def snapshot(self) -> object:
        """Return the whole state; `restore` on any kernel of this pipeline gives the same tail."""
        return copy.deepcopy(self)

    def restore(self, snapshot: object) -> None:
        """Take back a state that `snapshot` returned."""
        assert isinstance(snapshot, Kernel)
        self.__dict__.update(copy.deepcopy(snapshot).__dict__)
        self._lifecycle.ended = self._activation_ended

    # Events

    def _arrivals_in_order(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return arrivals by source order and sequence, then mode requests, then the drain."""

        def rank(event: Event) -> tuple[int, int]:
            if isinstance(event, Arrived):
                return (self._source_order[event.source], event.sequence)
            return (len(self._source_order) + isinstance(event, Drain), 0)

        return sorted(events, key=rank) if len(events) > 1 else events

    def _apply(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case an event
        state, lifecycle = self._state, self._lifecycle
        match event:
            case Completed():
                self._completed(event)
            case Arrived():
                self._releases.arrived(event)
            case Started():
                lifecycle.working[event.job].device_start_ns = event.device_ns
            case Failed():
                self._faulted(lifecycle.working[event.job], event.fault, "failure")
            case Hung():
                job = lifecycle.working[event.job]
                self._faulted(job, "hang", "hang")
                self._lose_stream(job.task)
            case Voted():
                self._voted(event)
            case StreamLost():
                self._lose_stream(self._tasks[event.stream])
            case DeviceLost():
                self._device_changed(self._devices[event.device], "lost")
            case DeviceBack():
                self._device_changed(self._devices[event.device], "back")
            case Read():
                state.buffers.read(event.buffer, state.out)
            case ModeRequested():
                refused = ModeRecord(state.mode.name, state.now_ns, event.cause, entered=False)
                state.out.append(Record(refused))
            case Drain():
                state.draining = True
            case SegmentEnded():
                raise AssertionError("refused by Legality")
            case _:
                assert_never(event)

    def _completed(self, event: Completed) -> None:
        state = self._state
        job = self._lifecycle.working[event.job]
        job.device_ns = event.device_ns
        buffer = self._releases.output(job, event.buffer)
        if job.outcome is None:
            job.output = buffer
        if not self._lifecycle.completed(job):
            job.output = None
            state.out.append(Discard(job.id))
            state.buffers.drop(buffer, state.out)

    def _faulted(self, job: Job, fault: str, reason: str) -> None:
        record = FaultRecord(job.id, job.task.name, self._state.now_ns, fault)
        self._state.out.append(Record(record))
        self._lifecycle.failed(job, reason)

    def _voted(self, event: Voted) -> None:
        state = self._state
        activation = self._voting.pop(event.activation)
        name = activation.stage.name
        state.out.append(Record(VoteRecord(activation.id, name, state.now_ns, event.verdict)))
        for job in activation.jobs:
            buffer = job.output
            if buffer is not None and buffer.handle == event.buffer:
                self._releases.decide(activation, buffer)
            elif buffer is not None:
                state.buffers.drop(buffer, state.out)

    def _activation_ended(self, activation: Activation) -> None:
        """Decide over an activation whose jobs have all ended."""
        done = [job for job in activation.jobs if job.outcome in {"met", "late"}]
        if not done:
            return
        if activation.stage.redundancy is not None:
            self._voting[activation.id] = activation
            self._state.out.append(Vote(activation.id, tuple(job.id for job in done)))
            return
        buffer = done[0].output
        assert buffer is not None
        self._releases.decide(activation, buffer)

    def _lose_stream(self, task: Task) -> None:
        record = ResourceRecord(task.name, self._state.now_ns, "lost")
        self._state.out.append(Record(record))
        self._lifecycle.lose(task)

    def _device_changed(self, device: DeviceQueue, state: Literal["lost", "back"]) -> None:
        """Move the streams of a device that was lost, or is back, to where they can run."""
        device.lost = state == "lost"
        record = ResourceRecord(device.name, self._state.now_ns, state)
        self._state.out.append(Record(record))
        for task in self._tasks.values():
            target: DeviceQueue | None = task.home
            while target is not None and target.lost:
                target = target.fallback
            if target is None:
                self._lifecycle.lose(task)
            elif target is not task.device or task.lost:
                self._lifecycle.move(task, target)

    # Timers

    def _fire_timers(self) -> None:
        now_ns, heap = self._state.now_ns, self._state.timers
        while (entry := heap.pop_due(now_ns)) is not None:
            if self._is_live(entry):
                self._fire(entry[1], entry[3])

    def _fire(self, kind: int, subject: object) -> None:
        match kind, subject:
            case timers.DUE, Job():
                self._lifecycle.deadline_passed(subject)
            case timers.PUBLISH, Activation():
                self._releases.publish(subject)
            case timers.SHED, Job():
                self._lifecycle.latest_start_passed(subject)
            case timers.SYNC, (int(index), SyncSet() as timed_out):
                self._releases.set_timed_out(index, timed_out)
            case timers.RELEASE, (int(index), int(release_ns)):
                self._releases.timer_fired(index, release_ns)
            case timers.BUDGET, Job():
                self._overruns.append(subject)
            case timers.CHAIN, Watch():
                subject.chain.limit_passed(self._state, subject)
            case _:
                raise AssertionError(kind)

    def _is_live(self, entry: timers.Entry) -> bool:  # noqa: PLR0911 - one case a timer
        """Whether a timer still means something."""
        at_ns, kind, _, subject = entry
        match subject:
            case Job() if subject.outcome is not None:
                return False
            case Job() if kind == timers.SHED:
                return subject.start_ns is None
            case Job() if kind == timers.BUDGET:
                budget_ns = self._state.mode.parameters[subject.task.index].budget_ns
                running = subject.running_since_ns is not None
                return running and subject.received_ns(at_ns) >= budget_ns
            case Watch():
                return subject.live and not self._state.draining
            case (int(), SyncSet() as opened):
                return not opened.released
            case (int(), int()):
                return not self._state.draining
            case _:
                return True


_RELEASES = (Arrived, ModeRequested, Drain)
_PHASES = {
    Started: 0,
    SegmentEnded: 0,
    Completed: 1,
    Failed: 1,
    Hung: 1,
    Voted: 2,
    StreamLost: 3,
    DeviceLost: 3,
    DeviceBack: 3,
    Read: 4,
}


def _in_order(events: Sequence[Event]) -> Sequence[Event]:
    """Return what ended or was lost in one instant in the order it is taken in."""

    def rank(event: Event) -> tuple[int, int]:
        phase = _PHASES[type(event)]
        match event:
            case Started() | Completed() | Failed() | Hung():
                return (phase, event.job)
            case Voted():
                return (phase, event.activation)
            case Read():
                return (phase, event.buffer)
            case _:
                return (phase, 0)

    return sorted(events, key=rank) if len(events) > 1 else events


def _make_tasks(spec: PipelineSpec, devices: dict[str, DeviceQueue]) -> list[Task]:
    """Return the tasks in pipeline-file order: one a stage, or one a replica."""
    tasks: list[Task] = []
    for stage in spec.stages:
        device = devices[stage.device]
        copies = 1 if stage.redundancy is None else stage.redundancy.copies
        for copy_index in range(copies):
            name = stage.name if copies == 1 else f"{stage.name}.{copy_index}"
            tasks.append(Task(len(tasks), name, stage, device, device))
        target: DeviceQueue | None = device
        while target is not None:
            target.serve(stage.criticality)
            target = target.fallback
    return tasks
