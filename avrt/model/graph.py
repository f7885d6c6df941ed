"""What must hold between the parts of a pipeline, whether it came from YAML or from Python.

`check` raises `SpecError` with the path of keys to the culprit; the YAML reader turns that path
into `file:line`. What is judged here is only what makes a pipeline meaningless; a pipeline that
cannot meet its deadlines is a verdict of the analysis, not an error: overload must be simulable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import SpecError, did_you_mean
from avrt.model.levels import at_level, check_every, check_ladder, critical_stages, levels_of
from avrt.model.scrub import scrub_jobs
from avrt.model.segments import check_keeping, check_segments
from avrt.model.spec import Criticality
from avrt.model.table import check_table
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.model.ladder import LevelSpec
    from avrt.model.spec import (
        ChainSpec,
        DeviceSpec,
        PipelineSpec,
        RedundancySpec,
        SourceSpec,
        StageSpec,
    )
    from avrt.model.supply import Supply

STAGES_MAX = 400
LONGEST_NS = 10 * 365 * 24 * 3600 * NS_PER_S  # so that no absolute time leaves 64 bits


def check(spec: PipelineSpec) -> None:
    """Raise SpecError for the first thing that makes this pipeline meaningless."""
    _check_names(spec)
    for device in spec.devices:
        _check_device(spec, device)
    for source in spec.sources:
        _check_source(source)
    for stage in spec.stages:
        _check_references(spec, stage)
        _check_release(stage)
        _check_limits(stage)
        _check_inputs(stage)
        if stage.segments:
            check_segments(stage)
    check_keeping(spec)
    topological_order(spec)
    _check_policy(spec)
    check_table(spec)
    for chain in spec.chains:
        _check_chain(spec, chain)
    check_ladder(spec)
    for level in levels_of(spec):
        try:
            check(at_level(spec, level))
        except SpecError as error:
            what = f"at this level, {'.'.join(error.key)}: {error.what}"
            raise SpecError(what, ("ladder", "levels", level.name)) from error
    for level in levels_of(spec)[:-1]:
        _check_age(spec, level)


def topological_order(spec: PipelineSpec) -> tuple[StageSpec, ...]:
    """Return the stages so that each comes after what it reads; SpecError names a cycle."""
    stages = {stage.name: stage for stage in spec.stages}
    order: dict[str, StageSpec] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            raise SpecError(f"stages feed each other in a cycle: {cycle}", ("stages", name))
        if name in order or name not in stages:
            return
        for item in stages[name].inputs:
            visit(item.source, (*path, name))
        order[name] = stages[name]

    for stage in spec.stages:
        visit(stage.name, ())
    return tuple(order.values())


def release_periods(spec: PipelineSpec) -> dict[str, int | None]:
    """Return the period in ns at which every stage is released, and every source sends.

    A stage's is its own, or the one its trigger declares; a synchronised stage takes the longest
    of its required inputs', for a set needs them all, and without any the shortest, for every
    message is in some set. None when nothing upstream declares one.
    """
    periods = {source.name: source.period_ns for source in spec.sources}
    for stage in topological_order(spec):
        periods[stage.name] = stage.period_ns or _inherited_ns(stage, periods)
    return periods


def _inherited_ns(stage: StageSpec, periods: Mapping[str, int | None]) -> int | None:
    trigger = stage.trigger_input
    required = [item for item in stage.inputs if not item.optional]
    upstream = [trigger] if trigger else required or stage.inputs
    found = [periods[item.source] for item in upstream]
    known = [period for period in found if period is not None]
    if not known or len(known) < len(found):
        return None
    return stage.every * (max(known) if required else min(known))


def _check_age(spec: PipelineSpec, level: LevelSpec) -> None:
    """Refuse a level at which an output would be too old before the next one could come."""
    assert spec.ladder is not None
    age_ns = spec.ladder.age_ns_max
    periods = release_periods(at_level(spec, level))
    for name in critical_stages(spec):
        period_ns = periods.get(name)
        if period_ns is not None and period_ns >= age_ns:
            period, age = format_ns(period_ns), format_ns(age_ns)
            what = f"expected more than the {period} from one output of {name!r} to the next at "
            raise SpecError(f"{what}level {level.name!r}, found {age}", ("ladder", "max_age"))


def _check_names(spec: PipelineSpec) -> None:
    for group, names in (
        ("devices", [d.name for d in spec.devices]),
        ("sources", [s.name for s in spec.sources]),
        ("stages", [s.name for s in spec.stages]),
        ("chains", [c.name for c in spec.chains]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise SpecError("given twice; names are unique", (group, name))
            seen.add(name)
    if len(spec.stages) > STAGES_MAX:
        what = f"expected at most {STAGES_MAX} stages, found {len(spec.stages)}"
        raise SpecError(what, ("stages",))
    if not spec.stages:
        raise SpecError("no stage is declared; add one under 'stages:'", ("stages",))
    sources = {source.name for source in spec.sources}
    for stage in spec.stages:
        if stage.name in sources:
            raise SpecError("a source has this name too; rename one", ("stages", stage.name))


def _check_device(spec: PipelineSpec, device: DeviceSpec) -> None:
    key = ("devices", device.name)
    if device.slots < 1:
        raise SpecError(f"expected at least 1 slot, found {device.slots}", (*key, "slots"))
    if device.threads < 1:
        raise SpecError(f"expected at least 1 thread, found {device.threads}", (*key, "threads"))
    if device.preemptive and device.type != "simulated":
        remedy = "only a device of type 'simulated' can be preemptive; drop 'preemptive'"
        raise SpecError(remedy, (*key, "preemptive"))
    if device.supply is not None:
        _check_supply(device, device.supply)
    if device.fallback is not None:
        _known(device.fallback, [d.name for d in spec.devices], "device", (*key, "fallback"))
        if device.fallback == device.name:
            raise SpecError("a device cannot fall back on itself", (*key, "fallback"))


def _check_supply(device: DeviceSpec, supply: Supply) -> None:
    key = ("devices", device.name, "supply")
    if device.slots > 1:
        what = f"a device with a supply has one slot, found {device.slots}; give each a device"
        raise SpecError(what, ("devices", device.name, "slots"))
    if supply.budget_ns < 1:
        what = f"expected a budget above 0, found {format_ns(supply.budget_ns)}"
        raise SpecError(what, (*key, "budget"))
    if supply.period_ns > LONGEST_NS:
        what = f"expected at most 10 years, found {format_ns(supply.period_ns)}"
        raise SpecError(what, (*key, "every"))
    if supply.budget_ns > supply.period_ns:
        budget, period = format_ns(supply.budget_ns), format_ns(supply.period_ns)
        what = f"expected a budget of at most 'every', {period}, found {budget}"
        raise SpecError(what, (*key, "budget"))
    for start_ns in supply.starts_ns:
        last_ns = supply.period_ns - supply.budget_ns
        if not 0 <= start_ns <= last_ns:
            room = f"0 to {format_ns(last_ns)}, so that the budget ends with its period"
            what = f"expected a start from {room}, found {format_ns(start_ns)}"
            raise SpecError(what, (*key, "starts"))


def _check_source(source: SourceSpec) -> None:
    if source.period_ns is not None and source.period_ns < 1:
        what = f"expected a period above 0, found {format_ns(source.period_ns)}"
        raise SpecError(what, ("sources", source.name, "rate"))
    if not 0 <= source.latency_ns <= LONGEST_NS:
        limit = "0 or more" if source.latency_ns < 0 else "at most 10 years"
        what = f"expected {limit}, found {format_ns(source.latency_ns)}"
        raise SpecError(what, ("sources", source.name, "latency"))


def _check_references(spec: PipelineSpec, stage: StageSpec) -> None:
    key = ("stages", stage.name)
    devices = [d.name for d in spec.devices]
    for place, segment in enumerate(stage.segments):
        _known(segment.device, devices, "device", (*key, "segments", str(place), "device"))
    _known(stage.device, devices, "device", (*key, "device"))
    for home in stage.homes:
        _known(home, devices, "device", (*key, "redundancy", "devices"))
    producers = [s.name for s in spec.sources] + [s.name for s in spec.stages]
    for item in stage.inputs:
        _known(item.source, producers, "source or stage", (*key, "inputs", item.name))
    if stage.trigger is not None:
        _known(stage.trigger, [i.name for i in stage.inputs], "input", (*key, "trigger"))


def _check_release(stage: StageSpec) -> None:
    key = ("stages", stage.name)
    ways = [stage.period_ns is not None, stage.trigger is not None, stage.sync is not None]
    if sum(ways) == 1:
        trigger = stage.trigger_input
        if trigger is not None and trigger.optional:
            raise SpecError("the trigger cannot be optional", (*key, "inputs", trigger.name))
        if stage.period_ns is None and stage.offset_ns:
            raise SpecError("an offset needs a 'period'", (*key, "offset"))
        if stage.sync is not None and len(stage.inputs) < 2:
            raise SpecError("'sync' needs two inputs or more", (*key, "sync"))
        return
    if sum(ways) > 1:
        raise SpecError("give one of 'period', 'trigger' and 'sync', not several", key)
    if not stage.inputs:
        raise SpecError("nothing releases it; give 'inputs' or a 'period'", key)
    names = ", ".join(item.name for item in stage.inputs)
    raise SpecError(f"several inputs ({names}); say which one is the 'trigger', or 'sync'", key)


def _check_limits(stage: StageSpec) -> None:
    key = ("stages", stage.name)
    for name, value, least in (
        ("wcet", stage.wcet_ns, 1),
        ("deadline", stage.deadline_ns, 1),
        ("period", stage.period_ns, 1),
        ("budget", stage.budget_ns, 1),
        ("bcet", stage.bcet_ns, 1),
        ("offset", stage.offset_ns, 0),
        ("jitter", stage.jitter_ns, 0),
    ):
        if value is not None and not least <= value <= LONGEST_NS:
            limit = "at most 10 years" if value > 0 else "more than 0" if least else "0 or more"
            raise SpecError(f"expected {limit}, found {format_ns(value)}", (*key, name))
    if stage.bcet_ns is not None and stage.bcet_ns > stage.wcet_ns:
        raise SpecError("the best case is above the wcet", (*key, "bcet"))
    if stage.guarantee == "best_effort" and stage.criticality > Criticality.QM:
        what = f"best effort is QM: it gives way to all others; found {stage.criticality.label}"
        raise SpecError(what, (*key, "criticality"))
    if stage.queue < 1:
        raise SpecError(f"expected at least 1 waiting job, found {stage.queue}", (*key, "queue"))
    check_every(stage, stage.every, (*key, "every"))
    _check_redundancy(stage)
    _check_window(stage)


def _check_homes(stage: StageSpec, redundancy: RedundancySpec, key: tuple[str, ...]) -> None:
    if not redundancy.devices:
        return
    if len(redundancy.devices) != redundancy.copies:
        found = len(redundancy.devices)
        what = f"expected one for each of the {redundancy.copies} copies, found {found}"
        raise SpecError(what, key)
    if stage.segments:
        raise SpecError("the segments of a stage have devices of their own; drop one of both", key)
    if stage.device != redundancy.devices[0]:
        what = f"expected the stage's device {stage.device!r} first: it is that of the first copy"
        raise SpecError(what, key)


def _check_redundancy(stage: StageSpec) -> None:
    redundancy, key = stage.redundancy, ("stages", stage.name, "redundancy")
    if redundancy is None:
        return
    if redundancy.copies < 2:
        raise SpecError("redundancy needs 2 copies or more", (*key, "copies"))
    most = redundancy.copies - redundancy.quorum
    if not 0 <= redundancy.spare <= most:
        what = f"expected 0 to {most}, so that the others can decide, found {redundancy.spare}"
        raise SpecError(what, (*key, "spare"))
    _check_homes(stage, redundancy, (*key, "devices"))
    if not 0 <= redundancy.decide_ns < stage.deadline_ns:
        limit = f"0 or more, and less than the deadline of {format_ns(stage.deadline_ns)}"
        what = f"expected {limit}, found {format_ns(redundancy.decide_ns)}"
        raise SpecError(what, (*key, "decide_before"))


def _check_inputs(stage: StageSpec) -> None:
    key = ("stages", stage.name)
    for item in stage.inputs:
        if item.max_age_ns is not None and item.max_age_ns < 1:
            what = f"expected more than 0, found {format_ns(item.max_age_ns)}"
            raise SpecError(what, (*key, "inputs", item.name, "max_age"))
    if stage.sync is None:
        return
    for name, value in (("tolerance", stage.sync.tolerance_ns), ("timeout", stage.sync.timeout_ns)):
        if value < 0:
            what = f"expected 0 or more, found {format_ns(value)}"
            raise SpecError(what, (*key, "sync", name))


def _check_window(stage: StageSpec) -> None:
    misses_max, window_jobs = stage.misses_max, stage.window_jobs
    if (misses_max is None) != (window_jobs is None):
        raise SpecError("give both misses_max and window_jobs", ("stages", stage.name))
    if misses_max is None or window_jobs is None:
        return
    if not 0 <= misses_max < window_jobs:
        what = f"expected fewer misses than jobs, found {misses_max} of {window_jobs}"
        raise SpecError(what, ("stages", stage.name, "miss_at_most"))


def _check_policy(spec: PipelineSpec) -> None:
    periods = release_periods(spec)
    for stage in spec.stages:
        scrub_jobs(stage, periods[stage.name])
        key = ("stages", stage.name)
        if spec.policy == "rm" and periods[stage.name] is None:
            what = "rate-monotonic needs a period; give its source a 'rate' or choose policy: dm"
            raise SpecError(what, key)
        if spec.policy == "fp" and stage.priority is None:
            what = "policy fp needs a 'priority' on every stage (1 is the most urgent)"
            raise SpecError(what, key)


def _check_chain(spec: PipelineSpec, chain: ChainSpec) -> None:
    key = ("chains", chain.name)
    stages = {stage.name: stage for stage in spec.stages}
    names = [s.name for s in spec.sources] + list(stages)
    if len(chain.path) < 2:
        raise SpecError("a path has a source and a stage at least", (*key, "path"))
    for name in chain.path:
        _known(name, names, "source or stage", (*key, "path"))
    for before, after in zip(chain.path, chain.path[1:], strict=False):
        if after not in stages or before not in [i.source for i in stages[after].inputs]:
            raise SpecError(f"{after!r} does not read {before!r}", (*key, "path"))
    head = stages.get(chain.path[0])
    if head is not None and head.inputs:
        what = f"a path starts at a source or a timer stage; {head.name!r} has inputs"
        raise SpecError(what, (*key, "path"))
    for name, limit in (("reaction", chain.reaction_ns), ("age", chain.age_ns)):
        if limit is not None and limit < 1:
            raise SpecError(f"expected more than 0, found {format_ns(limit)}", (*key, name))


def _known(name: str, known: Iterable[str], what: str, key: tuple[str, ...]) -> None:
    names = list(known)
    if name not in names:
        raise SpecError(f"no {what} named {name!r}; {did_you_mean(name, names)}", key)
