"""Deskew: a wall seen from a moving, spinning LiDAR is straight again, and what is left alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driving import message
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import EgoMotion, PointCloud
from avrt.stages.lidar.deskew import Deskew

SWEEP = 0.1


def ego(speed=14.0, yaw_rate=0.0, sigma=0.1):
    covariance = np.diag([sigma**2, 0.01**2])
    return message("ego", 0, 0.0, EgoMotion(0, 0, 0, speed, yaw_rate, covariance, ("imu",)))


def cloud(xyz, seconds=None, frame="lidar", **more):
    return message("lidar", 0, 0.0, PointCloud(xyz, None, seconds, **more), frame)


def spin(speed, yaw_rate, first, direction=1, mount=(0.0, 0.0), count=720):
    """Return what a LiDAR sees of a square of walls 20 m away, and when, while it moves on an arc.

    Every beam goes out at its own time, its azimuth counted from behind; `first` is when.
    """
    points, times = [], []
    for share in (np.arange(count) + 0.5) / count:
        s = first + share * SWEEP
        azimuth = direction * share * 2 * math.pi - math.pi * direction
        turned = yaw_rate * s
        if yaw_rate:
            x, y = speed / yaw_rate * math.sin(turned), speed / yaw_rate * (1 - math.cos(turned))
        else:
            x, y = speed * s, 0.0
        x += mount[0] * math.cos(turned) - mount[1] * math.sin(turned)
        y += mount[0] * math.sin(turned) + mount[1] * math.cos(turned)
        dx, dy = math.cos(turned + azimuth), math.sin(turned + azimuth)
        away = min(
            (20 - x) / dx if dx > 0 else (-20 - x) / dx, (20 - y) / dy if dy > 0 else (-20 - y) / dy
        )
        points.append((away * math.cos(azimuth), away * math.sin(azimuth), 0.0))
        times.append(s)
    return np.array(points, np.float32), np.array(times, np.float32)


def off_the_walls(xyz, mount=(0.0, 0.0)):
    x, y = np.abs(xyz[:, 0] + mount[0]), np.abs(xyz[:, 1] + mount[1])
    return np.abs(np.maximum(x, y) - 20).max()


@pytest.mark.parametrize("stamp_at", ["start", "middle", "end"])
@pytest.mark.parametrize(("speed", "yaw_rate"), [(14.0, 0.0), (8.0, 0.5), (-3.0, -0.4), (0.0, 1.0)])
def test_walls_are_straight_again(stamp_at, speed, yaw_rate):
    first = {"start": 0.0, "middle": -0.05, "end": -0.1}[stamp_at]
    xyz, seconds = spin(speed, yaw_rate, first)
    stage = Deskew(sweep=SWEEP, stamp_at=stamp_at)
    moved = stage.process(cloud(xyz, seconds), ego(speed, yaw_rate))
    assert moved.compensated
    assert off_the_walls(xyz) > 0.1
    assert off_the_walls(moved.xyz) < 0.002


@pytest.mark.parametrize(("direction", "sign"), [("counterclockwise", 1), ("clockwise", -1)])
def test_without_times_the_azimuth_tells_them(direction, sign):
    xyz, _ = spin(10.0, 0.3, -0.05, sign)
    stage = Deskew(sweep=SWEEP, stamp_at="middle", direction=direction)
    assert off_the_walls(stage.process(cloud(xyz), ego(10.0, 0.3)).xyz) < 0.002


@pytest.mark.parametrize("seconds", [None, np.array([0.09, 0.1], np.float32)])
@pytest.mark.parametrize("frame", ["", "lidar"])
def test_zeros_that_a_driver_leaves_come_nowhere_near_the_road(seconds, frame):
    """At 30 m/s they would lie up to 3 m ahead, where a detector looks for what stands there."""
    xyz = np.array([[0, 0, 0], [20, 1, 0]], np.float32)
    stage = Deskew(direction="counterclockwise", frame=frame)
    moved = stage.process(cloud(xyz, seconds), ego(30.0)).xyz
    assert moved[0].tolist() == [0, 0, 0]
    assert moved[1, 0] > 21


def test_points_on_a_map_keep_their_millimetres():
    xyz = np.array([[5_412_345.678, 0, 0], [5_412_345.728, 0, 0]])
    moved = Deskew().process(cloud(xyz, np.array([0.05, 0.1], np.float32)), ego(10.0)).xyz
    assert np.diff(moved[:, 0]) == pytest.approx([0.05 + 0.5], abs=1e-6)


def test_a_sensor_away_from_the_axis_moves_with_the_vehicle():
    mount = (1.5, 0.4)
    xyz, seconds = spin(6.0, 0.8, 0.0, mount=mount)
    stage = Deskew(sweep=SWEEP, frame="base")
    matrix = (1.0, 0.0, 0.0, mount[0], 0.0, 1.0, 0.0, mount[1], 0.0, 0.0, 1.0, 1.7)
    stage.calibrate(Frames([TransformSpec(parent="base", child="lidar", matrix=matrix)]))
    moved = stage.process(cloud(xyz, seconds), ego(6.0, 0.8))
    assert off_the_walls(moved.xyz, mount) < 0.002
    with pytest.raises(DataFault, match="no transform"):
        stage.process(cloud(xyz, seconds, "elsewhere"), ego())


@pytest.mark.parametrize("case", ["no motion", "no times", "uncertain", "compensated"])
def test_what_cannot_be_done_is_not_done_and_says_so(case):
    xyz, seconds = spin(14.0, 0.0, 0.0)
    told = {"no times": None}.get(case, seconds)
    one = cloud(xyz, told, compensated=case == "compensated")
    motion = {"no motion": None, "uncertain": ego(sigma=5.0)}.get(case, ego())
    passed = Deskew(sweep=SWEEP).process(one, motion)
    assert passed is one.payload
    assert passed.compensated == (case == "compensated")


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_impossible_times_move_no_point_further_than_a_sweep(seconds):
    times = np.array(seconds, np.float32)
    xyz = np.tile(np.array([[10.0, 5.0, 1.0]], np.float32), (len(times), 1))
    moved = Deskew(sweep=SWEEP).process(cloud(xyz, times), ego(14.0))
    travelled = moved.xyz[:, 0] - 10
    assert (travelled >= 0).all()
    assert (travelled <= 14.0 * SWEEP + 1e-4).all()
    assert moved.xyz[np.isnan(times)] == pytest.approx(xyz[np.isnan(times)])


def test_nothing_seen_stays_nothing_seen():
    empty = cloud(np.empty((0, 3), np.float32), np.empty(0, np.float32))
    moved = Deskew().process(empty, ego())
    assert moved.count == 0
    assert moved.compensated


def test_the_given_cloud_is_left_as_it_was():
    xyz, seconds = spin(14.0, 0.0, 0.0)
    xyz.flags.writeable = False
    before = xyz.copy()
    Deskew().process(cloud(xyz, seconds), ego())
    assert np.array_equal(xyz, before)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"sweep": 0}, "sweep"),
        ({"stamp_at": "begin"}, "stamp_at"),
        ({"direction": "left"}, "direc"),
    ],
)
def test_parameters_are_checked(params, named):
    with pytest.raises(SpecError, match=named):
        Deskew(**params)
