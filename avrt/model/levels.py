"""The pipeline of one level of its ladder, and what must hold between a ladder and its pipeline.

`at_level` is the one reading of a level: the kernel takes the parameters of its modes from it, the
analysis its verdict. A stage that is left out is not there, nor is a chain through it; an optional
input from it has no source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.errors import SpecError, did_you_mean
from avrt.model.ladder import StageLevel
from avrt.model.spec import Criticality
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.ladder import LadderSpec, LevelSpec, VariantSpec
    from avrt.model.spec import PipelineSpec, StageSpec

LEVELS_MAX = 16


def levels_of(spec: PipelineSpec) -> tuple[LevelSpec, ...]:
    """Return the levels of a pipeline, the best first; none without a ladder."""
    return () if spec.ladder is None else spec.ladder.levels


def at_level(spec: PipelineSpec, level: LevelSpec) -> PipelineSpec:
    """Return the pipeline as it runs at a level, without a ladder of its own."""
    changes = {item.stage: item for item in level.stages}
    left_out = set(level.without)
    stages = tuple(
        _without_inputs(_changed(stage, changes.get(stage.name)), left_out)
        for stage in spec.stages
        if stage.name not in left_out
    )
    chains = tuple(chain for chain in spec.chains if left_out.isdisjoint(chain.path))
    return replace(spec, stages=stages, chains=chains, ladder=None)


def copies_at(spec: PipelineSpec, stage: StageSpec, name: str) -> int:
    """Return how many jobs a release of a stage has at a level; 0 where it is left out."""
    level = next(level for level in levels_of(spec) if level.name == name)
    if stage.name in level.without:
        return 0
    given = next((item.copies for item in level.stages if item.stage == stage.name), None)
    return given or len(stage.task_names)


def first_level(spec: PipelineSpec) -> PipelineSpec:
    """Return the pipeline as a run of it begins."""
    levels = levels_of(spec)
    return at_level(spec, levels[0]) if levels else spec


def critical_stages(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the stages whose misses, votes and outputs count: the ladder's, or all above QM."""
    if spec.ladder is not None and spec.ladder.critical:
        return spec.ladder.critical
    return tuple(stage.name for stage in spec.stages if stage.criticality > Criticality.QM)


def as_variant(stage: StageSpec, variant: VariantSpec | None) -> StageSpec:
    """Return the stage as one of its variants runs it, or as declared."""
    if variant is None:
        return replace(stage, variants=())
    own = {} if variant.run else dict(stage.params)
    return replace(
        stage if variant.device is None else stage.on(variant.device),
        run=variant.run or stage.run,
        wcet_ns=variant.wcet_ns or stage.wcet_ns,
        bcet_ns=None if variant.wcet_ns else stage.bcet_ns,
        profile_ns=() if variant.wcet_ns else stage.profile_ns,
        params={**own, **variant.params},
        variants=(),
    )


def _changed(stage: StageSpec, change: StageLevel | None) -> StageSpec:
    change = change or StageLevel(stage=stage.name)
    own = as_variant(stage, stage.variant(change.variant))
    redundancy = own.redundancy
    if redundancy is not None and change.copies is not None:
        redundancy = redundancy.of(change.copies)
    return replace(
        own,
        period_ns=stage.period_ns if change.period_ns is None else change.period_ns,
        every=stage.every if change.every is None else change.every,
        redundancy=redundancy,
    )


def _without_inputs(stage: StageSpec, left_out: set[str]) -> StageSpec:
    kept = tuple(i for i in stage.inputs if not (i.optional and i.source in left_out))
    return replace(stage, inputs=kept)


# What must hold


def check_ladder(spec: PipelineSpec) -> None:
    """Raise SpecError for the first thing that makes a ladder, or a variant, meaningless."""
    for stage in spec.stages:
        _check_variants(spec, stage)
    ladder, key = spec.ladder, ("ladder",)
    if ladder is None:
        return
    if spec.policy == "table":
        raise SpecError("a table is planned for one level; choose another policy", key)
    if not 2 <= len(ladder.levels) <= LEVELS_MAX:
        what = f"expected 2 to {LEVELS_MAX} levels, found {len(ladder.levels)}"
        raise SpecError(what, (*key, "levels"))
    devices = [device.name for device in spec.devices]
    _check_known(ladder.devices, devices, "device", (*key, "devices"))
    if len(set(ladder.devices)) < len(ladder.devices):
        raise SpecError("given twice; a device is counted once", (*key, "devices"))
    names = [stage.name for stage in spec.stages]
    _check_known(ladder.critical, names, "stage", (*key, "critical"))
    if not critical_stages(spec):
        what = "no stage is above QM; say with 'critical' whose outputs decide"
        raise SpecError(what, key)
    if ladder.age_ns_max < 1:
        raise SpecError("expected more than 0", (*key, "max_age"))
    _check_counts(ladder)
    for level in ladder.levels:
        _check_level(spec, level)


def _check_counts(ladder: LadderSpec) -> None:
    """Check that levels need fewer and fewer devices, and the last one none."""
    most = len(ladder.devices)
    for level in ladder.levels:
        key = ("ladder", "levels", level.name, "devices")
        if not 0 <= level.devices <= most:
            what = f"expected 0 to {most} devices, as the level above, found {level.devices}"
            raise SpecError(what, key)
        most = level.devices
    if most:
        what = f"the last level needs no device of the ladder, found {most}"
        raise SpecError(what, ("ladder", "levels", ladder.levels[-1].name, "devices"))


def _check_level(spec: PipelineSpec, level: LevelSpec) -> None:
    key = ("ladder", "levels", level.name)
    names = [stage.name for stage in spec.stages]
    _check_known(level.without, names, "stage", (*key, "without"))
    if len(set(level.without)) == len(names):
        raise SpecError("it leaves out every stage", (*key, "without"))
    for change in level.stages:
        place = (*key, "stages", change.stage)
        _check_known((change.stage,), names, "stage", place)
        if change.stage in level.without:
            raise SpecError("this level leaves it out; remove one of the two", place)
        _check_change(spec.stage(change.stage), change, place)
    for stage in spec.stages:
        if stage.name not in level.without:
            _check_inputs(stage, level, key)


def _check_change(stage: StageSpec, change: StageLevel, key: tuple[str, ...]) -> None:
    if change.variant and stage.variant(change.variant) is None:
        known = [variant.name for variant in stage.variants]
        near = did_you_mean(change.variant, known) if known else "it has no variants"
        raise SpecError(f"no variant named {change.variant!r}; {near}", (*key, "variant"))
    if change.period_ns is not None and stage.period_ns is None:
        what = "a timer stage has a rate; of one that others release say 'every'"
        raise SpecError(what, (*key, "rate"))
    if change.every is not None:
        check_every(stage, change.every, (*key, "every"))
    if change.copies is not None:
        most = 0 if stage.redundancy is None else stage.redundancy.copies
        if most == 0:
            raise SpecError("only a stage with 'redundancy' has copies", (*key, "copies"))
        if not 1 <= change.copies <= most:
            what = f"expected 1 to {most} copies, found {change.copies}"
            raise SpecError(what, (*key, "copies"))


def check_every(stage: StageSpec, every: int, key: tuple[str, ...]) -> None:
    """Raise SpecError unless a stage can leave out messages."""
    if every < 1:
        raise SpecError(f"expected 1 or more, found {every}", key)
    if every > 1 and stage.trigger is None:
        raise SpecError("only a stage with a trigger takes each n-th message", key)


def _check_inputs(stage: StageSpec, level: LevelSpec, key: tuple[str, ...]) -> None:
    """Check that a stage that runs at a level has what it needs there."""
    for item in stage.inputs:
        if item.source in level.without and not item.optional:
            what = f"{stage.name!r} needs {item.source!r}; leave it out too, or keep both"
            raise SpecError(what, (*key, "without"))
    left = [item for item in stage.inputs if item.source not in level.without]
    if stage.sync is not None and len(left) < 2:
        what = f"{stage.name!r} needs two inputs or more for its sets"
        raise SpecError(what, (*key, "without"))


def _check_variants(spec: PipelineSpec, stage: StageSpec) -> None:
    key = ("stages", stage.name, "variants")
    if stage.variants and stage.segments:
        raise SpecError("a stage with segments has no variants", key)
    if stage.variants and stage.redundancy is not None and stage.redundancy.runs:
        raise SpecError("a stage whose copies run different code has no variants", key)
    for variant in stage.variants:
        if variant.device is not None:
            devices = [device.name for device in spec.devices]
            _check_known((variant.device,), devices, "device", (*key, variant.name, "device"))
        if variant.wcet_ns is not None and variant.wcet_ns < 1:
            what = f"expected more than 0, found {format_ns(variant.wcet_ns)}"
            raise SpecError(what, (*key, variant.name, "wcet"))


def _check_known(
    names: Iterable[str], known: Iterable[str], what: str, key: tuple[str, ...]
) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise SpecError(f"no {what} named {name!r}; {did_you_mean(name, known)}", key)
