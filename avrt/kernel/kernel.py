"""The scheduling kernel: events in, commands out.

It never reads a clock, sleeps, draws a random number, starts a thread, opens a file, touches a
tensor or calls a stage; it learns the time only from `handle(at_ns, events)`. Simulation, replay
and the live runtime are loops around this one class, so each decides exactly alike.

Within one call the order is: completions and losses, then deadlines, publications at deadlines and
shedding, then arrivals and releases in pipeline-file order, then budgets, then promises of
chains, then one dispatch pass over the devices. A deadline check closes its instant: a completion
reported by a *later* call at the due time itself is late.

The total order among jobs is `(policy key, running first, task index, job index)`; no set or hash
decides anything, so a journal is the same under any PYTHONHASHSEED.
"""

from __future__ import annotations

import copy
from heapq import heappop
from typing import TYPE_CHECKING

from avrt.kernel.buffers import Buffers
from avrt.kernel.chains import Watch
from avrt.kernel.instant import InstantOrder
from avrt.kernel.job import Activation, Job
from avrt.kernel.ladder import modes_of
from avrt.kernel.legality import Legality
from avrt.kernel.lifecycle import Lifecycle
from avrt.kernel.queues import DeviceQueue
from avrt.kernel.releases import Releases, Tick
from avrt.kernel.state import State
from avrt.kernel.streams import Streams
from avrt.kernel.sync import SyncSet
from avrt.kernel.tasks import make_tasks
from avrt.kernel.timers import BUDGET, DUE, SHED, is_awaited
from avrt.kernel.voting import Poll, Voting
from avrt.model.commands import Command, Discard, EnterMode, Record
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
    Ordered,
    Read,
    SegmentEnded,
    Started,
    StreamBack,
    StreamLost,
    Voted,
)
from avrt.model.records import FaultRecord, ModeRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.kernel.timers import Entry
    from avrt.model.spec import PipelineSpec


class Kernel:
    """Decides what runs when, for one pipeline.

    Args:
        spec: a pipeline that passed `avrt.model.graph.check`.
        recorded: sources and stages whose messages a reader outside the graph keeps until it says
            `Read`.
    """

    def __init__(self, spec: PipelineSpec, *, recorded: Sequence[str] = ()) -> None:
        assert (spec.policy == "table") == (spec.table is not None), "a table is planned at load"
        devices = {d.name: DeviceQueue(d, spec.policy) for d in spec.devices}
        for device in spec.devices:
            devices[device.name].places = [devices[place.name] for place in spec.places(device)]
        modes = modes_of(spec)
        tasks = make_tasks(spec, devices, list(modes.values()))
        self._state = State(Buffers(frozenset(recorded)), modes)
        self._devices = devices
        self._tasks = {task.name: task for task in tasks}
        self._is_spent = False  # whether a budget ends in this instant
        self._lapsed: list[Watch] = []
        self._timed_out: list[SyncSet] = []
        self._stopping = False
        self._requests: list[ModeRequested] = []
        self._planned = spec.table is not None
        self._lifecycle = Lifecycle(self._state, list(devices.values()), tasks)
        self._streams = Streams(self._state, self._lifecycle, tasks, devices)
        self._releases = Releases(spec, self._state, self._lifecycle, tasks)
        self._voting = Voting(self._state, self._releases, asks_early=not self._planned)
        self._releases.opened = self._voting.released
        self._lifecycle.bind = self._releases.bind
        self._lifecycle.released = self._releases.inputs_released
        self._lifecycle.ended = self._activation_ended
        sources = {source.name: i for i, source in enumerate(spec.sources)}
        self._order = InstantOrder(
            sources, {t.name: t.index for t in tasks}, {name: i for i, name in enumerate(devices)}
        )
        self._legality = Legality(
            self._state,
            sources,
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
        heap = self._state.timers.heap
        while heap and not self._is_live(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None

    @property
    def working_jobs(self) -> tuple[int, ...]:
        """Jobs dispatched whose work has not been reported ended, in order of dispatch."""
        return tuple(self._lifecycle.working)

    def handle(  # noqa: C901, PLR0912 - one step a phase
        self, at_ns: int, events: Sequence[Event] = ()
    ) -> list[Command]:
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
        arrivals: Sequence[Event] = ()
        if events:
            ended, arrivals = self._order.split(events)
            for event in ended:
                self._apply(event)
        heap, releases = state.timers.heap, self._releases
        if heap and heap[0][0] <= at_ns:
            self._fire_timers()
        stirred = bool(events or releases.pending or self._timed_out)
        for event in arrivals:
            self._apply(event)
        if self._timed_out:
            self._release_timed_out()
        while releases.pending or (heap and heap[0][0] <= at_ns):
            releases.release_pending()
            if heap and heap[0][0] <= at_ns:
                self._fire_timers()
                self._release_timed_out()
        if self._stopping:
            self._stop()
        if self._is_spent or self._lapsed:
            self._judge_noted()
        if self._requests:
            self._change_mode()
        if self._voting.stirred:
            self._voting.release_spares()
        if stirred or out or self._planned:  # mere time decides nothing but that a start has come
            self._lifecycle.dispatch()
        if self._voting.stirred:
            self._voting.ask()
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

    def _apply(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case an event
        state, lifecycle = self._state, self._lifecycle
        match event:
            case Completed():
                self._completed(event)
            case Arrived():
                self._releases.arrived(event)
            case SegmentEnded():
                lifecycle.segment_ended(lifecycle.working[event.job])
            case Started():
                lifecycle.working[event.job].device_start_ns = event.device_ns
            case Failed():
                self._faulted(lifecycle.working[event.job], event.fault, "failure")
            case Hung():
                job = lifecycle.working[event.job]
                self._faulted(job, "hang", "hang")
                self._streams.lost(job.task)
            case Voted():
                self._voting.voted(event)
            case StreamLost():
                self._streams.lost(self._tasks[event.stream])
            case StreamBack():
                self._streams.back(self._tasks[event.stream])
            case DeviceLost():
                self._streams.device_lost(self._devices[event.device])
            case DeviceBack():
                self._streams.device_back(self._devices[event.device])
            case Read():
                state.buffers.read(event.buffer, state.out)
            case ModeRequested():
                self._requests.append(event)
            case Ordered():
                pass
            case _:
                assert isinstance(event, Drain)
                state.draining = True
                self._stopping = event.at_once

    def _completed(self, event: Completed) -> None:
        state = self._state
        job = self._lifecycle.working[event.job]
        job.device_ns = event.device_ns
        buffer = self._releases.output(job.activation, event.buffer)
        if not self._lifecycle.completed(job, buffer):
            state.out.append(Discard(job.id))
            state.buffers.drop(buffer, state.out)

    def _faulted(self, job: Job, fault: str, reason: str) -> None:
        record = FaultRecord(job.id, job.task.name, self._state.now_ns, fault)
        self._state.out.append(Record(record))
        self._lifecycle.failed(job, reason)

    def _activation_ended(self, activation: Activation) -> None:
        """Decide over an activation whose only job has ended, or let the voter decide."""
        if activation.copies > 1:
            self._voting.job_ended(activation)
            return
        buffer = activation.jobs.pop().output
        if buffer is not None:
            self._releases.decide(activation, buffer)
        else:
            self._state.underway[activation.stage.name] -= 1

    # Modes

    def _change_mode(self) -> None:
        """Enter the mode that is asked for; one that it is in already is refused."""
        state, requests, self._requests = self._state, self._requests, []
        for request in requests:
            mode = state.modes[request.mode]
            is_new = mode is not state.mode
            record = ModeRecord(mode.name, state.now_ns, request.cause, entered=is_new)
            state.out += [EnterMode(mode.name), Record(record)] if is_new else [Record(record)]
            if is_new:
                state.mode = mode
                self._streams.mode_entered(mode)
                self._releases.mode_entered()

    # Timers

    def _fire_timers(self) -> None:
        """Fire what is due; releases and broken promises are noted for their own phase."""
        now_ns, heap = self._state.now_ns, self._state.timers.heap
        while heap and heap[0][0] <= now_ns:
            entry = heappop(heap)
            subject = entry[3]
            if isinstance(subject, Job):
                if subject.outcome is None:
                    self._fire_job_timer(entry[1], subject)
            elif isinstance(subject, Tick):
                if not self._state.draining:
                    self._releases.timer_fired(subject)
            elif isinstance(subject, Activation):
                self._releases.publish(subject)
            elif isinstance(subject, Poll):
                if not subject.is_judged:
                    self._voting.time_over(subject)
            elif isinstance(subject, Watch):
                self._lapsed.append(subject)
            else:
                assert isinstance(subject, SyncSet)
                self._timed_out.append(subject)

    def _fire_job_timer(self, phase: int, job: Job) -> None:
        if phase == DUE:
            self._lifecycle.due_passed(job)
        elif phase == BUDGET:
            self._is_spent = True
        elif phase == SHED and job.start_ns is None:
            self._lifecycle.latest_start_passed(job)

    def _stop(self) -> None:
        """Abort what is open, the releases of this instant included."""
        self._stopping = False
        for task in self._tasks.values():
            self._lifecycle.stop(task)

    def _release_timed_out(self) -> None:
        """Release the sets whose time is over; what arrived at that instant has joined them."""
        for timed_out in self._timed_out:
            if not timed_out.released:
                self._releases.set_timed_out(timed_out)
        self._timed_out.clear()

    def _judge_noted(self) -> None:
        """Judge the budgets and then the promises of chains that the timers told of."""
        if self._is_spent:
            self._is_spent = False
            self._lifecycle.check_budgets()
        for watch in self._lapsed:
            if self._releases.chains.is_open(watch):
                self._releases.chains.limit_passed(watch)
        self._lapsed.clear()

    def _is_live(self, entry: Entry) -> bool:
        """Whether a timer still means something."""
        subject = entry[3]
        if isinstance(subject, Job):
            return is_awaited(entry, subject)
        if isinstance(subject, Watch):  # while work goes on, a waiting head may still read
            may_open = subject.live and bool(self._lifecycle.working)
            return may_open or self._releases.chains.is_open(subject)
        if isinstance(subject, Tick):
            return not self._state.draining
        if isinstance(subject, Poll):
            return not subject.is_judged
        return not (isinstance(subject, SyncSet) and subject.released)
