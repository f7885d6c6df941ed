"""Jobs that end later although work takes less: found where there are any, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, timer
from hypothesis import given
from test_findings import pipeline
from test_whatif import simulated
from worlds import worlds

from avrt.drivers.anomalies import find_anomalies
from avrt.drivers.recording import recorded_run
from avrt.drivers.simulate import simulate
from avrt.logs.record.journal import parse_entry
from avrt.metrics.anomalies import RESULTS
from avrt.model.spec import Criticality
from pipelines import examples


def found(recorded, spec):
    """What is worse off, by cut."""
    return {cut.what: cut.later for cut in find_anomalies(recorded, spec) if cut.later}


def test_a_job_that_lets_a_longer_one_begin_before_a_more_urgent_one():
    """The case np-anomaly: the first takes 7 and not 8, and the second ends at 21 and not at 12."""
    spec = pipeline(
        timer("a", 100, wcet_ns=8, deadline_ns=20, priority=1),
        timer("b", 100, wcet_ns=4, deadline_ns=6, offset_ns=8, priority=1),
        timer("c", 100, wcet_ns=10, deadline_ns=33, offset_ns=7, priority=3),
        policy="fp",
    )
    later = found(simulated(spec, until_ns=50), spec)["a takes 90%"]
    (job,) = later
    assert (job.task, job.before.end_ns, job.after.end_ns, job.later_ns) == ("b", 12, 21, 9)
    assert (job.before.outcome, job.after.outcome) == ("met", "late")
    assert job.instead == (("c", 0, 9),)


@pytest.mark.parametrize("preemptive", [False, True])
def test_one_slot_is_calm_where_it_can_be_preempted(preemptive):
    spec = pipeline(
        timer("a", 100, wcet_ns=8, deadline_ns=20, priority=1),
        timer("b", 100, wcet_ns=4, deadline_ns=6, offset_ns=8, priority=1),
        timer("c", 100, wcet_ns=10, deadline_ns=33, offset_ns=7, priority=3),
        policy="fp", devices=(device(preemptive=preemptive),),
    )  # fmt: skip
    assert bool(found(simulated(spec, until_ns=50), spec)) is not preemptive


def test_a_job_that_has_no_result_any_more_is_the_worst():
    spec = pipeline(
        timer("a", 100, wcet_ns=8, deadline_ns=20, priority=1),
        timer("b", 100, wcet_ns=4, deadline_ns=6, offset_ns=8, priority=1, on_miss="abort"),
        timer("c", 100, wcet_ns=10, deadline_ns=33, offset_ns=7, priority=3),
        policy="fp",
    )
    (job,) = found(simulated(spec, until_ns=50), spec)["a takes 90%"]
    assert (job.task, job.is_lost, job.later_ns, job.after.reason) == ("b", True, None, "deadline")
    assert job.instead[0][0] == "c"


def sustainable(world):
    """The world's pipeline where no anomaly can be: preemptive, one slot, nothing ever ended."""
    spec = world.spec
    devices = tuple(replace(d, slots=1, preemptive=True) for d in spec.devices)
    stages = tuple(
        replace(s, on_miss="continue", queue=100, criticality=Criticality.QM, redundancy=None)
        for s in spec.stages
    )
    return replace(world, spec=replace(spec, devices=devices, stages=stages))


@given(worlds(policies=("edf", "fp", "rm", "dm", "fifo"), simple=True))
@examples(8)
def test_preemptive_tasks_on_one_slot_have_none(world):
    world = sustainable(world)
    lines = []
    world.simulate(write=lambda _, line: lines.append(line))
    recorded = recorded_run(world.spec, [parse_entry(line) for line in lines], "run")
    assert found(recorded, world.spec) == {}


@given(worlds(simple=True))
@examples(8)
def test_each_is_really_later_and_all_of_them_are_told(world):
    """Against a plain simulation with the costs of one cut, job for job."""
    spec = replace(
        world.spec,
        stages=tuple(replace(s, on_miss="continue", queue=100) for s in world.spec.stages),
    )
    world = replace(world, spec=spec)
    lines = []
    before = world.simulate(write=lambda _, line: lines.append(line))
    recorded = recorded_run(spec, [parse_entry(line) for line in lines], "run")
    later = found(recorded, spec).get("all take 50%", [])
    halved = world.simulate(change=lambda ns: max(1, ns // 2))
    ends = [{(j.task, j.index): j for j in run.jobs} for run in (before, halved)]
    worse = {
        key
        for key, old in ends[0].items()
        if old.outcome in RESULTS
        and (ends[1][key].outcome not in RESULTS or ends[1][key].end_ns > old.end_ns)
    }
    assert {(job.task, job.before.index) for job in later} == worse


def test_a_whole_graph_of_jobs_takes_longer_when_each_is_shorter(graham):
    spec, lines = graham
    result = simulate(spec[0], until_ns=1, feed=spec[1], write=lambda _, line: lines.append(line))
    assert max(job.end_ns for job in result.jobs) == 12
    recorded = recorded_run(spec[0], [parse_entry(line) for line in lines], "run")
    later = found(recorded, spec[0])["all take 1 ns less"]
    assert max(job.after.end_ns for job in later) == 13


@pytest.fixture
def graham():
    """Graham's nine jobs on three processors; the durations are those of graham-anomalies."""
    from builder import stage  # noqa: PLC0415

    from avrt.model.events import Arrived  # noqa: PLC0415

    before = {9: 1, 5: 4, 6: 4, 7: 4, 8: 4}
    durations = {1: 3, 2: 2, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 8: 4, 9: 9}
    stages = [
        stage(
            f"t{n}", f"t{before[n]}" if n in before else "s", wcet_ns=ns, deadline_ns=99, priority=n
        )
        for n, ns in durations.items()
    ]
    spec = pipeline(*stages, policy="fp", devices=(device(slots=3),), period_ns=1000)
    return (spec, [(0, Arrived("s", 0, 0, 0, -1))]), []
