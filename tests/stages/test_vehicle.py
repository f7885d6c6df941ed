"""The filter of the vehicle's motion: its arcs, its covariance, and readings from the past."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.stages.ego import readings, vehicle
from avrt.stages.ego.geodesy import LocalPlane, earth_centred
from avrt.stages.ego.vehicle import ACCELERATION, SPEED, STATES, YAW, YAW_RATE, Vehicle, X, Y

numbers = st.floats(-2, 2)


def state(speed=0.0, yaw=0.0, yaw_rate=0.0, acceleration=0.0):
    mean = np.zeros(STATES)
    mean[[YAW, SPEED, YAW_RATE, ACCELERATION]] = yaw, speed, yaw_rate, acceleration
    return mean


@given(st.floats(-30, 30), st.floats(-3, 3), st.floats(-1.5, 1.5), st.floats(0.001, 0.5))
def test_the_arc_is_a_circle(speed, yaw, yaw_rate, dt):
    after, _ = vehicle.moved(state(speed, yaw, yaw_rate), dt)
    if abs(yaw_rate) < 1e-6:
        assert after[[X, Y]] == pytest.approx(
            [speed * dt * math.cos(yaw), speed * dt * math.sin(yaw)], abs=1e-4
        )
        return
    radius = speed / yaw_rate
    centre = -radius * math.sin(yaw), radius * math.cos(yaw)
    turned = yaw + yaw_rate * dt
    there = centre[0] + radius * math.sin(turned), centre[1] - radius * math.cos(turned)
    assert after[[X, Y]] == pytest.approx(there, abs=1e-5)


@given(st.floats(-30, 30), numbers, numbers, numbers, st.floats(-0.5, 0.5))
def test_the_derivative_is_that_of_the_arc(speed, yaw, yaw_rate, acceleration, dt):
    mean = state(speed, yaw, yaw_rate, acceleration)
    _, step = vehicle.moved(mean, dt)
    for column in (YAW, SPEED, YAW_RATE, ACCELERATION):
        delta = np.zeros(STATES)
        delta[column] = 1e-6
        high, low = vehicle.moved(mean + delta, dt)[0], vehicle.moved(mean - delta, dt)[0]
        change = (high - low) / 2e-6
        change[YAW] = math.remainder(high[YAW] - low[YAW], 2 * math.pi) / 2e-6
        assert step[:, column] == pytest.approx(change, abs=1e-5)


@given(st.floats(0, 20))
def test_time_makes_nothing_more_certain(seconds):
    before = vehicle.at_start()
    after = vehicle.predicted(before, seconds)
    assert (np.diag(after.covariance)[:5] >= np.diag(before.covariance)[:5] - 1e-9).all()
    assert np.linalg.eigvalsh(after.covariance).min() > -1e-9


@given(
    st.lists(st.tuples(st.sampled_from("gws"), st.floats(-3, 3), st.floats(0, 0.3)), max_size=30)
)
def test_the_covariance_stays_a_covariance(told):
    now = vehicle.at_start()
    for kind, value, age in told:
        now = vehicle.predicted(now, 0.05)
        reading = {
            "g": readings.gyro(value, 0.01),
            "w": readings.wheels(value, 0.1),
            "s": readings.position(value, 0.0, 0.5),
        }[kind]
        now = vehicle.corrected(now, reading, age).vehicle
        assert np.array_equal(now.covariance, now.covariance.T)
        assert np.linalg.eigvalsh(now.covariance).min() > -1e-9


def test_a_reading_from_the_past_is_compared_with_the_past():
    braking = Vehicle(state(speed=10.0, acceleration=-4.0), np.eye(STATES) * 0.01)
    fitting = vehicle.corrected(braking, readings.speed(12.0, 0.1), 0.5)
    assert fitting.vehicle.mean[SPEED] == pytest.approx(10, abs=0.2)
    assert fitting.squared < 9
    assert vehicle.corrected(braking, readings.speed(12.0, 0.1), 0.0).squared > 100


def test_east_and_north_are_those_of_the_ellipsoid():
    plane = LocalPlane(49.0, 8.4)
    assert plane.east_north(49.0, 8.4) == (0.0, 0.0)
    # Metres a degree at 49 degrees north: 111,209 along the meridian and 73,171 along the parallel.
    east, north = plane.east_north(49.001, 8.4)
    assert (east, north) == pytest.approx((0.0, 111.21), abs=0.01)
    east, north = plane.east_north(49.0, 8.401)
    assert (east, north) == pytest.approx((73.17, 0.0), abs=0.01)


def test_the_poles_and_the_equator_lie_on_their_axes():
    assert earth_centred(0.0, 0.0, 0.0) == pytest.approx((6_378_137.0, 0.0, 0.0))
    assert earth_centred(90.0, 0.0, 0.0) == pytest.approx((0.0, 0.0, 6_356_752.3142), abs=1e-3)
