"""Observed against bound: who is told to be above, and what explains it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, stage, timer
from hypothesis import given
from hypothesis import strategies as st
from test_findings import pipeline
from watched import arrivals, broken, run
from worlds import worlds

import avrt.report.bounds as told
from avrt.analysis.bounds import Bounds, bounds
from avrt.drivers.simulate import simulate
from avrt.metrics.bounds import Above, worst_of_runs
from avrt.metrics.broken import Broken
from avrt.metrics.run import RunFigures
from avrt.model.commands import Abort, Dispatch, Preempt, Record, Resume
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Failed,
    Hung,
    SegmentEnded,
    StreamLost,
)
from avrt.model.records import JobRecord
from avrt.model.spec import ChainSpec, SegmentSpec, SyncSpec
from avrt.report.bounds import check_bounds
from pipelines import examples

OF_CHAINS = {"gap", "delay", "skipped", "failure"}


def watched(world, change=lambda ns: ns):
    """The figures of a world's run, and its jobs in the order of their ends."""
    figures = RunFigures(world.spec)
    simulation = world.simulate(change, watch=figures.watch)
    for record in simulation.records:
        figures.add(record)
    return figures, [record for record in simulation.records if isinstance(record, JobRecord)]


@given(worlds())
@examples(30)  # 5,000 with --hypothesis-profile=nightly
def test_no_legal_run_breaks_the_model_or_what_responses_rest_on(world):
    figures, _ = watched(world)
    check = check_bounds(figures)
    assert check.verdict != "model broken", check
    assert figures.assumptions.first_of_responses is None
    assert all(row.above is None for row in check.stages.values())
    if check.assumption is not None:
        assert check.assumption.kind in OF_CHAINS


@given(worlds(segmented=True))
@examples(40)
def test_nor_does_one_with_segments(world):
    figures, _ = watched(world)
    check = check_bounds(figures)
    assert check.verdict != "model broken", check
    assert figures.assumptions.first_of_responses is None


@pytest.mark.slow
@given(worlds(), st.integers(1, 9))
@examples(300)
def test_executions_above_their_wcets_explain_whatever_comes_of_them(world, more_ns):
    figures, _ = watched(world, lambda ns: ns + more_ns)
    assert check_bounds(figures).verdict != "model broken"


@given(worlds())
@examples(40)
def test_a_bound_that_is_too_small_is_told_with_the_first_job_above_it(world):
    figures, jobs = watched(world)
    right = bounds(world.spec)
    smaller = {
        name: replace(figure, ns=None if figure.ns is None else figure.ns // 2)
        for name, figure in right.stages.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(told, "bounds", lambda *_given, **_why: Bounds(smaller, right.chains))
        check = check_bounds(figures)
    for name, row in check.stages.items():
        limit_ns = smaller[name].ns
        above = [
            job
            for job in jobs
            if job.stage == name and job.outcome in ("met", "late")
            and limit_ns is not None and job.response_ns > limit_ns
        ]  # fmt: skip
        assert (row.above is None) == (not above)
        if above:
            assert (row.above.subject, row.above.index) == (above[0].task, above[0].index)
            assert row.above.found_ns == above[0].response_ns
            assert row.above.cause is None
            assert check.verdict == "model broken"


# What explains an observation above its bound


TWO = (timer("a", 20, wcet_ns=4, deadline_ns=15), timer("b", 20, wcet_ns=6, deadline_ns=20))


def test_a_job_preempted_with_its_wcet_spent_explains_its_own_response():
    """It is past its bound before it goes on, yet had all that it was declared to need."""
    spec = pipeline(
        timer("control", 10, wcet_ns=2, deadline_ns=10),
        timer("track", 30, wcet_ns=10, deadline_ns=30),
        timer("detect", 50, wcet_ns=20, deadline_ns=50),
        devices=(device(preemptive=True),),
        policy="rm",
    )
    check = run(spec, cost=lambda task, _: 26 if task == "detect" else None)
    assert check.stages["detect"].bound.ns == 50
    assert check.verdict == "assumption broken"
    assert broken(check) == ("execution", "detect", 0, 50)


def test_a_job_aborted_above_its_wcet_explains_those_that_waited_for_it():
    spec = pipeline(
        timer("a", 30, wcet_ns=4, deadline_ns=12, on_miss="abort", priority=1),
        timer("b", 30, wcet_ns=6, deadline_ns=30, priority=2),
        devices=(device(preemptive=True),),
        policy="fp",
    )
    check = run(spec, cost=lambda task, _: 25 if task == "a" else None)
    assert (check.stages["b"].observed_ns, check.stages["b"].bound.ns) == (18, 10)
    assert check.verdict == "assumption broken"
    assert broken(check) == ("execution", "a", 0, 4)


def test_a_job_above_its_wcet_explains_those_that_wait_for_it():
    check = run(pipeline(*TWO), cost=lambda task, index: 25 if (task, index) == ("a", 3) else None)
    assert check.verdict == "assumption broken"
    assert broken(check) == ("execution", "a", 3, 64)
    assert check.assumption.declared_ns == 4
    assert check.assumption.found_ns == 25
    assert check.stages["b"].above.index == 3
    assert check.stages["b"].above.cause == check.assumption


def test_what_was_above_before_an_assumption_was_broken_is_not_explained(monkeypatch):
    spec = pipeline(*TWO)
    right = bounds(spec)
    low = {**right.stages, "b": replace(right.stages["b"], ns=9)}
    monkeypatch.setattr(told, "bounds", lambda *_given, **_why: Bounds(low, {}))
    check = run(spec, cost=lambda task, index: 25 if (task, index) == ("a", 3) else None)
    assert check.verdict == "model broken"
    above = check.above[0]
    assert (above.subject, above.index, above.found_ns, above.bound_ns) == ("b", 0, 10, 9)
    line = next(check.alarms())
    assert line.startswith("MODEL BROKEN: b 0, from 0.000000 s, took 10 ns of at most 9 ns")
    assert [note.partition(":")[0] for note in check.notes()] == ["assumption broken"]


def test_a_job_that_overruns_after_it_was_aborted_is_seen():
    stages = [replace(TWO[0], on_miss="abort"), TWO[1]]
    check = run(
        pipeline(*stages), cost=lambda task, index: 18 if (task, index) == ("a", 1) else None
    )
    assert broken(check) == ("execution", "a", 1, 24)
    assert check.verdict == "assumption broken"


def test_a_job_that_is_faster_than_its_bcet_breaks_the_jitter():
    stages = [replace(TWO[0], bcet_ns=3), TWO[1]]
    check = run(
        pipeline(*stages), cost=lambda task, index: 2 if (task, index) == ("a", 1) else None
    )
    assert broken(check) == ("execution", "a", 1, 22)
    assert check.assumption.detail == "bcet"
    assert check.verdict == "holds"
    assert "no observation is above" in next(check.notes())


@pytest.mark.parametrize(
    ("times", "jitter_ns", "found"),
    [
        ((0, 10, 20), 0, None),
        ((0, 10, 19), 0, ("rate", "s", 2, 19)),
        ((2, 10, 20), 2, None),
        ((2, 10, 18), 2, ("rate", "s", 2, 18)),
        ((0, 12, 20, 32, 40), 2, None),
    ],
)
def test_messages_closer_than_the_rate_and_the_jitter_allow(times, jitter_ns, found):
    spec = pipeline(stage("a", "s", jitter_ns=jitter_ns), period_ns=10)
    assumptions = RunFigures(spec).assumptions
    for at_ns, event in arrivals("s", *times):
        assumptions.note(at_ns, [event], [])
    cause = assumptions.first_of_responses
    assert (cause and (cause.kind, cause.subject, cause.index, cause.at_ns)) == found


def chained(*stages, **keys):
    path = ("s", *(item.name for item in stages))
    return pipeline(*stages, chains=(ChainSpec(name="c", path=path, age_ns=900),), **keys)


def test_a_late_message_explains_a_chain_and_no_response():
    spec = chained(stage("a", "s"), period_ns=10)
    check = run(spec, feed=arrivals("s", 0, 10, (29, 20), 40), until_ns=45)
    assert broken(check) == ("delay", "s", 2, 20)
    assert check.chains["c"].above.cause.kind == "delay"
    assert check.stages["a"].holds is True


def test_a_clock_that_steps_is_a_message_from_the_past_or_the_future():
    spec = chained(stage("a", "s"), period_ns=10)
    assert broken(run(spec, feed=arrivals("s", 0, (10, 4)), until_ns=15)) == ("delay", "s", 1, 4)
    assert broken(run(spec, feed=arrivals("s", 0, (10, 12)), until_ns=15)) == ("delay", "s", 1, 10)


def test_captures_that_are_matched_concern_responses_too():
    both = stage("a", "s", "r", sync=SyncSpec(tolerance_ns=1, timeout_ns=5), deadline_ns=40)
    spec = pipeline(both, period_ns=10)
    feed = sorted(
        [*arrivals("s", 0, 10, (29, 20)), *arrivals("r", 0, 10, 20, first=50)],
        key=lambda item: item[0],
    )
    figures = RunFigures(spec)
    simulate(spec, until_ns=35, feed=feed, watch=figures.watch)
    assert figures.assumptions.first_of_responses.kind == "delay"


def test_a_silent_source_explains_the_age_of_what_a_timer_still_publishes():
    reader = timer("b", 10, inputs=stage("x", "s").inputs)
    spec = chained(reader, period_ns=10)
    check = run(
        spec, feed=[*arrivals("s", 0, 10), (190, Arrived("s", 2, 190, 190, -9))], until_ns=200
    )
    assert check.chains["c"].above is not None
    assert check.chains["c"].above.cause.kind == "gap"
    assert check.verdict == "assumption broken"


def fused(*stages):
    """A chain along what `fuse` samples; `cam` triggers it through these."""
    trigger = stages[-1].name if stages else "cam"
    path = ("pose", "fuse")
    return pipeline(
        *stages,
        stage("fuse", trigger, "pose", device="two"),
        devices=(device(), device("two")),
        chains=(ChainSpec(name="c", path=path),),
        period_ns=20,
    )


POSES = arrivals("pose", *range(0, 400, 20), first=500)
CAPTURES = [n for n in range(0, 400, 20) if n not in (100, 120, 140)]


@pytest.mark.parametrize("through", [(), (stage("detect", "cam"),)])
def test_a_silent_source_explains_a_chain_whose_stage_it_triggers(through):
    feed = sorted([*POSES, *arrivals("cam", *CAPTURES)], key=lambda item: item[0])
    check = run(fused(*through), feed=feed)
    assert check.chains["c"].above is not None
    assert broken(check) == ("gap", "cam", 5, 100)
    assert check.chains["c"].above.cause == check.assumption


def test_a_job_without_a_result_explains_a_chain_whose_stage_it_triggers():
    spec = fused(stage("detect", "cam"))
    assumptions = RunFigures(spec).assumptions
    assumptions.note(8, [], [Dispatch(3, "detect", 4, "detect", "cpu", 0, "full", (), 7, 20)])
    assumptions.note(9, [Failed(3, "exception")], ())
    assert assumptions.first_along(("pose", "fuse")).kind == "failure"
    assert assumptions.first_along(("pose",)) is None


def test_a_lost_device_explains_what_its_fallback_is_burdened_with():
    devices = (device("one", fallback="two"), device("two"))
    stages = [
        timer("a", 20, wcet_ns=9, deadline_ns=20, device="one"),
        timer("b", 20, wcet_ns=9, deadline_ns=20, device="two"),
    ]
    spec = pipeline(*stages, devices=devices)
    feed = [(50, DeviceLost("one")), (90, DeviceBack("one"))]
    check = run(spec, feed=feed)
    assert broken(check) == ("lost", "one", None, 50)
    assert check.verdict == "assumption broken"
    assert [above.subject for above in check.above] == ["b"]


def job(**changes):
    fields = {"job": 0, "activation": 0, "task": "a", "stage": "a", "index": 4, "release_ns": 7,
              "arrival_ns": 7, "due_ns": 20, "start_ns": 7, "end_ns": 9, "outcome": "met",
              "reason": "", "executed_ns": 2, "device_start_ns": None, "device_ns": None,
              "absent": ()}  # fmt: skip
    return Record(JobRecord(**(fields | changes)))


@pytest.mark.parametrize(
    ("events", "commands", "kind", "at_ns"),
    [
        ((), [job(arrival_ns=8)], "told_late", 7),
        ((), [job(outcome="skipped", reason="stale")], "skipped", 9),
        ((), [job(outcome="skipped", reason="busy")], None, None),
        ([Failed(3, "exception")], (), "failure", 9),
        ([Hung(3)], (), "failure", 9),
        ([StreamLost("a")], (), "lost", 9),
    ],
)
def test_what_else_explains_an_observation(events, commands, kind, at_ns):
    assumptions = RunFigures(pipeline(timer("a", 20))).assumptions
    assumptions.note(8, [], [Dispatch(3, "a", 4, "a", "cpu", 0, "full", (), 7, 20)])
    assumptions.note(9, events, commands)
    found = assumptions.first
    assert (found and found.kind, found and found.at_ns) == (kind, at_ns)


def test_a_damaged_part_of_a_record_explains_what_comes_after_it():
    assumptions = RunFigures(pipeline(timer("a", 20))).assumptions
    assumptions.note(8, [], [])
    assumptions.unseen()
    assert (assumptions.first_of_responses.kind, assumptions.first.at_ns) == ("unseen", 8)


def test_a_job_that_runs_for_too_long_need_not_have_ended():
    assumptions = RunFigures(pipeline(timer("a", 20))).assumptions
    assumptions.note(8, [], [Dispatch(3, "a", 4, "a", "cpu", 0, "full", (), 7, 20)])
    assumptions.note(11, [], [])
    assert assumptions.first.at_ns == 10
    assert assumptions.first.found_ns == 3


def test_captures_too_close_are_told_where_they_are_matched():
    both = stage("a", "s", "r", sync=SyncSpec(tolerance_ns=1, timeout_ns=5), deadline_ns=40)
    assumptions = RunFigures(pipeline(both, period_ns=10)).assumptions
    for at_ns, event in arrivals("s", 0, 10, 19):
        assumptions.note(at_ns, [event], [])
    cause = assumptions.first_of_responses
    assert (cause.kind, cause.detail, cause.index, cause.at_ns) == ("rate", "capture", 2, 19)


def test_an_aborted_job_ends_with_its_segment():
    parts = tuple(SegmentSpec(device="cpu", wcet_ns=2) for _ in range(2))
    spec = pipeline(timer("a", 20, wcet_ns=4, segments=parts))
    assumptions = RunFigures(spec).assumptions
    assumptions.note(0, [], [Dispatch(3, "a", 0, "a", "cpu", 0, "full", (), 0, 10), Abort(3)])
    assumptions.note(5, [SegmentEnded(3)], [])
    assert (assumptions.first.at_ns, assumptions.first.detail) == (2, "wcet of the segment")
    assumptions.note(90, [Completed(3, 3, 90)], [])
    assert assumptions.first.found_ns == 5


def test_a_job_off_its_slot_executes_nothing():
    spec = pipeline(timer("a", 20, wcet_ns=4), devices=(device(preemptive=True),))
    assumptions = RunFigures(spec).assumptions
    assumptions.note(0, [], [Dispatch(3, "a", 0, "a", "cpu", 0, "full", (), 0, 10)])
    assumptions.note(1, [], [Preempt(3)])
    assumptions.note(50, [], [Resume(3)])
    assumptions.note(53, [Completed(3, 3, 53)], [])
    assert assumptions.first is None
    assumptions.note(60, [], [Dispatch(4, "a", 1, "a", "cpu", 0, "full", (), 60, 70)])
    assumptions.note(61, [], [Abort(4)])
    assumptions.note(99, [], [])
    assert assumptions.first is None


def test_no_more_than_a_few_are_told_in_words():
    many = [timer(f"t{i}", 100, wcet_ns=2, deadline_ns=90, priority=i) for i in range(1, 7)]
    check = run(pipeline(*many, policy="fp"), cost=lambda task, _: 40 if task == "t1" else None)
    assert len(check.above) == 6
    notes = list(check.notes())
    assert len(notes) == 4
    assert notes[-1] == "... 3 more above their bounds; --json has all"


def test_nothing_known_is_no_verdict():
    spec = pipeline(stage("a", "s"))
    spec = replace(spec, sources=(replace(spec.sources[0], period_ns=None),))
    check = run(spec, feed=arrivals("s", 0, 10), until_ns=30)
    assert check.verdict == "unknown"
    assert check.stages["a"].holds is None


def test_a_pipeline_too_large_for_a_report_is_unknown_and_not_waited_for():
    many = [timer(f"t{i}", 1000, wcet_ns=1, deadline_ns=900) for i in range(60)]
    spec = pipeline(*many, devices=(device(slots=4),))
    assert {figure.label for figure in bounds(spec).stages.values()} == {"unknown"}
    assert "avrt check" in bounds(spec).stages["t0"].source


def test_what_is_wrong_with_another_source_explains_no_chain(monkeypatch):
    stages = (stage("a", "s"), timer("b", 10, inputs=stage("x", "r").inputs))
    spec = pipeline(*stages, chains=(ChainSpec(name="c", path=("s", "a")),), period_ns=10)
    right = bounds(spec)
    low = {"c": replace(right.chains["c"], ns=11)}
    monkeypatch.setattr(told, "bounds", lambda *_given, **_why: Bounds(right.stages, low))
    feed = [*arrivals("r", (0, -9), first=50), *arrivals("s", 0, 10, 20)]
    check = run(spec, feed=feed, until_ns=25)
    assert broken(check)[:2] == ("delay", "r")
    assert check.chains["c"].above.cause is None


def test_of_many_runs_the_first_unexplained_one_is_told():
    explained = Above("a", 3, 0, 9, 5, Broken("rate", "s", 1, 2))
    bare = replace(explained, cause=None)
    runs = [(7, {"a": 4}, {}), (8, {"a": 9}, {"a": explained}), (9, {"a": 9}, {"a": bare})]
    worst = worst_of_runs(runs)["a"]
    assert (worst.observed_ns, worst.seed) == (9, 8)
    assert (worst.runs_above, worst.runs_unexplained) == (2, 1)
    assert worst.first == (9, bare)
