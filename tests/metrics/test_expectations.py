"""Expectations: what meets them, and the sentence about what does not."""

from fractions import Fraction

import pytest
from builder import Bench, stage

from avrt.drivers.simulate import simulate
from avrt.metrics.expectations import Firsts, Windows, unmet
from avrt.metrics.run import RunFigures
from avrt.model.commands import Record
from avrt.model.events import Arrived
from avrt.model.scenario import Expectation
from avrt.model.spec import ChainSpec

MS = 1_000_000


@pytest.fixture(scope="module")
def seen():
    """Ten jobs every 100 ms with a deadline of 50 ms; jobs 3 and 7 take 60 ms, others 10 ms."""
    see = stage("see", "lidar", wcet_ns=10 * MS, deadline_ns=50 * MS, misses_max=0, window_jobs=2)
    chain = ChainSpec(name="it", path=("lidar", "see"), reaction_ns=150 * MS, age_ns=500 * MS)
    bench = Bench(see, stage("idle", "camera"), chains=(chain,))
    feed = [
        (index * 100 * MS, Arrived("lidar", index, index * 100 * MS, index * 100 * MS, -1 - index))
        for index in range(10)
    ]
    result = simulate(
        bench.spec,
        until_ns=1000 * MS,
        execution=lambda _task, index: (60 if index in {3, 7} else 10) * MS,
        feed=feed,
    )
    figures, firsts = RunFigures(bench.spec), Firsts()
    for record in result.records:
        figures.take(Record(record))
        firsts.take(Record(record))
    return figures, firsts, result.records


def sentences(seen, figure, relation, limit, told, **whose):
    scope, name = whose.get("scope", "stages"), whose.get("name", "see")
    window = whose.get("window")
    expectation = Expectation(scope, name, figure, relation, Fraction(limit), told, window)
    figures, firsts, records = seen
    windows = Windows([expectation], figures.stages)
    for record in records:
        windows.take(Record(record))
    found = list(unmet([expectation], figures, firsts, windows))
    assert [item.expectation for item in found] in ([], [expectation])
    return [item.sentence for item in found]


@pytest.mark.parametrize(
    ("figure", "relation", "limit", "told"),
    [
        ("late", "at most", 2, "2"),
        ("late", "at least", 2, "2"),
        ("late", "exactly", 2, "2"),
        ("missed", "exactly", 2, "2"),
        ("met", "exactly", 8, "8"),
        ("released", "exactly", 10, "10"),
        ("late_share", "at most", Fraction(1, 5), "20 %"),
        ("p50", "exactly", 10 * MS, "10 ms"),
        ("max", "at most", 60 * MS, "60 ms"),
        ("violations", "exactly", 2, "2"),
    ],
)
def test_a_limit_itself_is_within_it(seen, figure, relation, limit, told):
    assert sentences(seen, figure, relation, limit, told) == []


def test_a_count_is_told_with_how_many_there_were_and_the_first(seen):
    assert sentences(seen, "late", "at most", 1, "1") == [
        "expected late at most 1 of see, found 2 of 10, first at 0.360 s"
    ]


def test_what_never_happened_has_no_first(seen):
    assert sentences(seen, "aborted", "at least", 1, "1") == [
        "expected aborted at least 1 of see, found 0 of 10"
    ]


def test_a_share_is_told_in_percent(seen):
    assert sentences(seen, "missed_share", "at most", Fraction(1, 100), "1 %") == [
        "expected missed share at most 1 % of see, found 20 % (2 of 10), first at 0.360 s"
    ]


def test_a_percentile_is_told_as_a_time(seen):
    assert sentences(seen, "p95", "at most", 40 * MS, "40 ms") == [
        "expected p95 at most 40 ms of see, found 60 ms of 10 responses"
    ]


def test_violations_of_windows_are_told(seen):
    assert sentences(seen, "violations", "exactly", 0, "0") == [
        "expected violations exactly 0 of see, found 2, first at 0.350 s"
    ]


def test_all_stages_are_taken_together(seen):
    assert sentences(seen, "late", "exactly", 0, "0", scope="all", name="") == [
        "expected late exactly 0 of all, found 2 of 10, first at 0.360 s"
    ]


def test_chains(seen):
    chain = {"scope": "chains", "name": "it"}
    assert sentences(seen, "reaction", "at most", 160 * MS, "160 ms", **chain) == []
    assert sentences(seen, "reaction", "at most", 100 * MS, "100 ms", **chain) == [
        "expected reaction at most 100 ms of it, found 160 ms of 9 outputs"
    ]
    assert sentences(seen, "broken", "exactly", 0, "0", **chain)[0].startswith(
        "expected broken exactly 0 of it, found "
    )
    assert ", first at 0.350 s" in sentences(seen, "broken", "exactly", 0, "0", **chain)[0]


def test_a_figure_that_does_not_exist_meets_nothing(seen):
    idle = {"name": "idle"}
    assert sentences(seen, "p99", "at most", 40 * MS, "40 ms", **idle) == [
        "expected p99 at most 40 ms of idle, found no responses"
    ]
    assert sentences(seen, "late_share", "at most", 1, "100 %", **idle) == [
        "expected late share at most 100 % of idle, found no job"
    ]


@pytest.mark.parametrize(
    ("figure", "limit", "told"),
    [
        ("released", 4, "4"),
        ("met", 3, "3"),
        ("late", 1, "1"),
        ("missed_share", Fraction(1, 4), "25 %"),
        ("met_rate", Fraction(15, 2), "7.5 Hz"),
        ("p50", 10 * MS, "10 ms"),
        ("max", 60 * MS, "60 ms"),
    ],
)
def test_a_window_holds_the_jobs_released_in_it_its_end_excluded(seen, figure, limit, told):
    """Jobs 3 to 6, of which the first is late."""
    window = (300 * MS, 700 * MS)
    assert sentences(seen, figure, "exactly", limit, told, window=window) == []


def test_a_rate_is_told_with_how_many_there_were(seen):
    window = (0, 800 * MS)
    (told,) = sentences(seen, "met_rate", "at least", 8, "8 Hz", window=window)
    whose = "of see released from 0 ns to 800 ms"
    assert told == f"expected met rate at least 8 Hz {whose}, found 7.5 Hz (6 of 8 jobs)"


def test_what_is_first_is_first_in_the_window(seen):
    window = (400 * MS, 1000 * MS)
    assert sentences(seen, "late", "exactly", 0, "0", window=window, scope="all", name="") == [
        "expected late exactly 0 of all released from 400 ms to 1 s, found 1 of 6, first at 0.760 s"
    ]


def test_an_empty_window_has_a_rate_of_nothing_and_no_share(seen):
    late = {"window": (310 * MS, 390 * MS)}
    assert sentences(seen, "met_rate", "exactly", 0, "0 Hz", **late) == []
    assert sentences(seen, "met_share", "at least", 0, "0 %", **late) == [
        "expected met share at least 0 % of see released from 310 ms to 390 ms, found no job"
    ]
    assert sentences(seen, "p99", "at most", MS, "1 ms", **late) == [
        "expected p99 at most 1 ms of see released from 310 ms to 390 ms, found no responses"
    ]
