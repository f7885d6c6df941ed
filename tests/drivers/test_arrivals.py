"""Arrivals: each kind, what delays and drops do, and that no draw depends on another."""

from itertools import pairwise
from math import sqrt

import pytest
from builder import Bench, stage

from avrt.drivers.arrivals import arrivals
from avrt.drivers.draws import Draws
from avrt.model.scenario import ArrivalSpec, FaultSpec, ScenarioSpec

US = 1000


def events(*items, seed=0, duration_ns=1000, faults=(), logged=None):
    bench = Bench(*(stage(f"use_{item.source}", item.source) for item in items))
    spec = ScenarioSpec(
        name="s", pipeline=bench.spec, duration_ns=duration_ns, seed=seed, execution={},
        arrivals=items, faults=faults,
    )  # fmt: skip
    return list(arrivals(spec, Draws(seed), logged or {}))


def times(item, **more):
    return [(at_ns, event.capture_ns) for at_ns, event in events(item, **more)]


def periodic(source="lidar", period_ns=100, **more):
    return ArrivalSpec(source=source, kind="periodic", period_ns=period_ns, **more)


def test_periodic_arrivals_come_from_the_offset_until_the_end():
    assert times(periodic(offset_ns=50), duration_ns=350) == [(50, 50), (150, 150), (250, 250)]


def test_a_drift_makes_the_period_longer_or_shorter():
    slow = times(periodic(period_ns=1_000_000, drift_ppb=500_000), duration_ns=3_000_000)
    assert [at for at, _ in slow] == [0, 1_000_500, 2_001_000]
    fast = times(periodic(period_ns=1_000_000, drift_ppb=-500_000), duration_ns=3_000_000)
    assert [at for at, _ in fast] == [0, 999_500, 1_999_000, 2_998_500]


def test_a_delay_moves_the_arrival_and_not_the_capture():
    assert times(periodic(delay_ns=7), duration_ns=150) == [(7, 0), (107, 100)]


def test_jitter_is_uniform_up_to_its_limit():
    found = times(periodic(period_ns=100 * US, jitter_ns=20 * US), duration_ns=100 * US * 2000)
    late = [at - capture for at, capture in found]
    assert len(late) == 2000
    assert 0 <= min(late) < US
    assert 19 * US < max(late) <= 20 * US
    assert sum(late) / 2000 == pytest.approx(10 * US, abs=4 * 20 * US / sqrt(12 * 2000))


def test_messages_of_a_source_do_not_overtake_each_other():
    found = times(periodic(period_ns=10, jitter_ns=500), duration_ns=3000)
    captures = [capture for _, capture in found]
    assert captures == sorted(captures)
    assert all(a <= b for (a, _), (b, _) in pairwise(found))


def test_sporadic_arrivals_keep_their_distance_and_their_mean():
    item = ArrivalSpec(source="lidar", kind="sporadic", period_ns=100 * US, distance_ns=60 * US)
    found = [at for at, _ in times(item, duration_ns=100 * US * 2000)]
    gaps = [b - a for a, b in pairwise(found)]
    assert min(gaps) >= 60 * US
    assert sum(gaps) / len(gaps) == pytest.approx(100 * US, abs=4 * 40 * US / sqrt(len(gaps)))


def test_bursts():
    item = ArrivalSpec(
        source="lidar", kind="burst", size=3, distance_ns=2, period_ns=100, offset_ns=1
    )
    assert [at for at, _ in times(item, duration_ns=200)] == [1, 3, 5, 101, 103, 105]


def test_logged_arrivals_keep_their_times_and_stamps():
    item = ArrivalSpec(source="lidar", kind="log", offset_ns=100)
    logged = {"lidar": [(0, -5), (40, 30), (2000, 1990)]}
    assert times(item, logged=logged) == [(100, 95), (140, 130)]


def test_dropped_indices_are_lost_and_the_others_count_on():
    found = events(periodic(drop_indices=frozenset({0, 2})), duration_ns=500)
    assert [(at, event.sequence) for at, event in found] == [(100, 0), (300, 1), (400, 2)]


def test_drops_come_as_often_as_said_and_change_nothing_else():
    whole = times(periodic(period_ns=100, jitter_ns=50), duration_ns=200_000)
    some = times(periodic(period_ns=100, jitter_ns=50, drop_share=0.1), duration_ns=200_000)
    assert set(some) < set(whole)
    assert 1 - len(some) / len(whole) == pytest.approx(0.1, abs=4 * sqrt(0.09 / 2000))


def test_a_source_that_is_out_captures_nothing():
    out = FaultSpec(kind="source_out", target="lidar", at_ns=100, end_ns=300)
    found = times(periodic(), duration_ns=500, faults=(out,))
    assert [at for at, _ in found] == [0, 300, 400]


def test_a_clock_step_moves_the_stamps_while_it_lasts():
    step = FaultSpec(kind="clock_step", target="lidar", at_ns=100, end_ns=300, step_ns=-1000)
    found = times(periodic(), duration_ns=400, faults=(step,))
    assert found == [(0, 0), (100, -900), (200, -800), (300, 300)]


def test_a_fault_of_one_source_leaves_the_others_alone():
    out = FaultSpec(kind="source_out", target="lidar", at_ns=0)
    found = events(periodic(), periodic("camera"), duration_ns=300, faults=(out,))
    assert [event.source for _, event in found] == ["camera"] * 3


def test_one_instant_keeps_the_order_of_the_sources_and_no_handle_comes_twice():
    found = events(periodic("camera"), periodic("lidar"), duration_ns=200)
    assert [event.source for _, event in found] == ["camera", "lidar"] * 2
    assert [event.buffer for _, event in found] == [-1, -2, -3, -4]


def test_the_draws_of_a_source_do_not_depend_on_other_sources():
    item = periodic(jitter_ns=50)
    alone = [event.log_ns for _, event in events(item)]
    other = periodic("camera", jitter_ns=50)
    beside = [event.log_ns for _, event in events(other, item) if event.source == "lidar"]
    assert alone == beside


def test_another_seed_draws_otherwise_and_the_same_seed_alike():
    item = periodic(jitter_ns=50)
    assert times(item, seed=1) == times(item, seed=1)
    assert times(item, seed=1) != times(item, seed=2)
