"""Modes: the parameters of every task at one level of operation.

The kernel reads task parameters through the current mode only. A pipeline with a ladder has one
mode a level and begins in the first; any other has one, `nominal`. Who asks for another mode is not
the kernel's business (`avrt.safety.supervisor`); what it does then:

* Everything that is released in that instant still is as before; then the mode is entered, and the
  dispatch pass of the instant is the first under it.
* Jobs that have not started are shed where their stage is left out, or where they are late already,
  so that a level does not begin with what another left behind; what runs goes on to its end, and
  what it makes is published.
* A stage's stream goes to the device of its variant; jobs not yet started follow, and take the
  variant, the wcet and the budget of their start. Due times do not change after the release.
* A timer keeps its next release, and the new period counts from there: no release comes twice. A
  triggered stage takes the first message that comes, and then each n-th.
* A redundant stage has as many jobs a release as the level says; a single one is not voted on.
* What a stage that is left out said last is not sampled any more, and promises of chains through it
  are suspended. They begin anew with the first message after it is back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.model.graph import release_periods
from avrt.model.levels import at_level, levels_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.kernel.job import Job
    from avrt.model.spec import PipelineSpec, Policy, StageSpec

NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class TaskParameters:
    """What the kernel needs to know of a task in one mode.

    Attributes:
        device: where its stream belongs.
        variant: which variant of the stage runs; "" is the stage as declared.
        period_ns: of a timer stage.
        every: of a triggered stage, it takes each n-th message.
        copies: of a redundant stage, how many of it run.
        spare: how many of these run only when the others cannot decide.
        runs: it is not left out.
    """

    wcet_ns: int
    deadline_ns: int
    budget_ns: int
    priority: int
    device: str
    variant: str = ""
    period_ns: int | None = None
    every: int = 1
    copies: int = 1
    spare: int = 0
    runs: bool = True


@dataclass(frozen=True, slots=True)
class Mode:
    """One level: `parameters[task.index]`, and the stages that it leaves out."""

    name: str
    parameters: tuple[TaskParameters, ...]
    left_out: frozenset[str] = frozenset()

    def of(self, job: Job) -> TaskParameters:
        """Return what counts for a job: what it began with, or what it would begin with now."""
        return job.parameters or self.parameters[job.task.index]


def modes_of(spec: PipelineSpec) -> dict[str, Mode]:
    """Return the modes of a pipeline by name, the one that it begins in first."""
    levels = levels_of(spec)
    if not levels:
        return {NOMINAL: Mode(NOMINAL, _parameters(spec, _in_mode(spec), {}))}
    modes: dict[str, Mode] = {}
    for level in levels:
        variants = {item.stage: item.variant for item in level.stages}
        known = _in_mode(at_level(spec, level))
        parameters = _parameters(spec, known, variants)
        modes[level.name] = Mode(level.name, parameters, frozenset(level.without))
    return modes


def _in_mode(spec: PipelineSpec) -> dict[str, list[TaskParameters]]:
    """Return the parameters of the tasks of each stage."""
    periods = release_periods(spec)
    return {
        stage.name: [
            TaskParameters(
                wcet_ns=stage.wcet_ns,
                deadline_ns=stage.deadline_ns,
                budget_ns=stage.wcet_ns if stage.budget_ns is None else stage.budget_ns,
                priority=_priority(spec.policy, stage, periods[stage.name]),
                device=home,
                period_ns=stage.period_ns,
                every=stage.every,
                copies=len(stage.task_names),
                spare=0 if stage.redundancy is None else stage.redundancy.spare,
            )
            for home in stage.homes
        ]
        for stage in spec.stages
    }


def _parameters(
    spec: PipelineSpec, known: Mapping[str, Sequence[TaskParameters]], variants: Mapping[str, str]
) -> tuple[TaskParameters, ...]:
    """Return the parameters of all tasks; those of a stage that is left out as declared."""
    declared = _in_mode(replace(spec, ladder=None))
    found: list[TaskParameters] = []
    for stage in spec.stages:
        own = known.get(stage.name, ())
        for copy, as_declared in enumerate(declared[stage.name]):
            if not own:
                chosen = replace(as_declared, runs=False)
            elif copy < len(own):
                chosen = own[copy]
            else:  # it does not run here, and stays where it is
                chosen = replace(own[0], device=as_declared.device)
            found.append(replace(chosen, variant=variants.get(stage.name, "")))
    return tuple(found)


def _priority(policy: Policy, stage: StageSpec, period_ns: int | None) -> int:
    match policy:
        case "rm":
            assert period_ns is not None  # model.graph.check refuses rm without periods
            return period_ns
        case "dm":
            return stage.deadline_ns
        case "fp":
            assert stage.priority is not None  # model.graph.check
            return stage.priority
        case _:
            return 0
