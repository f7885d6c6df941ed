"""A clock that goes at another speed than the log's: told where it is one, and followed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.logs.clock_map import ClockMap
from avrt.logs.drift import CHANGE_NS, PPM_MAX, Drift
from avrt.units import NS_PER_MS, NS_PER_S

START = 1_700_000_000 * NS_PER_S
SECONDS = 130
signs = st.sampled_from([-1, 1])
periods = st.sampled_from([100, 200])
seeds = st.integers(0, 2**32)


def series(ppm, jitter_ms=0.0, period_ms=100, seed=0, seconds=SECONDS):
    """Return stamps and log times: a clock that goes `ppm` too fast, latency of 3 ms and more."""
    at = np.arange(0, seconds * NS_PER_S, period_ms * NS_PER_MS)
    late = np.random.default_rng(seed).uniform(0, jitter_ms * NS_PER_MS, len(at))
    logs = START + at + 3 * NS_PER_MS + late.astype(np.int64)
    return (START + at + (at * (ppm * 1e-6)).astype(np.int64)).tolist(), logs.tolist()


def played(stamps, logs, clock=None):
    """Return mapped times, and the details of what is odd."""
    told, clock = [], clock or ClockMap()
    mapped = [
        clock.capture_ns(stamp, log, lambda *odd: told.append(odd))
        for stamp, log in zip(stamps, logs, strict=True)
    ]
    return mapped, told


@settings(max_examples=20, deadline=None)
@given(st.floats(70, PPM_MAX - 20), signs, st.floats(0, 4), periods, seeds)
def test_a_drift_above_50_ppm_is_told_once(ppm, sign, jitter, period, seed):
    _, ((kind, detail),) = played(*series(sign * ppm, jitter, period, seed))
    assert kind == "clock_drift"
    assert detail.startswith("its clock is ")
    assert f" ppm {'fast' if sign > 0 else 'slow'}; " in detail
    assert abs(int(detail.split()[3]) - ppm) < 0.3 * ppm


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 40), signs, st.floats(0, 20), periods, seeds)
def test_a_drift_below_and_jitter_are_not_told(ppm, sign, jitter, period, seed):
    stamps, logs = series(sign * ppm, jitter, period, seed)
    assert played(stamps, logs) == (stamps, [])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 1290), st.integers(1, 900), signs, st.floats(0, 3), seeds)
def test_a_latency_that_changes_at_once_is_no_drift(place, size_ms, sign, jitter, seed):
    stamps, logs = series(0, jitter, seed=seed)
    moved = [at + sign * size_ms * NS_PER_MS * (k >= place) for k, at in enumerate(stamps)]
    assert "clock_drift" not in [kind for kind, _ in played(moved, logs)[1]]


@pytest.mark.parametrize("ppm", [-200, 200])
def test_200_ppm_are_known_in_half_a_minute_and_followed_from_then_on(ppm):
    stamps, logs = series(ppm, jitter_ms=1, seconds=600)
    mapped, told = played(stamps, logs)
    assert [kind for kind, _ in told] == ["clock_drift"]
    off_ms = [abs(m - k * 100 * NS_PER_MS - START) / NS_PER_MS for k, m in enumerate(mapped)]
    assert off_ms[399] == pytest.approx(8, abs=2.1)  # what it was when it was told stays
    assert max(off_ms) < 9
    assert mapped == sorted(mapped)
    assert abs(stamps[-1] - START - 5999 * 100 * NS_PER_MS) / NS_PER_MS > 119


def test_what_grows_faster_than_any_clock_is_latency():
    stamps, logs = series(-3000)
    assert played(stamps, logs) == (stamps, [])


def test_a_clock_that_is_corrected_drifts_no_more():
    drift, told = Drift(), []
    for second in range(400):
        lag_ns = min(second, 150) * 200_000
        told.append((drift.take(second * NS_PER_S, lag_ns), drift.ppb))
    assert sum(begins for begins, _ in told) == 1
    assert told[140][1] == 200_000
    assert told[399][1] == 0


def test_a_drift_goes_on_while_latency_changes():
    stamps, logs = series(-200, jitter_ms=1, seconds=300)
    moved = [at - 30 * NS_PER_MS * (k >= 1500) for k, at in enumerate(stamps)]
    clock = ClockMap()
    assert [kind for kind, _ in played(moved, logs, clock)[1]] == ["clock_drift"]
    assert clock.offset_ns == pytest.approx(200e-6 * 270 * NS_PER_S, rel=0.05)


def test_nothing_is_compared_across_a_jump():
    stamps, logs = series(200, seconds=22)
    clock = ClockMap()
    for jump_s in range(0, 5 * 37, 37):
        gone = jump_s // 37 * 22 * NS_PER_S
        moved = [at + jump_s * NS_PER_S + gone for at in stamps]
        assert "clock_drift" not in [
            kind for kind, _ in played(moved, [at + gone for at in logs], clock)[1]
        ]


def test_a_change_is_known_as_soon_as_it_is_large_enough():
    drift = Drift()
    begins = [second for second in range(120) if drift.take(second * NS_PER_S, second * 100_000)]
    assert begins == [CHANGE_NS // 100_000 + 5]  # the least lag of five seconds is known after them
