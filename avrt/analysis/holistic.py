"""Responses of a whole pipeline: devices by turns until nothing changes.

A stage's release jitter rests on the responses of the stages before it, and its response on the
jitter of all on its device. Beginning with no waiting at all, bounds only grow, and where they
stop growing they hold (Tindell & Clark 1994): the first job to exceed one would have to do so
although everything before it kept to the assumptions. The same argument carries what is assumed
of jobs that never meet: it counts only as long as each instance of a source's message is done
with before the next one comes, and it is given up where bounds grow beyond that.

**Criticality.** On the last free slot the kernel lets a more critical job go before the policy's
choice if that choice would endanger it. A task that is in time even behind the longest of those
never is endangered; one that may be is taken to go before every other task of its device.

**Runs.** Stages of one device that trigger each other are also bounded together: while such a run
is on its way, one of its jobs executes or all slots are busy with others, who are counted once for
the run and not once for every stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from avrt.analysis import global_tests
from avrt.analysis.arrivals import Arrival, publication, released, source_publications
from avrt.analysis.demand import quick_demand_test
from avrt.analysis.response_time import (
    earliest_deadline_first,
    first_in_first_out,
    fixed_priority,
    from_release,
)
from avrt.analysis.tasks import Task, busy_period_ns, overloaded
from avrt.analysis.windows import Rival, window_bound
from avrt.model.graph import LONGEST_NS, release_periods, topological_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec

ROUNDS_MAX = 200
FAR_NS_FACTOR = 100  # a release that much later than period and deadline: no bound is in sight

SOURCES = {
    "alone": "nothing it can wait for",
    "fp": "busy window (Lehoczky 1990; Davis et al. 2007 without preemption)",
    "edf": "deadline busy periods (Spuri 1996; George et al. 1996 without preemption)",
    "fifo": "backlog of the busy period",
    "any": "busy period, any order",
    "window": "window from the release (Bertogna & Cirinei 2007; Guan et al. 2008)",
    "demand": "processor demand (Zhang & Burns 2009)",
    "gfb": "density (Goossens et al. 2003)",
    "bak": "load (Baker 2003)",
    "bcl": "interference (Bertogna et al. 2005)",
}


@dataclass(slots=True, eq=False)
class Member:
    """One task on its device: of a redundant stage each copy is one.

    Attributes:
        response_ns: the bound so far; None when there is none.
        test: what gave it, a key of `SOURCES`.
        run_ns: when the run of stages that it ends is done at the latest, likewise.
    """

    stage: StageSpec
    arrival: Arrival
    task: Task
    response_ns: int | None
    test: str = "alone"
    run_ns: int | None = None

    @property
    def done_ns(self) -> int | None:
        """When it is done at the latest, from its root's nominal arrival."""
        if self.response_ns is None:
            return self.run_ns
        done_ns = self.arrival.latest_ns + self.response_ns
        return done_ns if self.run_ns is None else min(done_ns, self.run_ns)

    @property
    def due_ns(self) -> tuple[int, int]:
        """The earliest and the latest time at which it is due, from its root's nominal arrival."""
        if self.task.deadline_max_ns is not None:
            return self.stage.deadline_ns, self.stage.deadline_ns
        deadline_ns = self.task.deadline_ns
        return self.arrival.earliest_ns + deadline_ns, self.arrival.latest_ns + deadline_ns

    @property
    def is_settled(self) -> bool:
        """Whether it is always done with one message before the next comes."""
        done_ns = self.done_ns
        return done_ns is not None and done_ns <= self.arrival.period_ns


@dataclass(slots=True)
class Solution:
    """The fixed point: what is released when, and how long it takes.

    Attributes:
        members: tasks by stage; empty where it is not known when the stage is released.
        published: outputs of sources and stages.
        endangered: tasks that criticality may let go before the policy's choice.
        is_late: the search ended because some bound is above its deadline.
    """

    members: dict[str, list[Member]] = field(default_factory=dict)
    published: dict[str, Arrival | None] = field(default_factory=dict)
    endangered: set[str] = field(default_factory=set)
    is_late: bool = False

    def response_ns(self, stage: str) -> int | None:
        """Return the bound of a stage: of its slowest copy."""
        responses = [member.response_ns for member in self.members[stage]]
        known = [ns for ns in responses if ns is not None]
        return max(known) if known and len(known) == len(responses) else None


def solve(spec: PipelineSpec, *, while_in_time: bool = False) -> Solution:
    """Return the responses of a checked pipeline.

    With `while_in_time` it ends, marked late, as soon as some bound has passed its deadline: they
    only grow.
    """
    return _Solver(spec).solve(while_in_time=while_in_time)


class _Solver:
    def __init__(self, spec: PipelineSpec) -> None:
        self._spec = spec
        self._order = topological_order(spec)
        self._stages = {stage.name: stage for stage in spec.stages}
        self._periods = release_periods(spec)
        self._ancestors = _ancestors(self._order)
        self._responses: dict[str, int | None] = {
            name: stage.wcet_ns for stage in spec.stages for name in stage.task_names
        }
        self._tests: dict[str, str] = {}
        self._runs: dict[str, int | None] = {}
        self._solution = Solution()

    def solve(self, *, while_in_time: bool) -> Solution:
        for _ in range(ROUNDS_MAX):
            before = dict(self._responses), dict(self._runs)
            self._pass_on()
            for device in self._spec.devices:
                self._analyse(device)
            if while_in_time and self._some_are_late():
                self._solution.is_late = True
                return self._solution
            if (self._responses, self._runs) == before:
                break
        else:
            self._give_up(before[0])
        self._pass_on()
        return self._solution

    def _some_are_late(self) -> bool:
        limits = {
            member.task.name: member.task.deadline_ns
            for members in self._solution.members.values()
            for member in members
        }
        return any(
            ns is None or name not in limits or ns > limits[name]
            for name, ns in self._responses.items()
        )

    def _give_up(self, before: dict[str, int | None]) -> None:
        """Leave without a bound what still grew, and all that it touches."""
        for name, response_ns in self._responses.items():
            if response_ns != before[name]:
                self._responses[name] = None
        for _ in self._order:
            self._pass_on()
            for device in self._spec.devices:
                members = [*self._members_on(device)]
                if None in [member.response_ns for member in members]:
                    self._responses.update({member.task.name: None for member in members})

    def _pass_on(self) -> None:
        """Compute all releases and publications from the responses so far."""
        solution = self._solution
        solution.published = source_publications(self._spec)
        for stage in self._order:
            arrival = released(stage, solution.published)
            far_ns = 0 if arrival is None else FAR_NS_FACTOR * arrival.period_ns
            if arrival is None or arrival.latest_ns > far_ns + FAR_NS_FACTOR * stage.deadline_ns:
                solution.members[stage.name] = []
                solution.published[stage.name] = None
                self._responses.update(dict.fromkeys(stage.task_names))
                continue
            solution.members[stage.name] = self._make_members(stage, arrival)
            done = [member.done_ns for member in solution.members[stage.name]]
            known = [ns for ns in done if ns is not None]
            solution.published[stage.name] = (
                None if len(known) < len(done) else publication(stage, arrival, max(known))
            )

    def _make_members(self, stage: StageSpec, arrival: Arrival) -> list[Member]:
        device = self._spec.device(stage.device)
        deadline_ns, longest_ns = stage.deadline_ns, None
        if stage.deadline_from == "capture":
            longest_ns = deadline_ns - arrival.earliest_ns
            deadline_ns -= arrival.latest_ns
        part_ns = 1 if device.preemptive else stage.wcet_ns
        members = []
        for name in stage.task_names:
            task = Task(
                name=name,
                wcet_ns=stage.wcet_ns,
                bcet_ns=stage.bcet_ns or 1,
                period_ns=arrival.period_ns,
                deadline_ns=deadline_ns,
                deadline_max_ns=longest_ns,
                jitter_ns=arrival.jitter_ns,
                gap_ns=arrival.gap_ns,
                priority=self._priority(stage),
                last_ns=part_ns,
                longest_ns=part_ns,
            )
            test = self._tests.get(name, "alone")
            run_ns = self._runs.get(name)
            members.append(Member(stage, arrival, task, self._responses[name], test, run_ns))
        return members

    def _priority(self, stage: StageSpec) -> int:
        match self._spec.policy:
            case "rm":
                return self._periods[stage.name] or 0
            case "dm":
                return stage.deadline_ns
            case "fp":
                return stage.priority or 0
            case _:
                return 0

    def _members_on(self, device: DeviceSpec) -> Iterator[Member]:
        for stage in self._spec.stages:
            if stage.device == device.name:
                yield from self._solution.members[stage.name]

    # One device

    def _analyse(self, device: DeviceSpec) -> None:
        members = [*self._members_on(device)]
        stages = [stage for stage in self._spec.stages if stage.device == device.name]
        unreleased = any(not self._solution.members[stage.name] for stage in stages)
        if unreleased or overloaded((member.task for member in members), device.slots):
            names = [name for stage in stages for name in stage.task_names]
            self._responses.update(dict.fromkeys(names))
            return
        self._solution.endangered.update(
            member.task.name
            for member in members
            if self._may_be_endangered(device, member, members)
        )
        found = [self._bound(device, member, members) for member in members]
        late = any(
            ns is None or ns > member.task.deadline_ns
            for (ns, _), member in zip(found, members, strict=True)
        )
        test = self._set_test(device, members) if late else None
        for (response_ns, name), member in zip(found, members, strict=True):
            deadline_ns = member.task.deadline_ns
            if test is not None and (response_ns is None or response_ns > deadline_ns):
                response_ns, name = deadline_ns, test  # noqa: PLW2901 - the set test's bound
            self._responses[member.task.name] = response_ns
            self._tests[member.task.name] = name
            self._runs[member.task.name] = self._run_ns(device, member, members)

    def _run_ns(self, device: DeviceSpec, member: Member, members: Sequence[Member]) -> int | None:
        """Return when the run that ends with this task is done at the latest.

        From its root's nominal arrival; None where that may be after the next one.
        """
        run = [member]
        while self._follows_on(run[-1].stage):
            trigger = run[-1].stage.trigger_input
            assert trigger is not None
            run.append(self._solution.members[trigger.source][0])
        if len(run) == 1 or not all(part.is_settled for part in run):
            return None
        head = run[-1]
        whole = replace(
            head.task, wcet_ns=sum(part.task.wcet_ns for part in run), last_ns=1, longest_ns=1
        )
        rivals = [
            Rival(other.task, other.response_ns, is_single=_are_instances(head, other))
            for other in members
            if other not in run and not all(self._never_meet(part, other) for part in run)
        ]
        length_ns = window_bound(whole, rivals, device.slots)
        if length_ns is None:
            return None
        done_ns = head.arrival.latest_ns + length_ns
        return done_ns if done_ns <= head.arrival.period_ns else None

    def _bound(
        self, device: DeviceSpec, member: Member, members: Sequence[Member]
    ) -> tuple[int | None, str]:
        """Return the least bound on a task's response that a test gives, and the test."""
        rivals = self._rivals(device, member, members)
        least_ns, test = window_bound(member.task, rivals, device.slots), "window"
        if least_ns == member.task.wcet_ns:
            return least_ns, "alone"
        if device.slots == 1:
            other_ns, name = self._busy_bound(member, members)
            if other_ns is not None and (least_ns is None or other_ns <= least_ns):
                return other_ns, name
        return least_ns, test

    def _busy_bound(self, member: Member, members: Sequence[Member]) -> tuple[int | None, str]:
        """Return the bound of one processor's busy window, all tasks taken as independent."""
        task = member.task
        others = [other.task for other in members if other is not member]
        policy, endangered = self._spec.policy, self._solution.endangered
        if policy == "llf" or (policy == "fifo" and any(o.name in endangered for o in others)):
            return busy_period_ns([task, *others]), "any"
        if policy == "fifo":
            return first_in_first_out(task, others), "fifo"
        if policy == "edf":
            others = [_due_at_once(o) if o.name in endangered else o for o in others]
            return earliest_deadline_first(task, others), "edf"
        higher = [o for o in others if o.priority <= task.priority or o.name in endangered]
        lower = [o for o in others if o not in higher]
        finishes = fixed_priority(task, higher, lower)
        return None if finishes is None else from_release(task, finishes), "fp"

    def _rivals(self, device: DeviceSpec, member: Member, members: Sequence[Member]) -> list[Rival]:
        follows = device.slots == 1 and self._follows_on(member.stage)
        met = [o for o in members if o is not member and not self._never_meet(member, o)]
        groups = self._groups(met) if device.slots > 1 else {}
        return [
            replace(
                self._rival(member, other, follows=follows),
                group=groups.get(other.task.name, -1),
            )
            for other in met
        ]

    def _groups(self, members: Sequence[Member]) -> dict[str, int]:
        """Return a group for each task so that those of one are never pending together."""
        groups: list[list[Member]] = []
        number: dict[str, int] = {}
        for member in members:
            fitting = (
                place
                for place, group in enumerate(groups)
                if all(self._never_meet(member, other) for other in group)
            )
            place = next(fitting, len(groups))
            if place == len(groups):
                groups.append([])
            groups[place].append(member)
            number[member.task.name] = place
        return number

    def _follows_on(self, stage: StageSpec) -> bool:
        """Whether it is released at the instant at which its predecessor leaves the same device."""
        trigger = stage.trigger_input
        before = None if trigger is None else self._stages.get(trigger.source)
        if before is None or stage.jitter_ns:
            return False
        at_once = before.publish == "asap" and before.redundancy is None
        return at_once and before.device == stage.device

    def _rival(self, member: Member, other: Member, *, follows: bool) -> Rival:
        """Return another task as the policy orders it against this one.

        What follows on finds the only slot free, so nothing that began before blocks it.
        """
        is_single = _are_instances(member, other)
        if self._spec.policy == "llf" or other.task.name in self._solution.endangered:
            return Rival(other.task, other.response_ns, is_single=is_single)
        is_before = not is_single or other.arrival.earliest_ns < member.arrival.latest_ns
        is_before = is_before and not follows
        task, rival = member.task, other.task
        goes_first, until_ns, can_block = True, None, False
        match self._spec.policy:
            case "edf":
                until_ns = task.due_max_ns - rival.deadline_ns
                goes_first = not is_single or other.due_ns[0] <= member.due_ns[1]
                can_block = is_before and rival.due_max_ns > task.deadline_ns
            case "fifo":
                until_ns = 0
                goes_first = not is_single or other.arrival.earliest_ns <= member.arrival.latest_ns
            case _:
                goes_first = rival.priority <= task.priority
                can_block = is_before and not goes_first
        return Rival(rival, other.response_ns, goes_first, until_ns, is_single, can_block)

    def _never_meet(self, member: Member, other: Member) -> bool:
        """Whether no job of one is ever pending together with a job of the other."""
        if not _are_instances(member, other):
            return False
        name, other_name = member.stage.name, other.stage.name
        if name in self._ancestors[other_name] or other_name in self._ancestors[name]:
            return True
        done_ns, other_done_ns = member.done_ns, other.done_ns
        assert done_ns is not None
        assert other_done_ns is not None
        before = other_done_ns <= member.arrival.earliest_ns
        return before or done_ns <= other.arrival.earliest_ns

    def _may_be_endangered(
        self, device: DeviceSpec, member: Member, members: Sequence[Member]
    ) -> bool:
        """Whether the kernel may let this job go before the policy's choice."""
        below = [
            other.task.wcet_ns
            for other in members
            if other.stage.criticality < member.stage.criticality
            and not self._never_meet(member, other)
        ]
        if not below or member.response_ns is None:
            return bool(below)
        is_whole = device.slots == 1 and not device.preemptive
        margin_ns = 0 if is_whole else max(below)
        return member.response_ns + margin_ns > member.task.deadline_ns

    def _set_test(self, device: DeviceSpec, members: Sequence[Member]) -> str | None:
        """Return a test that accepts the whole set, None when none does."""
        tasks = [member.task for member in members]
        varies = any(task.deadline_max_ns is not None for task in tasks)
        in_order = not any(task.name in self._solution.endangered for task in tasks)
        is_edf = self._spec.policy == "edf" and in_order
        if not device.preemptive or varies or not is_edf:
            return None
        if device.slots == 1:
            return "demand" if quick_demand_test(tasks) else None
        for name, test in (
            ("gfb", global_tests.gfb),
            ("bcl", global_tests.bcl),
            ("bak", global_tests.bak),
        ):
            if test(tasks, device.slots) == "meets":
                return name
        return None


def _due_at_once(task: Task) -> Task:
    """Return the task with a deadline that goes before every other."""
    return replace(task, deadline_ns=-LONGEST_NS, deadline_max_ns=None)


def _are_instances(member: Member, other: Member) -> bool:
    """Whether jobs of both that are pending together always come from the same message."""
    same = member.arrival.root == other.arrival.root != ""
    return same and member.is_settled and other.is_settled


def _ancestors(order: Sequence[StageSpec]) -> dict[str, frozenset[str]]:
    """Return the stages that must end before each is released, by trigger."""
    above: dict[str, frozenset[str]] = {}
    for stage in order:
        trigger = stage.trigger_input
        before = None if trigger is None else trigger.source
        known = before is not None and before in above
        above[stage.name] = above[before] | {before} if known and before else frozenset()
    return above
