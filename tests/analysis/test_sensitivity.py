"""How far figures may change, and whether a remedy really is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from builder import device, timer

from avrt.analysis.schedulability import analyse, meets
from avrt.analysis.sensitivity import remedies, sensitivity, with_period, with_wcet
from avrt.config.pipeline import load
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.model.spec import PipelineSpec
from avrt.units import NS_PER_MS, NS_PER_S

PIPELINES = Path(__file__).parents[2] / "pipelines"


@pytest.fixture(scope="module")
def kitti():
    return load(PIPELINES / "kitti.yaml").spec


def test_kitti_meets_every_promise_with_room(kitti):
    assert analyse(kitti).verdict == "meets"
    room = sensitivity(kitti)
    assert room.wcet_ns["lidar_detect"] == 60 * NS_PER_MS
    assert room.factor == 1.5
    for name, ns in room.wcet_ns.items():
        assert meets(with_wcet(kitti, name, ns))
        assert not meets(with_wcet(kitti, name, ns + ns // 500))
    for name, ns in room.period_ns.items():
        assert meets(with_period(kitti, name, ns))
        assert not meets(with_period(kitti, name, ns - ns // 500))


BROKEN = [("lidar_detect", 61), ("plan", 25), ("overlay", 101)]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "wcet_ms"), BROKEN)
def test_every_remedy_passes_and_simulates_without_a_miss(kitti, stage, wcet_ms):
    broken = with_wcet(kitti, stage, wcet_ms * NS_PER_MS)
    assert not meets(broken)
    changes = remedies(broken)
    assert changes
    assert [c.relative for c in changes] == sorted(c.relative for c in changes)
    for change in changes:
        assert meets(change.spec)
        feed = periodic_arrivals(change.spec, 2 * NS_PER_S)
        jobs = simulate(change.spec, until_ns=2 * NS_PER_S, feed=feed).jobs
        assert {job.outcome for job in jobs} == {"met"}, change.what


@pytest.mark.parametrize("policy", ["fp", "rm"])
def test_another_policy_is_a_remedy_that_costs_nothing(policy):
    """The rare stage has the short deadline, so neither its rate nor its priority may decide."""
    spec = PipelineSpec(
        name="p",
        policy=policy,
        devices=(device(preemptive=True),),
        stages=(
            timer("often", 10, wcet_ns=3, deadline_ns=10, priority=1),
            timer("rare", 40, wcet_ns=3, deadline_ns=5, priority=2),
        ),
    )
    assert not meets(spec)
    free = [change.what for change in remedies(spec) if change.relative == 0]
    assert free == ["policy edf", "policy dm", "policy fp with priorities rare 1, often 2"]
