"""Runs of scenarios: determinism, what each fault does, and that draws ignore the schedule."""

from dataclasses import replace

import pytest
from builder import Bench, device, stage, timer
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.drivers.scenario import Prepared, run_scenario, run_unrecorded
from avrt.kernel import Kernel
from avrt.logs.record.journal import parse_entry
from avrt.model.commands import Record
from avrt.model.execution import Constant, Uniform
from avrt.model.records import JobRecord
from avrt.model.scenario import ArrivalSpec, FaultSpec, ScenarioSpec
from avrt.model.spec import ChainSpec


def prepared(bench, duration_ns=1000, models=None, jitter_ns=0, **more):
    spec = bench.spec
    chosen = {s.name: Constant(s.wcet_ns) for s in spec.stages} | (models or {})
    arrivals = tuple(
        ArrivalSpec(source=s.name, kind="periodic", period_ns=100, jitter_ns=jitter_ns)
        for s in spec.sources
    )
    scenario = ScenarioSpec(
        name="s", pipeline=spec, duration_ns=duration_ns, seed=0, execution=chosen,
        arrivals=arrivals, **more,
    )  # fmt: skip
    return Prepared(scenario, chosen, {})


def see(**more):
    return stage("see", "lidar", **{"wcet_ns": 10, "deadline_ns": 50, **more})


def run(scenario, seed=0):
    """Return what a run showed, its journal, and its job records by (task, index)."""
    lines = []
    result = run_scenario(scenario, seed, lambda _at_ns, line: lines.append(line))
    records = [c.record for t in lines for c in parse_entry(t).commands if isinstance(c, Record)]
    return result, lines, {(r.task, r.index): r for r in records if isinstance(r, JobRecord)}


def fault(kind, target, at_ns, end_ns=None, **more):
    return (FaultSpec(kind=kind, target=target, at_ns=at_ns, end_ns=end_ns, **more),)


def outcomes(jobs):
    return [job.outcome for _, job in sorted(jobs.items())]


NOISY = {"see": Uniform(5, 60)}


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_the_same_seed_gives_the_same_journal(seed):
    scenario = prepared(Bench(see()), models=NOISY, jitter_ns=40)
    assert run(scenario, seed)[1] == run(scenario, seed)[1]


def test_a_run_without_a_journal_shows_the_same():
    scenario = prepared(Bench(see(on_miss="abort")), models=NOISY, jitter_ns=40)
    recorded, quick = run_scenario(scenario, 1), run_unrecorded(scenario, 1)
    assert quick.figures.summary() == recorded.figures.summary()
    assert (quick.end_ns, quick.unmet) == (recorded.end_ns, recorded.unmet)


def test_another_seed_gives_another_journal():
    scenario = prepared(Bench(see()), models=NOISY, jitter_ns=40)
    assert len({run_scenario(scenario, seed).decisions for seed in range(20)}) == 20


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_journal_verifies_on_a_fresh_kernel(seed):
    scenario = prepared(Bench(see(on_miss="abort")), models=NOISY, jitter_ns=40)
    kernel = Kernel(scenario.spec.pipeline)
    for entry in map(parse_entry, run(scenario, seed)[1]):
        assert tuple(kernel.handle(entry.at_ns, list(entry.events))) == tuple(entry.commands)


@pytest.mark.parametrize("policy", ["edf", "fifo", "dm"])
def test_what_a_job_takes_does_not_depend_on_policy_or_company(policy):
    alone = run(prepared(Bench(see()), models=NOISY))[2]
    bench = Bench(see(), timer("other", 30, wcet_ns=9), policy=policy)
    beside = run(prepared(bench, models=NOISY))[2]
    assert {key: job.executed_ns for key, job in alone.items()} == {
        key: job.executed_ns for key, job in beside.items() if key[0] == "see"
    }


def test_every_job_is_accounted_for():
    scenario = prepared(Bench(see(on_miss="abort")), models={"see": Uniform(20, 300)})
    jobs = run(scenario)[0].figures.jobs()
    assert jobs["released"] == 10
    assert jobs["open"] == 0
    assert sum(jobs.values()) == 20


def test_a_slow_device_stretches_the_jobs_that_start_meanwhile():
    slow = fault("slow_device", "cpu", 100, 300, factor=2.5)
    jobs = run(prepared(Bench(see()), duration_ns=500, faults=slow))[2]
    assert [job.executed_ns for job in jobs.values()] == [10, 25, 25, 10, 10]


def test_a_slow_device_leaves_other_devices_alone():
    bench = Bench(see(), devices=(device("cpu"), device("gpu")))
    slow = fault("slow_device", "gpu", 0, factor=9)
    jobs = run(prepared(bench, duration_ns=300, faults=slow))[2]
    assert [job.executed_ns for job in jobs.values()] == [10, 10, 10]


def test_a_job_takes_what_it_takes_where_it_starts():
    bench = Bench(see(), devices=(device("cpu", fallback="gpu"), device("gpu")))
    lost = (*fault("device_lost", "cpu", 150), *fault("device_back", "cpu", 350))
    models = {"see": {"cpu": Constant(10), "gpu": Constant(40)}}
    slow = fault("slow_device", "gpu", 300, factor=2)
    jobs = run(prepared(bench, duration_ns=500, models=models, faults=(*lost, *slow)))[2]
    assert [job.executed_ns for job in jobs.values()] == [10, 10, 40, 80, 10]


def test_one_number_decides_a_job_on_every_device():
    both = {"see": {"cpu": Uniform(10, 20), "gpu": Uniform(10, 20)}}
    bench = Bench(see(), devices=(device("cpu", fallback="gpu"), device("gpu")))
    here = run(prepared(bench, models=both))[2]
    there = run(prepared(bench, models=both, faults=fault("device_lost", "cpu", 0)))[2]
    assert [j.executed_ns for j in here.values()] == [j.executed_ns for j in there.values()]


def test_a_source_that_is_out_releases_nothing():
    jobs = run(prepared(Bench(see()), faults=fault("source_out", "lidar", 300, 600)))[2]
    assert [job.release_ns for job in jobs.values()] == [0, 100, 200, 600, 700, 800, 900]


def test_a_clock_step_makes_a_chain_look_older_and_no_job_later():
    bench = Bench(see(), chains=(ChainSpec(name="it", path=("lidar", "see"), age_ns=200),))
    step = fault("clock_step", "lidar", 300, 600, step_ns=-150)
    stepped, _, jobs = run(prepared(bench, faults=step))
    assert run(prepared(bench))[0].figures.chains["it"].broken == {}
    assert stepped.figures.chains["it"].broken["age"] > 0
    assert set(outcomes(jobs)) == {"met"}


def test_a_lost_device_loses_its_jobs_until_it_is_back():
    lost = (*fault("device_lost", "cpu", 205), *fault("device_back", "cpu", 450))
    jobs = run(prepared(Bench(see()), duration_ns=700, faults=lost))[2]
    assert outcomes(jobs) == ["met", "met", "aborted", "aborted", "aborted", "met", "met"]


def test_a_lost_device_with_a_fallback_loses_what_ran_only():
    devices = (device("cpu", fallback="spare"), device("spare"))
    lost = fault("device_lost", "cpu", 205)
    jobs = run(prepared(Bench(see(), devices=devices), duration_ns=500, faults=lost))[2]
    assert outcomes(jobs) == ["met", "met", "aborted", "met", "met"]


def test_a_lost_stream_aborts_its_stage_and_no_other():
    bench = Bench(see(), timer("beat", 100, wcet_ns=5))
    result = run(prepared(bench, duration_ns=500, faults=fault("stream_lost", "see", 250)))[0]
    assert result.figures.stages["see"].outcomes == {"met": 3, "aborted": 2}
    assert result.figures.stages["beat"].outcomes == {"met": 5}


def test_the_order_in_which_faults_are_given_does_not_matter():
    one = (*fault("device_lost", "cpu", 205), *fault("device_back", "cpu", 450))
    scenario = prepared(Bench(see()), faults=one)
    turned = replace(scenario, spec=replace(scenario.spec, faults=one[::-1]))
    assert run(scenario)[1] == run(turned)[1]


LASTING = st.tuples(
    st.sampled_from(["source_out", "clock_step", "slow_device"]),
    st.integers(0, 400),
    st.none() | st.integers(1, 300),
    st.integers(-1000, 1000),
)


@given(
    lasting=st.lists(LASTING, max_size=4),
    lost_ns=st.lists(st.integers(0, 400), max_size=4, unique=True),
    seed=st.integers(0, 100),
    on_miss=st.sampled_from(["continue", "abort", "skip_next"]),
)
@settings(max_examples=30)
def test_whatever_goes_wrong_every_job_is_accounted_for(lasting, lost_ns, seed, on_miss):
    kinds = ("device_lost", "device_back")
    faults = [
        FaultSpec(kind=kinds[turn % 2], target="cpu", at_ns=at_ns)
        for turn, at_ns in enumerate(sorted(lost_ns))
    ]
    for kind, at_ns, lasts_ns, step_ns in lasting:
        target = "cpu" if kind == "slow_device" else "lidar"
        end_ns = None if lasts_ns is None else at_ns + lasts_ns
        factor = 1 + abs(step_ns) / 100
        faults += fault(kind, target, at_ns, end_ns, step_ns=step_ns, factor=factor)
    chains = (ChainSpec(name="it", path=("lidar", "see"), reaction_ns=200, age_ns=300),)
    scenario = prepared(
        Bench(see(on_miss=on_miss), timer("beat", 70), chains=chains),
        duration_ns=500, models=NOISY, jitter_ns=150, faults=tuple(faults),
    )  # fmt: skip
    result, lines, jobs = run(scenario, seed)
    counts = result.figures.jobs()
    assert counts["open"] == 0
    assert counts["released"] == len(jobs) == sum(result.figures.jobs().values()) / 2
    kernel = Kernel(scenario.spec.pipeline)
    for entry in map(parse_entry, lines):
        assert tuple(kernel.handle(entry.at_ns, list(entry.events))) == tuple(entry.commands)
