"""What-if on declared figures: how much each may change, and what would be enough.

Every figure is found by bisection over the verdict of the whole pipeline. The tests are
sustainable in wcets and periods: a shorter wcet or a longer period never turns "meets" into
something else (Burns & Baruah 2008). Whether that holds of a deadline depends on the policy, so
every value that is told was itself analysed. Values are found to one part in a thousand, and of
those the shortest number is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.analysis.holistic import solve
from avrt.analysis.priorities import optimal_order
from avrt.analysis.schedulability import analyse, meets
from avrt.model import segments
from avrt.model.graph import release_periods
from avrt.model.spec import SegmentSpec
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from avrt.model.spec import PipelineSpec, Policy, StageSpec

FINENESS = 1000
GROWTH_MAX = 64  # how many times longer a period or a deadline is tried
RELATIVE_MAX = 4  # five times as long is no remedy
FACTOR_MAX = 100 * FINENESS
SEGMENTS_MAX = 8  # into how many the longest job is cut


@dataclass(frozen=True, slots=True)
class Change:
    """One change after which the pipeline meets every promise.

    Attributes:
        key: where it stands in the pipeline file.
        what: the change in words.
        relative: how many times the lesser figure the difference is; 0 costs no time at all.
        spec: the pipeline with the change made.
    """

    key: tuple[str, ...]
    what: str
    relative: float
    spec: PipelineSpec


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far a pipeline that meets its promises is from not doing so.

    Attributes:
        wcet_ns: by stage, the longest wcet, all else unchanged.
        factor: all wcets may be that many times as long.
        first: stages and chains that are not shown to meet their limits beyond it; of several that
            one test leaves unknown, those with the least room now.
        period_ns: by source and timer stage, the shortest period.
    """

    wcet_ns: Mapping[str, int]
    factor: float
    period_ns: Mapping[str, int]
    first: tuple[str, ...] = ()


def sensitivity(spec: PipelineSpec) -> Sensitivity:
    """Return how much each figure of a pipeline that meets its promises may change."""
    wcet_ns = {
        stage.name: _last(
            _verdict_of(with_wcet, spec, stage.name), stage.wcet_ns, stage.deadline_ns + 1
        )
        for stage in spec.stages
    }
    factor = _last(lambda f: meets(with_factor(spec, f)), FINENESS, FACTOR_MAX)
    period_ns = {
        name: _first(_verdict_of(with_period, spec, name), 0, now_ns)
        for name, now_ns in _paces(spec).items()
    }
    return Sensitivity(wcet_ns, factor / FINENESS, period_ns, _first_to_fail(spec, factor))


def _first_to_fail(spec: PipelineSpec, factor: int) -> tuple[str, ...]:
    """Return what is not shown to be in time when wcets grow beyond a factor in thousandths."""
    beyond = analyse(with_factor(spec, factor + max(2, factor // FINENESS)))
    late = [item for item in beyond.stages if item.slack_ns is not None and item.slack_ns < 0]
    chains = [item.name for item in beyond.chains if item.verdict != "meets"]
    if late or not [item for item in beyond.stages if item.verdict != "meets"]:
        return (*(item.name for item in late), *chains)
    now = analyse(spec)
    open_ns = {
        item.name: now.stage(item.name).slack_ns or 0
        for item in beyond.stages
        if item.verdict != "meets"
    }
    return tuple(sorted(open_ns, key=lambda name: open_ns[name])[:1])


def remedies(spec: PipelineSpec) -> list[Change]:
    """Return single changes that make a pipeline meet its promises, the smallest first."""
    found = [*_policies(spec), *_points(spec), *_wcets(spec), *_deadlines(spec), *_rates(spec)]
    found += [*_slots(spec), *_supplies(spec)]
    sensible = [change for change in found if change.relative <= RELATIVE_MAX]
    return sorted(sensible, key=lambda change: change.relative)


# Changes


def with_wcet(spec: PipelineSpec, name: str, wcet_ns: int) -> PipelineSpec:
    """Return the pipeline with another wcet of a stage; its best case stays at most that."""
    stages = tuple(
        replace(
            segments.with_wcet(stage, wcet_ns),
            bcet_ns=None if stage.bcet_ns is None else min(stage.bcet_ns, wcet_ns),
        )
        if stage.name == name
        else stage
        for stage in spec.stages
    )
    return replace(spec, stages=stages)


def with_factor(spec: PipelineSpec, thousandths: int) -> PipelineSpec:
    """Return the pipeline with all wcets longer or shorter by one factor."""
    for stage in spec.stages:
        wcet_ns = max(1, stage.wcet_ns * thousandths // FINENESS)
        spec = with_wcet(spec, stage.name, wcet_ns)
    return spec


def with_period(spec: PipelineSpec, name: str, period_ns: int) -> PipelineSpec:
    """Return the pipeline with another period of a source or a timer stage."""
    sources = tuple(
        replace(source, period_ns=period_ns) if source.name == name else source
        for source in spec.sources
    )
    stages = tuple(
        replace(stage, period_ns=period_ns) if stage.name == name else stage
        for stage in spec.stages
    )
    return replace(spec, sources=sources, stages=stages)


def with_deadline(spec: PipelineSpec, name: str, deadline_ns: int) -> PipelineSpec:
    stages = tuple(
        replace(stage, deadline_ns=deadline_ns) if stage.name == name else stage
        for stage in spec.stages
    )
    return replace(spec, stages=stages)


def with_budget(spec: PipelineSpec, name: str, budget_ns: int) -> PipelineSpec:
    """Return the pipeline with another budget of a device's supply, from each period's begin."""
    devices = tuple(
        replace(device, supply=replace(device.supply, budget_ns=budget_ns, starts_ns=(0,)))
        if device.name == name and device.supply is not None
        else device
        for device in spec.devices
    )
    return replace(spec, devices=devices)


def with_points(spec: PipelineSpec, device: str, longest_ns: int) -> PipelineSpec:
    """Return the pipeline with the stages of a device cut into segments, none longer than that."""
    return replace(
        spec,
        stages=tuple(
            _cut(stage, longest_ns)
            if _is_whole_on(stage, device) and stage.wcet_ns > longest_ns
            else stage
            for stage in spec.stages
        ),
    )


def _is_whole_on(stage: StageSpec, device: str) -> bool:
    """Whether a stage may be cut into segments that all run on a device."""
    return set(stage.homes) == {device} and not stage.segments


def _cut(stage: StageSpec, longest_ns: int) -> StageSpec:
    count = -(-stage.wcet_ns // longest_ns)
    times = segments.split(stage.wcet_ns, [1] * count)
    parts = tuple(SegmentSpec(device=stage.device, wcet_ns=ns) for ns in times)
    return replace(stage, segments=parts)


def with_optimal_priorities(spec: PipelineSpec) -> PipelineSpec | None:
    """Return the pipeline under fixed priorities as Audsley would assign them, device by device.

    Releases are taken as they are under the present policy (edf instead of a table); None when a
    device has no order.
    """
    if any(stage.segments or len(set(stage.homes)) > 1 for stage in spec.stages):
        return None
    spec = _without_table(spec)
    solution = solve(spec)
    priorities: dict[str, int] = {}
    for device in spec.devices:
        members = [
            solution.members[stage.name] for stage in spec.stages if stage.device == device.name
        ]
        if not all(members):
            return None
        order = optimal_order([member.task for group in members for member in group])
        if order is None:
            return None
        places = {task.name: place for place, task in enumerate(order, 1)}
        for group in members:
            stage = group[0].stage
            priorities[stage.name] = max(places[name] for name in stage.task_names)
    stages = tuple(replace(stage, priority=priorities[stage.name]) for stage in spec.stages)
    return replace(spec, policy="fp", stages=stages)


def _without_table(spec: PipelineSpec) -> PipelineSpec:
    return spec if spec.table is None else replace(spec, policy="edf", table=None)


def _paces(spec: PipelineSpec) -> dict[str, int]:
    """Return the periods of all timer stages, and of the sources that release a stage."""
    releasing: set[str] = set()
    for stage in spec.stages:
        trigger = stage.trigger_input
        if stage.period_ns is None:
            releasing.update(i.source for i in ((trigger,) if trigger else stage.inputs))
    paces = {s.name: s.period_ns for s in spec.sources if s.name in releasing}
    paces |= {s.name: s.period_ns for s in spec.stages}
    return {name: ns for name, ns in paces.items() if ns is not None}


# What would be enough


def _policies(spec: PipelineSpec) -> Iterator[Change]:
    others: tuple[Policy, ...] = ("edf", "dm", "rm")
    for policy in others:
        paced = policy != "rm" or None not in release_periods(spec).values()
        changed = replace(spec, policy=policy, table=None)
        if policy != spec.policy and paced and meets(changed):
            yield Change(("policy",), f"policy {policy}", 0.0, changed)
    ordered = with_optimal_priorities(spec)
    if ordered is not None and meets(ordered):
        order = sorted(ordered.stages, key=lambda stage: stage.priority or 0)
        names = ", ".join(f"{stage.name} {stage.priority}" for stage in order)
        yield Change(("policy",), f"policy fp with priorities {names}", 0.0, ordered)


def _points(spec: PipelineSpec) -> Iterator[Change]:
    """Yield for each device that is not preemptive the fewest points that would be enough."""
    for device in spec.devices:
        whole = [s.wcet_ns for s in spec.stages if _is_whole_on(s, device.name)]
        if device.preemptive or spec.table is not None or len(whole) < 2:
            continue
        for count in range(2, SEGMENTS_MAX + 1):
            longest_ns = -(-max(whole) // count)
            changed = with_points(spec, device.name, longest_ns)
            if meets(changed):
                what = f"segments of at most {format_ns(longest_ns)} on {device.name}"
                yield Change(("devices", device.name), what, 0.0, changed)
                break


def _wcets(spec: PipelineSpec) -> Iterator[Change]:
    for stage in spec.stages:
        name, now_ns = stage.name, stage.wcet_ns
        if meets(with_wcet(spec, name, 1)):
            ns = _last(_verdict_of(with_wcet, spec, name), 1, now_ns)
            what = f"wcet of {name} to at most {format_ns(ns)} ({ns / now_ns - 1:+.1%})"
            key = ("stages", name, "wcet")
            yield Change(key, what, now_ns / ns - 1, with_wcet(spec, name, ns))


def _deadlines(spec: PipelineSpec) -> Iterator[Change]:
    findings = analyse(spec)
    for stage in spec.stages:
        name, now_ns = stage.name, stage.deadline_ns
        most_ns = GROWTH_MAX * now_ns
        if findings.stage(name).verdict == "meets":
            continue
        if meets(with_deadline(spec, name, most_ns)):
            ns = _first(_verdict_of(with_deadline, spec, name), now_ns, most_ns)
            what = f"deadline of {name} to at least {format_ns(ns)} ({ns / now_ns - 1:+.1%})"
            key = ("stages", name, "deadline")
            yield Change(key, what, ns / now_ns - 1, with_deadline(spec, name, ns))


def _rates(spec: PipelineSpec) -> Iterator[Change]:
    sources = {source.name for source in spec.sources}
    for name, now_ns in _paces(spec).items():
        most_ns = GROWTH_MAX * now_ns
        if meets(with_period(spec, name, most_ns)):
            ns = _first(_verdict_of(with_period, spec, name), now_ns, most_ns)
            changed = with_period(spec, name, ns)
            if name in sources:
                what, key = (
                    f"rate of {name} to at most {format_rate(ns)} ({now_ns / ns - 1:+.1%})",
                    ("sources", name, "rate"),
                )
            else:
                what = f"period of {name} to at least {format_ns(ns)} ({ns / now_ns - 1:+.1%})"
                key = ("stages", name, "period")
            yield Change(key, what, ns / now_ns - 1, changed)


def _supplies(spec: PipelineSpec) -> Iterator[Change]:
    for device in spec.devices:
        name, supply = device.name, device.supply
        if supply is None or not meets(with_budget(spec, name, supply.period_ns)):
            continue
        holds = _verdict_of(with_budget, spec, name)
        ns = _first(holds, supply.budget_ns, supply.period_ns)
        what = f"supply of {name} to at least {format_ns(ns)} of {format_ns(supply.period_ns)}"
        key = ("devices", name, "supply", "budget")
        yield Change(key, what, ns / supply.budget_ns - 1, with_budget(spec, name, ns))


def _slots(spec: PipelineSpec) -> Iterator[Change]:
    for device in spec.devices:
        if device.supply is not None:
            continue
        more = replace(device, slots=device.slots + 1)
        devices = tuple(more if d.name == device.name else d for d in spec.devices)
        changed = replace(spec, devices=devices)
        if meets(changed):
            what = f"{more.slots} slots on {device.name}"
            yield Change(("devices", device.name, "slots"), what, 1 / device.slots, changed)


def format_rate(period_ns: int) -> str:
    """Return a period as a rate, rounded down to six digits."""
    digits = 6 - len(str(NS_PER_S // period_ns))
    rate = Fraction(NS_PER_S, period_ns) * 10**digits
    return f"{float(Fraction(int(rate), 10**digits)):.7g} Hz"


# Bisection


def _verdict_of(
    change: Callable[[PipelineSpec, str, int], PipelineSpec], spec: PipelineSpec, name: str
) -> Callable[[int], bool]:
    """Return whether the pipeline meets its promises with that value at that name."""
    return lambda ns: meets(change(spec, name, ns))


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last value below `high` that holds, a short number; `low` holds."""
    step = low
    while low + step < high and holds(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while high - low > max(1, low // FINENESS):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return _short(holds, low, high, lambda unit: (high - 1) // unit * unit)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first value above `low` that holds, a short number; `high` holds."""
    while high - low > max(1, low // FINENESS):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return _short(holds, high, low, lambda unit: -(-(low + 1) // unit) * unit)


def _short(holds: Callable[[int], bool], good: int, bad: int, rounded: Callable[[int], int]) -> int:
    """Return the shortest number from `good`, which holds, up or down to `bad`, which may not."""
    unit = 10 ** len(str(good))
    while unit > 1:
        value = rounded(unit)
        if (good < value < bad or bad < value < good) and holds(value):
            return value
        unit //= 10
    return good
