"""ScanMatcher: it finds how it was moved through a street of boxes, and knows when it cannot."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from driving import message
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import Box, PointCloud
from avrt.stages.ego.scan_matching import ScanMatcher
from avrt.stages.ego.upright import VOXEL, features

PERIOD = 0.1
GROUND = -1.73


def street():
    """Return houses, trees and parked cars beside a road along x, as boxes in its frame."""
    rng = np.random.default_rng(11)
    boxes = []
    for x in np.arange(-10.0, 90.0, 13.0).tolist():
        for side in (-1, 1):
            width, depth = rng.uniform(6, 11), rng.uniform(4, 8)
            y = side * (rng.uniform(9, 12) + depth / 2)
            boxes.append(box(x + rng.uniform(-1, 1), y, width, depth, 6.0, rng.uniform(-0.1, 0.1)))
            boxes.append(box(x + rng.uniform(3, 9), side * rng.uniform(5.5, 7), 0.4, 0.4, 5.0))
            boxes.append(box(x + rng.uniform(-3, 3), side * 4.5, 4.4, 1.8, 1.5, 0.02 * side))
    return boxes


def box(x, y, length, width, height, yaw=0.0):
    return Box(x, y, GROUND + height / 2, length, width, height, yaw)


STREET = street()


def seen_from(boxes, x, y, yaw):
    cos, sin = math.cos(yaw), math.sin(yaw)
    return [
        replace(
            one,
            x=(one.x - x) * cos + (one.y - y) * sin,
            y=(one.y - y) * cos - (one.x - x) * sin,
            yaw=one.yaw - yaw,
        )
        for one in boxes
        if math.hypot(one.x - x, one.y - y) < 70 and (one.x - x) * cos + (one.y - y) * sin > -10
    ]


@pytest.fixture
def driven(scan):
    """Return the motions after each sweep of a drive, and where the vehicle really was."""

    def go(stage, speed, yaw_rate, sweeps, others=lambda _: []):
        motions, poses = [], []
        for k in range(sweeps):
            t = k * PERIOD
            turned = yaw_rate * t
            x = speed * t * np.sinc(turned / 2 / np.pi) * math.cos(turned / 2)
            y = speed * t * np.sinc(turned / 2 / np.pi) * math.sin(turned / 2)
            xyz = scan(seen_from([*STREET, *others(t)], x, y, turned))
            noise = np.random.default_rng(k).normal(0, 0.02, (len(xyz), 1))
            away = np.linalg.norm(xyz, axis=1, keepdims=True)
            cloud = PointCloud((xyz * (1 + noise / away)).astype(np.float32))
            motions.append(stage.process(message("lidar", k, t, cloud, "lidar")))
            poses.append((x, y, turned))
        return motions, np.array(poses)

    return go


@pytest.mark.slow
@pytest.mark.parametrize(
    ("speed", "yaw_rate"), [(0.0, 0.0), (2.0, 0.0), (10.0, 0.0), (10.0, 0.15), (6.0, -0.3)]
)
def test_it_finds_how_it_was_moved(driven, speed, yaw_rate):
    motions, poses = driven(ScanMatcher(), speed, yaw_rate, 14)
    found = np.array([(m.x, m.y, m.yaw) for m in motions])
    steps = np.diff(found, axis=0) - np.diff(poses, axis=0)
    assert np.abs(steps[3:, :2]).max() < 0.04
    assert np.abs(found[-1, :2] - poses[-1, :2]).max() < 0.15
    assert abs(found[-1, 2] - poses[-1, 2]) < math.radians(0.3)
    assert motions[-1].speed == pytest.approx(speed, abs=0.15)
    assert motions[-1].yaw_rate == pytest.approx(yaw_rate, abs=0.02)
    assert motions[-1].sensors == ("cloud",)


@pytest.mark.slow
@pytest.mark.parametrize("speed", [-4.0, 0.0, 5.0, 14.0, 25.0, 36.0])
def test_the_second_sweep_tells_the_speed(driven, speed):
    motions, _ = driven(ScanMatcher(), speed, 0.0, 3)
    assert motions[0].sensors == ()
    assert motions[2].speed == pytest.approx(speed, abs=0.6)


@pytest.mark.slow
def test_vehicles_that_drive_along_do_not_fool_it(driven):
    def others(t):
        return [box(12 + 9 * t, 0.0, 4.5, 1.8, 1.6), box(18 - 9 * t + 30, 3.2, 4.5, 1.8, 1.6)]

    motions, _ = driven(ScanMatcher(), 8.0, 0.0, 14, others)
    assert motions[-1].speed == pytest.approx(8.0, abs=0.2)


@pytest.mark.slow
def test_a_mounted_sensor_tells_how_the_vehicle_moves(driven):
    stage = ScanMatcher(frame="base")
    turn = (1.0, 0.0, 0.0, 1.2, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.73)
    stage.calibrate(Frames([TransformSpec(parent="base", child="lidar", matrix=turn)]))
    motions, _ = driven(stage, 5.0, 0.0, 6)
    assert motions[-1].speed == pytest.approx(5.0, abs=0.3)
    assert abs(motions[-1].y) < 0.05


@pytest.mark.slow
def test_a_missing_sector_does_not_stop_it(driven, scan):
    stage = ScanMatcher()
    driven(stage, 10.0, 0.0, 8)
    for k in range(8, 12):
        xyz = scan(seen_from(STREET, k * 1.0, 0.0, 0.0))
        azimuth = np.degrees(np.arctan2(xyz[:, 1], xyz[:, 0]))
        kept = xyz[(azimuth < -5) | (azimuth > 13)]
        motion = stage.process(message("lidar", k, k * PERIOD, PointCloud(kept)))
    assert motion.sensors == ("cloud",)
    assert motion.speed == pytest.approx(10.0, abs=0.2)


# What it does with little or nothing.


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 5])
def test_without_points_it_predicts_and_says_so(driven, count):
    stage = ScanMatcher()
    motions, _ = driven(stage, 10.0, 0.0, 6)
    few = PointCloud(np.full((count, 3), 5.0, np.float32))
    after = stage.process(message("lidar", 6, 0.6, few))
    assert after.sensors == ()
    assert after.x == pytest.approx(6.0, abs=0.15)
    assert after.covariance[0, 0] > motions[-1].covariance[0, 0]


@pytest.mark.parametrize("count", [0, 1, 9, 29])
def test_few_points_from_the_start_are_no_motion(count):
    stage = ScanMatcher()
    xyz = np.stack([np.full(count, 9.0), np.arange(count) * 0.5, np.zeros(count)], axis=1)
    for k in range(4):
        motion = stage.process(message("lidar", k, k * PERIOD, PointCloud(xyz.astype(np.float32))))
    assert motion.sensors == ()
    assert (motion.x, motion.y, motion.speed) == (0.0, 0.0, 0.0)
    assert math.sqrt(motion.covariance[0, 0]) > 10


@pytest.mark.slow
def test_after_a_gap_the_map_begins_anew(driven, scan):
    stage = ScanMatcher()
    driven(stage, 10.0, 0.0, 6)
    for k, t in enumerate((4.0, 4.1, 4.2, 4.3, 4.4)):
        cloud = PointCloud(scan(seen_from(STREET, 20 + 4 * t, 0.0, 0.0)))
        motion = stage.process(message("lidar", 6 + k, t, cloud))
    assert motion.sensors == ("cloud",)
    assert motion.speed == pytest.approx(4.0, abs=0.5)
    assert len(stage.state.map) == 5


@pytest.mark.slow
def test_steps_back_of_the_clock_wipe_nothing(driven, scan):
    stage = ScanMatcher()
    driven(stage, 10.0, 0.0, 6)
    cloud = PointCloud(scan(seen_from(STREET, 5.0, 0.0, 0.0)))
    little = stage.process(message("lidar", 6, 0.46, cloud))
    assert stage.state.capture_ns == 500_000_000
    assert little.speed == pytest.approx(10, abs=0.5)
    assert little.sensors == ("cloud",)
    stage.process(message("lidar", 7, -2.0, cloud))
    assert stage.state.capture_ns == -2_000_000_000
    assert len(stage.state.map) == 8


def test_points_that_are_not_numbers_are_left_out(scan):
    xyz = scan(seen_from(STREET, 0.0, 0.0, 0.0))
    spoilt = np.concatenate([xyz, [[np.nan, 1, 1], [np.inf, 1, 1], [1, 1e30, 1]]])
    first, second = ScanMatcher(), ScanMatcher()
    first.process(message("lidar", 0, 0.0, PointCloud(xyz)))
    second.process(message("lidar", 0, 0.0, PointCloud(spoilt.astype(np.float32))))
    assert np.array_equal(first.state.map[0].xyz, second.state.map[0].xyz)


@given(st.sampled_from([2.0, 60.0]), st.sampled_from([-1, 0, 1]))
def test_points_on_the_edge_of_the_range_do_no_harm(distance, side):
    edge = np.float32(distance)
    edge = np.nextafter(edge, np.float32(side * np.inf)) if side else edge
    xyz = np.tile(np.array([[edge, 0, 0], [0, -edge, 1]], np.float32), (40, 1))
    stage = ScanMatcher()
    assert stage.process(message("lidar", 0, 0.0, PointCloud(xyz))).sensors == ()


@pytest.mark.slow
def test_two_runs_are_equal_and_a_thawed_stage_goes_on(driven):
    first, second = ScanMatcher(), ScanMatcher()
    driven(first, 7.0, 0.1, 5)
    driven(second, 7.0, 0.1, 5)
    assert np.array_equal(first.state.vehicle.mean, second.state.vehicle.mean)
    third = ScanMatcher()
    third.thaw(first.freeze())
    ends = [driven(stage, 7.0, 0.1, 7)[0][-1] for stage in (first, third)]
    assert ends[0].speed == ends[1].speed
    with pytest.raises(SpecError, match="ScanMatcher"):
        third.thaw(None)


@pytest.mark.parametrize(
    ("params", "named"), [({"range_min": 70.0}, "range_min"), ({"range_max": 1e4}, "range_max")]
)
def test_parameters_are_checked(params, named):
    with pytest.raises(SpecError, match=named):
        ScanMatcher(**params)


# What it looks at.


def test_the_road_is_no_feature(scan):
    assert len(features(scan(), 0)) == 0


def test_a_wall_has_its_normal():
    y, z = np.meshgrid(np.arange(-5, 5, 0.1), np.arange(-1.5, 1.5, 0.2))
    wall = np.stack([np.full(y.size, 10.0), y.ravel(), z.ravel()], axis=1)
    found = features(wall.astype(np.float32), 3)
    assert found.is_wall.all()
    assert np.abs(found.normal[:, 0]) == pytest.approx(1.0)
    assert found.xyz[:, 2].min() > -1.5 + 0.19
    assert len(found) < 2 * (10 / VOXEL) * (3 / VOXEL)
