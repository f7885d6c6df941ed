"""Virtual time: the loop that simulation and replay share.

A job of several segments takes its whole execution time over them, in proportion to their declared
times; each takes 1 ns at least. Its computation is one: it begins with the first segment and is
waited for at the end of the last.

The next instant is the earliest of the feed's next event, the kernel's next wake-up and the next
virtual completion. No wall clock is read here.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from avrt.drivers.loop import KernelLoop, Worker
from avrt.drivers.supervision import supervisor_of
from avrt.model.commands import Abort, Dispatch, Preempt, Resume
from avrt.model.events import Drain, Event, Hung, SegmentEnded
from avrt.model.segments import split
from avrt.model.spec import placed_supplies
from avrt.model.supply import end_ns, given_ns
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.drivers.loop import Notes
    from avrt.kernel import Kernel
    from avrt.model.spec import PipelineSpec
    from avrt.model.supply import Supply


class VirtualWorker(Worker, Protocol):
    """A worker whose jobs take virtual time."""

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        """Begin a job; return the execution it takes in ns (at least 1), None if it never ends."""

    def abandon(self, job: int, at_ns: int) -> None:
        """Let the work of a job that was aborted while it ran end, and throw it away."""


class VirtualWork:
    """Execution in virtual time: what runs, how much of it is left, and when the next one ends.

    It goes on while a job is on a slot and the device's supply, where it has one, gives.
    """

    def __init__(self) -> None:
        self._supplies: dict[int, Supply] = {}  # of jobs whose device is not always there
        self._end_ns: dict[int, int] = {}  # of the jobs that run
        self._left_ns: dict[int, int] = {}  # of those that are preempted
        self._ends: list[tuple[int, int]] = []

    def start(
        self, job: int, cost_ns: int | None, now_ns: int, supply: Supply | None = None
    ) -> None:
        """Begin a job on a slot; one without a cost never ends by itself."""
        assert cost_ns is None or cost_ns >= 1
        if supply is not None:
            self._supplies[job] = supply
        elif self._supplies:
            self._supplies.pop(job, None)
        self._run(job, NEVER_NS if cost_ns is None else cost_ns, now_ns)

    def preempt(self, job: int, now_ns: int) -> None:
        self._left_ns[job] = given_ns(self._supplies.get(job), now_ns, self._end_ns.pop(job))

    def resume(self, job: int, now_ns: int) -> None:
        self._run(job, self._left_ns.pop(job), now_ns)

    def _run(self, job: int, left_ns: int, from_ns: int) -> None:
        done_ns = end_ns(self._supplies.get(job), from_ns, left_ns)
        self._end_ns[job] = done_ns
        if done_ns < NEVER_NS >> 1:
            heappush(self._ends, (done_ns, job))

    def prolong(self, job: int, more_ns: int) -> None:
        """Let a job that was just put on a slot take longer; an endless one stays endless."""
        if more_ns:
            self._run(job, more_ns, self._end_ns[job])

    def left_ns(self, job: int, now_ns: int) -> int:
        """Return what is left of a job, on its slot or off it."""
        left_ns = self._left_ns.get(job)
        if left_ns is not None:
            return left_ns
        return given_ns(self._supplies.get(job), now_ns, self._end_ns[job])

    def curtail(self, job: int, left_ns: int) -> None:
        """Leave no more than this of a preempted job."""
        self._left_ns[job] = min(self._left_ns[job], left_ns)

    def is_running(self, job: int) -> bool:
        """Whether a job is on a slot now."""
        return job in self._end_ns

    def drop(self, job: int) -> None:
        """Forget a job whose work stopped."""
        self._left_ns.pop(job, None)
        self._end_ns.pop(job, None)
        self._supplies.pop(job, None)

    def keep_only(self, jobs: tuple[int, ...]) -> None:
        """Forget every job that is not among these."""
        for job in [job for job in (*self._left_ns, *self._end_ns) if job not in jobs]:
            self.drop(job)

    def next_ns(self) -> int | None:
        """Return when the next running job ends."""
        ends, running = self._ends, self._end_ns
        while ends and running.get(ends[0][1]) != ends[0][0]:  # preempted or dropped meanwhile
            heappop(ends)
        return ends[0][0] if ends else None

    def pop_ended(self, now_ns: int) -> list[int]:
        """Take the jobs that end now."""
        ended: list[int] = []
        ends, running = self._ends, self._end_ns
        while ends and ends[0][0] <= now_ns:
            _, job = heappop(ends)
            if running.get(job) == now_ns:
                del running[job]
                ended.append(job)
                if self._supplies:
                    self._supplies.pop(job, None)
        return ended


class VirtualLoop(KernelLoop):
    """Drives one kernel through one feed in virtual time.

    Args:
        until_ns: releases happen before this pipeline time only; None means until the feed ends.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        kernel: Kernel,
        feed: Iterator[tuple[int, Event]],
        worker: VirtualWorker,
        journal: Notes,
        *,
        until_ns: int | None = None,
    ) -> None:
        super().__init__(kernel, feed, worker, journal, supervisor_of(spec))
        self._executor = worker
        self._work = VirtualWork()
        self._supplies = placed_supplies(spec.devices)
        self._shares = _shares(spec)
        self._to_come: dict[int, list[int]] = {}
        self._aborted: set[int] = set()
        self._until_ns = until_ns

    def run(self) -> None:
        """Go on until the feed is over and nothing is left to do."""
        if self._until_ns is not None and self._until_ns < 1:
            return
        while (at_ns := self._next_instant()) is not None:
            ended = self._work.pop_ended(at_ns)
            self._instant(at_ns, [self._end(job, at_ns) for job in ended] if ended else [])

    def _next_instant(self) -> int | None:
        """Return the next time at which something happens, or None when the run is over."""
        instant_ns = self._earliest()
        if not self._drained and self._is_over(instant_ns):
            self._drain()
            instant_ns = self._earliest()
        while instant_ns is None and self._kernel.working_jobs:
            stuck = [job for job in self._kernel.working_jobs if self._work.is_running(job)]
            self._step(self._kernel.now_ns, [Hung(job) for job in stuck])
            instant_ns = self._earliest()
        return instant_ns

    def _earliest(self) -> int | None:
        planned_ns, end_ns = self._planned_ns(), self._work.next_ns()
        if end_ns is None or (planned_ns is not None and planned_ns < end_ns):
            return planned_ns
        return end_ns

    def _is_over(self, instant_ns: int | None) -> bool:
        """Whether nothing is released any more: the feed or the time is over."""
        if self._until_ns is None:
            return self._next is None
        return instant_ns is None or instant_ns >= self._until_ns

    def _drain(self) -> None:
        """End the releases at the last instant inside the run."""
        self._drained = True
        self._next = None
        last_ns = self._kernel.now_ns if self._until_ns is None else self._until_ns - 1
        self._step(max(last_ns, self._kernel.now_ns), [Drain()])

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        job = command.job
        if command.segment > 0:
            cost_ns: int | None = self._to_come[job].pop(0)
        else:
            cost_ns = self._executor.start(command, at_ns)
            if cost_ns is not None and command.task in self._shares:
                cost_ns, *self._to_come[job] = self._parts(command, cost_ns)
        self._work.start(job, cost_ns, at_ns, self._supplies.get(command.device))

    def _parts(self, command: Dispatch, cost_ns: int) -> list[int]:
        """Return how long each segment of a job takes that begins."""
        return split(cost_ns, self._shares[command.task])

    def _end(self, job: int, at_ns: int) -> Event:
        """Tell how the work of a job, or of its present segment, ended."""
        if self._to_come and self._to_come.get(job):
            if job in self._aborted:
                self._abandon(job, at_ns)
            return SegmentEnded(job)
        self._to_come.pop(job, None)
        self._aborted.discard(job)
        return self._worker.end(job, at_ns)

    def _abandon(self, job: int, at_ns: int) -> None:
        self._to_come.pop(job, None)
        self._aborted.discard(job)
        self._work.drop(job)
        self._executor.abandon(job, at_ns)

    def _interfere(self, command: Preempt | Resume | Abort, at_ns: int) -> None:
        if type(command) is Preempt:
            self._work.preempt(command.job, at_ns)
        elif type(command) is Resume:
            self._work.resume(command.job, at_ns)
        else:
            self._abort(command.job, at_ns)

    def _abort(self, job: int, at_ns: int) -> None:
        """Stop a job's work where the kernel counts on no end of it, else after this segment."""
        if job not in self._kernel.working_jobs:
            self._abandon(job, at_ns)
        elif job in self._to_come:
            self._aborted.add(job)

    def _keep_only(self, jobs: tuple[int, ...]) -> None:
        self._work.keep_only(jobs)
        for job in [job for job in self._to_come if job not in jobs]:
            del self._to_come[job]
            self._aborted.discard(job)


def _shares(spec: PipelineSpec) -> dict[str, tuple[int, ...]]:
    """Return the declared times of the segments of every task that has some."""
    return {
        task: tuple(segment.wcet_ns for segment in stage.segments)
        for stage in spec.stages
        if stage.segments
        for task in stage.task_names
    }
