"""What the kernel keeps of tasks, activations and jobs while they live.

A release makes one *activation*: one input set, one or more jobs (replicas), one decision that
consumers and chains follow. Every task has its own stream; at most one of its jobs runs at a time
and the others wait in release order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from avrt.model.supply import given_ns
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.kernel.buffers import Buffer
    from avrt.kernel.ladder import TaskParameters
    from avrt.kernel.queues import DeviceQueue
    from avrt.kernel.table import Row
    from avrt.model.records import Outcome
    from avrt.model.spec import StageSpec

Key = tuple[int, int]  # the policy's key of a job; lower runs first

MOVES_MAX = 8


@dataclass(slots=True, eq=False)
class Course:
    """How far a job of several segments has come.

    Attributes:
        segment: the one that runs, or runs next.
        between: the next one is not dispatched yet.
        spinner: what keeps its slot on the device that it left, if anything does.
    """

    segment: int = 0
    between: bool = False
    spinner: Job | None = None


@dataclass(slots=True, eq=False)
class Task:
    """One schedulable unit with its stream.

    Attributes:
        index: its place in the pipeline file.
        home, device: where its stream belongs, and where it is now.
        route: where the segments of its jobs belong; empty for a stage without segments.
        moves: when it left a device, and which.
        row: its starts in the table, under policy "table".
        lost: none of its jobs can run.
        hung: its stream itself is lost, wherever that is.
    """

    index: int
    name: str
    stage: StageSpec
    home: DeviceQueue
    device: DeviceQueue
    route: tuple[DeviceQueue, ...] = ()
    row: Row | None = None
    waiting: deque[Job] = field(default_factory=deque)
    occupant: Job | None = None
    released: int = 0
    lost: bool = False
    hung: bool = False
    moves: deque[tuple[int, DeviceQueue]] = field(default_factory=partial(deque, maxlen=MOVES_MAX))

    @property
    def busy(self) -> bool:
        """Whether a job is open here or its work still holds the stream."""
        return self.occupant is not None or bool(self.waiting)

    def go_to(self, device: DeviceQueue, now_ns: int) -> None:
        """Let the stream be on another device from now on."""
        if device is not self.device:
            self.moves.append((now_ns, self.device))
            self.device = device

    def stays(self, start_ns: int, end_ns: int) -> Iterator[tuple[DeviceQueue, int, int]]:
        """Yield where the stream was between two times, in order; what runs may be elsewhere."""
        for left_ns, device in self.moves:
            if left_ns > start_ns:
                yield device, start_ns, min(left_ns, end_ns)
                start_ns = min(left_ns, end_ns)
        if start_ns < end_ns:
            yield self.device, start_ns, end_ns

    @property
    def stranded(self) -> bool:
        """Whether the device on which its work was started is lost."""
        device = None if self.occupant is None else self.occupant.device
        return device is not None and device.lost


@dataclass(slots=True, eq=False)
class Activation:
    """One release of a stage.

    Attributes:
        inputs: buffers in the order of the stage's inputs; a sampled one is None until bound.
        capture_ns: capture time its output will carry.
        open_jobs: jobs whose outcome is not decided.
        working: jobs whose work may still read the inputs.
        copies: how many jobs it may have; several are voted on.
        has_spare: its inputs are held for jobs that may follow until the vote is over.
        decision: the buffer that consumers will read, once there is one.
        ready_ns, planned_ns: when it may start by plan, and when its jobs are done by plan; only
            under policy "table".
    """

    id: int
    stage: StageSpec
    release_ns: int
    due_ns: int
    capture_ns: int
    inputs: list[Buffer | None]
    jobs: list[Job]
    open_jobs: int
    working: int
    copies: int = 1
    has_spare: bool = False
    bound: bool = False
    absent: tuple[str, ...] = ()
    decision: Buffer | None = None
    ready_ns: int = 0
    planned_ns: int = 0


@dataclass(slots=True, eq=False)
class Job:
    """One activation of one task.

    Attributes:
        key: the policy's key; `(key, task.index, index)` is its place in the total order.
        device: where it runs, from its first dispatch on.
        since_ns: start of its present stretch on a slot; None when it is on none.
        budget_end_ns: when it will have spent its budget if it stays on its slot.
        displaced: it gave way to a more critical job and is shed when it can no longer make it.
        guarded: it went before the policy's choice and is not preempted.
        course: how far it is, if its stage has segments.
        parameters: those of the mode in which it began.
        spins: it is no job but one's hold on a slot (see `segments`).
    """

    id: int
    activation: Activation
    task: Task
    index: int
    release_ns: int
    arrival_ns: int
    due_ns: int
    key: Key = (0, 0)
    device: DeviceQueue | None = None
    start_ns: int | None = None
    since_ns: int | None = None
    executed_ns: int = 0
    device_start_ns: int | None = None
    device_ns: int | None = None
    output: Buffer | None = None
    outcome: Outcome | None = None
    missed: bool = False
    budget_end_ns: int = NEVER_NS
    displaced: bool = False
    guarded: bool = False
    course: Course | None = None
    parameters: TaskParameters | None = None
    spins: bool = False

    @property
    def order(self) -> tuple[Key, int, int]:
        """Its place in the total order of jobs; lower goes first."""
        return (self.key, self.task.index, self.index)

    def received_ns(self, now_ns: int) -> int:
        """Execution received until now."""
        since_ns = self.since_ns
        if since_ns is None:
            return self.executed_ns
        assert self.device is not None
        return self.executed_ns + given_ns(self.device.supply, since_ns, now_ns)
