"""The bounds that a report compares a run with: every stage's response, every chain's latency.

A report must not wait for an analysis, and says the same on any machine: so what is looked at is
limited by size and not by time. The effort of a device grows with the square of its tasks, and the
window analysis of several slots and the busy periods of EDF take many times as long. At the limit
an analysis takes about two seconds; beyond it everything is unknown, and `avrt check` looks at it
all the same.

Where execution has overheads, the pipeline is given with them in its wcets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.analysis.figure import Figure, unknown
from avrt.analysis.schedulability import analyse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.spec import PipelineSpec

EFFORT_MAX = 20_000
EFFORT_OF_SEARCH = 25  # for each slot
TOO_LARGE = "too many tasks to analyse for a report; avrt check does"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no legal run exceeds, by stage and by chain."""

    stages: Mapping[str, Figure]
    chains: Mapping[str, Figure]


def bounds(spec: PipelineSpec, *, why_none: str = "") -> Bounds:
    """Return the bounds of a checked pipeline.

    All are unknown where it is too large, or where the caller says why there are none.
    """
    if not why_none and effort(spec) > EFFORT_MAX:
        why_none = TOO_LARGE
    if why_none:
        none = unknown(why_none)
        return Bounds(
            {stage.name: none for stage in spec.stages}, {chain.name: none for chain in spec.chains}
        )
    findings = analyse(spec)
    return Bounds(
        {stage.name: stage.response for stage in findings.stages},
        {chain.name: chain.latency for chain in findings.chains},
    )


def effort(spec: PipelineSpec) -> int:
    """Return how laborious a pipeline is to analyse, in pairs of tasks on one slot."""
    total = 0
    for device in spec.devices:
        tasks = sum(
            len(stage.task_names) * max(1, len(stage.segments))
            for stage in spec.stages
            if device.name in {stage.device, *(part.device for part in stage.segments)}
        )
        is_quick = device.slots == 1 and spec.policy != "edf"
        weight = 1 if is_quick else EFFORT_OF_SEARCH * device.slots
        total += tasks * tasks * weight
    return total
