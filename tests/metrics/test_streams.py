"""Gaps of streams sum to themselves, and streams side by side are counted as on a grid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.metrics import streams as module
from avrt.metrics.streams import PARTS, SideBySide, StreamFigures
from avrt.model.records import JobRecord


def job(release, start, began, done, end):
    record = JobRecord(
        0, 0, "see", "see", 0, release, release, end, start, end, "met", "", 0, began, done, ()
    )
    return record, began, done


def gaps(stream):
    return {part: list(stream.gaps_ns[part].values) for part in PARTS}


def test_a_gap_is_told_apart_by_what_the_host_did():
    stream = StreamFigures()
    stream.job(*job(release=0, start=1, began=2, done=10, end=12))
    stream.job(*job(release=20, start=25, began=26, done=30, end=31))
    assert gaps(stream) == {"reporting": [2], "idle": [8], "waiting": [5], "handing_over": [1]}
    assert stream.busy_ns == 12


def test_a_job_that_waited_behind_the_one_before_had_no_idle_gap():
    stream = StreamFigures()
    stream.job(*job(release=0, start=1, began=2, done=10, end=12))
    stream.job(*job(release=5, start=12, began=14, done=20, end=21))
    assert gaps(stream) == {"reporting": [2], "idle": [0], "waiting": [0], "handing_over": [2]}


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=12)


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 5), min_size=1, max_size=12))
def test_the_parts_of_all_gaps_and_the_work_fill_the_time(steps):
    """Whatever the order of release, dispatch and reports, nothing is counted twice or left out."""
    stream, now = StreamFigures(), 0
    first = None
    for release, start, began, work, told in steps:
        began_ns = now + began
        first = began_ns if first is None else first
        record = job(
            now + release - 4, now + start, began_ns, began_ns + work, began_ns + work + told
        )
        stream.job(*record)
        now = began_ns + work
    assert stream.busy_ns + sum(stream.total_ns.values()) == now - first


@given(SPANS)
def test_side_by_side_is_what_a_grid_says(spans):
    found = SideBySide()
    for began, length in sorted(spans, key=sum):
        found.add(began, began + length)
    at_work = [sum(b <= t < b + n for b, n in spans) for t in range(81)]
    expected = sum(n > 1 for n in at_work) / sum(n > 0 for n in at_work)
    assert found.share() == pytest.approx(expected)


@pytest.mark.parametrize(("name", "most"), [("LOOK_BACK_NS", 100), ("EDGES_MAX", 40)])
def test_what_lies_far_behind_is_settled_and_forgotten(monkeypatch, name, most):
    monkeypatch.setattr(module, name, most)
    found = SideBySide()
    for at in range(0, 100_000, 10):
        found.add(at, at + 6)
        found.add(at + 3, at + 9)
    assert len(found._edges) < 100
    assert found.share() == pytest.approx(3 / 9)
