"""What scheduling costs, put into the tasks themselves, so that any analysis may go on as before.

Preemption-centric accounting (Brandenburg 2011, "Scheduling and Locking in Multiprocessor
Real-Time Operating Systems", ch. 3): who preempts pays. Under any policy but llf a job preempts
one other at most, when it becomes ready, so with its own start it is charged the resume of the
job that it took the slot from.

`with_overheads` is for the costs of a simulation (`avrt.drivers.overheads`). Why it is sound on
one slot: of what is executed in a busy window, or in a window from a release, each resume was
either caused by a job that starts in the window, and that one has not used its charge for another;
or the resumed job lost its slot before the window, so it had started before, and its own charge
is free. There is one of these a job, because what is left of a resume is dropped at the next
preemption. On several slots a test cuts each task's work at the window's length, and the charge
might be cut away where another job pays; there a job is charged every resume of its own, as many
as jobs that can preempt it become ready while it is open, to a fixed point.

`charged` is for the costs of an operating system's kernel, interrupts included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from avrt.analysis.holistic import solve
from avrt.model.scenario import OverheadSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.analysis.members import Member
    from avrt.analysis.tasks import Task
    from avrt.model.spec import PipelineSpec, StageSpec

ROUNDS_MAX = 50  # of counting preemptions on several slots
FIXED_PRIORITIES = ("fp", "rm", "dm")


def with_overheads(
    spec: PipelineSpec, overheads: Mapping[str, OverheadSpec]
) -> PipelineSpec | None:
    """Return a pipeline whose jobs take so long that bounds on it hold for one with overheads.

    No response, and no latency of a chain, in a run of `spec` with these overheads is above the
    bound that `analyse` gives for the result. It is a bound there also where it is called exact;
    and to be known to miss says of `spec` only that nothing shows it to meet.

    Returns:
        The same stages with a longer wcet, and the budgets of before; None where no bound on the
        number of preemptions is known: with llf on a preemptive device, for segments on a
        preemptive device of several slots, or where none was found.
    """
    preemptive = {device.name for device in spec.devices if device.preemptive}
    costly = {name for name in preemptive if name in overheads and overheads[name].resume_ns}
    several = {name for name in costly if spec.device(name).slots > 1}
    in_parts = {part.device for stage in spec.stages for part in stage.segments}
    if (spec.policy == "llf" and costly) or several & in_parts:
        return None
    resumes = {stage.name: 0 if several & {*stage.homes} else 1 for stage in spec.stages}
    for _ in range(ROUNDS_MAX):
        stages = tuple(
            _lengthened(stage, overheads, preemptive, resumes[stage.name]) for stage in spec.stages
        )
        inflated = replace(spec, stages=stages)
        more = _resumes(inflated, several, resumes) if several else resumes
        if more == resumes:
            return inflated
        resumes = more
    return None


def _lengthened(
    stage: StageSpec, overheads: Mapping[str, OverheadSpec], preemptive: set[str], resumes: int
) -> StageSpec:
    """Return a stage with what its jobs, or each of their segments, are charged."""

    def charge_ns(device: str, place: int) -> int:
        costs = overheads.get(device, OverheadSpec())
        starts_ns = costs.segment_ns if place else costs.start_ns
        return starts_ns + (resumes * costs.resume_ns if device in preemptive else 0)

    parts = stage.segments
    charges = [charge_ns(part.device, place) for place, part in enumerate(parts)]
    return replace(
        stage,
        wcet_ns=stage.wcet_ns
        + (sum(charges) if parts else max(charge_ns(home, 0) for home in stage.homes)),
        budget_ns=stage.wcet_ns if stage.budget_ns is None else stage.budget_ns,
        segments=tuple(
            replace(part, wcet_ns=part.wcet_ns + ns)
            for part, ns in zip(parts, charges, strict=True)
        ),
    )


def _resumes(spec: PipelineSpec, several: set[str], known: Mapping[str, int]) -> dict[str, int]:
    """Return how often a job of each stage may be resumed where there are several slots."""
    solution = solve(spec)
    found = dict(known)
    members = [
        member
        for stage in spec.stages
        for member in solution.members[stage.name]
        if member.part.device in several
    ]
    for member in members:
        rivals = [
            other
            for other in members
            if other is not member and other.part.device == member.part.device
            and _may_preempt(spec, other.task, member.task)
        ]  # fmt: skip
        open_ns = _open_ns(member)
        spans = [(other.task, _open_ns(other)) for other in rivals]
        if open_ns is None or any(ns is None for _, ns in spans):
            continue  # then nothing rests on how long its jobs take
        count = sum(task.releases(open_ns + ns) for task, ns in spans if ns is not None)
        name = member.stage.name
        found[name] = max(found[name], count)
    return found


def _may_preempt(spec: PipelineSpec, other: Task, task: Task) -> bool:
    return spec.policy not in FIXED_PRIORITIES or other.priority <= task.priority


def _open_ns(member: Member) -> int | None:
    """Return how long a job is open at the most."""
    return member.done_ns if member.response_ns is None else member.response_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCosts:
    """What the kernel of an operating system takes, ns, as measured tables have it.

    Attributes:
        schedule_ns: one scheduling decision.
        switch_ns: one context switch.
        cache_loss_ns: to fill the cache again after a preemption or migration.
        cache_load_ns: to fill it the first time.
        ipi_ns: from one processor's interrupt to another's reaction.
        latency_ns: from an event to its interrupt.
        release_ns, tick_ns: one interrupt that releases a job; the timer's, every `quantum_ns`.
    """

    schedule_ns: int = 0
    switch_ns: int = 0
    cache_loss_ns: int = 0
    cache_load_ns: int = 0
    ipi_ns: int = 0
    latency_ns: int = 0
    release_ns: int = 0
    tick_ns: int = 0
    quantum_ns: int = 1_000_000


def charged(tasks: Sequence[Task], costs: KernelCosts, slots: int = 1) -> list[Task] | None:
    """Return preemptive tasks of job-level fixed priorities with what the kernel takes from them.

    All releases may interrupt any job, and every preemption is charged twice: at its begin and at
    its end. None where interrupts leave no time, or their latency no period.
    """
    ticks = Fraction(costs.tick_ns, costs.quantum_ns)
    releases = sum((Fraction(costs.release_ns, task.period_ns) for task in tasks), Fraction(0))
    left = 1 - ticks - releases
    if left <= 0 or any(min(t.period_ns, t.deadline_ns) <= costs.latency_ns for t in tasks):
        return None
    at_once_ns = costs.tick_ns + len(tasks) * costs.release_ns
    interrupts = (at_once_ns + costs.latency_ns * (ticks + releases)) / left
    own_ns = 2 * (costs.schedule_ns + costs.switch_ns) + costs.cache_loss_ns + costs.cache_load_ns
    after = 2 * interrupts + (costs.ipi_ns if slots > 1 else 0)
    return [
        replace(
            task,
            wcet_ns=ceil((task.wcet_ns + own_ns) / left + after),
            period_ns=task.period_ns - costs.latency_ns,
            deadline_ns=task.deadline_ns - costs.latency_ns,
        )
        for task in tasks
    ]
