"""Frames that are fixed to one vehicle drive arcs of their own and agree about everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.model.frames import composed, inverted
from avrt.stages.fusion import tracking
from avrt.stages.fusion.planar import Shift, Twist, heading, mounted

small = st.floats(-2, 2)
TURNED = (0.0, 1.0, 0.0, 0.5, -1.0, 0.0, 0.0, -2.0, 0.0, 0.0, 1.0, 0.3)


def matrix(shift):
    cos, sin = math.cos(shift.yaw), math.sin(shift.yaw)
    return (cos, -sin, 0.0, shift.x, sin, cos, 0.0, shift.y, 0.0, 0.0, 1.0, 0.0)


@given(speed=st.floats(-20, 20), yaw_rate=small, seconds=st.floats(0, 3))
def test_a_mounted_frame_goes_where_the_vehicle_takes_it(speed, yaw_rate, seconds):
    vehicle = Twist(x=speed, yaw_rate=yaw_rate).during(seconds)
    frame = mounted(speed, yaw_rate, TURNED).during(seconds)
    expected = composed(composed(TURNED, matrix(vehicle)), inverted(TURNED))
    assert matrix(frame) == pytest.approx(expected, abs=1e-9)


@given(x=small, y=small, yaw_rate=small, first=st.floats(0, 2), second=st.floats(0, 2))
def test_an_arc_is_its_parts(x, y, yaw_rate, first, second):
    twist = Twist(x, y, yaw_rate)
    whole, parts = twist.during(first + second), twist.during(first).then(twist.during(second))
    assert (parts.x, parts.y, parts.yaw) == pytest.approx((whole.x, whole.y, whole.yaw), abs=1e-9)


def test_the_speed_of_a_point_is_larger_on_the_outside_of_a_bend():
    twist = Twist(x=10.0, yaw_rate=0.5)
    assert twist.at(0.0, -4.0) == (12.0, 0.0)
    assert twist.at(3.0, 0.0) == (10.0, 1.5)


def test_a_quarter_turn_is_told():
    assert heading(TURNED) == pytest.approx(-math.pi / 2)


@given(shift=st.builds(Shift, small, small, small), dt=st.floats(0, 1))
def test_a_standing_thing_stays_where_it_is_whatever_the_frame_does(shift, dt):
    mean = np.array([20.0, 3.0, 0.0, 0.0, 0.4])
    covariance = np.diag([0.5, 0.1, 4.0, 1.0, 0.1])
    both = np.stack([mean, -mean]), np.stack([covariance, covariance])
    (moved, _), (spread, _) = tracking.predict(*both, dt, shift)
    back = np.array(matrix(shift)).reshape(3, 4)
    assert back[:2, :2] @ moved[:2] + back[:2, 3] == pytest.approx(mean[:2])
    assert math.remainder(moved[4] + shift.yaw - 0.4, 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
    assert np.linalg.eigvalsh(spread).min() > 0
    turned = back[:2, :2] @ spread[:2, :2] @ back[:2, :2].T
    (still, _), (widened, _) = tracking.predict(*both, dt, Shift())
    assert still[:2] == pytest.approx(mean[:2])
    assert turned == pytest.approx(widened[:2, :2])
