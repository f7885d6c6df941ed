"""Responses of a whole pipeline: devices by turns until nothing changes.

A stage's release jitter rests on the responses of the stages before it, and its response on the
jitter of all on its device. Beginning with no waiting at all, bounds only grow, and where they
stop growing they hold (Tindell & Clark 1994): the first job to exceed one would have to do so
although everything before it kept to the assumptions. The same argument carries what is assumed
of jobs that never meet: it counts only as long as each instance of a source's message is done
with before the next one comes, and it is given up where bounds grow beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.analysis.arrivals import Arrival, publication, released, source_publications
from avrt.analysis.devices import DeviceBounds
from avrt.analysis.members import Member, stage_before, stages_above
from avrt.analysis.parts import Part, parts_of, placed
from avrt.analysis.tasks import Task, overloaded
from avrt.model.graph import release_periods, topological_order

if TYPE_CHECKING:
    from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec

ROUNDS_MAX = 200
FAR_FACTOR = 100  # released that many periods and deadlines later: no bound is in sight


@dataclass(slots=True)
class Solution:
    """The fixed point: what is released when, and how long it takes.

    Attributes:
        members: tasks by stage, its first first; empty where it is not known when they are
            released.
        published: outputs of sources and stages.
        endangered: tasks that criticality may let go before the policy's choice.
        is_late: the search ended because some bound is above its deadline.
    """

    members: dict[str, list[Member]] = field(default_factory=dict)
    published: dict[str, Arrival | None] = field(default_factory=dict)
    endangered: set[str] = field(default_factory=set)
    is_late: bool = False

    def response_ns(self, stage: str) -> int | None:
        """Return the bound of a stage: of its slowest copy, to the end of its last segment."""
        ends = [member for member in self.members[stage] if member.ends_job]
        known = [
            member.arrival.latest_ns + member.response_ns - member.release.latest_ns
            for member in ends
            if member.response_ns is not None
        ]
        return max(known) if known and len(known) == len(ends) else None

    def on(self, device: str) -> list[Member]:
        """Return the tasks of a device."""
        return [m for found in self.members.values() for m in found if m.part.device == device]


def solve(spec: PipelineSpec, *, until_late: bool = False) -> Solution:
    """Return the responses of a checked pipeline.

    With `until_late` it ends, marked so, as soon as some bound has passed its deadline: they only
    grow.
    """
    return _Solver(spec).solve(until_late=until_late)


class _Solver:
    def __init__(self, spec: PipelineSpec) -> None:
        self._spec = spec
        self._order = topological_order(spec)
        self._stages = {stage.name: stage for stage in spec.stages}
        self._periods = release_periods(spec)
        self._above = stages_above(self._order)
        self._parts = {
            stage.name: [parts_of(stage, name) for name in stage.task_names]
            for stage in spec.stages
        }
        self._responses: dict[str, int | None] = {p.name: p.wcet_ns for p in self._all_parts()}
        self._tests: dict[str, str] = {}
        self._runs: dict[str, int | None] = {}
        self._solution = Solution()

    def solve(self, *, until_late: bool) -> Solution:
        for _ in range(ROUNDS_MAX):
            before = dict(self._responses), dict(self._runs)
            self._pass_on()
            for device in self._spec.devices:
                self._analyse(device)
            if until_late and self._some_are_late():
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
            member.name: member.task.deadline_ns
            for members in self._solution.members.values()
            for member in members
        }
        return any(
            ns is None or name not in limits or ns > limits[name]
            for name, ns in self._responses.items()
        )

    def _give_up(self, before: dict[str, int | None]) -> None:
        """Leave without a bound what still grew, and all that it touches."""
        self._runs.clear()
        for name, response_ns in self._responses.items():
            if response_ns != before[name]:
                self._responses[name] = None
        for _ in self._order:
            self._pass_on()
            for device in self._spec.devices:
                names = self._names_on(device)
                if None in [self._responses[name] for name in names]:
                    self._responses.update(dict.fromkeys(names))

    # Releases

    def _pass_on(self) -> None:
        """Compute all releases and publications from the responses so far."""
        solution = self._solution
        solution.published = source_publications(self._spec)
        for stage in self._order:
            arrival = released(stage, solution.published)
            members: list[Member] = []
            if arrival is not None and not _is_far(stage, arrival):
                members = [
                    member
                    for parts in self._parts[stage.name]
                    for member in self._make_members(stage, arrival, parts)
                ]
            names = [part.name for parts in self._parts[stage.name] for part in parts]
            if arrival is None or len(members) < len(names):
                solution.members[stage.name] = []
                solution.published[stage.name] = None
                self._responses.update(dict.fromkeys(names))
                continue
            solution.members[stage.name] = members
            done = [member.done_ns for member in members if member.ends_job]
            known = [ns for ns in done if ns is not None]
            all_known = len(known) == len(stage.task_names)
            solution.published[stage.name] = (
                publication(stage, arrival, max(known)) if all_known else None
            )

    def _make_members(
        self, stage: StageSpec, release: Arrival, parts: tuple[Part, ...]
    ) -> list[Member]:
        """Return the parts of one task; none where not all are known, or its jobs may overlap."""
        members = [
            self._make_member(stage, release, item)
            for item in placed(parts, release, self._responses)
        ]
        if len(parts) == 1:
            return members
        ends = [member for member in members if member.ends_job]
        if not ends or ends[0].response_ns is None:
            return []
        length_ns = ends[0].arrival.latest_ns + ends[0].response_ns - release.latest_ns
        return members if length_ns <= members[0].task.earliest_ns(1) else []

    def _make_member(
        self, stage: StageSpec, release: Arrival, item: tuple[Part, Arrival, int]
    ) -> Member:
        part, arrival, _ = item
        return Member(
            stage,
            part,
            release,
            arrival,
            self._make_task(stage, release, item),
            response_ns=self._responses[part.name],
            test=self._tests.get(part.name, "alone"),
            run_ns=self._runs.get(part.name),
            above=self._above[stage.name],
            before=stage_before(stage, self._stages),
            after_vote=part.place == 0 and self._is_after_vote(stage),
        )

    def _is_after_vote(self, stage: StageSpec) -> bool:
        names = [item.source for item in stage.inputs]
        before = [self._stages[name] for name in names if name in self._stages]
        return stage.period_ns is None and any(s.redundancy is not None for s in before)

    def _make_task(
        self, stage: StageSpec, release: Arrival, item: tuple[Part, Arrival, int]
    ) -> Task:
        part, arrival, held_ns = item
        deadline_ns = deadline_max_ns = stage.deadline_ns
        if stage.deadline_from == "capture":
            deadline_max_ns -= max(0, arrival.earliest_ns - arrival.captured_ns)
            deadline_ns -= arrival.latest_ns
        else:
            deadline_max_ns -= arrival.earliest_ns - release.earliest_ns
            deadline_ns -= arrival.latest_ns - release.latest_ns
        varies = stage.deadline_from == "capture" or part.place > 0
        last_ns, longest_ns = part.sections_ns or (held_ns, held_ns)
        if self._spec.device(part.device).preemptive:
            last_ns = longest_ns = 1
        return Task(
            name=part.name,
            wcet_ns=held_ns,
            bcet_ns=1 if stage.segments else stage.bcet_ns or 1,
            period_ns=arrival.period_ns,
            deadline_ns=deadline_ns,
            deadline_max_ns=deadline_max_ns if varies else None,
            jitter_ns=arrival.jitter_ns,
            gap_ns=arrival.gap_ns,
            priority=self._priority(stage),
            last_ns=min(last_ns, held_ns),
            longest_ns=min(longest_ns, held_ns),
        )

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

    # Responses

    def _all_parts(self) -> list[Part]:
        return [part for tasks in self._parts.values() for parts in tasks for part in parts]

    def _names_on(self, device: DeviceSpec) -> list[str]:
        return [part.name for part in self._all_parts() if part.device == device.name]

    def _analyse(self, device: DeviceSpec) -> None:
        names = self._names_on(device)
        members = self._solution.on(device.name)
        too_much = overloaded((member.task for member in members), device.capacity)
        if len(members) < len(names) or too_much:
            self._responses.update(dict.fromkeys(names))
            return
        endangered = self._solution.endangered
        bounds = DeviceBounds(device, self._spec.policy, members, endangered)
        endangered.update(m.name for m in members if bounds.may_be_endangered(m))
        found = bounds.responses()
        for member in members:
            self._responses[member.name], self._tests[member.name] = found[member.name]
            self._runs[member.name] = bounds.run_ns(member)


def _is_far(stage: StageSpec, arrival: Arrival) -> bool:
    return arrival.latest_ns > FAR_FACTOR * (arrival.period_ns + stage.deadline_ns)
