"""Runs with overheads against their bounds: what is charged is no execution of a job's own."""

from __future__ import annotations

from dataclasses import replace

from builder import device, timer
from hypothesis import given
from test_findings import pipeline
from test_overhead_bounds import BY_DEVICE, LIGHT
from worlds import worlds

from avrt.analysis.bounds import bounds
from avrt.drivers.simulate import simulate
from avrt.metrics.run import RunFigures
from avrt.model.scenario import OverheadSpec
from avrt.model.spec import SegmentSpec
from avrt.report.bounds import check_bounds
from pipelines import examples

COSTS = {"cpu": OverheadSpec(release_ns=3, decision_ns=1, switch_ns=4, launch_ns=2)}
SPEC = pipeline(
    timer("hi", 100, wcet_ns=20, deadline_ns=90, priority=1),
    timer("lo", 1000, wcet_ns=400, deadline_ns=990, priority=2),
    devices=(device(preemptive=True),),
    policy="fp",
)


def run(spec, cost=lambda _task, _index: None, overheads=COSTS, until_ns=1000):
    """The figures of a run; a cost of None is the wcet."""
    figures = RunFigures(spec, overheads)
    wcet_ns = {task: s.wcet_ns for s in spec.stages for task in s.task_names}
    simulation = simulate(
        spec,
        until_ns=until_ns,
        execution=lambda task, index: cost(task, index) or wcet_ns[task],
        watch=figures.watch,
        overheads=overheads,
    )
    for record in simulation.records:
        figures.add(record)
    return figures


def test_a_job_that_pays_many_resumes_keeps_to_its_wcet():
    figures = run(SPEC)
    assert figures.stages["lo"].execution.summary()["max"] > 400 + 10 + 5 * 2
    assert figures.assumptions.first is None
    assert check_bounds(figures).verdict == "holds"


def test_an_execution_of_its_own_above_the_wcet_is_told_without_what_it_was_charged():
    figures = run(SPEC, lambda task, _: 401 if task == "lo" else None)
    broken = figures.assumptions.first
    assert (broken.kind, broken.subject, broken.declared_ns, broken.found_ns) == (
        "execution", "lo", 400, 401,
    )  # fmt: skip


def test_segments_that_keep_their_slot_are_charged_no_switch():
    parts = tuple(SegmentSpec(device="cpu", wcet_ns=5) for _ in range(3))
    spec = pipeline(timer("work", 100, wcet_ns=15, deadline_ns=90, segments=parts))
    assert run(spec, until_ns=90).assumptions.first is None
    broken = run(spec, lambda *_: 16, until_ns=90).assumptions.first
    assert (broken.declared_ns, broken.found_ns) in {(15, 16), (5, 6)}


def test_nothing_is_exact_that_need_not_pay_all_overheads():
    plain, charged = bounds(SPEC), bounds(SPEC, COSTS)
    assert {figure.label for figure in plain.stages.values()} == {"exact"}
    assert {figure.label for figure in charged.stages.values()} == {"bound"}


def test_where_resumes_cannot_be_counted_nothing_is_known():
    (figure,) = {*bounds(replace(SPEC, policy="llf"), COSTS).stages.values()}
    assert (figure.label, figure.ns) == ("unknown", None)
    assert "resumed" in figure.source


@given(worlds(**LIGHT), BY_DEVICE)
@examples(20)
def test_no_legal_run_with_overheads_breaks_the_model_or_what_responses_rest_on(world, overheads):
    figures = RunFigures(world.spec, overheads)
    simulation = replace(world, overheads=overheads).simulate(watch=figures.watch)
    for record in simulation.records:
        figures.add(record)
    assert figures.assumptions.first_of_responses is None
    assert check_bounds(figures).verdict != "model broken"


@given(worlds(segmented=True), BY_DEVICE)
@examples(30)
def test_nor_does_one_with_segments(world, overheads):
    figures = RunFigures(world.spec, overheads)
    replace(world, overheads=overheads).simulate(watch=figures.watch)
    assert figures.assumptions.first_of_responses is None


@given(worlds(**LIGHT), BY_DEVICE)
@examples(20)
def test_an_execution_above_the_wcet_is_seen_whatever_is_charged(world, overheads):
    figures = RunFigures(world.spec, overheads)
    longest = {task: s.wcet_ns for s in world.spec.stages for task in s.task_names}
    simulation = simulate(
        world.spec,
        until_ns=200,
        execution=lambda task, _: longest[task] + 1,
        watch=figures.watch,
        overheads=overheads,
    )
    if any(job.outcome in {"met", "late"} for job in simulation.jobs):
        assert figures.assumptions.first_of_responses.kind == "execution"
