"""A device that is there for part of the time: work goes on only then, and counts only then."""

from __future__ import annotations

from dataclasses import replace

from builder import Bench, device, stage, timer
from hypothesis import given
from hypothesis import strategies as st
from reservations import gives, supplies
from test_wall import PATIENCE_NS, FakeWall, FakeWorker, arrivals, wall_scenarios
from test_whatif import Lines, simulated
from worlds import worlds

from avrt.drivers.hosts import supplied_by_host
from avrt.drivers.recording import recorded_run
from avrt.drivers.simulate import simulate
from avrt.drivers.wall import WallLoop
from avrt.drivers.whatif import repeat
from avrt.kernel import Kernel
from avrt.logs.record.journal import parse_entry
from avrt.metrics.run import RunFigures
from avrt.model.events import DeviceLost
from avrt.model.records import JobRecord, OverrunRecord
from avrt.model.scenario import OverheadSpec
from avrt.model.supply import Supply
from avrt.report.bounds import check_bounds
from pipelines import examples

UNTIL_NS = 120


def server(*stages, budget_ns=3, period_ns=5, starts_ns=(0,), preemptive=True, **keys):
    """A pipeline on a device with a supply, under fixed priorities."""
    supply = Supply(period_ns, budget_ns, starts_ns)
    devices = (replace(device(preemptive=preemptive), supply=supply),)
    return Bench(*stages, devices=devices, **({"policy": "fp"} | keys)).spec


def ran(spec, until_ns=UNTIL_NS, **options):
    """Return (task, start, end, execution, outcome) of every job, in the order they ended."""
    result = simulate(spec, until_ns=until_ns, **options)
    assert [r for r in result.records if isinstance(r, OverrunRecord)] == []
    return [(j.task, j.start_ns, j.end_ns, j.executed_ns, j.outcome) for j in result.jobs]


def overruns(spec, cost_ns):
    result = simulate(spec, until_ns=50, execution=lambda *_: cost_ns)
    found = [r.at_ns for r in result.records if isinstance(r, OverrunRecord)]
    return found, [(j.end_ns, j.executed_ns, j.outcome, j.reason) for j in result.jobs]


def test_work_waits_for_the_next_budget():
    spec = server(timer("a", 50, wcet_ns=4, deadline_ns=20, priority=1))
    assert ran(spec, 50) == [("a", 0, 6, 4, "met")]
    late = replace(spec.devices[0], supply=Supply(5, 3, (2, 0)))
    assert ran(replace(spec, devices=(late,)), 50) == [("a", 0, 6, 4, "met")]
    last = replace(spec.devices[0], supply=Supply(5, 3, (2,)))
    assert ran(replace(spec, devices=(last,)), 50) == [("a", 0, 8, 4, "met")]


def test_a_job_is_dispatched_and_preempted_while_nothing_is_given():
    """At 3 the budget is spent: low begins, high takes its slot at 4, and low has received 0."""
    spec = server(
        timer("low", 50, wcet_ns=2, deadline_ns=30, priority=2, offset_ns=3),
        timer("high", 50, wcet_ns=2, deadline_ns=30, priority=1, offset_ns=4),
    )
    assert ran(spec, 50) == [("high", 4, 7, 2, "met"), ("low", 3, 11, 2, "met")]


def test_waiting_for_the_supply_spends_no_budget_and_what_overruns_is_told_when_it_does():
    stage_of = timer("a", 50, wcet_ns=4, deadline_ns=20, priority=1)
    spec = server(stage_of)
    assert overruns(spec, 4) == ([], [(6, 4, "met", "")])
    assert overruns(spec, 5) == ([6], [(7, 5, "met", "")])
    aborts = server(replace(stage_of, on_overrun="abort"))
    assert overruns(aborts, 5) == ([6], [(6, 4, "aborted", "budget")])


def test_a_job_that_is_pushed_aside_between_two_budgets_spends_its_own_at_the_same_time():
    """High is aborted at 4, before the next budget, and low resumes there; other ends at 5."""
    high = timer("high", 90, wcet_ns=1, deadline_ns=1, priority=1, offset_ns=3, on_miss="abort")
    low = timer("low", 90, wcet_ns=4, deadline_ns=60, priority=2)
    other = timer("other", 90, wcet_ns=4, priority=1, offset_ns=1, device="beside")
    here = replace(device(preemptive=True), supply=Supply(5, 3))
    spec = Bench(low, high, other, devices=(here, device("beside")), policy="fp").spec
    assert ran(spec, 90) == [
        ("high", 3, 4, 0, "aborted"),
        ("other", 1, 5, 4, "met"),
        ("low", 0, 6, 4, "met"),
    ]


def test_least_laxity_counts_what_was_executed_and_not_the_time_on_the_slot():
    """At 5 a has had 3 of 8 and must go on by 20, b by 21. With 5 of 8 it could wait until 22."""
    spec = server(
        timer("a", 90, wcet_ns=8, deadline_ns=25),
        timer("b", 90, wcet_ns=2, deadline_ns=18, offset_ns=5),
        policy="llf",
    )
    assert ran(spec, 90) == [("a", 0, 12, 8, "met"), ("b", 12, 16, 2, "met")]


def test_a_job_without_an_end_hangs():
    spec = server(timer("a", 50, wcet_ns=4, deadline_ns=20, priority=1))
    hung = simulate(spec, until_ns=50, execution=lambda *_: None)
    assert [(j.outcome, j.reason) for j in hung.jobs] == [("aborted", "hang")]


def test_work_that_goes_to_a_fallback_waits_for_no_supply_any_more():
    here = replace(device(preemptive=True, fallback="spare"), supply=Supply(5, 3))
    work = timer("a", 50, wcet_ns=4, deadline_ns=20, priority=1)
    spec = Bench(work, devices=(here, device("spare")), policy="fp").spec
    found = ran(spec, 100, feed=[(2, DeviceLost("cpu"))])
    assert [(end, outcome) for _, _, end, _, outcome in found] == [(2, "aborted"), (54, "met")]


def test_overheads_are_executed_within_the_supply():
    spec = server(timer("a", 50, wcet_ns=3, deadline_ns=40, priority=1))
    result = simulate(spec, until_ns=50, overheads={"cpu": OverheadSpec(launch_ns=2)})
    assert [(j.end_ns, j.executed_ns) for j in result.jobs] == [(7, 5)]


# Against a scheduler that goes on ns by ns


def tick_by_tick(tasks, supply, *, preemptive):
    """Return the end of every job of `(period, offset, wcet)` by priority, ns by ns."""
    left, ends, current, tick = {}, {}, None, 0
    while tick < UNTIL_NS or left:
        for place, (period, offset, wcet) in enumerate(tasks):
            if tick < UNTIL_NS and tick >= offset and (tick - offset) % period == 0:
                left[place, (tick - offset) // period] = wcet
        if left and (preemptive or current not in left):
            current = min(left)
        if left and gives(supply, tick):
            left[current] -= 1
            if not left[current]:
                del left[current]
                ends[current] = tick + 1
        tick += 1
    return ends


ROWS = st.tuples(st.integers(8, 40), st.integers(0, 9), st.integers(1, 5))


@given(supplies(), st.lists(ROWS, min_size=1, max_size=4), st.booleans())
@examples(100)
def test_jobs_end_where_an_independent_scheduler_ends_them(supply, tasks, preemptive):
    stages = [
        timer(f"t{n}", period, offset_ns=offset, wcet_ns=wcet, priority=n + 1, queue=UNTIL_NS)
        for n, (period, offset, wcet) in enumerate(tasks)
    ]
    devices = (replace(device(preemptive=preemptive), supply=supply),)
    result = simulate(Bench(*stages, devices=devices, policy="fp").spec, until_ns=UNTIL_NS)
    found = {(int(job.task[1:]), job.index): job.end_ns for job in result.jobs}
    assert found == tick_by_tick(tasks, supply, preemptive=preemptive)
    for job in result.jobs:
        assert job.executed_ns == tasks[int(job.task[1:])][2]


# Any run


SHORT = (1, 1, 1, 2, 3)


def journal_of(world):
    """Return a world's run, its figures, and its journal read back."""
    lines, figures = [], RunFigures(world.spec)
    result = world.simulate(write=lambda _, line: lines.append(line), watch=figures.watch)
    for record in result.records:
        figures.add(record)
    return result, figures, [parse_entry(line) for line in lines]


@given(worlds(supplied=True, wcets=SHORT))
@examples(40)
def test_a_legal_run_overruns_nothing_breaks_no_model_and_is_decided_and_repeated_alike(world):
    result, figures, entries = journal_of(world)
    assert [r for r in result.records if isinstance(r, OverrunRecord)] == []
    assert check_bounds(figures).verdict != "model broken"
    assert figures.assumptions.first_of_responses is None
    kernel = Kernel(world.spec)
    for entry in entries:
        assert tuple(kernel.handle(entry.at_ns, entry.events)) == tuple(entry.commands)
    recorded = recorded_run(world.spec, entries, "run")
    assert repeat(recorded, world.spec).digest == result.digest


@given(worlds(supplied=True, wcets=SHORT), st.integers(1, 4))
@examples(40)
def test_executions_above_their_wcets_explain_what_comes_of_them(world, more_ns):
    lines, figures = [], RunFigures(world.spec)
    result = world.simulate(lambda ns: ns + more_ns, write=lambda _, line: lines.append(line),
                            watch=figures.watch)  # fmt: skip
    for record in result.records:
        figures.add(record)
    assert check_bounds(figures).verdict != "model broken"


def test_a_what_if_asks_what_another_supply_would_do():
    spec = server(timer("a", 25, wcet_ns=4, deadline_ns=20, priority=1))
    recorded = simulated(spec, 50)
    whole = replace(spec.devices[0], supply=None)
    repeated = repeat(recorded, replace(spec, devices=(whole,)))
    assert [job.end_ns - job.release_ns for job in repeated.log.jobs.values()] == [4, 4]


# At the wall clock


def with_supply(scenario, supply):
    """The scenario with every device of one slot there for part of the time, nobody knows when."""
    devices = tuple(replace(d, slots=1, supply=supply) for d in scenario.spec.devices)
    spec, _ = supplied_by_host(replace(scenario.spec, devices=devices))
    return replace(scenario, spec=spec)


@examples(20)
@given(wall_scenarios(), supplies(), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_a_run_at_the_wall_clock_is_repeated_call_for_call(scenario, supply, delays):
    """What jobs took there they took of the host's time, whoever gave it."""
    scenario = with_supply(scenario, supply)
    if not scenario.spec.sources or not scenario.arrivals or scenario.spec.policy == "table":
        return
    kept, wall = Lines(), FakeWall(tuple(delays))
    worker = FakeWorker(scenario, wall)
    worker.hang_timeout_ns = PATIENCE_NS
    WallLoop(Kernel(scenario.spec), iter(arrivals(scenario)), worker, kept.journal, wall).run()
    recorded = kept.recorded(scenario.spec)
    assert repeat(recorded, scenario.spec).digest == recorded.digest


def test_at_the_wall_clock_an_overrun_is_told_when_it_is_sure():
    """3 of execution may take 7 of any time where 3 of every 5 are given."""
    spec, told = supplied_by_host(
        server(stage("a", "s", wcet_ns=3, deadline_ns=90, priority=1), preemptive=False)
    )
    assert told == "cpu gets 3 ns of every 5 ns: by the operating system, if at all; not seen"
    assert overruns_of(spec, 7) == 0
    assert overruns_of(spec, 8) == 1


def overruns_of(spec, lasts_ns):
    bench = Bench(*spec.stages, devices=spec.devices, policy="fp")
    bench.arrive(2, "s")
    job = bench.dispatch().job
    wakeup_ns = bench.kernel.next_wakeup_ns
    if wakeup_ns is not None and wakeup_ns < 2 + lasts_ns:
        bench.at(wakeup_ns)
    bench.complete(2 + lasts_ns, job)
    assert len(bench.all_records(JobRecord)) == 1
    return len(bench.all_records(OverrunRecord))


def test_a_response_above_its_bound_is_explained_by_a_supply_that_nobody_saw():
    spec, _ = supplied_by_host(server(timer("a", 50, wcet_ns=3, deadline_ns=90, priority=1)))
    figures = RunFigures(spec)
    broken = figures.assumptions.first_of_responses
    assert (broken.kind, broken.subject, broken.at_ns) == ("supply", "cpu", 0)


def test_a_pipeline_without_a_supply_is_the_same_at_the_wall_clock():
    spec = Bench(timer("a")).spec
    assert supplied_by_host(spec) == (spec, "")
