"""Random pipelines, and a world that happens to them.

Times are small integers, so that things coincide often. A `Scenario` is plain data: what happens is
a function of it alone, and its `repr` is enough to see a failure again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from avrt.model.graph import check
from avrt.model.ladder import LadderSpec, LevelSpec, StageLevel, VariantSpec
from avrt.model.spec import (
    POLICIES,
    ChainSpec,
    Criticality,
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    RedundancySpec,
    SourceSpec,
    StageSpec,
    SyncSpec,
    TableRow,
    TableSpec,
)

ONLINE = tuple(policy for policy in POLICIES if policy != "table")  # a table has its own tests
FAULTS = ("stream_lost", "stream_back", "device_lost", "device_back", "mode_requested")
HOUR = 10**9  # a budget or a deadline that never comes


def examples(count, **keys):
    """Return settings for `count` examples: fewer under `quick`, as many as `nightly` says."""
    profile, given = settings.get_current_profile_name(), settings().max_examples
    count = {"nightly": given, "quick": min(count, given)}.get(profile, count)
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=count, suppress_health_check=slow, **keys)


@dataclass(frozen=True)
class Arrival:
    """A message of source number `source`: `gap_ns` after the one before, captured earlier."""

    source: int
    gap_ns: int
    capture_age_ns: int
    log_age_ns: int


@dataclass(frozen=True)
class Fault:
    """Something that supervision reports about stream, device or mode number `subject`."""

    at_ns: int
    kind: str
    subject: int


@dataclass(frozen=True)
class Scenario:
    """A pipeline and all that happens to it until `until_ns`; what is open then finishes.

    Attributes:
        costs: execution times, taken in turn by task and job index; None never ends.
        endings: how work ends, likewise: "completed", "failed" or "hung".
        read_delays: how long the recorder keeps a buffer, likewise.
        vote_delays, votes: how long a vote takes and which candidate wins; None: no majority.
    """

    spec: PipelineSpec
    costs: tuple[int | None, ...]
    endings: tuple[str, ...] = ("completed",)
    arrivals: tuple[Arrival, ...] = ()
    faults: tuple[Fault, ...] = ()
    recorded: tuple[str, ...] = ()
    read_delays: tuple[int, ...] = (1,)
    vote_delays: tuple[int, ...] = (1,)
    votes: tuple[int | None, ...] = (0,)
    until_ns: int = 60

    def cost_ns(self, task, index):
        return _turn(self.costs, task, index)

    def ending(self, task, index):
        return _turn(self.endings, task, index)


def _turn(values, place, index):
    return values[(5 * place + index) % len(values)]


@dataclass(frozen=True)
class Limits:
    """What a property needs of its scenarios; the default allows everything."""

    policies: tuple[str, ...] = ONLINE
    preemptive: tuple[bool, ...] = (False, True)
    slots_max: int = 3
    devices_max: int = 3
    stages_max: int = 8
    on_miss: tuple[str, ...] = ("continue", "abort", "skip_next")
    on_overrun: tuple[str, ...] = ("report", "report", "abort")
    publish: tuple[str, ...] = ("asap", "at_deadline")
    deadline_from: tuple[str, ...] = ("release", "release", "capture")
    criticality: tuple[Criticality, ...] = tuple(Criticality)
    kinds: tuple[str, ...] = ("timer", "trigger", "sync")
    copies: tuple[int, ...] = (1, 1, 1, 2, 3)
    spare: bool = False
    queue: tuple[int, ...] = (1, 2, 4)
    optional: tuple[bool, ...] = (False, True)
    max_age: tuple[int | None, ...] = (None, 1, 4, 12)
    budget: tuple[int | None, ...] = (None, None, 1, 3, 8)
    windows: tuple[tuple[int, int] | None, ...] = (None, (0, 1), (1, 3), (2, 5))
    fallback: bool = True
    faults: bool = True
    endless: bool = True
    failures: bool = True
    recorded: bool = True
    chains: bool = True
    same_instant: bool = True


class Picker:
    """Draws choices from bytes: many small choices for the price of few draws."""

    def __init__(self, draw, size_bytes):
        self.code = int.from_bytes(draw(st.binary(min_size=size_bytes, max_size=size_bytes)))

    def __call__(self, values):
        self.code, place = divmod(self.code, len(values))
        return values[place]

    def integer(self, low, high):
        """An integer of `low` to `high`, both included."""
        return self(range(low, high + 1))

    def rarely(self):
        return self((False, False, True))


@st.composite
def scenarios(draw, limits=None):
    """Return random scenarios within `limits`."""
    limits = limits or Limits()
    spec = draw(pipelines(limits))
    pick = Picker(draw, 24)
    least = 0 if limits.same_instant else 1
    names = [s.name for s in spec.sources] + [s.name for s in spec.stages]
    costs = [pick.integer(1, 9) for _ in range(pick.integer(1, 9))]
    if limits.endless and pick.rarely():
        costs[pick(range(len(costs)))] = None
    endings = ["completed"] * 7
    if limits.failures and pick.rarely():
        endings[pick(range(7))] = pick(("failed", "hung"))
    recorded = tuple(name for name in names if pick.rarely()) if limits.recorded else ()
    read_delays = tuple(pick.integer(least, 20) for _ in range(pick.integer(1, 3)))
    return Scenario(
        spec,
        tuple(costs),
        tuple(endings),
        draw(_arrivals(len(spec.sources))) if spec.sources else (),
        draw(_faults()) if limits.faults and pick.rarely() else (),
        recorded,
        read_delays,
        tuple(pick.integer(least, 3) for _ in range(pick.integer(1, 2))),
        tuple(pick((0, 1, 2, None)) for _ in range(pick.integer(1, 3))),
    )


def _arrivals(sources):
    def decode(data):
        numbers = [int.from_bytes(data[i : i + 2]) for i in range(0, len(data) - 1, 2)]
        return tuple(_arrival(number, sources) for number in numbers)

    return st.binary(max_size=40).map(decode)


def _arrival(number, sources):
    picked = []
    choices = (range(sources), (0, 0, 1, 2, 3, 5, 8), (0, 0, 1, 3, 9, -2), (0, 0, 0, 1, 4))
    for values in choices:
        number, place = divmod(number, len(values))
        picked.append(values[place])
    return Arrival(*picked)


def _faults():
    fault = st.builds(Fault, st.integers(0, 50), st.sampled_from(FAULTS), st.integers(0, 7))
    return st.lists(fault, min_size=1, max_size=4).map(tuple)


@st.composite
def pipelines(draw, limits):
    """Return random pipelines that `avrt.model.graph.check` accepts."""
    pick = Picker(draw, 12)
    devices = _devices(pick, limits)
    sources = tuple(
        SourceSpec(name=f"s{i}", type="lidar", period_ns=pick.integer(3, 12))
        for i in range(pick.integer(0 if "timer" in limits.kinds else 1, 3))
    )
    policy, backwards = pick(limits.policies), pick((False, True))
    if policy == "table":
        limits = replace(limits, spare=False)
    stages: list[StageSpec] = []
    for index in range(draw(st.integers(1, limits.stages_max))):
        producers = [s.name for s in sources] + [s.name for s in stages]
        stages.append(_stage(Picker(draw, 16), limits, f"t{index}", producers, devices))
    chains = _chains(pick, stages) if limits.chains else ()
    if backwards:
        stages.reverse()
    spec = PipelineSpec(
        name="random",
        policy=policy,
        devices=devices,
        sources=sources,
        stages=tuple(stages),
        chains=chains,
    )
    if policy == "table":
        spec = _with_table(Picker(draw, 60), spec)
    check(spec)
    return spec


def _with_table(pick, spec):
    """Return a pipeline with any table, right or wrong; nothing is preemptive."""
    cycle_ns = pick.integer(4, 24)
    rows = []
    for task in [name for stage in spec.stages for name in stage.task_names]:
        starts = {pick(range(cycle_ns)) for _ in range(pick.integer(1, 4))}
        rows.append(TableRow(task=task, starts_ns=tuple(sorted(starts))))
    devices = tuple(replace(device, preemptive=False) for device in spec.devices)
    table = TableSpec(cycle_ns=cycle_ns, rows=tuple(rows))
    stages = tuple(
        replace(s, redundancy=s.redundancy and replace(s.redundancy, devices=()))
        for s in spec.stages
    )
    return replace(spec, devices=devices, stages=stages, table=table)


def _devices(pick, limits):
    names = [f"d{i}" for i in range(pick.integer(1, limits.devices_max))]
    devices = []
    for name in names:
        others = [n for n in names if n != name]
        fallback = pick((None, *others)) if limits.fallback and others else None
        devices.append(
            DeviceSpec(
                name=name,
                type="simulated",
                slots=pick.integer(1, limits.slots_max),
                preemptive=pick(limits.preemptive),
                fallback=fallback,
            )
        )
    return tuple(devices)


def _stage(pick, limits, name, producers, devices):
    kind = pick([k for k in limits.kinds if producers or k == "timer"])
    keys = {}
    inputs = ()
    if producers:
        count = pick.integer({"timer": 0, "trigger": 1, "sync": 2}[kind], 3)
        inputs = tuple(_input(pick, limits, f"i{n}", producers) for n in range(count))
    if kind == "timer":
        keys.update(period_ns=pick.integer(3, 15), offset_ns=pick.integer(0, 5))
    elif kind == "trigger":
        inputs = (replace(inputs[0], optional=False), *inputs[1:])
        keys["trigger"] = inputs[0].name
    else:
        keys["sync"] = SyncSpec(tolerance_ns=pick((0, 2, 6)), timeout_ns=pick((0, 3, 10)))
    copies = pick(limits.copies)
    if copies > 1:
        spare = pick((0, 0, 1)) if copies == 3 and limits.spare else 0
        decide_ns = pick((0, 0, 3))
        homes = tuple(pick(devices).name for _ in range(copies)) if pick((0, 1)) else ()
        keys["redundancy"] = RedundancySpec(
            copies=copies, decide_ns=decide_ns, spare=spare, devices=homes
        )
        keys["device"] = homes[0] if homes else pick(devices).name
    deadline_ns = pick((4, 7, 12, 20) if copies > 1 else (1, 2, 4, 7, 12, 20))
    window = pick(limits.windows)
    if window is not None:
        keys["misses_max"], keys["window_jobs"] = window
    return StageSpec(
        name=name,
        wcet_ns=pick.integer(1, 7),
        deadline_ns=deadline_ns,
        inputs=inputs,
        deadline_from=pick(limits.deadline_from),
        priority=pick.integer(1, 3),
        criticality=pick(limits.criticality),
        on_miss=pick(limits.on_miss),
        queue=pick(limits.queue),
        budget_ns=pick(limits.budget),
        on_overrun=pick(limits.on_overrun),
        publish=pick(limits.publish),
        **{"device": pick(devices).name, **keys},
    )


def _input(pick, limits, name, producers):
    return InputSpec(
        name=name,
        source=pick(producers),
        optional=pick(limits.optional),
        max_age_ns=pick(limits.max_age),
    )


def _chains(pick, stages):
    """Return up to two chains: from a stage back along inputs to where it begins."""
    by_name = {stage.name: stage for stage in stages}
    chains = []
    for index in range(pick.integer(0, 2)):
        path = [pick(stages).name]
        while path[0] in by_name and by_name[path[0]].inputs:
            path.insert(0, pick(by_name[path[0]].inputs).source)
        if len(path) > 1:
            keys = {key: pick((None, 5, 12, 30)) for key in ("reaction_ns", "age_ns")}
            chains.append(ChainSpec(name=f"c{index}", path=tuple(path), **keys))
    return tuple(chains)


# Ladders


@st.composite
def laddered(draw, limits=None):
    """Return random scenarios of pipelines with a ladder whose modes are asked for."""
    scenario = draw(scenarios(limits or Limits(kinds=("timer", "timer", "trigger", "sync"))))
    spec = _with_ladder(Picker(draw, 32), scenario.spec)
    request = st.builds(Fault, st.integers(0, 50), st.just("mode_requested"), st.integers(0, 7))
    requests = draw(st.lists(request, min_size=1, max_size=6))
    return replace(scenario, spec=spec, faults=(*scenario.faults, *requests))


def _with_ladder(pick, spec):
    """Return a pipeline with two or three levels; the stages that need what is left out go too."""
    stages = tuple(
        stage if stage.segments else replace(stage, variants=_variants(pick, spec))
        for stage in spec.stages
    )
    levels = [LevelSpec(name="l0", stages=_level_stages(pick, stages, ()))]
    for number in range(1, pick.integer(2, 3)):
        without = _closed(stages, {s.name for s in stages if pick.rarely()})
        if len(without) == len(stages):
            without = ()
        kept = _level_stages(pick, stages, without)
        levels.append(LevelSpec(name=f"l{number}", without=without, stages=kept))
    critical = (stages[0].name,)
    ladder = LadderSpec(levels=tuple(levels), critical=critical)
    laddered_spec = replace(spec, stages=stages, ladder=ladder)
    check(laddered_spec)
    return laddered_spec


def _variants(pick, spec):
    if not pick.rarely():
        return ()
    device = pick((None, *spec.devices))
    name = None if device is None else device.name
    return (VariantSpec(name="light", device=name, wcet_ns=pick.integer(1, 3)),)


def _level_stages(pick, stages, without):
    changes = []
    for stage in stages:
        if stage.name in without or pick.rarely():
            continue
        variant = pick(("", *(v.name for v in stage.variants)))
        period_ns = None if stage.period_ns is None else pick((None, 4, 9))
        every = None if stage.trigger is None else pick((None, 1, 2, 3))
        keys = {"variant": variant, "period_ns": period_ns, "every": every}
        changes.append(StageLevel(stage=stage.name, **keys))
    return tuple(changes)


def _closed(stages, left_out):
    """Return what must be left out with these stages: all that needs one of them."""
    while True:
        more = {s.name for s in stages if s.name not in left_out and _lacks(s, left_out)}
        if not more:
            return tuple(s.name for s in stages if s.name in left_out)
        left_out |= more


def _lacks(stage, left_out):
    left = [item for item in stage.inputs if item.source not in left_out]
    needs = any(not item.optional for item in stage.inputs if item.source in left_out)
    return needs or (stage.sync is not None and len(left) < 2)
