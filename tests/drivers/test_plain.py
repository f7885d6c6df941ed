"""Plain task sets without the kernel: equal to it job for job, refused where they are not plain."""

import pytest
from builder import Bench, device, sampled, stage, timer
from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.draws import by_job, generator, uniform
from avrt.drivers.plain import PlainSet, why_not
from avrt.drivers.simulate import simulate
from avrt.errors import SpecError
from avrt.model.events import Arrived
from avrt.model.graph import check
from avrt.model.spec import (
    ChainSpec,
    Criticality,
    DeviceSpec,
    RedundancySpec,
    SegmentSpec,
)
from pipelines import ONLINE, Picker, examples

UNTIL = 90


@st.composite
def plain_sets(draw):
    """Random plain pipelines, arrivals of their sources, and execution times in turn."""
    pick = Picker(draw, 60)
    policy = pick(ONLINE)
    devices = tuple(
        DeviceSpec(
            name=f"d{i}",
            type="simulated",
            slots=pick((1, 1, 2, 3)),
            preemptive=policy != "llf" and pick((False, True)),
        )
        for i in range(pick.integer(1, 2))
    )
    stages = tuple(
        _stage(pick, f"t{i}", pick(devices).name) for i in range(draw(st.integers(1, 6)))
    )
    made = Bench(*stages, devices=devices, policy=policy, periods={f"s{i}": 7 for i in range(2)})
    gaps = {s.name: [pick((0, 1, 2, 5, 9)) for _ in range(12)] for s in made.spec.sources}
    arrivals = {name: [sum(row[: n + 1]) for n in range(12)] for name, row in gaps.items()}
    costs = [pick.integer(1, 10) for _ in range(pick.integer(1, 7))]
    return made.spec, arrivals, costs


def _stage(pick, name, device_name):
    keys = {
        "device": device_name,
        "wcet_ns": pick.integer(1, 8),
        "deadline_ns": pick.integer(1, 25),
        "priority": pick.integer(1, 4),
        "on_miss": pick(("continue", "continue", "continue", "abort", "skip_next")),
        "queue": pick((1, 2, 4, 100)),
    }
    if pick((False, False, True)):
        return stage(name, f"s{pick.integer(0, 1)}", **keys)
    return timer(name, pick.integer(3, 20), offset_ns=pick.integer(0, 6), **keys)


def feed(spec, arrivals):
    places = {source.name: i for i, source in enumerate(spec.sources)}
    all_of = sorted(
        (at, places[name], n, name)
        for name, times in arrivals.items()
        for n, at in enumerate(times)
    )
    for handle, (at, _, n, name) in enumerate(all_of):
        if at < UNTIL:
            yield at, Arrived(name, n, at, at, -1 - handle)


def by_kernel(spec, arrivals, cost_of):
    run = simulate(spec, until_ns=UNTIL, execution=cost_of, feed=feed(spec, arrivals), digest=False)
    return {
        s.name: [(j.release_ns, j.start_ns, j.end_ns, j.outcome) for j in run.jobs_of(s.name)]
        for s in spec.stages
    }


def columns(tasks):
    return {
        name: list(zip(t.release_ns, t.start_ns, t.end_ns, t.outcomes, strict=True))
        for name, t in tasks.items()
    }


def assert_equal(case):
    spec, arrivals, costs = case
    check(spec)

    def cost_of(task, index):
        return costs[(3 * int(task[1:]) + index) % len(costs)]

    found = PlainSet(spec, until_ns=UNTIL, arrivals=arrivals).run(cost_of)
    assert columns(found) == by_kernel(spec, arrivals, cost_of)


@examples(200)
@given(plain_sets())
def test_jobs_are_those_of_the_kernel(case):
    assert_equal(case)


@pytest.mark.slow
@examples(1000)  # 5,000 with --hypothesis-profile=nightly
@given(plain_sets())
def test_jobs_of_a_thousand_sets_are_those_of_the_kernel(case):
    assert_equal(case)


def alone(*, name="work", devices=(), policy="edf", **keys):
    return Bench(timer(name, 10, **keys), devices=devices, policy=policy).spec


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (alone(segments=(SegmentSpec(device="cpu", wcet_ns=2),)), "stage work has segments"),
        (alone(redundancy=RedundancySpec(copies=2)), "stage work is redundant"),
        (Bench(stage("a", "s", sampled("t"))).spec, "stage a has several inputs"),
        (Bench(timer("a", inputs=(sampled("t"),))).spec, "stage a samples an input"),
        (Bench(stage("a", "s"), stage("b", "a")).spec, "stage b reads another stage"),
        (Bench(stage("a", sampled("s", max_age_ns=5))).spec, "stage a limits the age of an input"),
        (alone(on_overrun="abort"), "stage work is aborted when it overruns"),
        (
            Bench(timer("a"), timer("b", criticality=Criticality.ASIL_B)).spec,
            "stage a shares its device with other criticalities",
        ),
        (
            alone(policy="llf", devices=(device(preemptive=True),)),
            "stage work is preempted by llf",
        ),
        (
            Bench(stage("a", "s"), chains=[ChainSpec(name="c", path=("s", "a"))]).spec,
            "it has chains",
        ),
    ],
)
def test_what_is_not_plain_is_refused_and_says_why(spec, reason):
    assert why_not(spec) == reason
    with pytest.raises(SpecError, match=f"no plain task set: {reason}; simulate it with"):
        PlainSet(spec, until_ns=10)


def test_a_job_takes_some_time():
    with pytest.raises(ValueError, match="work: a job takes at least 1 ns, found 0"):
        PlainSet(alone(), until_ns=20).run(lambda _task, index: 1 - index)


def test_nothing_is_released_at_or_after_the_end_and_what_is_open_finishes():
    work = PlainSet(alone(wcet_ns=4), until_ns=20).run()["work"]
    assert (list(work.release_ns), work.end_ns) == ([0, 10], [4, 14])
    assert PlainSet(alone(), until_ns=0).run()["work"].outcomes == []


def test_without_times_jobs_take_their_wcet():
    work = PlainSet(alone(wcet_ns=7, deadline_ns=6), until_ns=11).run()["work"]
    assert (work.start_ns, work.end_ns, work.outcomes) == ([0, 10], [7, 17], ["late", "late"])


def test_a_queue_that_overflows_sheds_its_oldest():
    work = PlainSet(alone(wcet_ns=35, queue=1), until_ns=50).run()["work"]
    assert work.outcomes == ["late", "shed", "shed", "late", "late"]
    assert work.start_ns == [0, None, None, 35, 70]


# Seeds


RANDOM = Bench(
    timer("a", 10, wcet_ns=8, bcet_ns=1),
    timer("b", 14, wcet_ns=9, bcet_ns=2, deadline_ns=14),
    timer("c", 30, wcet_ns=4),
).spec


def test_runs_of_seeds_are_those_of_the_kernel_with_the_same_draws():
    draw = uniform(RANDOM)
    runs = list(PlainSet(RANDOM, until_ns=UNTIL).run_seeds((1, 2), draw))
    for seed, run in zip((1, 2), runs, strict=True):
        assert columns(run) == by_kernel(RANDOM, {}, by_job(draw, seed))
    assert columns(runs[0]) != columns(runs[1])


@examples(20)
@given(st.integers(0, 2**70), st.integers(0, 300), st.integers(0, 300))
def test_what_a_job_draws_does_not_depend_on_how_many_are_drawn(seed, one, other):
    draw = uniform(RANDOM)
    few, many = sorted((one, other))
    assert draw(seed, "a", many)[:few] == draw(seed, "a", few)


def test_draws_lie_between_bcet_and_wcet_and_reach_both():
    assert set(uniform(RANDOM)(0, "a", 1000)) == set(range(1, 9))
    assert set(uniform(RANDOM)(0, "c", 1000)) == {4}


def test_tasks_and_seeds_have_streams_of_their_own():
    numbers = [generator(s, t).random(8).tolist() for s in (0, 1) for t in ("a", "b")]
    assert len({tuple(row) for row in numbers}) == 4


def test_a_job_that_cannot_be_in_time_has_a_place_like_any_other():
    """Under llf its latest start lies before its release, and at first before time 0."""
    late = timer("t4", 16, offset_ns=1, wcet_ns=5, deadline_ns=3, on_miss="abort", queue=4)
    more = [timer(f"t{index}", 9, wcet_ns=2, deadline_ns=20) for index in range(4)]
    assert_equal((Bench(*more, late, policy="llf").spec, {}, [5, 1, 2, 9, 7, 2]))
