"""What must hold between the parts of a pipeline made in Python; files: tests/config."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avrt.errors import SpecError
from avrt.model.graph import (
    LONGEST_NS,
    STAGES_MAX,
    check,
    release_periods,
    topological_order,
)
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

SYNC = SyncSpec(tolerance_ns=1, timeout_ns=1)


def stage(name, *reads, optional=(), **keys):
    """A stage that reads these, triggered by the first one unless told otherwise."""
    inputs = tuple(
        InputSpec(name=f"i{number}", source=read, optional=read in optional)
        for number, read in enumerate(reads)
    )
    if reads and not keys.keys() & {"sync", "period_ns"}:
        keys.setdefault("trigger", "i0")
    return StageSpec(
        name=name, device="cpu", inputs=inputs, **({"wcet_ns": 1, "deadline_ns": 1} | keys)
    )


def pipeline(*stages, **keys):
    sources = (
        SourceSpec(name="cam", type="camera", period_ns=100),
        SourceSpec(name="top", type="lidar", period_ns=300),
        SourceSpec(name="can", type="can"),
    )
    return PipelineSpec(
        name="p", devices=(DeviceSpec(name="cpu"),), **({"sources": sources} | keys), stages=stages
    )


def told(spec):
    with pytest.raises(SpecError) as caught:
        check(spec)
    return str(caught.value)


def test_stages_come_after_what_they_read():
    spec = pipeline(stage("c", "b"), stage("a", "cam"), stage("b", "a", "cam"))
    assert [s.name for s in topological_order(spec)] == ["a", "b", "c"]


def test_a_stage_that_reads_itself_is_a_cycle():
    assert told(pipeline(stage("a", "a"))) == (
        "stages.a: stages feed each other in a cycle: a -> a"
    )


def test_the_longest_chain_allowed_is_walked():
    stages = [stage("s0", "cam")]
    stages += [stage(f"s{n}", f"s{n - 1}") for n in range(1, STAGES_MAX)]
    check(pipeline(*reversed(stages), policy="rm"))
    assert told(pipeline(*stages, stage("more", "cam"))) == (
        "stages: expected at most 400 stages, found 401"
    )


@pytest.mark.parametrize(
    ("changed", "period_ns"),
    [
        (stage("b", "a"), 100),
        (stage("b", "a", period_ns=7), 7),
        (stage("b", "cam", "top", sync=SYNC), 300),
        (stage("b", "cam", "can", sync=SYNC), None),
        (stage("b", "cam", "top", sync=SYNC, optional=("top",)), 100),
        (stage("b", "cam", "can", sync=SYNC, optional=("can",)), 100),
        (stage("b", "cam", "top", sync=SYNC, optional=("cam",)), 300),
        (stage("b", "cam", "top", sync=SYNC, optional=("cam", "top")), 100),
        (stage("b", "cam", "can"), 100),
        (stage("b", "can"), None),
    ],
)
def test_a_stage_inherits_the_period_of_what_releases_it(changed, period_ns):
    assert release_periods(pipeline(stage("a", "cam"), changed))["b"] == period_ns


def test_sources_have_a_period_too():
    periods = release_periods(pipeline(stage("a", "cam")))
    assert periods == {"cam": 100, "top": 300, "can": None, "a": 100}


def test_rate_monotonic_asks_for_periods():
    check(pipeline(stage("a", "cam"), policy="rm"))
    assert "rate-monotonic needs a period" in told(pipeline(stage("a", "can"), policy="rm"))


def test_fixed_priority_asks_for_priorities():
    check(pipeline(stage("a", "cam", priority=1), policy="fp"))


def test_names_are_unique():
    twice = pipeline(stage("a", "cam"), stage("a", "cam"))
    assert told(twice) == "stages.a: given twice; names are unique"


def test_a_window_is_whole():
    assert "give both misses_max and window_jobs" in told(pipeline(stage("a", "cam", misses_max=1)))
    check(pipeline(stage("a", "cam", misses_max=0, window_jobs=1)))


def test_redundancy_means_two_copies_or_more():
    alone = stage("a", "cam", redundancy=RedundancySpec(copies=1))
    assert told(pipeline(alone)) == (
        "stages.a.redundancy.copies: redundancy needs 2 copies or more"
    )
    check(pipeline(stage("a", "cam", redundancy=RedundancySpec(copies=2))))


def test_a_simulated_device_may_be_preemptive():
    devices = (DeviceSpec(name="cpu", type="simulated", preemptive=True, fallback="gpu"),)
    gpu = DeviceSpec(name="gpu", type="cuda:0")
    check(replace(pipeline(stage("a", "cam")), devices=(*devices, gpu)))


def test_a_chain_may_start_at_a_timer_and_have_promises():
    spec = pipeline(
        stage("beat", period_ns=5),
        stage("a", "beat"),
        chains=(ChainSpec(name="c", path=("beat", "a"), reaction_ns=1, age_ns=1),),
    )
    check(spec)


def test_a_synchronised_stage_has_no_trigger():
    both = stage("a", "cam", "top", sync=SYNC, trigger="i0")
    assert "give one of 'period', 'trigger' and 'sync'" in told(pipeline(both))
    check(pipeline(stage("a", "cam", "top", sync=SYNC)))


def test_specifications_find_their_parts_by_name():
    spec = pipeline(stage("a", "cam"))
    assert spec.stage("a").name == "a"
    assert spec.source("top").type == "lidar"
    assert spec.device("cpu").type == "cpu"
    assert spec.stages[0].criticality.label == "QM"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"wcet_ns": LONGEST_NS + 1},
            "stages.a.wcet: expected at most 10 years, found 3.1536e+08 s",
        ),
        (
            {"guarantee": "best_effort", "criticality": Criticality.ASIL_A},
            "stages.a.criticality: best effort is QM: it gives way to all others; found ASIL-A",
        ),
        ({"offset_ns": 1}, "stages.a.offset: an offset needs a 'period'"),
    ],
)
def test_what_could_have_no_effect_or_no_end_is_refused(keys, message):
    with pytest.raises(SpecError) as raised:
        check(pipeline(stage("a", "cam", **keys)))
    assert str(raised.value) == message


def parted(name, *parts, **keys):
    """A stage of segments `(device, wcet)` or `(device, wcet, "spin")`."""
    segments = tuple(
        SegmentSpec(device=device, wcet_ns=wcet, wait=wait[0] if wait else "suspend")
        for device, wcet, *wait in parts
    )
    whole_ns = sum(wcet for _, wcet, *_ in parts)
    keys = {"wcet_ns": whole_ns, "deadline_ns": 99, "period_ns": 99, "device": parts[0][0]} | keys
    return StageSpec(name=name, segments=segments, **keys)


def on_two(*stages, **keys):
    devices = (DeviceSpec(name="cpu", **keys), DeviceSpec(name="gpu"), DeviceSpec(name="copy"))
    return replace(pipeline(*stages), devices=devices)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            parted("a", ("cpu", 1), ("gup", 1)),
            "stages.a.segments.1.device: no device named 'gup'; did you mean 'gpu'?",
        ),
        (
            parted("a", ("cpu", 1), ("gpu", 0)),
            "stages.a.segments.1.wcet: expected more than 0, found 0 ns",
        ),
        (
            parted("a", ("cpu", 1, "spin"), ("gpu", 1)),
            (
                "stages.a.segments.0.wait: the first segment has no slot before it to keep; "
                "drop 'wait: spin'"
            ),
        ),
        (
            parted("a", ("cpu", 1), ("gpu", 1, "spin"), ("cpu", 1, "spin")),
            (
                "stages.a.segments.2.wait: it would keep a slot of cpu and wait for another; "
                "drop 'wait: spin'"
            ),
        ),
        (
            parted("a", ("cpu", 1), ("gpu", 1), device="gpu"),
            "stages.a.device: expected the first segment's (cpu), found gpu",
        ),
        (
            parted("a", ("cpu", 1), ("gpu", 1), wcet_ns=3),
            "stages.a.wcet: expected at most the segments' sum 2 ns, found 3 ns",
        ),
        (
            parted("a", ("cpu", 1), ("gpu", 1), wcet_ns=1),
            "stages.a.wcet: 2 segments take 1 ns each at least, in a wcet of 1 ns",
        ),
    ],
)
def test_segments_that_mean_nothing_are_refused(stage, message):
    assert told(on_two(stage)) == message


def test_devices_are_not_kept_for_each_other_in_a_ring():
    one = parted("a", ("cpu", 1), ("gpu", 1, "spin"))
    two = parted("b", ("gpu", 1), ("copy", 1, "spin"))
    check(on_two(one, two))
    three = parted("c", ("copy", 1), ("cpu", 1, "spin"))
    assert told(on_two(one, two, three)) == (
        "stages.a.segments: devices are kept by spinning for each other in a ring: "
        "cpu -> gpu -> copy -> cpu"
    )
    assert "in a ring: copy -> gpu -> copy" in told(on_two(one, two, fallback="copy"))
