"""Observed against bound under a table, which counts on every message at its planned time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import sampled, stage
from hypothesis import given
from hypothesis import strategies as st
from test_findings import pipeline
from watched import arrivals, broken, run

from avrt.metrics.run import RunFigures
from avrt.model.commands import Dispatch
from avrt.model.events import Failed
from avrt.model.graph import check
from avrt.model.spec import SyncSpec, TableRow, TableSpec
from avrt.report.bounds import check_bounds, describe_broken
from pipelines import examples

JITTER_NS = 2


def tabled(*stages, cycle_ns=20, **starts):
    """A pipeline with a table; sources send every 20 ns."""
    spec = pipeline(*stages, period_ns=20)
    rows = tuple(TableRow(task=task, starts_ns=times) for task, times in starts.items())
    spec = replace(spec, policy="table", table=TableSpec(cycle_ns=cycle_ns, rows=rows))
    check(spec)
    return spec


def together(*feeds):
    return sorted((item for feed in feeds for item in feed), key=lambda item: item[0])


def told(check):
    assert check.verdict == "assumption broken", check
    assert check.above[0].cause == check.assumption
    return broken(check)


JOB = stage("job", "s", wcet_ns=3, deadline_ns=20)
SETS = stage(
    "join",
    "s",
    sampled("g", optional=True),
    sync=SyncSpec(tolerance_ns=3, timeout_ns=9),
    wcet_ns=3,
    deadline_ns=20,
)


def test_a_message_off_its_planned_time_explains_a_response():
    check = run(tabled(JOB, job=(0,)), feed=arrivals("s", *range(0, 400, 22)))
    assert told(check) == ("phase", "s", 1, 20)
    assert (check.assumption.declared_ns, check.assumption.found_ns) == (20, 22)
    text = "at 0.000000 s s 1 came at 22 ns, planned for 20 ns"
    assert describe_broken(check.assumption) == text


def test_so_does_one_that_comes_too_soon():
    check = run(tabled(JOB, job=(0,)), feed=arrivals("s", 0, 20, 39, 60, 80))
    assert told(check) == ("phase", "s", 2, 39)


def test_a_source_in_phase_with_its_jitter_breaks_nothing():
    job = replace(JOB, jitter_ns=JITTER_NS)
    feed = arrivals("s", *((n + n // 20 % 3, n) for n in range(0, 400, 20)))
    check = run(tabled(job, job=(2,)), feed=feed)
    assert (check.verdict, check.assumption) == ("holds", None)
    assert check.stages["job"].observed_ns == 5


@pytest.mark.parametrize(("missing", "at_ns"), [([4], 80), ([0, 1], 0), (range(20), 0)])
def test_a_message_that_does_not_come_explains_a_set_at_its_timeout(missing, at_ns):
    poses = [n * 20 for n in range(20) if n not in missing]
    feed = together(arrivals("s", *range(0, 400, 20)), arrivals("g", *poses, first=500))
    check = run(tabled(SETS, join=(0,)), feed=feed)
    assert told(check) == ("phase", "g", at_ns // 20, at_ns)


def test_a_message_that_comes_no_more_explains_it_too():
    feed = together(arrivals("s", *range(0, 400, 20)), arrivals("g", 0, 20, first=500))
    assert told(run(tabled(SETS, join=(0,)), feed=feed)) == ("phase", "g", 2, 40)


BEFORE = stage("ego", "g", sampled("map"))
AFTER = replace(
    SETS,
    inputs=(SETS.inputs[0], sampled("ego", optional=True)),
)


def test_a_job_skipped_before_it_explains_a_set_at_its_timeout():
    times = range(0, 400, 20)
    feed = together(
        arrivals("s", *times), arrivals("g", *times, first=500), arrivals("map", 50, first=900)
    )
    check = run(tabled(BEFORE, AFTER, ego=(0,), join=(2,)), feed=feed)
    assert told(check) == ("skipped", "ego", 0, 0)


def test_a_failure_before_it_counts_for_responses():
    assumptions = RunFigures(tabled(BEFORE, AFTER, ego=(0,), join=(2,))).assumptions
    arrived = [event for name in ("s", "g") for _, event in arrivals(name, 0)]
    assumptions.note(0, arrived, [Dispatch(3, "ego", 0, "ego", "cpu", 0, "full", (), 0, 10)])
    assumptions.note(1, [Failed(3, "exception")], ())
    assert assumptions.first_of_responses.kind == "failure"


def test_a_source_that_releases_nothing_needs_no_phase():
    reader = replace(JOB, inputs=(*JOB.inputs, sampled("g", optional=True)))
    feed = together(arrivals("s", *range(0, 400, 20)), arrivals("g", 7, 27, first=500))
    figures = RunFigures(tabled(reader, job=(0,)))
    for at_ns, event in feed:
        figures.assumptions.note(at_ns, [event], [])
    assert figures.assumptions.first_of_responses is None
    assert check_bounds(figures).assumption.kind == "gap"


DEEP = stage("ego", "g", wcet_ns=2, bcet_ns=1, jitter_ns=JITTER_NS, deadline_ns=20)
WHOLE = tabled(
    DEEP,
    replace(AFTER, jitter_ns=JITTER_NS, deadline_ns=40),
    stage("track", "join", wcet_ns=2, deadline_ns=20),
    ego=(2,),
    join=(6,),
    track=(10,),
)
TIMES = st.lists(st.integers(0, JITTER_NS), min_size=10, max_size=10)


@given(TIMES, TIMES)
@examples(30)
def test_no_run_in_phase_breaks_anything(lidar, gnss):
    feeds = [
        arrivals(name, *((n * 20 + late, n * 20) for n, late in enumerate(times)), first=first)
        for name, times, first in (("s", lidar, 1), ("g", gnss, 500))
    ]
    check = run(WHOLE, feed=together(*feeds), until_ns=200)
    assert (check.verdict, check.assumption) == ("holds", None), check


LOOSE = st.lists(st.integers(12, 45), min_size=1, max_size=10)


@given(LOOSE, LOOSE, st.integers(0, 30))
@examples(50)
def test_no_run_out_of_phase_breaks_the_model(lidar, gnss, late_ns):
    feeds = []
    for name, gaps, first in (("s", lidar, 1), ("g", gnss, 500)):
        times = [late_ns + sum(gaps[:n]) for n in range(len(gaps))]
        feeds.append(arrivals(name, *times, first=first))
    check = run(WHOLE, feed=together(*feeds), until_ns=200)
    assert check.verdict != "model broken", check


@pytest.mark.parametrize(
    "keys",
    [{"budget_ns": 1, "on_overrun": "abort"}, {"on_miss": "skip_next"}, {"queue": 1}],
)
def test_a_set_that_waits_for_a_stage_without_every_result_has_no_bound(keys):
    """Both jobs of a cycle start after the second was released."""
    ego = stage("ego", "g", **{"wcet_ns": 2, "bcet_ns": 2, "deadline_ns": 40, **keys})
    after = replace(AFTER, deadline_ns=40, sync=SyncSpec(tolerance_ns=0, timeout_ns=60))
    times = range(0, 400, 20)
    feed = together(arrivals("s", *times), arrivals("g", *times, first=500))
    for head in (ego, replace(ego, budget_ns=2, on_miss="continue", queue=4)):
        check = run(tabled(head, after, cycle_ns=40, ego=(22, 24), join=(26, 31)), feed=feed)
        assert check.stages["ego"].bound.ns == 24
        assert check.above == [], check
        label = "unknown" if head is ego else "bound"
        assert check.stages["join"].bound.label == label
