"""Random pipelines with arrivals, jitters and execution times that keep to what they declare."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from avrt.drivers.simulate import simulate
from avrt.model.events import Arrived
from avrt.model.graph import check
from avrt.model.spec import (
    ChainSpec,
    Criticality,
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    RedundancySpec,
    SegmentSpec,
    SourceSpec,
    StageSpec,
    SyncSpec,
)
from avrt.model.supply import Supply
from pipelines import ONLINE, Picker

UNTIL_NS = 300
WCETS = (1, 1, 2, 3, 4, 6, 9)


@dataclass(frozen=True)
class World:
    """A pipeline and one legal thing that happens to it.

    Attributes:
        arrivals: nominal (capture) and real arrival times of every source.
        shares: which part of the way from bcet to wcet jobs take, in turn.
        is_sporadic: some messages come later than a period after the one before.
    """

    spec: PipelineSpec
    arrivals: tuple[tuple[tuple[int, int], ...], ...]
    shares: tuple[float, ...]
    is_sporadic: bool
    overheads: dict = field(default_factory=dict)

    def simulate(self, change=lambda ns: ns, **options):
        stages = {name: s for s in self.spec.stages for name in s.task_names}
        place = {name: i for i, name in enumerate(stages)}

        def execution(task, index):
            stage = stages[task]
            share = self.shares[(7 * place[task] + index) % len(self.shares)]
            least_ns = stage.bcet_ns or 1
            return change(least_ns + round(share * (stage.wcet_ns - least_ns)))

        feed = sorted(
            (at_ns, order, sequence, capture_ns)
            for order, times in enumerate(self.arrivals)
            for sequence, (capture_ns, at_ns) in enumerate(times)
        )
        events = (
            (at_ns, Arrived(self.spec.sources[o].name, n, capture_ns, at_ns, -1 - handle))
            for handle, (at_ns, o, n, capture_ns) in enumerate(feed)
        )
        return simulate(
            self.spec,
            until_ns=UNTIL_NS,
            execution=execution,
            feed=events,
            overheads=self.overheads,
            **options,
        )


@st.composite
def worlds(  # noqa: PLR0913 - all are named
    draw,
    *,
    policies=ONLINE,
    simple=False,
    segmented=False,
    supplied=False,
    captured=False,
    preemptive=(False, False, True),
    wcets=WCETS,
):
    """Return random worlds.

    `simple` ones have one device and no triggers between stages; in `segmented` ones about half of
    the stages have segments; in `supplied` ones most devices are there for part of the time; in
    `captured` ones more rests on the captures of a timer stage that can start late.
    """
    pick = Picker(draw, 40)
    counts = (1,) if simple else (2, 2, 3) if segmented else (1, 1, 2)
    devices = tuple(_device(pick, f"d{i}", preemptive) for i in range(pick(counts)))
    if supplied:
        picker = Picker(draw, 40)
        devices = tuple(d if picker.rarely() else _supplied(picker, d) for d in devices)
    sources = tuple(
        SourceSpec(
            name=f"s{i}",
            type="lidar",
            period_ns=pick((6, 10, 13, 20, 30)) * (3 if segmented else 1),
        )
        for i in range(pick.integer(1, 3))
    )
    jitters = [pick((0, 0, 0, 2, 5, 12)) for _ in sources]
    sources = tuple(replace(one, latency_ns=pick((0, 0, 0, 3, 25))) for one in sources)
    levels = pick(((Criticality.QM,), (Criticality.QM,), tuple(Criticality)))
    stages: list[StageSpec] = []
    for index in range(pick.integer(1, 6)):
        picker = Picker(draw, 16)
        parts = (devices, sources, jitters, wcets)
        stages.append(_stage(picker, f"t{index}", parts, stages, simple))
    stages = [_graded(pick, stage, levels) for stage in stages]
    if captured:
        stages = [*_captured(Picker(draw, 40), devices), *stages][:6]
    if segmented:
        stages = _segmented(Picker(draw, 40), stages, devices)
    if pick.rarely():
        stages.reverse()
    spec = PipelineSpec(
        name="world",
        policy=pick(policies),
        devices=devices,
        sources=sources,
        stages=tuple(stages),
        chains=tuple(_chains(pick, stages)),
    )
    check(spec)
    is_sporadic = pick.rarely()
    arrivals = tuple(
        _arrivals(pick, source, jitter, is_sporadic)
        for source, jitter in zip(sources, jitters, strict=True)
    )
    shares = tuple(pick((0.0, 0.5, 1.0, 1.0, 1.0)) for _ in range(pick.integer(1, 11)))
    return World(spec, arrivals, shares, is_sporadic)


def _device(pick, name, preemptive):
    return DeviceSpec(
        name=name,
        type="simulated",
        slots=pick((1, 1, 2, 3)),
        preemptive=pick(preemptive),
    )


def _supplied(pick, device):
    period_ns = pick((2, 3, 5, 8))
    budget_ns = pick.integer(1, period_ns)
    starts = [pick.integer(0, period_ns - budget_ns) for _ in range(pick.integer(1, 4))]
    return replace(device, slots=1, supply=Supply(period_ns, budget_ns, tuple(starts)))


def _stage(pick, name, parts, before, simple):
    devices, sources, jitters, wcets = parts
    keys = {}
    kind = pick(("source", "source", "timer", "stage", "stage", "sync"))
    if kind == "timer":
        keys.update(period_ns=pick((8, 10, 15, 24, 40)), offset_ns=pick((0, 0, 3, 7)))
        if before and pick.rarely():
            keys["inputs"] = (InputSpec(name="i", source=pick(before).name, optional=True),)
    elif kind == "sync" and not simple and len(before) + len(sources) > 1:
        producers = [*sources, *before]
        first = pick(producers)
        second = pick([p for p in producers if p is not first])
        keys["inputs"] = (
            InputSpec(name="i", source=first.name, optional=pick.rarely()),
            InputSpec(name="j", source=second.name, optional=pick.rarely()),
        )
        keys["jitter_ns"] = max(jitters)
        keys["sync"] = SyncSpec(tolerance_ns=pick((0, 3, 10)), timeout_ns=pick((0, 4, 15)))
    elif kind == "stage" and before and not simple:
        keys.update(inputs=(InputSpec(name="i", source=pick(before).name),), trigger="i")
        keys["jitter_ns"] = pick((0, 0, 0, 2))
    else:
        index = pick(range(len(sources)))
        keys.update(inputs=(InputSpec(name="i", source=sources[index].name),), trigger="i")
        keys["jitter_ns"] = jitters[index]
    if "trigger" in keys and not simple and pick.rarely():
        keys["inputs"] += _sampled(pick, sources, jitters, before)
    wcet_ns = pick(wcets)
    if pick.rarely() and pick.rarely():
        keys["redundancy"] = RedundancySpec(copies=pick((2, 3)))
    return StageSpec(
        name=name,
        device=pick(devices).name,
        wcet_ns=wcet_ns,
        bcet_ns=pick((None, 1, wcet_ns)),
        deadline_ns=pick((4, 8, 12, 20, 35, 60)),
        deadline_from=pick(("release", "release", "release", "capture")),
        priority=pick.integer(1, 4),
        on_miss=pick(("continue", "continue", "abort", "skip_next")),
        publish=pick(("asap", "asap", "at_deadline")),
        queue=pick((1, 4, 16)),
        **keys,
    )


def _captured(pick, devices):
    """Yield a timer stage, one that is in its way, and some that count from its captures."""
    places = [device.name for device in devices]
    late = {"device": places[0], "deadline_ns": 35, "queue": 16}
    yield StageSpec(
        name="sense",
        wcet_ns=pick((1, 2, 3)),
        bcet_ns=pick((None, 1)),
        period_ns=pick((15, 24, 40)),
        priority=pick((2, 3)),
        publish=pick(("asap", "asap", "asap", "at_deadline")),
        **late,
    )
    yield StageSpec(
        name="other",
        wcet_ns=pick((3, 6, 9)),
        period_ns=pick((24, 40, 72)),
        offset_ns=pick((0, 15, 24)),
        priority=pick((1, 4)),
        **late,
    )
    for name in ("act", "next"):
        yield _after_capture(pick, name, "sense" if name == "act" else "act", places[-1])


def _after_capture(pick, name, before, device):
    """A stage that its input triggers, or that joins it with what seldom comes."""
    keys = {"inputs": (InputSpec(name="i", source=before),), "trigger": "i"}
    if pick.rarely():
        seldom = InputSpec(name="j", source="s0", optional=True, max_age_ns=pick((None, 5)))
        sync = SyncSpec(tolerance_ns=pick((0, 3)), timeout_ns=pick((0, 4, 15)))
        keys = {"inputs": (keys["inputs"][0], seldom), "sync": sync, "jitter_ns": 12}
    return StageSpec(
        name=name,
        device=device,
        wcet_ns=pick((1, 2, 4)),
        deadline_ns=pick((20, 35, 60)),
        deadline_from=pick(("capture", "capture", "release")),
        publish=pick(("at_deadline", "at_deadline", "asap")),
        priority=pick.integer(1, 4),
        queue=16,
        **keys,
    )


def _sampled(pick, sources, jitters, before):
    """A second input beside the trigger; who samples declares no jitter of its source."""
    calm = [s for s, jitter_ns in zip(sources, jitters, strict=True) if not jitter_ns]
    producers = [*calm, *before]
    if not producers:
        return ()
    limit_ns = pick((None, None, 9, 25, 60))
    name, optional = pick(producers).name, pick.rarely()
    return (InputSpec(name="p", source=name, max_age_ns=limit_ns, optional=optional),)


def _segmented(pick, stages, devices):
    """Divide some stages, at a third of their rate; who spins never waits for who is kept."""
    divided = [_divided(pick, s, devices) if pick((False, True)) else s for s in stages]
    return [replace(s, period_ns=3 * s.period_ns) if s.period_ns else s for s in divided]


def _divided(pick, stage, devices):
    host, parts = 0, [SegmentSpec(device=devices[0].name, wcet_ns=pick((1, 1, 2, 3)))]
    for _ in range(pick.integer(1, 3)):
        place = pick(range(len(devices)))
        wait = "spin" if place > host and pick((False, True)) else "suspend"
        host = host if wait == "spin" else place
        wcet_ns = pick((1, 1, 2, 4))
        parts.append(SegmentSpec(device=devices[place].name, wcet_ns=wcet_ns, wait=wait))
    whole_ns = sum(part.wcet_ns for part in parts)
    best_ns = pick((None, 1, whole_ns))
    return replace(
        stage, device=parts[0].device, segments=tuple(parts), wcet_ns=whole_ns, bcet_ns=best_ns
    )


def _graded(pick, stage, levels):
    return replace(stage, criticality=pick(levels))


def _arrivals(pick, source, jitter_ns, is_sporadic):
    """Return captures a period apart, or more, each arriving latency and at most jitter later."""
    at_ns, times, last_ns = pick(range(12)), [], 0
    while at_ns < UNTIL_NS:
        late_ns = source.latency_ns + pick((0, jitter_ns, pick.integer(0, jitter_ns)))
        last_ns = max(last_ns, at_ns + late_ns)
        times.append((at_ns, last_ns))
        at_ns += source.period_ns + (pick((0, 1, 5)) if is_sporadic else 0)
    return tuple(times)


def _chains(pick, stages):
    """Return up to two chains: from a stage back along inputs to where it begins."""
    by_name = {stage.name: stage for stage in stages}
    for index in range(pick.integer(0, 2)):
        path = [pick(stages).name]
        while path[0] in by_name and by_name[path[0]].inputs:
            path.insert(0, pick(by_name[path[0]].inputs).source)
        if len(path) > 1:
            yield ChainSpec(name=f"c{index}", path=tuple(path))
