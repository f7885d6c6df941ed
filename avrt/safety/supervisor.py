"""What monitors the run and asks for another level: the ladder's eyes and hands.

It hears what the kernel says, looks at the health of the run every TICK_NS of pipeline time, and
steps the ladder (`ladder`). A driver hands what it asks for to the kernel as an event, so a run
verifies from its journal alone. Equal calls of the kernel give equal requests in every driver.

* Healthy devices: those of the ladder's that are not lost. A driver tells that one is back when it
  has proved itself (`avrt.drivers.probation`).
* Overload: many of the last activations of a critical stage at this level (`windows`) were late, or
  were not done for want of time. What had no input, or was lost, tells nothing of the load.
* Faults: likewise that many of them failed, or were decided by copies that share a fault while
  another one objected (`weak_majority`); or a job of any stage found no memory twice.
* Failing: votes in a row of a critical stage in which nothing was accepted, or the safest of three
  or more outputs of which no two agreed.
* Age: since the last accepted output of a critical stage that runs, from its first one on.
* Room above: with what jobs took lately, in parts of their wcet, no device that is there would have
  more to do at the level above than it can, those included that fall back on it; and that level is
  not known to miss (`admitted`). Of what does not run here its wcet counts.

* Orders: "stop" leads to the last level. Only a vehicle that stands leaves that, after a reset.

What does not run at a level says nothing about it: a stage that comes back has `max_age` to make
its first output.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from avrt.errors import OUT_OF_MEMORY
from avrt.model.commands import Record
from avrt.model.events import DeviceBack, DeviceLost, ModeRequested, Ordered
from avrt.model.graph import release_periods
from avrt.model.levels import at_level, critical_stages
from avrt.model.records import (
    SUPERSEDED,
    FaultRecord,
    JobRecord,
    MissRecord,
    VoteRecord,
)
from avrt.safety.ladder import Health, Ladder, Level
from avrt.safety.windows import Windows
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from avrt.model.commands import Command
    from avrt.model.events import Event, Order
    from avrt.model.ladder import LevelSpec
    from avrt.model.records import AnyRecord
    from avrt.model.spec import PipelineSpec

TICK_NS = 10 * NS_PER_MS
RATIOS_KEPT = 20
NO_MAJORITY, WEAK_MAJORITY = "no_majority", "weak_majority"
FAILURES = frozenset(("failure", "hang"))
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
        self._demands = [_Demand(spec, level) for level in spec.ladder.levels]
        self._critical = critical_stages(spec)
        self._counted = frozenset(spec.ladder.devices)
        self._lost: set[str] = set()
        self._misses, self._failures, self._weak = (self._demand.windows() for _ in range(3))
        self._lacks_memory = False
        self._ratios: dict[str, deque[float]] = {}
        self._missed: set[int] = set()
        self._accepted_ns: dict[str, int] = {}
        self._undecided = dict.fromkeys(self._critical, 0)
        self._orders = _Orders()
        self._since_ns = 0
        self.next_ns = TICK_NS

    @property
    def level(self) -> str:
        """The name of the present level."""
        return self._ladder.name

    @property
    def _demand(self) -> _Demand:
        """What the present level asks for."""
        return self._demands[self._ladder.level]

    def heard(self, at_ns: int, events: Iterable[Event], commands: Iterable[Command]) -> None:
        """Take in one call of the kernel."""
        for event in events:
            match event:
                case Ordered():
                    self._orders.take(event.order)
                case DeviceLost(device=device):
                    self._lost.add(device)
                case DeviceBack(device=device):
                    self._lost.discard(device)
                case _:
                    pass
        for command in commands:
            if type(command) is Record:
                self._record(command.record, at_ns)

    def step(self) -> ModeRequested | None:
        """Look at the run at `next_ns`; return what to ask the kernel for, if anything."""
        at_ns, self.next_ns = self.next_ns, self.next_ns + TICK_NS
        ran = self._demand.stages
        change = self._ladder.step(at_ns, self._health(at_ns))
        self._orders.done()
        if change is None:
            return None
        self._begin_level(at_ns, ran)
        return ModeRequested(change.after, change.cause)

    # What it hears

    def _record(self, record: AnyRecord, at_ns: int) -> None:
        match record:
            case JobRecord():
                self._job_ended(record, at_ns)
            case FaultRecord():
                self._faulted(record)
            case MissRecord():
                self._missed_by(record)
            case VoteRecord():
                self._decided(record, at_ns)
            case _:
                pass

    def _job_ended(self, job: JobRecord, at_ns: int) -> None:
        is_done = job.outcome in {"met", "late"}
        is_told = job.job in self._missed
        self._missed.discard(job.job)
        if is_done:
            self._took(job)
        if job.stage not in self._undecided:
            return
        if is_done and job.stage not in self._demand.voted:
            self._accepted_ns[job.stage] = at_ns
        if job.release_ns < self._since_ns:
            return
        if is_done or job.reason in FAILURES:
            self._failures.count(job.stage, job.release_ns, is_bad=not is_done)
        if not is_told and (is_done or (job.outcome, job.reason) in FOR_WANT_OF_TIME):
            self._misses.count(job.stage, job.release_ns, is_bad=not is_done)

    def _took(self, job: JobRecord) -> None:
        """Keep what a job of this level took, in parts of its wcet."""
        wcet_ns = self._demand.wcet_ns.get(job.task)
        if wcet_ns is not None and job.start_ns is not None and job.start_ns >= self._since_ns:
            kept = self._ratios.setdefault(job.task, deque(maxlen=RATIOS_KEPT))
            kept.append(job.executed_ns / wcet_ns)

    def _missed_by(self, miss: MissRecord) -> None:
        stage = self._demand.stage_of.get(miss.task)
        if stage is not None and stage in self._undecided and miss.release_ns >= self._since_ns:
            self._missed.add(miss.job)
            self._misses.count(stage, miss.release_ns, is_bad=True)

    def _faulted(self, fault: FaultRecord) -> None:
        stages = self._demand.stage_of
        self._lacks_memory |= fault.fault == OUT_OF_MEMORY and fault.task in stages

    def _decided(self, vote: VoteRecord, at_ns: int) -> None:
        if vote.stage not in self._undecided or not vote.verdict:
            return
        if vote.accepted:
            self._accepted_ns[vote.stage] = at_ns
        if vote.verdict == SUPERSEDED:
            return
        self._weak.ended(vote.stage, is_bad=vote.verdict == WEAK_MAJORITY)
        is_decided = vote.accepted and vote.verdict != NO_MAJORITY
        self._undecided[vote.stage] = 0 if is_decided else self._undecided[vote.stage] + 1

    # What it makes of it

    def _health(self, at_ns: int) -> Health:
        running = self._demand.stages
        ages = [at_ns - ns for stage, ns in self._accepted_ns.items() if stage in running]
        undecided = [count for stage, count in self._undecided.items() if stage in running]
        return Health(
            devices=len(self._counted - self._lost),
            overload=self._misses.are_many,
            faults=self._failures.are_many or self._weak.are_many or self._lacks_memory,
            failing=max(undecided, default=0),
            age_ns=max(ages, default=0),
            admits=self._has_room_above(),
            stands=self._orders.stands,
            resets="reset" in self._orders.given,
            orders_stop="stop" in self._orders.given,
        )

    def _has_room_above(self) -> bool:
        above = self._ladder.level - 1
        if above < 0 or not self._admitted[above]:
            return above < 0
        runs = self._demand.stage_of
        worst = {task: max(kept) for task, kept in self._ratios.items() if task in runs}
        return self._demands[above].fits(worst, self._lost)

    def _begin_level(self, at_ns: int, ran: Collection[str]) -> None:
        """Judge a level by what happens at it; what begins to run has yet to say something."""
        self._since_ns = at_ns
        demand = self._demand
        self._misses, self._failures, self._weak = (demand.windows() for _ in range(3))
        self._lacks_memory = False
        for stage in demand.stages.difference(ran):
            if stage in self._undecided:
                self._undecided[stage] = 0
                self._accepted_ns[stage] = at_ns


class _Orders:
    """What was ordered since the last look, and whether the vehicle stands."""

    def __init__(self) -> None:
        self.given: set[Order] = set()
        self.stands = False

    def take(self, order: Order) -> None:
        self.given.add(order)
        if order in {"stands", "moves"}:
            self.stands = order == "stands"

    def done(self) -> None:
        self.given.clear()


class _Demand:
    """What one level asks of its devices.

    Attributes:
        stages: those that run.
        voted: those of them whose outputs are voted on.
        wcet_ns, stage_of: by task.
    """

    def __init__(self, whole: PipelineSpec, level: LevelSpec) -> None:
        spec = at_level(whole, level)
        periods = release_periods(spec)
        tasks = {
            stage.name: whole.stage(stage.name).task_names[: len(stage.task_names)]
            for stage in spec.stages
        }  # a single copy that is left is called as it was among several
        self._spec = spec
        self.stages = {stage.name for stage in spec.stages}
        self.voted = {stage.name for stage in spec.stages if stage.redundancy is not None}
        self.stage_of = {task: stage for stage, names in tasks.items() for task in names}
        self.wcet_ns = {task: stage.wcet_ns for stage in spec.stages for task in tasks[stage.name]}
        self._capacity = {device.name: float(device.capacity) for device in spec.devices}
        self._places = {
            device.name: [place.name for place in spec.places(device)] for device in spec.devices
        }
        self._shares: list[tuple[str, str, float]] = []
        for stage in spec.stages:
            if (period_ns := periods[stage.name]) is None:
                continue
            for task, home in zip(tasks[stage.name], stage.homes, strict=True):
                parts = [(part.device, part.wcet_ns) for part in stage.segments]
                for device, wcet_ns in parts or [(home, stage.wcet_ns)]:
                    self._shares.append((task, device, wcet_ns / period_ns))

    def windows(self) -> Windows:
        """Return windows in which nothing has happened yet."""
        return Windows(self._spec)

    def fits(self, worst: Mapping[str, float], lost: Collection[str]) -> bool:
        """Whether each device can do what it is asked for, given what tasks took of their wcet.

        A task that has not run takes its wcet; one whose places are all lost takes nothing.
        """
        load = dict.fromkeys(self._capacity, 0.0)
        for task, device, share in self._shares:
            place = next((name for name in self._places[device] if name not in lost), None)
            if place is not None:
                load[place] += share * worst.get(task, 1.0)
        return all(load[device] <= most for device, most in self._capacity.items())
