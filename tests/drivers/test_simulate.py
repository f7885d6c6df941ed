"""Simulation: records, digests and the models it offers."""

import pytest
from builder import Bench, device, stage, timer
from hypothesis import given

from avrt.drivers.execution import ModelTiming
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, parse_entry
from avrt.model.events import Arrived
from avrt.model.records import JobRecord, MissRecord
from avrt.model.spec import RedundancySpec
from pipelines import Limits, examples, scenarios


def test_a_periodic_task_is_simulated_at_its_worst_case():
    result = simulate(Bench(timer("beat", 10, wcet_ns=4)).spec, until_ns=30)
    assert [(j.release_ns, j.end_ns, j.outcome) for j in result.jobs] == [
        (0, 4, "met"),
        (10, 14, "met"),
        (20, 24, "met"),
    ]


def test_the_end_is_exclusive_and_what_is_open_finishes():
    spec = Bench(timer("beat", 10, wcet_ns=4)).spec
    assert len(simulate(spec, until_ns=20).jobs) == 2
    assert len(simulate(spec, until_ns=21).jobs) == 3
    assert simulate(spec, until_ns=21).jobs[-1].end_ns == 24


def test_a_simulation_of_no_length_releases_nothing():
    result = simulate(Bench(timer("beat", 10)).spec, until_ns=0)
    assert result.records == []


def test_execution_times_come_from_the_model():
    spec = Bench(timer("beat", 10, wcet_ns=4, deadline_ns=6)).spec
    result = simulate(spec, until_ns=30, execution=lambda _task, index: (3, 7, 5)[index])
    assert [j.outcome for j in result.jobs_of("beat")] == ["met", "late", "met"]
    assert [r.at_ns for r in result.records if isinstance(r, MissRecord)] == [16]


def test_a_job_that_never_ends_is_told_as_hung():
    spec = Bench(timer("beat", 50, wcet_ns=4)).spec
    result = simulate(spec, until_ns=30, execution=lambda _task, _index: None)
    assert [(j.outcome, j.reason) for j in result.jobs] == [("aborted", "hang")]


def test_worst_case_knows_replicas_by_their_stage():
    twins = RedundancySpec(copies=2)
    spec = Bench(timer("a", wcet_ns=3, redundancy=twins), timer("b", wcet_ns=5)).spec
    execution = ModelTiming(spec).cost_ns
    assert [execution(task, 0) for task in ("a.0", "a.1", "b")] == [3, 3, 5]
    result = simulate(spec, until_ns=10)
    assert {j.task: j.executed_ns for j in result.jobs} == {"a.0": 3, "a.1": 3, "b": 5}


def test_periodic_arrivals_come_at_the_declared_rates_in_order():
    bench = Bench(stage("see", "lidar"), stage("look", "camera"))
    arrivals = list(periodic_arrivals(bench.spec, 25))
    assert [(at, e.source, e.sequence) for at, e in arrivals] == [
        (0, "lidar", 0),
        (0, "camera", 0),
        (10, "lidar", 1),
        (10, "camera", 1),
        (20, "lidar", 2),
        (20, "camera", 2),
    ]
    handles = [e.buffer for _, e in arrivals]
    assert max(handles) < 0
    assert len(set(handles)) == len(handles)


def test_a_feed_brings_arrivals_and_stops_at_the_end():
    bench = Bench(stage("see", "lidar"))
    result = simulate(bench.spec, until_ns=25, feed=periodic_arrivals(bench.spec, 1000))
    assert [j.release_ns for j in result.jobs] == [0, 10, 20]


def test_the_journal_that_is_written_replays_on_a_fresh_kernel():
    bench = Bench(timer("beat", 7, deadline_ns=3, wcet_ns=4), stage("see", "lidar"))
    lines = []
    result = simulate(
        bench.spec,
        until_ns=60,
        feed=periodic_arrivals(bench.spec, 60),
        write=lambda at_ns, line: lines.append((at_ns, line)),
    )
    kernel, journal = Kernel(bench.spec), Journal()
    for at_ns, line in lines:
        entry = parse_entry(line)
        assert entry.at_ns == at_ns
        assert tuple(kernel.handle(entry.at_ns, entry.events)) == entry.commands
        assert journal.note(entry.at_ns, entry.events, entry.commands) == line
    assert journal.digest == result.digest


@examples(8)
@given(scenarios(Limits(recorded=False, stages_max=5)))
def test_every_job_of_a_simulation_is_accounted_for(scenario):
    spec = scenario.spec
    feed = list(periodic_arrivals(spec, scenario.until_ns))
    first, second = (simulate(spec, until_ns=scenario.until_ns, feed=feed) for _ in range(2))
    assert first.digest == second.digest
    assert first.records == second.records
    assert sorted(j.job for j in first.jobs) == list(range(len(first.jobs)))
    arrived = {e.source for _, e in feed if isinstance(e, Arrived)}
    assert arrived <= {s.name for s in spec.sources}


def test_another_execution_time_gives_another_digest():
    spec = Bench(timer("beat", 10)).spec
    digests = {
        simulate(spec, until_ns=20, execution=lambda _task, _index, c=cost: c).digest
        for cost in (1, 2, 3)
    }
    assert len(digests) == 3


@pytest.mark.parametrize("slots", [1, 2])
def test_more_slots_let_more_jobs_run_at_once(slots):
    spec = Bench(
        timer("a", 20, wcet_ns=5), timer("b", 20, wcet_ns=5), devices=(device(slots=slots),)
    ).spec
    ends = [j.end_ns for j in simulate(spec, until_ns=20).records if isinstance(j, JobRecord)]
    assert ends == ([5, 10] if slots == 1 else [5, 5])


@examples(20)
@given(scenarios(Limits(recorded=False, faults=False)))
def test_without_a_digest_the_records_are_the_same(scenario):
    runs = [simulate(scenario.spec, until_ns=40, digest=digest) for digest in (True, False)]
    assert runs[0].records == runs[1].records
    assert [bool(run.digest) for run in runs] == [True, False]
