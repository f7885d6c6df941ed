"""The bounds that a report compares a run with: every stage's response, every chain's latency.

A report must not wait for an analysis, and says the same on any machine: so what is looked at is
limited by size and not by time. The effort of a device grows with the square of its tasks, and the
window analysis of several slots and the busy periods of EDF take many times as long. At the limit
an analysis takes about two seconds; beyond it everything is unknown, and `avrt check` looks at it
all the same.

Where execution has overheads the pipeline is looked at with them in its wcets. What is exact for
that one is a bound for a run, which need not have to pay as much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.analysis.figure import Figure, unknown
from avrt.analysis.overheads import with_overheads
from avrt.analysis.schedulability import analyse
from avrt.model.levels import first_level
from avrt.model.scenario import NO_OVERHEADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.scenario import OverheadSpec
    from avrt.model.spec import PipelineSpec

EFFORT_MAX = 20_000
EFFORT_OF_SEARCH = 25  # for each slot
UNCOUNTED = "how often a job is resumed, at a cost, has no known bound"
TOO_LARGE = "too many tasks to analyse for a report; avrt check does"
LEFT_OUT = "the first level leaves it out"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no legal run exceeds, by stage and by chain."""

    stages: Mapping[str, Figure]
    chains: Mapping[str, Figure]


def bounds(
    spec: PipelineSpec,
    overheads: Mapping[str, OverheadSpec] = NO_OVERHEADS,
    *,
    why_none: str = "",
) -> Bounds:
    """Return the bounds of a checked pipeline, of one with a ladder those of its first level.

    All are unknown where it is too large, or where the caller says why there are none.

    Args:
        spec: the pipeline.
        overheads: what scheduling costs in a run, by device.
        why_none: why nothing bounds a run.
    """
    if not why_none and is_too_large(spec):
        why_none = TOO_LARGE
    begin = first_level(spec)
    charged = None if why_none else with_overheads(begin, overheads) if overheads else begin
    if charged is None:
        why_none = why_none or UNCOUNTED
        none = unknown(why_none)
        return Bounds(
            {stage.name: none for stage in spec.stages}, {chain.name: none for chain in spec.chains}
        )
    findings = analyse(charged)

    def told(figure: Figure) -> Figure:
        return replace(figure, label="bound") if overheads and figure.label == "exact" else figure

    left_out = unknown(LEFT_OUT)
    return Bounds(
        {stage.name: left_out for stage in spec.stages}
        | {stage.name: told(stage.response) for stage in findings.stages},
        {chain.name: left_out for chain in spec.chains}
        | {chain.name: told(chain.latency) for chain in findings.chains},
    )


def is_too_large(spec: PipelineSpec) -> bool:
    """Whether an analysis may take more than about two seconds."""
    return effort(spec) > EFFORT_MAX


def effort(spec: PipelineSpec) -> int:
    """Return how laborious a pipeline is to analyse, in pairs of tasks on one slot."""
    total = 0
    for device in spec.devices:
        tasks = sum(
            stage.homes.count(device.name)
            if not stage.segments
            else len(stage.task_names) * len(stage.segments)
            for stage in spec.stages
            if device.name in {*stage.homes, *(part.device for part in stage.segments)}
        )
        is_quick = device.slots == 1 and spec.policy != "edf"
        weight = 1 if is_quick else EFFORT_OF_SEARCH * device.slots
        total += tasks * tasks * weight
    return total
