"""Modes: the parameters of every task at one level of operation.

The kernel reads task parameters through the current mode only. There is one mode, `nominal`, until
a pipeline declares a degradation ladder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.graph import release_periods

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.spec import PipelineSpec, Policy, StageSpec


@dataclass(frozen=True, slots=True)
class TaskParameters:
    """What the policy and the monitors need to know of a task in one mode."""

    wcet_ns: int
    deadline_ns: int
    budget_ns: int
    priority: int
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Mode:
    """One level: `parameters[task.index]`."""

    name: str
    parameters: tuple[TaskParameters, ...]


def nominal_mode(spec: PipelineSpec, stages: Iterable[StageSpec]) -> Mode:
    """Return the mode in which everything runs as declared; `stages` has one entry a task."""
    periods = release_periods(spec)
    parameters = [_parameters(spec.policy, stage, periods[stage.name]) for stage in stages]
    return Mode("nominal", tuple(parameters))


def _parameters(policy: Policy, stage: StageSpec, period_ns: int | None) -> TaskParameters:
    return TaskParameters(
        wcet_ns=stage.wcet_ns,
        deadline_ns=stage.deadline_ns,
        budget_ns=stage.wcet_ns if stage.budget_ns is None else stage.budget_ns,
        priority=_priority(policy, stage, period_ns),
    )


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
