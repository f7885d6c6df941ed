"""The verdict over a pipeline: what is known of every stage, device and chain.

* meets: no legal run misses. Every job is in time, no queue overflows, none finds its
  predecessor busy that must not.
* misses: some legal run does, and often every one; only what is exact says so.
* unknown: neither could be shown.

"Legal" takes declared figures at their word: execution within wcet, arrivals at the declared rate
at most, phases between sources as chance will have it. A job that is skipped because an input is
missing or too old is no matter of scheduling and is not looked at.

A response is exact where the tasks of a device have no known phases to each other, or where all
may be released together and that is the worst (preemptive fixed priorities), so that the worst
busy window of the analysis can really happen; and under a table, which is what happens. All that
holds only where each job of a task may run for its wcet: not where it may lack an input, be shed or
skipped, or be aborted before. A device is asked for too much by what comes for certain; that a job
was ended early is a miss itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.analysis import chains
from avrt.analysis.arrivals import every_set
from avrt.analysis.demand import first_overload_ns
from avrt.analysis.devices import SOURCES
from avrt.analysis.figure import Figure, Label, Verdict, unknown
from avrt.analysis.holistic import Solution, solve
from avrt.analysis.tasks import overloaded
from avrt.analysis.time_triggered import solve_table
from avrt.model.graph import release_periods
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.analysis.members import Member
    from avrt.analysis.tasks import Task
    from avrt.model.spec import ChainSpec, DeviceSpec, PipelineSpec, StageSpec


@dataclass(frozen=True, slots=True)
class StageFinding:
    """What is known of a stage; `why` says what stands against it.

    Attributes:
        limit_ns: from release to due, the shortest where it varies; None when not known.
    """

    name: str
    device: str
    limit_ns: int | None
    response: Figure
    verdict: Verdict
    why: str = ""

    @property
    def slack_ns(self) -> int | None:
        if self.response.ns is None or self.limit_ns is None:
            return None
        return self.limit_ns - self.response.ns


@dataclass(frozen=True, slots=True)
class DeviceFinding:
    """What is known of a device; `utilisation` is of one slot, None when a rate is not known."""

    name: str
    slots: int
    preemptive: bool
    utilisation: Fraction | None
    verdict: Verdict
    source: str


@dataclass(frozen=True, slots=True)
class ChainFinding:
    """What is known of a chain: one figure bounds its reaction and its age."""

    name: str
    latency: Figure
    reaction_limit_ns: int | None
    age_limit_ns: int | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is known of a pipeline."""

    policy: str
    devices: tuple[DeviceFinding, ...]
    stages: tuple[StageFinding, ...]
    chains: tuple[ChainFinding, ...]

    @property
    def verdict(self) -> Verdict:
        return worst_of(
            [
                *(device.verdict for device in self.devices),
                *(stage.verdict for stage in self.stages),
                *(chain.verdict for chain in self.chains),
            ]
        )

    def stage(self, name: str) -> StageFinding:
        return next(stage for stage in self.stages if stage.name == name)


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over several: one that misses makes the whole miss."""
    found = set(verdicts)
    return "misses" if "misses" in found else "unknown" if "unknown" in found else "meets"


def meets(spec: PipelineSpec) -> bool:
    """Whether a checked pipeline meets all its promises; faster than to find out why not."""
    if any(stage.wcet_ns > stage.deadline_ns for stage in spec.stages):
        return False
    solution = _solved(spec, until_late=True)
    return not solution.is_late and _judge(spec, solution).verdict == "meets"


def analyse(spec: PipelineSpec) -> Findings:
    """Return what is known of a checked pipeline."""
    return _judge(spec, _solved(spec))


def _solved(spec: PipelineSpec, *, until_late: bool = False) -> Solution:
    return solve(spec, until_late=until_late) if spec.table is None else solve_table(spec)


def _judge(spec: PipelineSpec, solution: Solution) -> Findings:
    stages = tuple(_judge_stage(spec, stage, solution) for stage in spec.stages)
    safe = {
        finding.name
        for finding, stage in zip(stages, spec.stages, strict=True)
        if finding.verdict == "meets" or _ends_every_job(stage, solution)
    }
    devices = tuple(_judge_device(spec, device, solution, stages, safe) for device in spec.devices)
    found = tuple(_judge_chain(spec, chain, solution, safe) for chain in spec.chains)
    return Findings(spec.policy, devices, stages, found)


# Stages


def _judge_stage(spec: PipelineSpec, stage: StageSpec, solution: Solution) -> StageFinding:
    members = solution.members[stage.name]
    if not members:
        why = "no test gives a bound" if stage.segments else "not known when it is released"
        return StageFinding(stage.name, stage.device, None, unknown(why), "unknown", why)
    response = _figure(spec, stage, solution)
    limit_ns = members[0].task.deadline_ns
    verdict, why = _verdict(stage, members[0].task, response)
    if verdict == "meets":
        assert response.ns is not None
        why = _obstacle(stage, _waiting_task(stage, solution), response.ns)
        if not why and stage.segments and solution.endangered:
            why = "may have to give way between two segments, and be shed"
        verdict = "unknown" if why else "meets"
    return StageFinding(stage.name, stage.device, limit_ns, response, verdict, why)


def _figure(spec: PipelineSpec, stage: StageSpec, solution: Solution) -> Figure:
    response_ns = solution.response_ns(stage.name)
    if response_ns is None:
        return unknown("no test gives a bound")
    if stage.segments:
        alone = all(member.test == "alone" for member in solution.members[stage.name])
        exact = alone and response_ns == stage.wcet_ns and _runs_whole(stage, solution)
        label: Label = "exact" if exact else "bound"
        is_one_part = solution.members[stage.name][0].part.sections_ns is not None
        source = "alone" if alone else "points" if is_one_part else "segments"
        return Figure(response_ns, label, SOURCES[source])
    slowest = max(solution.members[stage.name], key=lambda member: member.response_ns or 0)
    device = spec.device(slowest.part.device)
    members = solution.on(device.name)
    attained = slowest.test in {"alone", "table"} or _is_exact(
        spec, device, slowest, members, solution
    )
    exact = attained and _runs_whole(stage, solution)
    return Figure(response_ns, "exact" if exact else "bound", SOURCES[slowest.test])


def _verdict(stage: StageSpec, task: Task, response: Figure) -> tuple[Verdict, str]:
    """Return the verdict on a stage, and why it is not that it meets its deadline."""
    surely: Verdict = "unknown" if _may_lack_input(stage) else "misses"
    if stage.wcet_ns > task.due_max_ns:
        return surely, f"wcet {format_ns(stage.wcet_ns)} is above its deadline"
    if stage.is_cut:
        return surely, f"its budget {format_ns(stage.budget_ns or 0)} is below its wcet"
    if response.ns is None:
        return "unknown", response.source
    if response.ns > task.deadline_ns:
        exact = response.label == "exact"
        how = f"{'can' if exact else 'may'} take {format_ns(response.ns)}"
        return "misses" if exact else "unknown", f"{how} of {format_ns(task.deadline_ns)}"
    return "meets", ""


def _obstacle(stage: StageSpec, task: Task, response_ns: int) -> str:
    """Return what may end a job that would be in time, "" if nothing may."""
    if stage.on_miss == "skip_next" and response_ns > task.earliest_ns(1):
        return "may be busy when the next one comes, which is then skipped"
    if task.releases(response_ns) > stage.queue:
        return f"its queue of {stage.queue} may overflow"
    return ""


def _waiting_task(stage: StageSpec, solution: Solution) -> Task:
    """Return the task with all that waits in its queue, also the sets that stay incomplete."""
    task = solution.members[stage.name][0].task
    arrival = every_set(stage, solution.published)
    if arrival is None:
        return task
    return replace(task, period_ns=arrival.period_ns, jitter_ns=arrival.jitter_ns, gap_ns=0)


def _ends_every_job(stage: StageSpec, solution: Solution) -> bool:
    """Whether each of its jobs ends and is published, in time or not."""
    response_ns = solution.response_ns(stage.name)
    if response_ns is None or stage.on_miss != "continue" or stage.on_overrun == "abort":
        return False
    if solution.endangered:  # what had to give way is shed when it is late
        return False
    return _waiting_task(stage, solution).releases(response_ns) <= stage.queue


# When the worst can really happen


def _runs_whole(stage: StageSpec, solution: Solution) -> bool:
    """Whether each of its jobs may run for its wcet, and nothing ends or skips one before."""
    response_ns = solution.response_ns(stage.name)
    if response_ns is None or stage.is_cut or _may_lack_input(stage):
        return False
    if stage.on_miss == "abort" and response_ns > solution.members[stage.name][0].task.deadline_ns:
        return False
    return not _obstacle(stage, _waiting_task(stage, solution), response_ns)


def _may_lack_input(stage: StageSpec) -> bool:
    """Whether a job may be skipped because an input is missing or too old, which is no miss."""
    return any(
        not item.optional and (item.name != stage.trigger or item.max_age_ns is not None)
        for item in stage.inputs
    )


def _is_exact(
    spec: PipelineSpec,
    device: DeviceSpec,
    member: Member,
    members: Sequence[Member],
    solution: Solution,
) -> bool:
    if device.slots > 1 or member.test not in ("fp", "edf", "fifo"):
        return False
    if any(other.task.name in solution.endangered or other.is_segment for other in members):
        return False
    whole = all(_runs_whole(other.stage, solution) for other in members)
    if not whole or not all(_begins_by_itself(spec, other.stage) for other in members):
        return False
    jitter = any(other.task.jitter_ns for other in members)
    if member.test == "fp":
        priorities = {other.task.priority for other in members}
        if len(priorities) < len(members):
            return False
        together = device.preemptive and not jitter and _may_start_together(members)
        return together or _phases_are_free(members)
    varies = any(other.task.deadline_max_ns is not None for other in members)
    return not jitter and not varies and _phases_are_free(members)


def _begins_by_itself(spec: PipelineSpec, stage: StageSpec) -> bool:
    trigger = stage.trigger_input
    sources = {source.name for source in spec.sources}
    return stage.period_ns is not None or (trigger is not None and trigger.source in sources)


def _may_start_together(members: Sequence[Member]) -> bool:
    offsets = {m.stage.offset_ns for m in members if m.stage.period_ns is not None}
    return len(offsets) <= 1


def _phases_are_free(members: Sequence[Member]) -> bool:
    """Whether nothing is known of when two tasks are released against each other."""
    roots = {member.arrival.root for member in members}
    timers = [member for member in members if member.stage.period_ns is not None]
    return len(roots) == len(members) and len(timers) <= 1


# Devices and chains


def _judge_device(
    spec: PipelineSpec,
    device: DeviceSpec,
    solution: Solution,
    stages: Sequence[StageFinding],
    safe: set[str],
) -> DeviceFinding:
    members = solution.on(device.name)
    found = [stage for stage in stages if stage.name in _names(spec, device)]
    verdict = worst_of(finding.verdict for finding in found)
    source = "; ".join(dict.fromkeys(f.response.source for f in found)) or "nothing runs on it"
    overload = _overload(spec, device, members)
    load = _load(spec, device, spec.stages)
    certain = [stage for stage in spec.stages if _is_certain(spec, stage, device, safe)]
    if _load(spec, device, certain) > device.capacity:
        what = "slots" if device.supply is None else f"supply of {float(device.capacity):.3g}"
        verdict, source = "misses", f"utilisation above its {what} (Liu & Layland 1973)"
    elif overload:
        verdict, source = "misses", overload
    periods = release_periods(spec)
    known = None not in [periods[stage.name] for stage in spec.stages if _held_ns(stage, device)]
    return DeviceFinding(
        device.name, device.slots, device.preemptive, load if known else None, verdict, source
    )


def _is_certain(spec: PipelineSpec, stage: StageSpec, device: DeviceSpec, safe: set[str]) -> bool:
    """Whether all its jobs come and ask for their wcet, or else a stage of the device misses."""
    stages = {other.name: other for other in spec.stages}
    at: StageSpec | None = stage
    while at is not None:
        if at.is_cut or _may_lack_input(at):
            return False
        trigger = at.trigger_input
        at = stages.get(trigger.source) if trigger is not None else None
        if at is not None and set(at.homes) != {device.name} and at.name not in safe:
            return False
    return True


def _names(spec: PipelineSpec, device: DeviceSpec) -> list[str]:
    """Return the stages of which some part runs on a device."""
    return [stage.name for stage in spec.stages if _held_ns(stage, device)]


def _load(spec: PipelineSpec, device: DeviceSpec, stages: Sequence[StageSpec]) -> Fraction:
    """Return the utilisation of a device by stages that are released at a known rate."""
    periods = release_periods(spec)
    load = Fraction(0)
    for stage in stages:
        period_ns = periods[stage.name]
        if period_ns is not None:
            homes = stage.homes if not stage.segments else [device.name] * len(stage.task_names)
            load += Fraction(_held_ns(stage, device) * homes.count(device.name), period_ns)
    return load


def _held_ns(stage: StageSpec, device: DeviceSpec) -> int:
    """Return how long a job can execute on a device, what it spins not counted."""
    if not stage.segments:
        return stage.wcet_ns if device.name in stage.homes else 0
    return min(stage.wcet_ns, sum(s.wcet_ns for s in stage.segments if s.device == device.name))


def _overload(spec: PipelineSpec, device: DeviceSpec, members: Sequence[Member]) -> str:
    """Return what a window of too much demand says, "" if there is none that can happen."""
    plain = all(
        _begins_by_itself(spec, member.stage)
        and not member.is_segment
        and not member.task.jitter_ns
        and member.task.deadline_max_ns is None
        and not member.stage.is_cut
        and not _may_lack_input(member.stage)
        for member in members
    )
    if device.slots > 1 or not members or not plain or not _may_start_together(members):
        return ""
    tasks = [member.task for member in members]
    if overloaded(tasks):
        return ""
    window_ns = first_overload_ns([task.preemptive() for task in tasks])
    if window_ns is None:
        return ""
    return f"demand of a window of {format_ns(window_ns)} (Baruah et al. 1990)"


def _judge_chain(
    spec: PipelineSpec, chain: ChainSpec, solution: Solution, safe: set[str]
) -> ChainFinding:
    figure = chains.latency(spec, chain, solution, safe)
    limits = (chain.reaction_ns, chain.age_ns)
    verdict = worst_of(chains.judge(figure, limit_ns) for limit_ns in limits)
    return ChainFinding(chain.name, figure, *limits, verdict)
