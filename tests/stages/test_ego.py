"""EgoEstimator: what it makes of readings, and of readings that come late, twice or not at all."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from driving import drive, fix, gnss_messages, imu_messages, in_order, message, run, speed_messages
from hypothesis import example, given
from hypothesis import strategies as st

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import Imu, Speed
from avrt.stages.ego.estimator import EgoEstimator
from avrt.stages.ego.vehicle import GYRO_BIAS, SPEED


def steady(seconds=4.0, speed=10.0, yaw_rate=0.0):
    return drive(seconds, lambda _: speed, lambda _: yaw_rate)


def everything(path, seed=1, **imu):
    rng = np.random.default_rng(seed)
    return in_order(
        imu_messages(path, rng, **imu), speed_messages(path, rng), gnss_messages(path, rng)
    )


def test_a_straight_drive_is_straight():
    path = steady()
    motion = run(EgoEstimator(), everything(path))[-1]
    assert motion.speed == pytest.approx(10, abs=0.15)
    assert motion.yaw_rate == pytest.approx(0, abs=0.02)
    assert (motion.x, motion.y) == pytest.approx((40, 0), abs=0.8)
    assert motion.sensors == ("imu", "speed", "gnss")


def test_a_circle_closes():
    path = steady(6.0, yaw_rate=2 * math.pi / 6.0)
    rng = np.random.default_rng(3)
    messages = in_order(imu_messages(path, rng, 100.0), speed_messages(path, rng))
    motion = run(EgoEstimator(), messages)[-1]
    assert math.hypot(motion.x, motion.y) < 0.6
    assert math.remainder(motion.yaw, 2 * math.pi) == pytest.approx(0, abs=0.05)
    assert motion.yaw_rate == pytest.approx(2 * math.pi / 6, abs=0.03)


def test_reverse_is_driven_backwards():
    path = steady(speed=-3.0)
    motion = run(EgoEstimator(), everything(path))[-1]
    assert motion.speed == pytest.approx(-3, abs=0.15)
    assert motion.x == pytest.approx(-12, abs=0.8)


def test_standing_still_it_learns_the_bias_of_the_gyro_and_does_not_drift():
    path = steady(8.0, speed=0.0)
    rng = np.random.default_rng(5)
    still = [("speed", message("speed", k, k / 20, Speed(0.0))) for k in range(160)]
    stage = EgoEstimator()
    motions = run(stage, in_order(imu_messages(path, rng, 25.0, bias=0.01), still))
    assert stage.state.vehicle.mean[GYRO_BIAS] == pytest.approx(0.01, abs=0.002)
    assert motions[-1].yaw_rate == pytest.approx(0, abs=0.01)
    assert abs(motions[-1].yaw - motions[100].yaw) < 0.01  # a bias of 0.01 rad/s would add 0.055
    assert math.hypot(motions[-1].x, motions[-1].y) < 0.05


def test_satellites_alone_tell_speed_and_turning():
    path = drive(6.0, lambda _: 12.0, lambda t: 0.15 if t > 2 else 0.0)
    motion = run(EgoEstimator(), gnss_messages(path, np.random.default_rng(7), sigma=0.05))[-1]
    assert motion.speed == pytest.approx(12, abs=0.6)
    assert motion.yaw_rate == pytest.approx(0.15, abs=0.08)
    assert motion.sensors == ("gnss",)


def test_satellites_correct_the_scale_of_the_wheels():
    path = steady(20.0, speed=15.0)
    rng = np.random.default_rng(9)
    wheels = speed_messages(path, rng, 5.0, scale=0.98)
    alone = run(EgoEstimator(), wheels)[-1]
    helped = run(EgoEstimator(), in_order(wheels, gnss_messages(path, rng, 5.0, sigma=0.2)))[-1]
    assert alone.speed == pytest.approx(14.7, abs=0.1)
    assert abs(alone.speed - 15) < 3 * math.sqrt(alone.covariance[0, 0])
    assert helped.speed == pytest.approx(15, abs=0.12)


def test_a_gyro_alone_knows_no_speed():
    path = steady(yaw_rate=0.2)
    motion = run(EgoEstimator(), imu_messages(path, np.random.default_rng(2)))[-1]
    assert motion.yaw_rate == pytest.approx(0.2, abs=0.03)
    assert math.sqrt(motion.covariance[0, 0]) > 10
    assert motion.sensors == ("imu",)


def test_a_mounted_unit_is_turned_into_the_vehicle_frame():
    stage = EgoEstimator(frame="base")
    down = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0)
    stage.calibrate(Frames([TransformSpec(parent="base", child="unit", matrix=down)]))
    for k in range(40):
        turning = Imu(np.array([0.0, 0.0, -9.81]), np.array([0.0, 0.0, -0.3]))
        motion = stage.process(imu=message("imu", k, k / 50, turning, "unit"))
    assert motion.yaw_rate == pytest.approx(0.3, abs=0.03)
    with pytest.raises(DataFault, match="no transform"):
        stage.process(imu=message("imu", 99, 1.0, turning, "elsewhere"))


# What time does to it.


@cache
def two_seconds():
    stage = EgoEstimator()
    run(stage, everything(steady(2.0)))
    return stage.freeze()


def late_stage():
    stage = EgoEstimator()
    stage.thaw(two_seconds())
    return stage


@cache
def last_instant():
    """Return the three readings of one instant after those two seconds, each once."""
    return dict(everything(steady(2.1), seed=4)[-3:])


@given(st.permutations(["imu", "gnss", "speed"]))
def test_the_order_of_readings_of_one_instant_does_not_matter(order):
    now = last_instant()
    assert len({one.stamp.capture_ns for one in now.values()}) == 1
    one_by_one, at_once = late_stage(), late_stage()
    last = [one_by_one.process(**{name: now[name]}) for name in order][-1]
    together = at_once.process(**now)
    assert last.speed == pytest.approx(together.speed, abs=1e-3)
    assert last.yaw_rate == pytest.approx(together.yaw_rate, abs=1e-4)
    assert last.covariance == pytest.approx(together.covariance, rel=0.02, abs=1e-6)


def test_a_reading_that_comes_again_changes_nothing():
    path = steady()
    messages = everything(path)
    again = [
        (name, replace(one, stamp=replace(one.stamp, sequence=2 * one.stamp.sequence + twice)))
        for name, one in messages
        for twice in (0, 1)
    ]
    once, twice = run(EgoEstimator(), messages), run(EgoEstimator(), again)
    assert [m.speed for m in twice[1::2]] == [m.speed for m in once]


def test_a_message_that_is_sampled_again_changes_nothing():
    stage, now = late_stage(), last_instant()
    stage.process(**now)
    state = stage.freeze()
    stage.process(**now)
    stage.process()
    assert stage.freeze() is state


def test_a_receiver_that_thinks_little_of_itself_is_still_of_use():
    path = steady(6.0)
    vague = [
        (name, replace(one, payload=replace(one.payload, sigma=np.full(3, 8.0))))
        for name, one in gnss_messages(path, np.random.default_rng(1))
    ]
    assert run(EgoEstimator(), vague)[-1].speed == pytest.approx(10, abs=0.8)


@given(st.integers(1, 400_000))
@example(85)
def test_a_late_reading_is_used_at_its_own_time_and_never_turns_time_back(late_us):
    stage = late_stage()
    before = stage.state
    motion = stage.process(speed=message("speed", 999, 2.0 - late_us / 1e6, Speed(10.0)))
    assert stage.state.capture_ns == before.capture_ns
    assert motion.speed == pytest.approx(before.vehicle.mean[SPEED], abs=0.1)
    assert motion.covariance[0, 0] <= before.vehicle.covariance[SPEED, SPEED] + 1e-12


def test_a_late_reading_says_little_about_now():
    fresh, late = late_stage(), late_stage()
    before = fresh.state.vehicle.mean[SPEED]
    now = fresh.process(speed=message("speed", 999, 2.0005, Speed(10.3))).speed
    then = late.process(speed=message("speed", 999, 1.2, Speed(10.3))).speed
    assert abs(then - before) < abs(now - before)


def test_jitter_of_the_stamps_raises_no_alarm():
    path, rng = steady(12.0), np.random.default_rng(6)
    shaken = [
        (name, replace(one, stamp=replace(one.stamp, capture_ns=one.stamp.capture_ns + late_ns)))
        for name, one in everything(path)
        for late_ns in [int(rng.uniform(-8e6, 8e6))]
    ]
    stage, rejected = EgoEstimator(), 0
    for name, one in shaken:
        motion = stage.process(**{name: one})
        rejected += stage.state.inputs[name].rejected
    assert rejected == 0
    assert motion.speed == pytest.approx(10, abs=0.15)


def test_a_clock_that_steps_back_restarts_there_with_what_is_known():
    stage = late_stage()
    variance = stage.state.vehicle.covariance[SPEED, SPEED]
    motion = stage.process(imu=message("imu", 999, 0.5, Imu(np.zeros(3), np.zeros(3))))
    assert stage.state.capture_ns == 500_000_000
    assert motion.speed == pytest.approx(10, abs=0.3)
    assert motion.covariance[0, 0] > variance
    after = stage.process(speed=message("speed", 999, 0.55, Speed(10.0)))
    assert after.sensors == ("imu", "speed")


def test_an_input_that_lags_by_more_than_a_second_is_not_used():
    stage = EgoEstimator()
    run(stage, speed_messages(steady(2.0), np.random.default_rng(1)))
    before = stage.state.vehicle
    motion = stage.process(imu=message("imu", 0, 0.5, Imu(np.zeros(3), np.zeros(3))))
    assert motion.sensors == ("speed",)
    assert stage.state.vehicle is before


def test_a_stamp_after_its_arrival_is_a_fault_and_changes_nothing():
    stage = late_stage()
    before = stage.state
    one = message("speed", 999, 39.0, Speed(10.0))
    with pytest.raises(DataFault, match=r"captured 36\.900 s after it came"):
        stage.process(speed=replace(one, stamp=replace(one.stamp, publish_ns=2_100_000_000)))
    assert stage.state.vehicle is before.vehicle
    assert stage.state.capture_ns == before.capture_ns


def test_in_a_gap_it_predicts_and_says_so():
    stage = late_stage()
    before = stage.state.vehicle.covariance[SPEED, SPEED]
    invalid = replace(fix(0, 0), valid=False)
    motion = stage.process(gnss=message("gnss", 999, 7.0, invalid))
    assert motion.sensors == ()
    assert motion.x == pytest.approx(70, abs=10)
    assert motion.covariance[0, 0] > before + 1
    back = stage.process(speed=message("speed", 999, 7.1, Speed(4.0)))
    assert back.speed == pytest.approx(4, abs=0.3)


# What is wrong with readings.


@pytest.mark.parametrize(
    "bad",
    [
        {"speed": Speed(math.nan)},
        {"speed": Speed(1.0, -math.inf)},
        {"imu": Imu(np.zeros(3), np.array([0, 0, np.inf]))},
        {"imu": Imu(np.array([np.nan, 0, 0]), np.zeros(3))},
        {"gnss": replace(fix(0, 0), latitude=math.nan)},
        {"gnss": replace(fix(0, 0), latitude=91.0)},
    ],
)
def test_an_impossible_reading_is_one_fault(bad):
    stage = late_stage()
    before = stage.state.vehicle
    ((name, payload),) = bad.items()
    one = message(name, 999, 2.1, payload)
    with pytest.raises(DataFault, match="impossible_reading"):
        stage.process(**{name: one})
    assert stage.state.vehicle is before
    assert stage.process(**{name: one}).speed == pytest.approx(10, abs=0.2)


def test_a_fix_without_a_position_is_not_used():
    stage = late_stage()
    nowhere = replace(fix(0, 0), latitude=math.nan, valid=False)
    for k in range(30):
        motion = stage.process(gnss=message("gnss", 999 + k, 2.1 + k / 10, nowhere))
    assert "gnss" not in motion.sensors


def test_fixes_with_a_wrong_clock_between_good_ones_are_left_out():
    path = steady(5.0, speed=12.0)
    good = gnss_messages(path, np.random.default_rng(1), 20.0, sigma=0.05)
    wrong = [
        ("gnss", message("gnss", 1000 + k, 1.02 + k / 20, fix(12 * (1.48 + k / 20), 0.0)))
        for k in range(9)
    ]
    motions = run(EgoEstimator(), in_order(good, wrong))
    speeds = [m.speed for m in motions[12:]]
    assert max(abs(speed - 12) for speed in speeds) < 1.0


def test_satellites_that_jump_and_stay_do_not_move_the_vehicle():
    path = steady(6.0)
    rng = np.random.default_rng(1)
    jumped = [
        ("gnss", message("gnss", k, k / 10, fix(k + (30 if k > 20 else 0), 20 if k > 20 else 0)))
        for k in range(60)
    ]
    stage = EgoEstimator()
    motions = run(stage, in_order(jumped, speed_messages(path, rng), imu_messages(path, rng)))
    assert motions[-1].x == pytest.approx(59.5, abs=2)
    assert motions[-1].speed == pytest.approx(10, abs=0.4)
    assert motions[-1].sensors == ("imu", "speed", "gnss")


def test_wheels_that_keep_saying_otherwise_are_believed():
    stage = late_stage()
    for k in range(40):
        motion = stage.process(speed=message("speed", 999 + k, 2.0 + (k + 1) / 50, Speed(3.0)))
    assert motion.speed == pytest.approx(3, abs=0.5)


# Its state.


def test_a_thawed_stage_goes_on_as_the_frozen_one():
    messages = everything(steady())
    first, second = EgoEstimator(), EgoEstimator()
    run(first, messages[:100])
    second.thaw(first.freeze())
    assert [m.speed for m in run(first, messages[100:])] == [
        m.speed for m in run(second, messages[100:])
    ]
    with pytest.raises(SpecError, match="EgoEstimator"):
        second.thaw("nonsense")


def test_parameters_are_checked():
    with pytest.raises(SpecError, match="gyro_sigma"):
        EgoEstimator(gyro_sigma=0)


@pytest.mark.slow
def test_errors_are_as_large_as_the_covariance_says():
    """NEES of speed and yaw rate over 12 drives within wide chi-square bounds (two numbers)."""
    total, count = 0.0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        push, turn = rng.uniform(0.3, 1.2), rng.uniform(0.05, 0.2)

        def speed(t, push=push):
            return 10 + 2 * push * math.sin(0.8 * t)

        def yaw_rate(t, turn=turn):
            return turn * math.sin(0.5 * t)

        path = drive(12.0, speed, yaw_rate)
        for (_, one), motion in zip(
            messages := everything(path, seed), run(EgoEstimator(), messages), strict=True
        ):
            at = round(one.stamp.capture_ns / 1e6)
            if at > 4000 and at % 200 == 0:
                error = np.array([motion.speed, motion.yaw_rate]) - path[at, 4:6]
                total += error @ np.linalg.solve(motion.covariance, error)
                count += 1
    assert count > 400
    assert 0.5 < total / count < 3.0
