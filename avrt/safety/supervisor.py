"""What monitors the run and asks for another level: the ladder's eyes and hands.

It hears what the kernel says, looks at the health of the run every TICK_NS of pipeline time, and
steps the ladder (`ladder`). A driver hands what it asks for to the kernel as an event, so a run
verifies from its journal alone. Equal calls of the kernel give equal requests in every driver.

* Healthy devices: those of the ladder's that are not lost.
* Overload: of the last WINDOW_JOBS jobs of a critical stage at this level MISSES or more were late,
  or were not done for want of time. What had no input, or was lost, tells nothing of the load. The
  copies of a redundant stage are one job, which is late when too few of them are in time to agree:
  one that is slow or hangs is the voter's business, and must not stop the vehicle.
* Failing: votes in a row of a critical stage in which nothing was accepted.
* Age: since the last accepted output of a critical stage that runs, from its first one on.
* Room above: with what jobs took lately, in parts of their wcet, no device would have more to do at
  the level above than it can; and that level is not known to miss (`admitted`).

What does not run at a level says nothing about it: a stage that comes back has `max_age` to make
its first output.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from avrt.model.commands import Record
from avrt.model.events import ModeRequested
from avrt.model.graph import release_periods
from avrt.model.levels import at_level, critical_stages
from avrt.model.records import SUPERSEDED, JobRecord, MissRecord, ResourceRecord, VoteRecord
from avrt.safety.ladder import Health, Ladder, Level
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from avrt.model.commands import Command
    from avrt.model.spec import PipelineSpec, RedundancySpec

TICK_NS = 10 * NS_PER_MS
MISSES = 3
WINDOW_JOBS = 10
RATIOS_KEPT = 20
ACTIVATIONS_MAX = 64
FOR_WANT_OF_TIME = frozenset(
    (
        ("skipped", "busy"),
        ("shed", "overload"),
        ("shed", "queue_full"),
        ("aborted", "budget"),
    )
)


class Supervisor:
    """Watches one run of a pipeline that has a ladder.

    Args:
        spec: a checked pipeline with a ladder.
        admitted: by level, whether it may be entered from below; all may where it is empty.

    Attributes:
        next_ns: when it wants to look next.
    """

    def __init__(self, spec: PipelineSpec, admitted: Sequence[bool] = ()) -> None:
        assert spec.ladder is not None
        levels = [Level(level.name, level.devices) for level in spec.ladder.levels]
        self._ladder = Ladder(levels, spec.ladder.age_ns_max)
        self._admitted = tuple(admitted) or (True,) * len(levels)
        self._demands = [_Demand(at_level(spec, level)) for level in spec.ladder.levels]
        self._critical = critical_stages(spec)
        self._tallies = {
            stage.name: _Tally(stage.redundancy)
            for stage in spec.stages
            if stage.redundancy is not None
        }
        self._devices = dict.fromkeys(spec.ladder.devices, True)
        self._windows: dict[str, deque[bool]] = {}
        self._ratios: dict[str, deque[float]] = {}
        self._missed: set[int] = set()
        self._accepted_ns: dict[str, int] = {}
        self._undecided = dict.fromkeys(self._critical, 0)
        self._since_ns = 0
        self.next_ns = TICK_NS

    @property
    def level(self) -> str:
        """The name of the present level."""
        return self._ladder.name

    def heard(self, at_ns: int, commands: Iterable[Command]) -> None:
        """Take in what the kernel says at a pipeline time."""
        for command in commands:
            if type(command) is Record:
                match command.record:
                    case JobRecord() as job:
                        self._job_ended(job, at_ns)
                    case MissRecord() as miss:
                        self._missed_by(miss)
                    case VoteRecord() as vote:
                        self._decided(vote, at_ns)
                    case ResourceRecord() as resource:
                        self._resource(resource)
                    case _:
                        pass

    def step(self) -> ModeRequested | None:
        """Look at the run at `next_ns`; return what to ask the kernel for, if anything."""
        at_ns, self.next_ns = self.next_ns, self.next_ns + TICK_NS
        before = self._ladder.level
        change = self._ladder.step(at_ns, self._health(at_ns))
        if change is None:
            return None
        self._begin_level(at_ns, self._demands[before].stages)
        return ModeRequested(change.after, change.cause)

    # What it hears

    def _job_ended(self, job: JobRecord, at_ns: int) -> None:
        is_done = job.outcome in {"met", "late"}
        is_told = job.job in self._missed
        self._missed.discard(job.job)
        if is_done:
            self._took(job)
        if job.stage not in self._undecided:
            return
        if is_done and job.stage not in self._tallies:
            self._accepted_ns[job.stage] = at_ns
        counts = is_done or (job.outcome, job.reason) in FOR_WANT_OF_TIME
        if counts and not is_told and job.release_ns >= self._since_ns:
            self._count(job.stage, job.index, is_missed=not is_done)

    def _took(self, job: JobRecord) -> None:
        """Keep what a job of this level took, in parts of its wcet."""
        wcet_ns = self._demands[self._ladder.level].wcet_ns.get(job.task)
        if wcet_ns is not None and job.start_ns is not None and job.start_ns >= self._since_ns:
            kept = self._ratios.setdefault(job.task, deque(maxlen=RATIOS_KEPT))
            kept.append(job.executed_ns / wcet_ns)

    def _missed_by(self, miss: MissRecord) -> None:
        stage = self._demands[self._ladder.level].stage_of.get(miss.task)
        if stage is not None and stage in self._undecided and miss.release_ns >= self._since_ns:
            self._missed.add(miss.job)
            self._count(stage, miss.index, is_missed=True)

    def _count(self, stage: str, index: int, *, is_missed: bool) -> None:
        tally = self._tallies.get(stage)
        found = is_missed if tally is None else tally.take(index, is_missed=is_missed)
        if found is not None:
            self._windows.setdefault(stage, deque(maxlen=WINDOW_JOBS)).append(found)

    def _decided(self, vote: VoteRecord, at_ns: int) -> None:
        if vote.stage not in self._undecided or not vote.verdict:
            return
        if vote.accepted:
            self._undecided[vote.stage] = 0
            self._accepted_ns[vote.stage] = at_ns
        elif vote.verdict != SUPERSEDED:
            self._undecided[vote.stage] += 1

    def _resource(self, record: ResourceRecord) -> None:
        if record.name in self._devices:
            self._devices[record.name] = record.state == "back"

    # What it makes of it

    def _health(self, at_ns: int) -> Health:
        running = self._demands[self._ladder.level].stages
        ages = [at_ns - ns for stage, ns in self._accepted_ns.items() if stage in running]
        undecided = [count for stage, count in self._undecided.items() if stage in running]
        return Health(
            devices=sum(self._devices.values()),
            overload=any(sum(window) >= MISSES for window in self._windows.values()),
            failing=max(undecided, default=0),
            age_ns=max(ages, default=0),
            admits=self._has_room_above(),
        )

    def _has_room_above(self) -> bool:
        above = self._ladder.level - 1
        if above < 0 or not self._admitted[above]:
            return above < 0
        worst = {task: max(ratios) for task, ratios in self._ratios.items()}
        return self._demands[above].fits(worst)

    def _begin_level(self, at_ns: int, ran: Collection[str]) -> None:
        """Judge a level by what happens at it; what begins to run has yet to say something."""
        self._since_ns = at_ns
        self._windows.clear()
        for tally in self._tallies.values():
            tally.forget()
        for stage in self._demands[self._ladder.level].stages.difference(ran):
            if stage in self._undecided:
                self._undecided[stage] = 0
                self._accepted_ns[stage] = at_ns


class _Tally:
    """Which activations of a redundant stage have enough copies in time, as far as is known."""

    def __init__(self, redundancy: RedundancySpec) -> None:
        self._quorum = redundancy.quorum
        self._too_few = redundancy.copies - redundancy.quorum + 1
        self._counts: dict[int, list[int]] = {}

    def take(self, index: int, *, is_missed: bool) -> bool | None:
        """Take in a copy's job; return whether its activation is late, once that is known."""
        counts = self._counts.setdefault(index, [0, 0])
        counts[is_missed] += 1
        if len(self._counts) > ACTIVATIONS_MAX:
            del self._counts[next(iter(self._counts))]
        most = self._too_few if is_missed else self._quorum
        return is_missed if counts[is_missed] == most else None

    def forget(self) -> None:
        self._counts.clear()


class _Demand:
    """What one level asks of its devices.

    Attributes:
        stages: those that run.
        wcet_ns, stage_of: by task.
    """

    def __init__(self, spec: PipelineSpec) -> None:
        periods = release_periods(spec)
        self.stages = {stage.name for stage in spec.stages}
        self.stage_of = {task: stage.name for stage in spec.stages for task in stage.task_names}
        self.wcet_ns = {task: stage.wcet_ns for stage in spec.stages for task in stage.task_names}
        self._capacity = {device.name: float(device.capacity) for device in spec.devices}
        self._shares: list[tuple[str, str, float]] = []
        for stage in spec.stages:
            parts = [(s.device, s.wcet_ns) for s in stage.segments]
            for device, wcet_ns in parts or [(stage.device, stage.wcet_ns)]:
                period_ns = periods[stage.name]
                if period_ns is not None:
                    share = wcet_ns / period_ns
                    self._shares += [(task, device, share) for task in stage.task_names]

    def fits(self, worst: Mapping[str, float]) -> bool:
        """Whether each device can do what it is asked for, given what tasks took of their wcet.

        A task that has not run takes its wcet.
        """
        load = dict.fromkeys(self._capacity, 0.0)
        for task, device, share in self._shares:
            load[device] += share * worst.get(task, 1.0)
        return all(load[device] <= most for device, most in self._capacity.items())
