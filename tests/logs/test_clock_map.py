from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.logs.clock_map import BACK_NS_MIN, GAP_STEPS, ClockMap

MS = 1_000_000
S = 1000 * MS
START = 1_700_000_000 * S


def play(stamps, logs=None, clock=None):
    """Return (mapped times, {kind: count}, details) of stamps; logs default to the stamps."""
    clock = clock or ClockMap()
    told = []
    logs = stamps if logs is None else logs
    mapped = [
        clock.capture_ns(stamp, log, lambda *odd: told.append(odd))
        for stamp, log in zip(stamps, logs, strict=True)
    ]
    return mapped, Counter(kind for kind, _ in told), [detail for _, detail in told]


def regular(count, period=100 * MS, start=START):
    return [start + k * period for k in range(count)]


def test_regular_stamps_are_mapped_as_they_are():
    assert play(regular(50)) == (regular(50), {}, [])


@given(st.integers(20 * MS, S), st.integers(0, 2**32))
def test_jitter_of_8_ms_gives_no_alarm(period, seed):
    generator = np.random.default_rng(seed)
    noise = generator.integers(-8 * MS, 8 * MS, 100).tolist()
    logs = regular(100, period)
    stamps = [log + n for log, n in zip(logs, noise, strict=True)]
    assert play(stamps, logs) == (stamps, {}, [])


@pytest.mark.slow
@pytest.mark.parametrize("period", [20 * MS, 50 * MS, 100 * MS])
def test_jitter_of_8_ms_gives_no_alarm_in_ten_thousand_messages(period):
    noise = np.random.default_rng(1).integers(-8 * MS, 8 * MS, 10_000).tolist()
    logs = regular(10_000, period)
    assert play([log + n for log, n in zip(logs, noise, strict=True)], logs)[1] == {}


def test_equal_stamps_are_counted_and_delivered():
    stamps = [at for at in regular(5) for _ in range(3)]
    assert play(stamps)[:2] == (stamps, {"stamp_duplicate": 10})


@pytest.mark.parametrize(
    ("back", "told"),
    [(85_000, 0), (BACK_NS_MIN - 1, 0), (BACK_NS_MIN, 1), (360 * MS, 1)],
)
def test_a_step_back_is_told_from_a_millisecond_and_wipes_nothing(back, told):
    logs = regular(20)
    stamps = [*logs[:10], logs[9] - back, *logs[11:]]
    clock = ClockMap()
    mapped, kinds, _ = play(stamps, logs, clock)
    assert mapped == stamps
    assert kinds["stamp_back"] == told
    assert set(kinds) <= {"stamp_back", "stamp_gap"}
    assert clock.epoch == 0


def test_a_hole_is_told_with_its_length_and_what_is_usual():
    stamps = [*regular(20, 50 * MS), START + 19 * 50 * MS + 461 * MS]
    mapped, kinds, details = play(stamps)
    assert mapped == stamps
    assert kinds == {"stamp_gap": 1}
    assert details == ["no stamp for 461 ms, where 50 ms is usual"]


@pytest.mark.parametrize(("steps", "told"), [(GAP_STEPS, 0), (GAP_STEPS + 1, 1)])
def test_a_declared_period_tells_what_a_hole_is_from_the_start(steps, told):
    stamps = [START, START + steps * 100 * MS]
    assert play(stamps, clock=ClockMap(period_ns=100 * MS))[1]["stamp_gap"] == told


def test_another_rate_than_the_declared_one_is_told_once_and_is_no_hole():
    """100 Hz declared, 25 Hz there: 40 ms are usual, not a hole, once two of them came."""
    stamps = regular(60, 40 * MS)
    _, kinds, details = play(stamps, clock=ClockMap(period_ns=10 * MS))
    assert kinds == {"stamp_gap": 1, "rate_differs": 1}
    assert details[-1] == "100 Hz is declared, it has 25 Hz"
    assert play(regular(60, 11 * MS), clock=ClockMap(period_ns=10 * MS))[1] == {}


@pytest.mark.parametrize("jump", [0, 37 * S, -18 * S])
def test_neither_a_hole_nor_a_jump_is_another_rate(jump):
    """A report from the field: an hour in which nothing came is no rate of 0.01 Hz."""
    logs = [*regular(20), *regular(30, start=START + 3600 * S)]
    stamps = [at + (jump if k >= 10 else 0) for k, at in enumerate(logs)]
    kinds = play(stamps, logs, ClockMap(period_ns=100 * MS))[1]
    assert kinds == {"stamp_gap": 1} | ({"stamp_jump": 1} if jump else {})


def test_bursts_are_usual_for_a_sensor_that_sends_them():
    stamps = [at + k * MS // 10 for at in regular(20) for k in range(6)]
    assert play(stamps)[1] == {}


def test_a_pause_of_sensor_and_log_is_a_hole_and_no_jump():
    stamps = [*regular(20), *regular(10, start=START + 20 * S)]
    assert play(stamps)[:2] == (stamps, {"stamp_gap": 1})


def test_a_log_that_stalls_and_catches_up_is_late_and_nothing_else():
    stamps = regular(60)
    logs = [at if k < 20 else max(at, stamps[20] + 3 * S) for k, at in enumerate(stamps)]
    assert play(stamps, logs)[:2] == (stamps, {})


@pytest.mark.parametrize(
    ("jump", "words"),
    [
        (37 * S, "jump 37 s ahead of the log (TAI is 37 s ahead of UTC"),
        (-18 * S, "jump 18 s back against the log (GPS time is 18 s ahead of UTC"),
        (5 * S, "jump 5 s ahead of the log"),
    ],
)
def test_a_jump_that_stays_moves_the_offset_with_it(jump, words):
    logs = regular(40)
    stamps = [at if k < 20 else at + jump for k, at in enumerate(logs)]
    clock = ClockMap()
    mapped, kinds, (detail,) = play(stamps, logs, clock)
    assert mapped == logs
    assert kinds == {"stamp_jump": 1}
    assert words in detail
    assert clock.epoch == 0


def test_one_wild_stamp_is_two_jumps_and_no_loop():
    logs = regular(40)
    stamps = [at + 37 * S * (k == 20) for k, at in enumerate(logs)]
    clock = ClockMap()
    assert play(stamps, logs, clock)[:2] == (logs, {"stamp_jump": 2})
    assert clock.epoch == 0


def test_a_clock_that_comes_back_is_no_loop_even_among_stamps_seen_before():
    logs = regular(1200)
    stamps = [at + 37 * S * (400 <= k < 900) for k, at in enumerate(logs)]
    clock = ClockMap()
    assert play(stamps, logs, clock)[:2] == (logs, {"stamp_jump": 2})
    assert clock.epoch == 0


def test_stamps_that_begin_anew_are_a_loop_each_time_and_time_goes_on():
    logs = regular(150)
    stamps = [START + (k % 50) * 100 * MS for k in range(150)]
    clock = ClockMap()
    mapped, kinds, details = play(stamps, logs, clock)
    assert mapped == logs
    assert kinds == {"loop": 2}
    assert clock.epoch == 2
    assert details[0].startswith("stamps go back 5 s to where they were before")


@pytest.mark.parametrize("lag", [64 * S, -64 * S, 15 * 24 * 3600 * S])
def test_another_clock_is_told_once_and_latency_is_not(lag):
    logs = regular(30)
    mapped, kinds, _ = play([at - lag for at in logs], logs)
    assert mapped == logs
    assert kinds == {"clock_offset": 1}
    late = [at + S // 2 for at in logs]
    assert play(logs, late)[:2] == (logs, {})


def test_a_declared_offset_is_obeyed():
    logs = regular(30)
    stamps = [at - 64 * S for at in logs]
    assert play(stamps, logs, ClockMap(offset_ns=0))[:2] == (stamps, {})


@given(st.lists(st.tuples(st.integers(-5 * S, 5 * S), st.integers(0, 2 * S)), max_size=60))
def test_mapped_time_goes_with_the_stamp_or_where_that_jumps_with_the_log(steps):
    stamps, logs = [START], [START]
    for step, logged in steps:
        stamps.append(stamps[-1] + step)
        logs.append(logs[-1] + logged)
    clock = ClockMap()
    mapped, kinds, _ = play(stamps, logs, clock)
    jumps = 0
    for k, (step, logged) in enumerate(steps):
        went = mapped[k + 1] - mapped[k]
        assert went in {step, logged}
        jumps += went != step
        assert went == step or abs(step - logged) > S
    assert jumps <= kinds["stamp_jump"] + kinds["loop"]
    assert clock.epoch == kinds["loop"]
