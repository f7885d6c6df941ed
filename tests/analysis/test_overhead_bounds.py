"""No run with overheads exceeds what the analyses say of the pipeline that they are put into."""

from dataclasses import replace

import pytest
from builder import Bench, device, timer
from hypothesis import given
from hypothesis import strategies as st
from test_soundness import check_against
from worlds import worlds

from avrt.analysis.overheads import KernelCosts, charged, with_overheads
from avrt.analysis.schedulability import analyse
from avrt.analysis.tasks import Task
from avrt.drivers.simulate import simulate
from avrt.model.scenario import OverheadSpec
from avrt.model.spec import SegmentSpec
from pipelines import ONLINE, Picker, examples

COSTS = st.builds(
    OverheadSpec,
    release_ns=st.sampled_from([0, 0, 1, 2]),
    decision_ns=st.sampled_from([0, 0, 1, 3]),
    switch_ns=st.sampled_from([0, 1, 2, 4]),
    launch_ns=st.sampled_from([0, 0, 1]),
)
BY_DEVICE = st.dictionaries(st.sampled_from(["d0", "d1"]), COSTS, min_size=1)


POLICIES_BOUND = [policy for policy in ONLINE if policy != "llf"]
LIGHT = {"wcets": (1, 1, 2, 3), "preemptive": (False, True, True)}


def check_world(world, overheads):
    inflated = with_overheads(world.spec, overheads)
    if inflated is None:
        assert world.spec.policy == "llf" or any(d.slots > 1 for d in world.spec.devices)
        return
    check_against(replace(world, overheads=overheads), inflated)


@st.composite
def timers(draw):
    """Return a pipeline of timers on one device, mostly preemptive, and what they take."""
    pick = Picker(draw, 24)
    count = pick.integer(2, 5)
    stages = [
        timer(
            f"t{index}",
            pick((20, 30, 45, 60, 90)),
            wcet_ns=pick.integer(1, 6),
            deadline_ns=pick((20, 30, 45, 60, 90)),
            offset_ns=pick.integer(0, 19),
            priority=index,
            queue=16,
        )
        for index in range(count)
    ]
    made = device(slots=pick((1, 1, 2)), preemptive=pick((False, True, True, True)))
    bench = Bench(*stages, devices=(made,), policy=pick(POLICIES_BOUND))
    return bench.spec, [pick((0.3, 1.0, 1.0)) for _ in range(7)]


@given(timers(), COSTS)
@examples(40)
def test_no_response_of_timers_with_overheads_exceeds_the_bound(made, costs):
    spec, shares = made
    inflated = with_overheads(spec, {"cpu": costs})
    if inflated is None:
        return
    findings = analyse(inflated)

    def execution(task, index):
        wcet_ns = spec.stage(task).wcet_ns
        return max(1, round(wcet_ns * shares[(index + int(task[1:])) % len(shares)]))

    result = simulate(spec, until_ns=400, execution=execution, overheads={"cpu": costs})
    for stage in findings.stages:
        worst_ns = max(job.response_ns for job in result.jobs_of(stage.name))
        assert stage.response.ns is None or worst_ns <= stage.response.ns, stage


@pytest.mark.slow
@pytest.mark.parametrize("supplied", [False, True])
@pytest.mark.parametrize("policy", ONLINE)
def test_no_run_with_overheads_exceeds_what_is_known(policy, supplied):
    @given(worlds(policies=(policy,), supplied=supplied, **LIGHT), BY_DEVICE)
    @examples(60)
    def check_all(world, overheads):
        check_world(world, overheads)

    check_all()


def test_the_one_that_preempts_is_charged_the_resume_of_the_other():
    """It cannot know that nothing will preempt the one with the longer period: 5 ns more."""
    low = timer("low", 1000, wcet_ns=30, deadline_ns=900, priority=2)
    high = timer("high", 1000, wcet_ns=10, deadline_ns=900, priority=1, offset_ns=5)
    costs = {"cpu": OverheadSpec(release_ns=1, decision_ns=2, switch_ns=3, launch_ns=4)}
    devices = (device(preemptive=True),)
    spec = Bench(low, high, devices=devices, policy="fp").spec
    inflated = with_overheads(spec, costs)
    assert [stage.wcet_ns for stage in inflated.stages] == [30 + 10 + 5, 10 + 10 + 5]
    jobs = simulate(spec, until_ns=1000, overheads=costs).jobs_of("low")
    assert jobs[0].response_ns == 30 + 10 + 10 + 10 + 5
    assert analyse(inflated).stage("low").response.ns == jobs[0].response_ns + 5


def test_without_preemption_a_job_pays_for_its_start_only():
    spec = Bench(timer("a", wcet_ns=30), timer("b", wcet_ns=10)).spec
    costs = OverheadSpec(release_ns=1, decision_ns=2, switch_ns=3, launch_ns=4)
    inflated = with_overheads(spec, {"cpu": costs})
    assert [stage.wcet_ns for stage in inflated.stages] == [40, 20]
    assert [stage.budget_ns for stage in inflated.stages] == [30, 10]


def test_each_segment_is_charged_on_its_device():
    parts = (SegmentSpec(device="cpu", wcet_ns=5), SegmentSpec(device="gpu", wcet_ns=7))
    spec = Bench(timer("work", wcet_ns=12, segments=parts), devices=(device(), device("gpu"))).spec
    costs = {"cpu": OverheadSpec(release_ns=1), "gpu": OverheadSpec(release_ns=1, launch_ns=20)}
    (stage,) = with_overheads(spec, costs).stages
    assert stage.wcet_ns == 12 + 1 + 20
    assert [part.wcet_ns for part in stage.segments] == [6, 27]


def test_under_llf_with_preemption_there_is_no_bound():
    spec = Bench(timer("a"), devices=(device(preemptive=True),), policy="llf").spec
    assert with_overheads(spec, {"cpu": OverheadSpec(switch_ns=1)}) is None
    assert with_overheads(spec, {"cpu": OverheadSpec(launch_ns=1)}).stages[0].wcet_ns == 3


def test_of_segments_on_several_slots_no_bound_is_known():
    parts = (SegmentSpec(device="cpu", wcet_ns=5), SegmentSpec(device="gpu", wcet_ns=7))
    devices = (device(), device("gpu", slots=2, preemptive=True))
    spec = Bench(timer("work", wcet_ns=12, segments=parts), devices=devices).spec
    assert with_overheads(spec, {"gpu": OverheadSpec(switch_ns=1)}) is None
    assert with_overheads(spec, {"gpu": OverheadSpec(launch_ns=1)}).stages[0].wcet_ns == 13


def test_on_several_slots_every_preemption_that_may_come_is_charged():
    stages = [timer(f"t{i}", 20, wcet_ns=4, deadline_ns=20, priority=i) for i in range(3)]
    spec = Bench(*stages, devices=(device(preemptive=True, slots=2),), policy="fp").spec
    inflated = with_overheads(spec, {"cpu": OverheadSpec(switch_ns=1)})
    assert [stage.wcet_ns for stage in inflated.stages] == [5, 6, 7]


def test_no_overheads_leave_every_wcet():
    spec = Bench(timer("a"), devices=(device(preemptive=True, slots=2),)).spec
    assert with_overheads(spec, {}).stages[0].wcet_ns == 2


def test_interrupts_may_leave_no_time():
    tasks = [Task(name="a", wcet_ns=1, period_ns=10, deadline_ns=10)]
    assert charged(tasks, KernelCosts(release_ns=10)) is None
    assert charged(tasks, KernelCosts(tick_ns=10, quantum_ns=10)) is None
    assert charged(tasks, KernelCosts(latency_ns=10)) is None
    assert charged(tasks, KernelCosts(latency_ns=9))[0].period_ns == 1
