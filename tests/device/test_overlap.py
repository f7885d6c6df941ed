"""Overlap and gaps against a bitmap of every instant, and small examples."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from avrt.device.overlap import difference, gaps, intersection, length_ns, overlap, union
from avrt.device.timeline import Span

INSTANTS = 60
INTERVALS = st.lists(
    st.tuples(st.integers(0, INSTANTS), st.integers(0, INSTANTS)).map(sorted).map(tuple),
    max_size=12,
)


def bitmap(intervals):
    return {instant for start, end in intervals for instant in range(start, end)}


def spans_of(kind, intervals, stream="s", activity=""):
    return [Span(stream, "x", kind, start, end, activity) for start, end in intervals]


@given(INTERVALS)
def test_a_union_covers_the_same_instants_by_disjoint_intervals_in_order(intervals):
    merged = union(intervals)
    assert bitmap(merged) == bitmap(intervals)
    assert length_ns(merged) == len(bitmap(intervals))
    assert all(one[1] < two[0] for one, two in pairwise(merged))


@given(INTERVALS, INTERVALS)
def test_intersection_and_difference_are_those_of_instants(left, right):
    one, two = union(left), union(right)
    assert bitmap(intersection(one, two)) == bitmap(left) & bitmap(right)
    assert bitmap(difference(one, two)) == bitmap(left) - bitmap(right)
    assert length_ns(intersection(one, two)) + length_ns(difference(one, two)) == length_ns(one)


@given(INTERVALS, INTERVALS)
def test_the_fraction_is_the_share_of_copied_instants_that_are_computed_too(copies, compute):
    found = overlap([*spans_of("copy", copies), *spans_of("compute", compute, "t")])
    copied, computed = bitmap(copies), bitmap(compute)
    assert (found.copy_ns, found.compute_ns) == (len(copied), len(computed))
    assert found.both_ns == len(copied & computed)
    assert found.fraction == (len(copied & computed) / len(copied) if copied else None)
    assert found.ratio == (len(copied) / len(computed) if computed else None)


@given(INTERVALS, INTERVALS, INTERVALS, INTERVALS)
def test_the_parts_of_a_gap_sum_to_it(busy, preparing, launching, waiting):
    spans = [
        *spans_of("compute", busy),
        *spans_of("host", preparing, "host", "preparing"),
        *spans_of("host", launching, "host", "launching"),
        *spans_of("host", waiting, "host", "waiting"),
    ]
    covered = bitmap(busy)
    found = gaps(spans, "s")
    missing = set(range(min(covered, default=0), max(covered, default=-1) + 1)) - covered
    assert bitmap((gap.start_ns, gap.end_ns) for gap in found) == missing
    for gap in found:
        instants = set(range(gap.start_ns, gap.end_ns))
        assert sum(gap.host_ns.values()) == len(instants)
        assert gap.host_ns["waiting"] == len(instants & bitmap(waiting))
        launched = (instants & bitmap(launching)) - bitmap(waiting)
        assert gap.host_ns["launching"] == len(launched)


def test_copies_before_compute_hide_nothing_whatever_the_ratio():
    found = overlap([*spans_of("copy", [(0, 90)]), *spans_of("compute", [(90, 100)])])
    assert found.fraction == 0.0
    assert found.ratio == 9.0


def test_waits_and_other_streams_do_not_fill_a_gap_and_short_ones_can_be_left_out():
    spans = [
        *spans_of("compute", [(0, 10), (12, 20), (50, 60)]),
        *spans_of("wait", [(20, 50)]),
        *spans_of("compute", [(0, 60)], "other"),
    ]
    (gap,) = gaps(spans, "s", ns_min=10)
    assert (gap.start_ns, gap.end_ns) == (20, 50)
    assert gap.host_ns == {"waiting": 0, "launching": 0, "preparing": 0, "idle": 30}
