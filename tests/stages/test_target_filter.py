"""Which targets a filter keeps, what it says of the others, and the signs of Doppler."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.model.message import Message, Stamp
from avrt.payload import EgoMotion, Targets
from avrt.stages.mounting import Mount
from avrt.stages.radar.target_filter import TargetFilter
from avrt.stages.radar.target_list import ground_speed

NAN = math.nan


def targets(xy, **fields):
    xy = np.asarray(xy, np.float32).reshape(-1, 2)
    count = len(xy)
    usual = {
        "sigma": np.full((count, 2), 0.5, np.float32),
        "range_rate": np.full(count, NAN, np.float32),
        "velocity": np.full((count, 2), NAN, np.float32),
        "strength": np.full(count, NAN, np.float32),
        "ids": np.arange(count, dtype=np.int64),
    }
    return Targets(xy=xy, **(usual | {k: np.asarray(v) for k, v in fields.items()}))


def sent(payload, frame="radar"):
    return Message(Stamp("radar", 0, 0, 0, 0, frame), payload)


def ego(speed, yaw_rate=0.0):
    return EgoMotion(0.0, 0.0, 0.0, speed, yaw_rate, np.zeros((2, 2)), ("wheels",))


def kept(payload, motion=None, **params):
    motion = None if motion is None else Message(Stamp("ego", 0, 0, 0, 0), motion)
    return TargetFilter(**params).process(sent(payload), motion)


def seen_from(xy, velocity, sensor_velocity=(0.0, 0.0)):
    """Return the range rates of points that move over ground, from a sensor that does."""
    xy = np.asarray(xy, np.float64)
    relative = np.asarray(velocity, np.float64) - np.asarray(sensor_velocity, np.float64)
    return ((xy * relative).sum(axis=1) / np.hypot(*xy.T)).astype(np.float32)


@given(st.lists(st.tuples(*[st.floats(width=32)] * 2), max_size=20))
@settings(max_examples=50)
def test_what_is_kept_is_finite_and_in_view_and_all_that_is_no_number_is_counted(xy):
    found = kept(targets(xy))
    distance = np.hypot(*found.xy.T)
    assert np.isfinite(found.xy).all()
    assert ((distance >= 0.5) & (distance <= 250.0)).all()
    assert (np.diff(distance) >= 0).all()
    assert found.left_out == sum(not all(map(math.isfinite, pair)) for pair in xy)


@given(st.lists(st.tuples(*[st.sampled_from([NAN, math.inf, -math.inf, 0.0, 3.0])] * 3)))
@settings(max_examples=50)
def test_motion_that_is_no_number_is_unknown_and_drops_no_target(rows):
    table = np.array(rows, np.float32).reshape(-1, 3)
    xy = np.tile([20.0, 9.0], (len(rows), 1))
    found = targets(xy, velocity=table[:, :2], range_rate=table[:, 2])
    unknown = ~np.isfinite(table[:, 2]) & ~np.isfinite(table[:, :2]).all(axis=1)
    assert np.isnan(ground_speed(found, ego(15.0))).tolist() == unknown.tolist()
    assert set(np.nonzero(unknown)[0]) <= set(kept(found, ego(15.0), moving_min=1.0).ids.tolist())


def test_every_field_stays_with_its_target():
    given_ = targets(
        [(30, 0), (NAN, 1), (10, 2)],
        range_rate=np.array([1, 2, 3], np.float32),
        strength=np.array([4, 5, 6], np.float32),
    )
    found = kept(given_)
    assert found.ids.tolist() == [2, 0]
    assert found.range_rate.tolist() == [3, 1]
    assert found.strength.tolist() == [6, 4]
    assert found.left_out == 1


def test_no_targets_are_no_targets():
    assert kept(targets([])).count == 0


def test_what_was_left_out_before_stays_counted():
    before = kept(targets([(NAN, 0), (5, 0), (6, 0)]), targets_max=1)
    assert before.left_out == 2
    assert kept(before).left_out == 2


def test_a_limit_of_range_is_inclusive():
    edge = np.float32(250.0)
    beyond = np.nextafter(edge, np.float32(np.inf))
    assert kept(targets([(edge, 0), (beyond, 0)])).ids.tolist() == [0]


def test_only_the_angle_that_is_asked_for_is_kept():
    found = kept(targets([(10, 9), (10, -9), (9, 10), (-10, 0)]), azimuth_max=45.0)
    assert found.ids.tolist() == [0, 1]


def test_a_burst_of_ghosts_cannot_push_out_what_is_in_the_way():
    generator = np.random.default_rng(0)
    ghosts = generator.uniform((2, 3), (20, 20), (100, 2))
    found = kept(targets([*ghosts, (60, 0.5)]), targets_max=16)
    assert found.count == 16
    assert 100 in found.ids
    assert found.left_out == 85


def test_weak_targets_are_dropped_outside_the_own_way_only():
    strengths = np.array([10, 10, 30, NAN], np.float32)
    found = kept(targets([(20, 0), (21, 5), (22, 5), (23, 5)], strength=strengths), strength_min=20)
    assert found.ids.tolist() == [0, 2, 3]


def test_standing_targets_are_dropped_outside_the_own_way_only():
    xy = [(20, 0.5), (20, 10), (20, -10), (25, 8)]
    over_ground = [(0, 0), (0, 0), (0, 0), (12, 0)]
    payload = targets(xy, range_rate=seen_from(xy, over_ground, (15, 0)))
    assert kept(payload, ego(15.0), moving_min=1.0).ids.tolist() == [0, 3]
    assert kept(payload, None, moving_min=1.0).count == 4


def test_nothing_is_taken_for_standing_while_the_own_speed_is_not_known():
    """Ahead at the vehicle's own speed the range rate is zero, as of what stands before a start."""
    begun = EgoMotion(0.0, 0.0, 0.0, 0.0, 0.0, np.diag([225.0, 0.09]), ())
    payload = targets([(30, 3.5)], range_rate=[0.0])
    assert kept(payload, ego(0.0), moving_min=1.0).count == 0
    assert kept(payload, begun, moving_min=1.0).count == 1


def test_what_has_no_doppler_is_not_taken_for_standing():
    assert kept(targets([(20, 10)]), ego(15.0), moving_min=1.0).count == 1


def test_ground_speed_is_zero_for_what_stands_and_positive_for_what_drives_away():
    xy = [(30, 0), (30, 15), (30, -15), (-20, 5), (40, 0), (40, 0)]
    over_ground = [(0, 0)] * 4 + [(5, 0), (-5, 0)]
    payload = targets(xy, range_rate=seen_from(xy, over_ground, (12, 0)))
    assert ground_speed(payload, ego(12.0)) == pytest.approx([0, 0, 0, 0, 5, -5], abs=1e-5)


def test_ground_speed_comes_from_the_velocity_where_only_that_is_told():
    payload = targets([(30, 0), (0, 20)], velocity=np.array([[-12, 0], [-12, 3]], np.float32))
    assert ground_speed(payload, ego(12.0)) == pytest.approx([0, 3], abs=1e-5)


@given(
    st.floats(-5, 5), st.floats(-3, 3), st.floats(-3.1, 3.1), st.floats(-10, 30), st.floats(-1, 1)
)
@settings(max_examples=40)
def test_a_corner_radar_on_a_turning_vehicle_sees_the_world_stand_still(x, y, yaw, speed, rate):
    """The sensor's velocity comes from moving the mount a little, not from its formula."""
    dt = 1e-5
    cos, sin = math.cos(rate * dt), math.sin(rate * dt)
    step = np.array([speed * dt + x * cos - y * sin - x, x * sin + y * cos - y]) / dt
    turn = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
    xy = [(20, 3), (5, -17), (-8, 2)]
    payload = targets(xy, range_rate=seen_from(xy, [(0, 0)] * 3, turn @ step))
    assert ground_speed(payload, ego(speed, rate), Mount(x, y, yaw)) == pytest.approx(0, abs=1e-3)


@given(
    st.floats(-3, 3), st.floats(-3.1, 3.1), st.floats(-10, 30), st.floats(-1, 1), st.floats(-1, 1)
)
@settings(max_examples=40)
def test_moving_on_in_two_steps_is_moving_on_in_one(x, yaw, speed, rate, seconds):
    mount, motion = Mount(x, 0.3, yaw), ego(speed, rate)
    xy = np.array([[20.0, 3.0], [-5.0, 40.0]])
    half = np.full(2, seconds / 2)
    twice = mount.moved_on(mount.moved_on(xy, half, motion), half, motion)
    assert mount.moved_on(xy, 2 * half, motion) == pytest.approx(twice, abs=1e-9)


def test_a_frame_without_a_transform_is_a_fault():
    with pytest.raises(DataFault, match="no_transform"):
        TargetFilter(vehicle_frame="base_link").process(sent(targets([(10, 0)])), None)


def test_a_sensor_on_its_side_is_refused():
    side = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    stage = TargetFilter(vehicle_frame="base_link")
    stage.calibrate(Frames([TransformSpec(parent="base_link", child="radar", matrix=side)]))
    with pytest.raises(SpecError, match="tilted by 90 deg"):
        stage.process(sent(targets([(10, 0)])))


def test_the_own_way_is_the_vehicles_not_the_sensors():
    corner = (0.0, -1.0, 0.0, 3.0, 1.0, 0.0, 0.0, 0.8, 0.0, 0.0, 1.0, 0.0)  # looks to the left
    stage = TargetFilter(vehicle_frame="base_link", strength_min=20.0)
    stage.calibrate(Frames([TransformSpec(parent="base_link", child="radar", matrix=corner)]))
    weak = targets([(0, -20), (20, 0)], strength=np.zeros(2, np.float32))
    assert stage.process(sent(weak)).ids.tolist() == [0]


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"range_min": 300.0}, "range_min"),
        ({"azimuth_max": 0.0}, "azimuth_max"),
        ({"moving_min": -1.0}, "moving_min"),
        ({"strength_min": math.inf}, "strength_min"),
        ({"targets_max": 0}, "targets_max"),
    ],
)
def test_impossible_parameters_are_refused_by_name(params, key):
    with pytest.raises(SpecError) as caught:
        TargetFilter(**params)
    assert caught.value.key == (key,)
