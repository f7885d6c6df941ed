"""Driving a kernel through a scenario, keeping every call, and reading off what then happened.

This loop is written apart from `avrt.drivers.virtual`, which is tested against it. With a `grain`
above 1 it is a driver that wakes late: everything is seen at multiples of the grain only.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass, field

from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal
from avrt.model.commands import Abort, Dispatch, Preempt, Publish, Record, Resume, Vote
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Failed,
    Hung,
    ModeRequested,
    Read,
    SegmentEnded,
    StreamBack,
    StreamLost,
    Voted,
)
from avrt.model.records import JobRecord

CALLS_AT_ONE_INSTANT_MAX = 50


@dataclass
class Call:
    """One call of the kernel and, after it, when it wants the next."""

    at_ns: int
    events: tuple
    commands: list
    wakeup_ns: int | None


@dataclass
class Trace:
    """Everything that one kernel was told and said."""

    scenario: object
    calls: list[Call] = field(default_factory=list)
    drained_ns: int | None = None
    working: tuple[int, ...] = ()

    @property
    def spec(self):
        return self.scenario.spec

    @property
    def digest(self):
        journal = Journal()
        for call in self.calls:
            journal.note(call.at_ns, call.events, call.commands)
        return journal.digest

    @property
    def commands(self):
        """All commands as `(at_ns, command)`."""
        return [(call.at_ns, command) for call in self.calls for command in call.commands]

    @property
    def events(self):
        return [(call.at_ns, event) for call in self.calls for event in call.events]

    def records(self, kind, until=None):
        """All records of one kind, in order; those of the calls up to `until` if it is given."""
        calls = self.calls if until is None else self.calls[: self.calls.index(until) + 1]
        commands = [c for call in calls for c in call.commands]
        return [c.record for c in commands if isinstance(c, Record) and isinstance(c.record, kind)]

    def jobs(self):
        """The job records by job number."""
        return {record.job: record for record in self.records(JobRecord)}

    def dispatches(self):
        return {c.job: (at_ns, c) for at_ns, c in self.commands if isinstance(c, Dispatch)}

    def stage_of(self, task):
        """The stage specification of a task."""
        names = {stage.name: stage for stage in self.spec.stages}
        return names.get(task) or names[task.rpartition(".")[0]]

    def home(self, task):
        """The device to which a task belongs."""
        return self.stage_of(task).home(task)

    def task_names(self):
        """All tasks in pipeline-file order."""
        return task_names(self.spec)

    def last_calls(self):
        """The last call of each instant, with all commands of the instant."""
        for index, call in enumerate(self.calls):
            last = index + 1 == len(self.calls) or self.calls[index + 1].at_ns > call.at_ns
            yield call, last


def task_names(spec):
    names = []
    for stage in spec.stages:
        if stage.redundancy is None:
            names.append(stage.name)
        else:
            names += [f"{stage.name}.{copy}" for copy in range(stage.redundancy.copies)]
    return names


def drive(scenario, grain=1, before_call=None, *, drain_last=False):
    """Run a scenario to its end and return the trace."""
    return World(scenario, grain, before_call, drain_last=drain_last).run()


def restored_half_way(trace):
    """Return what a kernel says to the calls of a trace that is restored into another half way."""
    recorded, said = trace.scenario.recorded, []
    kernel = Kernel(trace.spec, recorded=recorded)
    for place, call in enumerate(trace.calls):
        if place == len(trace.calls) // 2:
            other = Kernel(trace.spec, recorded=recorded)
            other.restore(kernel.snapshot())
            kernel = other
        said.append(kernel.handle(call.at_ns, call.events))
    return said


class Voter:
    """Selects the outputs that a scenario says, in turn, and nothing once it has decided."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.votes = 0
        self.decided = set()

    def __call__(self, command, at_ns=0):
        del at_ns
        self.votes += 1
        choice = self.scenario.votes[self.votes % len(self.scenario.votes)]
        is_silent = choice is None or not command.jobs or command.activation in self.decided
        buffer = None if is_silent else command.jobs[choice % len(command.jobs)]
        if buffer is not None or command.when != "early":
            self.decided.add(command.activation)
        verdict = "no_majority" if buffer is None else "majority"
        return Voted(command.activation, verdict, buffer)


class World:
    """What happens around one kernel: devices, sources, supervision, the recorder, the voter.

    With `drain_last` the drain is a call of its own when nothing is left before `until_ns`; else it
    comes at `until_ns` with whatever else does.
    """

    def __init__(self, scenario, grain=1, before_call=None, *, drain_last=False):
        self.scenario = scenario
        self.spec = scenario.spec
        self.grain = grain
        self.before_call = before_call
        self.drain_last = drain_last
        self.kernel = Kernel(self.spec, recorded=scenario.recorded)
        self.trace = Trace(scenario)
        self.feed = []
        self.serial = 0
        self.left = {}
        self.since = {}
        self.paused = set()
        self.dispatched = {}
        self.activation_stage = {}
        self.preemptive = {d.name for d in self.spec.devices if d.preemptive}
        self.lost_devices = set()
        self.task_places = {name: i for i, name in enumerate(task_names(self.spec))}
        self.reads = 0
        self.voter = Voter(scenario)
        self._schedule()

    def _schedule(self):
        at_ns, sequence = 0, defaultdict(int)
        for number, arrival in enumerate(self.scenario.arrivals):
            at_ns += arrival.gap_ns
            if at_ns >= self.scenario.until_ns:
                break
            source = self.spec.sources[arrival.source].name
            log_ns = at_ns - arrival.log_age_ns
            capture_ns = at_ns - arrival.capture_age_ns
            event = Arrived(source, sequence[source], capture_ns, log_ns, -1 - number)
            sequence[source] += 1
            self._later(at_ns, event)
        for fault in self.scenario.faults:
            self._later(fault.at_ns, self._fault(fault))
        if not self.drain_last:
            self._later(self.scenario.until_ns, Drain())

    def _fault(self, fault):
        names, devices = list(self.task_places), self.spec.devices
        match fault.kind:
            case "stream_lost":
                return StreamLost(names[fault.subject % len(names)])
            case "stream_back":
                return StreamBack(names[fault.subject % len(names)])
            case "device_lost":
                return DeviceLost(devices[fault.subject % len(devices)].name)
            case "device_back":
                return DeviceBack(devices[fault.subject % len(devices)].name)
            case _:
                modes = list(self.kernel._state.modes)
                return ModeRequested(modes[fault.subject % len(modes)], f"cause {fault.subject}")

    def _later(self, at_ns, event):
        self.serial += 1
        at_ns = -(-at_ns // self.grain) * self.grain
        insort(self.feed, (at_ns, self.serial, event))

    def run(self):
        repeated = 0
        while (at_ns := self._next_ns()) is not None:
            repeated = repeated + 1 if at_ns == self.kernel.now_ns else 0
            assert repeated < CALLS_AT_ONE_INSTANT_MAX, "the kernel never comes to rest"
            self._call(at_ns, self._events(at_ns))
        self.trace.working = self.kernel.working_jobs
        return self.trace

    def _next_ns(self):
        next_ns = self._earliest_ns()
        until_ns = self.scenario.until_ns
        must_drain = self.drain_last and self.trace.drained_ns is None
        if must_drain and (next_ns is None or next_ns >= until_ns or self._is_stuck()):
            self.feed.clear()
            self._call(max(until_ns - 1, self.kernel.now_ns), [Drain()])
            next_ns = self._earliest_ns()
        return next_ns

    def _is_stuck(self):
        return not self.since and not self.feed and self.kernel.next_wakeup_ns is None

    def _earliest_ns(self):
        times = [self.since[job] + self.left[job] for job in self.since]
        if self.feed:
            times.append(self.feed[0][0])
        wakeup_ns = self.kernel.next_wakeup_ns
        if wakeup_ns is not None:
            times.append(wakeup_ns)
        if times:
            return max(-(-min(times) // self.grain) * self.grain, self.kernel.now_ns)
        return self.kernel.now_ns if self.kernel.working_jobs else None

    def _events(self, at_ns):
        ended = [job for job in self.since if self.since[job] + self.left[job] <= at_ns]
        events = [self._end(job, at_ns) for job in ended]
        while self.feed and self.feed[0][0] <= at_ns:
            event = self.feed.pop(0)[2]
            if self._is_legal(event, events):
                events.append(event)
        if not events and self.trace.drained_ns is not None and self._is_stuck():
            events = [Hung(job) for job in self.kernel.working_jobs if job not in self.paused]
        return events

    def _end(self, job, at_ns):
        command = self.dispatched[job]
        if command.segment + 1 < len(self.trace.stage_of(command.task).segments):
            self._forget(job)
            self.paused.add(job)
            return SegmentEnded(job)
        ending = self.scenario.ending(self.task_places[command.task], command.index)
        self._forget(job)
        match ending:
            case "completed":
                return Completed(job, job, at_ns)
            case "failed":
                return Failed(job, "SoftwareFault")
            case _:
                return Hung(job)

    def _is_legal(self, event, events):
        match event:
            case StreamLost() | StreamBack():
                lost = isinstance(event, StreamLost) and self.kernel._tasks[event.stream].lost
                twice = {StreamLost(event.stream), StreamBack(event.stream)} & set(events)
                return not lost and not twice
            case DeviceLost() | DeviceBack():
                lost = event.device in self.lost_devices
                twice = DeviceLost(event.device) in events or DeviceBack(event.device) in events
                legal = lost == isinstance(event, DeviceBack) and not twice
                if legal:
                    self.lost_devices ^= {event.device}
                return legal
            case Arrived():
                return self.trace.drained_ns is None
            case _:
                return True

    def _call(self, at_ns, events):
        if self.before_call is not None:
            self.before_call(self.kernel, at_ns, events)
        commands = self.kernel.handle(at_ns, events)
        wakeup_ns = self.kernel.next_wakeup_ns
        self.trace.calls.append(Call(at_ns, tuple(events), commands, wakeup_ns))
        for event in events:
            if isinstance(event, Drain):
                self.trace.drained_ns = at_ns
            if isinstance(event, Arrived) and event.source in self.scenario.recorded:
                self._read_later(at_ns, event.buffer)
        working = self.kernel.working_jobs
        for command in commands:
            self._obey(command, at_ns)
        for job in [j for j in (*self.left, *self.paused) if j not in working]:
            self._forget(job)

    def _obey(self, command, at_ns):
        match command:
            case Dispatch():
                self.dispatched[command.job] = command
                self.paused.discard(command.job)
                place = self.task_places[command.task]
                cost_ns = self.scenario.cost_ns(place, command.index + command.segment)
                if cost_ns is not None:
                    self.left[command.job] = cost_ns
                    self.since[command.job] = at_ns
            case Preempt():
                self.paused.add(command.job)
                if command.job in self.since:
                    self.left[command.job] -= at_ns - self.since.pop(command.job)
            case Resume():
                self.paused.discard(command.job)
                if command.job in self.left:
                    self.since[command.job] = at_ns
            case Vote():
                self._vote(command, at_ns)
            case Publish():
                self._published(command, at_ns)
            case _:
                pass

    def _vote(self, command, at_ns):
        answer = self.voter(command)
        delays = self.scenario.vote_delays
        self._later(at_ns + delays[self.voter.votes % len(delays)], answer)

    def _published(self, command, at_ns):
        stage = self.trace.stage_of(self.dispatched[command.buffer].task)
        if stage.name in self.scenario.recorded:
            self._read_later(at_ns, command.buffer)

    def _read_later(self, at_ns, buffer):
        self.reads += 1
        delays = self.scenario.read_delays
        self._later(at_ns + delays[self.reads % len(delays)], Read(buffer))

    def _forget(self, job):
        self.left.pop(job, None)
        self.since.pop(job, None)
        self.paused.discard(job)


class Ledger:
    """What events and commands say about slots, streams and execution, taken in one by one."""

    def __init__(self, trace):
        self.trace = trace
        self.preemptive = {d.name for d in trace.spec.devices if d.preemptive}
        self.task = {}
        self.device = {}
        self.running = {}
        self.paused = {}
        self.stream = {}
        self.ended = {}
        self.received = defaultdict(int)
        self.since = {}
        self.stretches = defaultdict(list)
        self.work_ended_ns = {}

    def take(self, call):
        """Take in the events of a call: what they end."""
        for event in call.events:
            match event:
                case Completed() | Failed() | Hung():
                    self.end_work(event.job, call.at_ns)
                case SegmentEnded():
                    self._stop(event.job, call.at_ns)
                case StreamLost() if event.stream in self.stream:
                    self.end_work(self.stream[event.stream], call.at_ns)
                case DeviceLost():
                    for job in [j for j in self.device if self.device[j] == event.device]:
                        self.end_work(job, call.at_ns)

    def do(self, at_ns, command):
        """Take in one command."""
        match command:
            case Dispatch():
                self.task[command.job] = command.task
                self.device[command.job] = command.device
                self.stream[command.task] = command.job
                self._run(command.job, at_ns)
            case Resume():
                del self.paused[command.job]
                self._run(command.job, at_ns)
            case Preempt():
                self._stop(command.job, at_ns)
                self.paused[command.job] = self.device[command.job]
            case Abort() if self.device.get(command.job) in self.preemptive:
                self.end_work(command.job, at_ns)
            case Record() if isinstance(command.record, JobRecord):
                self.ended[command.record.job] = command.record

    def _run(self, job, at_ns):
        self.running[job] = self.device[job]
        self.since[job] = at_ns

    def _stop(self, job, at_ns):
        del self.running[job]
        start_ns = self.since.pop(job)
        self.received[job] += at_ns - start_ns
        self.stretches[job].append((start_ns, at_ns))

    def end_work(self, job, at_ns):
        if job in self.running:
            self._stop(job, at_ns)
        self.paused.pop(job, None)
        self.stream.pop(self.task[job], None)
        self.device.pop(job, None)
        self.work_ended_ns[job] = at_ns

    def received_ns(self, job, at_ns):
        """Execution received until now."""
        return self.received[job] + (at_ns - self.since[job] if job in self.since else 0)

    def on(self, device):
        return [job for job, place in self.running.items() if place == device]

    @classmethod
    def of(cls, trace):
        """The ledger after the whole trace."""
        ledger = cls(trace)
        for call in trace.calls:
            ledger.take(call)
            for command in call.commands:
                ledger.do(call.at_ns, command)
        return ledger


def walk(trace):
    """Yield `(ledger, call, command)` before each command is taken in, and `(.., None)` after."""
    ledger = Ledger(trace)
    for call in trace.calls:
        ledger.take(call)
        for command in call.commands:
            yield ledger, call, command
            ledger.do(call.at_ns, command)
        yield ledger, call, None
