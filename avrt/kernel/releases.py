"""From messages and timers to activations: who reads whom, and what an activation rests on.

The trigger binds at release. Sampled inputs bind at first dispatch (at release when the stage is
redundant or publishes at its deadline); a required one that is missing or older than its
`max_age` makes the job skipped, an optional one is left out and the job says so. Ages count from
mapped capture times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.kernel.chains import NO_HEADS, Chains
from avrt.kernel.job import Activation, Job
from avrt.kernel.sync import Synchroniser, SyncSet
from avrt.kernel.table import published_by_plan_ns, ready_by_plan_ns
from avrt.kernel.timers import PUBLISH, RELEASE, SYNC
from avrt.model.commands import Publish, Record
from avrt.model.records import SyncRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Task
    from avrt.kernel.ladder import TaskParameters
    from avrt.kernel.lifecycle import Lifecycle
    from avrt.kernel.state import State
    from avrt.model.events import Arrived
    from avrt.model.spec import InputSpec, PipelineSpec


# A release that this instant will make, sorted so that pipeline-file order decides: stage index,
# release time, a number that makes the order total, capture time, inputs (held for it already).
Pending = tuple[int, int, int, int, "list[Buffer | None]"]


@dataclass(slots=True, eq=False)
class Tick:
    """The next nominal release of a timer stage."""

    stage_index: int
    release_ns: int


@dataclass(slots=True)
class Route:
    """Who reads a producer: `(stage index, input place)` of those it triggers and joins.

    `latest` is its newest message, kept if some stage samples it.
    """

    triggers: list[tuple[int, int]] = field(default_factory=list)
    joins: list[tuple[int, int]] = field(default_factory=list)
    sampled: bool = False
    latest: Buffer | None = None


class Releases:
    """The wiring of one pipeline, its timers, its synchronised sets and its chains.

    Attributes:
        opened: called with each activation of a redundant stage before its jobs are admitted.
    """

    opened: Callable[[Activation], None]

    def __init__(
        self, spec: PipelineSpec, state: State, lifecycle: Lifecycle, tasks: list[Task]
    ) -> None:
        self._state = state
        self._lifecycle = lifecycle
        self._stages = spec.stages
        self._tasks = [[t for t in tasks if t.stage.name == s.name] for s in spec.stages]
        self._copies = {s.name: t for s, t in zip(spec.stages, self._tasks, strict=True)}
        self.pending: list[Pending] = []
        self._binds_early = [
            stage.redundancy is not None or stage.publish == "at_deadline" for stage in spec.stages
        ]
        self._newest: dict[str, int] = {}
        self._triggered = [0] * len(spec.stages)
        self._serial = 0
        self._activations = 0
        self._jobs = 0
        self.chains = Chains(spec, state)
        self._has_chains = bool(spec.chains)
        self._planned = spec.table is not None
        self._wire(spec)
        for index, stage in enumerate(spec.stages):
            if stage.period_ns is not None:
                state.timers.add(
                    stage.offset_ns,
                    RELEASE,
                    Tick(index, stage.offset_ns),
                )

    def _wire(self, spec: PipelineSpec) -> None:
        """Note for each producer which stages it triggers, feeds by sampling, or by a set."""
        names = [s.name for s in spec.sources] + [s.name for s in spec.stages]
        self._routes = {name: Route() for name in names}
        self._synchronisers: dict[int, Synchroniser] = {}
        for index, stage in enumerate(spec.stages):
            if stage.sync is not None:
                self._synchronisers[index] = Synchroniser(index, stage)
            for place, item in enumerate(stage.inputs):
                route = self._routes[item.source]
                if stage.sync is not None:
                    route.joins.append((index, place))
                elif item.name == stage.trigger:
                    route.triggers.append((index, place))
                else:
                    route.sampled = True

    # Messages

    def arrived(self, event: Arrived) -> None:
        """Take in a source's message."""
        state = self._state
        capture_ns = event.capture_ns
        heads = self.chains.read(event.source, capture_ns)
        buffer = state.buffers.make(event.buffer, event.source, capture_ns, heads)
        release_ns = min(event.log_ns, state.now_ns)
        buffer.planned_ns = release_ns
        self._distribute(buffer, release_ns)

    def output(self, activation: Activation, handle: int) -> Buffer:
        """Register what a job made; it rests on what its inputs rest on."""
        heads = self.chains.carried(activation) if self._has_chains else NO_HEADS
        return self._state.buffers.make(handle, activation.stage.name, activation.capture_ns, heads)

    def decide(self, activation: Activation, buffer: Buffer) -> None:
        """Publish the output of an activation, now or at its deadline.

        What is done at that very time waits for what was done before and is due then too.
        """
        activation.decision = buffer
        state = self._state
        if activation.stage.publish == "at_deadline" and state.now_ns <= activation.due_ns:
            state.timers.add(activation.due_ns, PUBLISH, activation)
        else:
            self.publish(activation)

    def publish(self, activation: Activation) -> None:
        """Let consumers and chains see an activation's decision.

        One of replicas that comes after that of a newer activation is dropped.
        """
        state, buffer = self._state, activation.decision
        assert buffer is not None
        if activation.stage.redundancy is not None:
            name = activation.stage.name
            if self._newest.get(name, -1) > activation.id:
                state.underway[name] -= 1
                state.buffers.drop(buffer, state.out)
                return
            self._newest[name] = activation.id
        state.out.append(Publish(activation.id, buffer.handle, state.now_ns))
        if self._planned:
            buffer.planned_ns = published_by_plan_ns(activation)
        if buffer.heads:
            self.chains.published(activation, buffer)
        self._distribute(buffer, state.now_ns)
        state.underway[activation.stage.name] -= 1

    def _distribute(self, buffer: Buffer, release_ns: int) -> None:
        """Give a message to everyone who reads its producer."""
        state, name = self._state, buffer.producer
        route = self._routes[name]
        if state.buffers.recorded:
            state.buffers.show_to_reader(buffer)
        if route.sampled and name not in state.mode.left_out:
            buffer.holds += 1
            if route.latest is not None:
                state.buffers.drop(route.latest, state.out)
            route.latest = buffer
        for index, place in route.triggers:
            if not self._takes(index):
                continue
            inputs: list[Buffer | None] = [None] * len(self._stages[index].inputs)
            inputs[place] = buffer
            buffer.holds += 1
            self._add(index, release_ns, buffer.capture_ns, inputs)
        for index, place in route.joins:
            if not self._parameters(index).runs:
                continue
            buffer.holds += 1
            self._offer(index, place, buffer)
        state.buffers.drop(buffer, state.out)

    def _parameters(self, index: int) -> TaskParameters:
        """Return what the mode says of the tasks of a stage."""
        return self._state.mode.parameters[self._tasks[index][0].index]

    def _takes(self, index: int) -> bool:
        """Whether a triggered stage takes the message that has come, by the mode."""
        parameters = self._parameters(index)
        if not parameters.runs:
            return False
        place, self._triggered[index] = self._triggered[index], self._triggered[index] + 1
        return place % parameters.every == 0

    def mode_entered(self) -> None:
        """Begin to count messages anew; what is left out is not sampled, and promises nothing."""
        mode = self._state.mode
        self._triggered = [0] * len(self._stages)
        for name in (stage.name for stage in self._stages if stage.name in mode.left_out):
            route = self._routes[name]
            if route.latest is not None:
                self._state.buffers.drop(route.latest, self._state.out)
                route.latest = None
        self.chains.mode_entered(mode.left_out)

    # Synchronised sets

    def _offer(self, index: int, place: int, buffer: Buffer) -> None:
        synchroniser = self._synchronisers[index]
        joined, is_new = synchroniser.offer(place, buffer)
        self._state.underway[synchroniser.stage.name] += is_new
        crowded_out = synchroniser.crowded_out()
        if crowded_out is not None:
            self._release_set(index, crowded_out, self._state.now_ns)
        if joined.released:
            return
        timeout_ns = joined.earliest_ns + synchroniser.sync.timeout_ns
        if self._missing(joined) == () or timeout_ns <= self._state.now_ns:
            self._release_set(index, joined, self._state.now_ns)
        elif is_new or joined.earliest_ns == buffer.capture_ns:
            self._state.timers.add(timeout_ns, SYNC, joined)

    def set_timed_out(self, timed_out: SyncSet) -> None:
        """Release a set that is still open at its earliest capture plus the timeout."""
        index = timed_out.stage_index
        timeout_ns = self._synchronisers[index].sync.timeout_ns
        self._release_set(index, timed_out, timed_out.earliest_ns + timeout_ns)

    def _release_set(self, index: int, released: SyncSet, release_ns: int) -> None:
        synchroniser = self._synchronisers[index]
        synchroniser.close(released)
        self._state.underway[synchroniser.stage.name] -= 1
        if missing := self._missing(released):
            captures_ns = tuple(None if m is None else m.capture_ns for m in released.members)
            stage, now_ns = synchroniser.stage.name, self._state.now_ns
            self._state.out.append(Record(SyncRecord(stage, now_ns, missing, captures_ns)))
        self._add(index, release_ns, released.earliest_ns, released.members)

    def _missing(self, joined: SyncSet) -> tuple[str, ...]:
        """Return the inputs that a set lacks; none of what the mode leaves out."""
        if joined.complete:
            return ()
        items, left_out = self._stages[joined.stage_index].inputs, self._state.mode.left_out
        pairs = zip(items, joined.members, strict=True)
        return tuple(i.name for i, m in pairs if m is None and i.source not in left_out)

    # Releases

    def timer_fired(self, tick: Tick) -> None:
        """Note a timer release; the next one is nominal too, whenever the driver woke."""
        index, release_ns = tick.stage_index, tick.release_ns
        parameters = self._parameters(index)
        assert parameters.period_ns is not None
        tick.release_ns = release_ns + parameters.period_ns
        self._state.timers.add(tick.release_ns, RELEASE, tick)
        if not parameters.runs:
            return
        self._add(index, release_ns, release_ns, [None] * len(self._stages[index].inputs))

    def _add(
        self, index: int, release_ns: int, capture_ns: int, inputs: list[Buffer | None]
    ) -> None:
        self._serial += 1
        self._state.underway[self._stages[index].name] += 1
        self.pending.append((index, release_ns, self._serial, capture_ns, inputs))

    def release_pending(self) -> None:
        """Make the activations of this instant in pipeline-file order."""
        pending, self.pending = self.pending, []
        if len(pending) > 1:
            pending.sort(key=lambda p: p[:3])
        for index, release_ns, _, capture_ns, inputs in pending:
            self._release(index, release_ns, capture_ns, inputs)

    def _release(
        self, index: int, release_ns: int, capture_ns: int, inputs: list[Buffer | None]
    ) -> None:
        stage, parameters = self._stages[index], self._parameters(index)
        base_ns = capture_ns if stage.deadline_from == "capture" else release_ns
        due_ns = base_ns + parameters.deadline_ns
        copies, spare = parameters.copies, parameters.spare
        begins, now_ns = copies - spare, self._state.now_ns
        activation = Activation(
            self._activations,
            stage,
            release_ns,
            due_ns,
            capture_ns,
            inputs,
            jobs=[],
            open_jobs=begins,
            working=begins + (spare > 0),
            copies=copies,
            has_spare=spare > 0,
        )
        self._activations += 1
        if self._planned:
            activation.ready_ns = ready_by_plan_ns(stage, release_ns, inputs)
        for task in self._tasks[index][:begins]:
            activation.jobs.append(
                Job(self._jobs, activation, task, task.released, release_ns, now_ns, due_ns)
            )
            self._jobs += 1
            task.released += 1
        if activation.copies > 1:
            self.opened(activation)
        skip = self.bind(activation) if self._binds_early[index] else ""
        for job in tuple(activation.jobs):
            self._lifecycle.admit(job, skip)

    def release_spare(self, activation: Activation) -> None:
        """Let one more copy of a redundant stage run, as of the release of the others."""
        first, now_ns = activation.jobs[0], self._state.now_ns
        task = self._copies[activation.stage.name][len(activation.jobs)]
        job = Job(self._jobs, activation, task, first.index, first.release_ns, now_ns, first.due_ns)
        self._jobs += 1
        task.released = first.index + 1
        activation.jobs.append(job)
        activation.open_jobs += 1
        activation.working += 1
        self._lifecycle.admit(job, "")

    def vote_over(self, activation: Activation) -> None:
        """Let go of the inputs that were held for a spare copy."""
        if activation.has_spare:
            self._lifecycle.leave_inputs(activation)

    # Binding

    def bind(self, activation: Activation) -> str:
        """Give an activation its sampled inputs; return why it must be skipped, or ""."""
        activation.bound = True
        stage = activation.stage
        if stage.period_ns is not None and stage.publish == "asap":
            activation.capture_ns = self._state.now_ns
        if stage.inputs:
            return self._bind_inputs(activation)
        if self._has_chains:
            self.chains.read(stage.name, activation.capture_ns)
        return ""

    def _bind_inputs(self, activation: Activation) -> str:
        stage = activation.stage
        absent: list[str] = []
        for place, item in enumerate(stage.inputs):
            problem = self._bind_input(activation, place, item)
            if problem and not item.optional:
                return problem
            if problem:
                absent.append(item.name)
        activation.absent = tuple(absent)
        if stage.sync is not None and absent:
            given = [buffer.capture_ns for buffer in activation.inputs if buffer is not None]
            activation.capture_ns = min(given, default=activation.capture_ns)
        return ""

    def _bind_input(self, activation: Activation, place: int, item: InputSpec) -> str:
        """Bind one input; return why it is not there, or ""."""
        stage, buffer = activation.stage, activation.inputs[place]
        is_held = buffer is not None
        if stage.sync is None and item.name != stage.trigger and not is_held:
            buffer = self._routes[item.source].latest
        if buffer is None:
            return "input_missing"
        age_ns = self._state.now_ns - buffer.capture_ns
        if item.max_age_ns is None or age_ns <= item.max_age_ns:
            if not is_held:
                buffer.holds += 1
                activation.inputs[place] = buffer
            return ""
        if is_held and item.optional:
            activation.inputs[place] = None
            self._state.buffers.drop(buffer, self._state.out)
        return "stale"

    def inputs_released(self, activation: Activation) -> None:
        """Drop an activation's holds on its inputs: no work reads them any more."""
        for buffer in activation.inputs:
            if buffer is not None:
                self._state.buffers.drop(buffer, self._state.out)
