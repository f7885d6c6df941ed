"""The L-shape fit finds the direction of a box from its two visible sides."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.payload import Box
from avrt.payload.footprint import half_extents
from avrt.stages.geometry import anchored, resized, wrapped
from avrt.stages.lidar.outline import fit

CHECKED = settings(derandomize=True, deadline=None, max_examples=40)
angles = st.floats(-10, 10)


def corner(yaw, x=12.0, y=9.0, length=4.0, width=1.8):
    """Return points of the two sides of a box that face the origin."""
    along, across = np.linspace(0, length, 60), np.linspace(0, width, 30)
    sides = np.concatenate(
        [
            np.stack([along, np.zeros(60)], axis=1),
            np.stack([np.zeros(30), across], axis=1),
        ]
    )
    turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    return (sides @ turn.T + [x, y]).astype(np.float32)


@given(yaw=st.floats(0.0, 0.6))
@settings(CHECKED, max_examples=15)
def test_direction_and_size_are_recovered(yaw):
    points = corner(yaw)
    found = fit(points, np.array([0, len(points)]))
    apart = math.remainder(float(found.yaw[0]) - yaw, math.pi / 2)
    assert abs(apart) < math.radians(2)
    extent = sorted((found.high - found.low)[0].tolist())
    assert abs(extent[1] - 4.0) < 0.2
    assert abs(extent[0] - 1.8) < 0.2


def test_things_are_fitted_independently():
    first, second = corner(0.1), corner(0.5, x=20.0, y=14.0)
    both = fit(np.concatenate([first, second]), np.array([0, 90, 180]))
    assert both.yaw[0] == fit(first, np.array([0, 90])).yaw[0]
    assert both.yaw[1] == fit(second, np.array([0, 90])).yaw[0]


def test_one_point_is_a_thing_too():
    found = fit(np.array([[5.0, 1.0]], np.float32), np.array([0, 1]))
    assert np.isfinite(found.yaw).all()
    assert np.allclose(found.high, found.low)


@given(angle=angles)
@CHECKED
def test_wrapped_angles_are_equal_up_to_turns(angle):
    assert -math.pi < wrapped(angle) <= math.pi
    assert math.isclose(math.cos(wrapped(angle)), math.cos(angle), abs_tol=1e-9)


def test_half_a_turn_is_positive():
    assert wrapped(-math.pi) == math.pi


@given(low=st.floats(-50, 50), extent=st.floats(0.1, 20), size=st.floats(0.1, 20))
@CHECKED
def test_the_end_that_faces_the_sensor_stays(low, extent, size):
    high = low + extent
    new_low, new_high = anchored(low, high, size)
    assert math.isclose(new_high - new_low, size, abs_tol=1e-9)
    if low > 0:
        assert new_low == low
    elif high < 0:
        assert new_high == high
    else:
        assert math.isclose(new_low + new_high, low + high, abs_tol=1e-9)


def test_a_box_ahead_grows_forwards():
    grown = resized(Box(10.0, 0.0, 0.0, 1.0, 1.8, 1.5, 0.0), 4.0, 1.8)
    assert (grown.x, grown.y, grown.length) == (11.5, 0.0, 4.0)


def test_half_extents_of_a_box_across():
    along, across = half_extents(Box(0.0, 0.0, 0.0, 4.0, 2.0, 1.5, math.pi / 2))
    assert math.isclose(along, 1.0)
    assert math.isclose(across, 2.0)
