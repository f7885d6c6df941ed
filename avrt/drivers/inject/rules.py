"""By what the outputs of a pipeline are judged: which stages count, and when outputs agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.metrics.compared import half_step_ns
from avrt.metrics.observed import Rules
from avrt.model.levels import at_level, critical_stages, first_level, levels_of
from avrt.safety.rules import agreement_of, differs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.metrics.observed import Differs, Observed
    from avrt.model.ladder import LevelSpec
    from avrt.model.spec import PipelineSpec

SILENT_STEPS = 6
"""Of a stage's shortest step, without a ladder: after so long it is silent."""


def critical_of(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the stages whose outputs count: the critical ones, or all where none is."""
    return critical_stages(spec) or tuple(stage.name for stage in spec.stages)


def rules_for(spec: PipelineSpec, golden: Observed) -> Rules:
    """Return the rules for runs of a pipeline, given the one without faults."""
    critical = critical_of(spec)
    runs_at = {
        level.name: frozenset(critical) & {s.name for s in at_level(spec, level).stages}
        for level in levels_of(spec)
    }
    steps_ns = [
        2 * half_step_ns([output.publish_ns for output in outputs])
        for outputs in golden.outputs.values()
    ]
    silent_ns = SILENT_STEPS * max(steps_ns, default=0)
    if spec.ladder is not None:
        silent_ns = max(silent_ns, spec.ladder.age_ns_max)
    near_ns = {source.name: (source.period_ns or 0) // 2 for source in spec.sources}
    runs_at = runs_at or {"": frozenset(critical)}
    same_at = {level.name: _unchanged(spec, level) for level in levels_of(spec)} or runs_at
    return Rules(_differs(spec, critical), runs_at, same_at, silent_ns, near_ns)


def _unchanged(spec: PipelineSpec, level: LevelSpec) -> frozenset[str]:
    """Return the stages that run at a level as at the first one, with all that is before them."""
    first = {stage.name: stage for stage in first_level(spec).stages}
    here = {stage.name: stage for stage in at_level(spec, level).stages}
    names = [stage.name for stage in spec.stages]
    changed = {name for name in names if first.get(name) != here.get(name)}
    before = -1
    while before != len(changed):
        before = len(changed)
        changed |= {s.name for s in here.values() if any(i.source in changed for i in s.inputs)}
    return frozenset(here) - changed


def _differs(spec: PipelineSpec, critical: Iterable[str]) -> Differs:
    agreements = {name: agreement_of(spec.stage(name)) for name in critical}
    return lambda stage, known, found: differs(agreements[stage], known, found)
