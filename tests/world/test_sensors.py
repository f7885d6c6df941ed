"""Each sensor measures what is really there, to within its own noise."""

from __future__ import annotations

import numpy as np
import pytest

from avrt.world import World, make_scene
from avrt.world.bodies import SHAPES
from avrt.world.boxes import Boxes, corners
from avrt.world.inertial import GRAVITY, ORIGIN, geodetic
from avrt.world.lidar import HDL_32E, HDL_64E_FRONT
from avrt.world.mounting import RADAR
from avrt.world.radar import RATE_SIGMA, VIEW

SECOND, MS = 1_000_000_000, 1_000_000
EARTH = 111_195.0  # metres a degree of a great circle


@pytest.fixture(scope="module")
def world():
    made = World(make_scene("hard_brake", 1), 14.0)
    made.advance()
    return made


def test_inertial_readings_follow_the_vehicle(world):
    times = range(2 * SECOND, 6 * SECOND, 10 * MS)
    found = [world.imu(at_ns) for at_ns in times]
    turned = np.array([one.angular_rate[2] for one in found])
    true = np.array([world.ego(at_ns).motion.yaw_rate for at_ns in times])
    assert abs(np.mean(turned - true)) < 0.005  # the bias stays for the drive
    assert np.std(turned - true) < 0.004
    pushed = np.array([one.acceleration for one in found]).mean(axis=0)
    assert np.linalg.norm(pushed) == pytest.approx(GRAVITY, abs=0.3)
    assert pushed[2] > 9.5


def test_the_first_and_the_last_readings_are_like_the_others():
    world = World(make_scene("cut_in", 0), 1.0)
    world.advance()
    pushes = [world.imu(at_ns).acceleration[0] for at_ns in range(0, SECOND, 10 * MS)]
    assert np.abs(pushes).max() < 3.0
    assert world.ego(0).motion.yaw_rate == pytest.approx(
        world.ego(50 * MS).motion.yaw_rate, abs=0.01
    )
    azimuth, rates = [], []
    for at_ns in (10 * MS, 60 * MS):
        targets = world.radar(at_ns)
        azimuth.append(np.arctan2(targets.xy[:, 1], targets.xy[:, 0]))
        rates.append(np.median(targets.range_rate / np.cos(azimuth[-1])))
    assert rates[0] == pytest.approx(rates[1], rel=0.3)


def test_braking_pushes_the_vehicle_back(world):
    steps = [world.ego(k * 100 * MS).motion.speed for k in range(139)]
    hardest = int(np.argmin(np.diff(steps)))
    push = np.mean([world.imu((hardest * 100 + k) * MS).acceleration[0] for k in range(0, 100, 10)])
    calm = np.mean([world.imu((3_000 + k) * MS).acceleration[0] for k in range(0, 100, 10)])
    assert push - calm == pytest.approx(10 * np.diff(steps)[hardest], abs=0.5)


def test_fixes_move_as_the_vehicle_does(world):
    first, last = world.fix(1 * SECOND), world.fix(6 * SECOND)
    north = (last.latitude - first.latitude) * EARTH
    east = (last.longitude - first.longitude) * EARTH * np.cos(np.deg2rad(ORIGIN[0]))
    start, end = (np.array(world.ego(at * SECOND).place) for at in (1, 6))
    assert np.hypot(north, east) == pytest.approx(np.hypot(*(end - start)[:2]), abs=2.0)
    assert last.altitude - first.altitude == pytest.approx((end - start)[2], abs=3.0)


def test_a_place_far_out_is_where_a_great_circle_says():
    latitude, longitude = geodetic(800.0, -600.0)
    assert (latitude - ORIGIN[0]) * EARTH == pytest.approx(-600.0, rel=5e-3)
    east = (longitude - ORIGIN[1]) * EARTH * np.cos(np.deg2rad(ORIGIN[0]))
    assert east == pytest.approx(800.0, rel=5e-3)


def test_wheels_tell_speed_with_one_error_of_scale(world):
    times = range(SECOND, 6 * SECOND, 20 * MS)
    ratio = [world.wheels(t).speed / world.ego(t).motion.speed for t in times]
    assert np.std(ratio) < 0.01
    assert abs(np.mean(ratio) - 1) < 0.03


def test_what_stands_still_has_the_range_rate_of_the_vehicles_own_motion(world):
    for at_ns in range(SECOND, 5 * SECOND, 500 * MS):
        targets, moving = world.radar(at_ns), world.ego(at_ns).motion
        azimuth = np.arctan2(targets.xy[:, 1], targets.xy[:, 0])
        vy = moving.yaw_rate * RADAR.x
        expected = -(moving.speed * np.cos(azimuth) + vy * np.sin(azimuth))
        still = np.abs(targets.range_rate - expected) < 5 * RATE_SIGMA
        assert still.mean() > 0.4
        assert (np.abs(azimuth) < VIEW + 0.02).all()
        assert (np.diff(np.hypot(*targets.xy.T)) > -0.05).all()


def test_nothing_reflects_from_behind_a_body(world):
    hidden = 0
    for at_ns in range(SECOND, 6 * SECOND, 250 * MS):
        ahead = next(o for o in world.truth(at_ns).objects if o.id == world.scene.key_user)
        reach = ahead.box.x + ahead.box.length / 2 - RADAR.x
        x, y = world.radar(at_ns).xy.T
        behind = (x > reach + 4) & (x < reach + 30) & (np.abs(y - ahead.box.y) < 0.3)
        hidden += int(behind.sum())
    assert hidden <= 6  # clutter, which nothing made


@pytest.mark.parametrize("beams", [HDL_32E, HDL_64E_FRONT])
def test_a_sweep_looks_where_its_beams_do(beams):
    world = World(make_scene("cut_in", 2), 1.0, beams=beams)
    world.advance()
    cloud = world.lidar(0)
    elevation = np.rad2deg(np.arctan2(cloud.xyz[:, 2], np.hypot(*cloud.xyz[:, :2].T)))
    azimuth = np.arctan2(cloud.xyz[:, 1], cloud.xyz[:, 0])
    low, high = min(beams.elevations), max(beams.elevations)
    assert low - 0.1 < elevation.min() < elevation.max() < high + 0.1
    assert np.abs(np.rad2deg(azimuth)).max() <= max(abs(beams.start), abs(beams.end)) + 0.1
    assert 0 <= cloud.seconds.min() < cloud.seconds.max() < beams.period
    order = np.sign(beams.end - beams.start)
    assert (order * np.diff(np.unwrap(azimuth)) > -0.01).all()


def test_bodies_have_the_size_that_truth_says():
    for label, make in SHAPES.items():
        parts = np.array([part[:6] for part in make(4.0, 1.8, 1.6, (0, 0, 0))])
        low = parts[:, :2] - parts[:, 3:5] / 2
        high = parts[:, :2] + parts[:, 3:5] / 2
        assert (low.min(axis=0) >= [-2.0 - 1e-9, -0.9 - 1e-9]).all(), label
        assert (high.max(axis=0) <= [2.0 + 1e-9, 0.9 + 1e-9]).all(), label
        assert (parts[:, 2] + parts[:, 5]).max() == pytest.approx(1.6), label


def test_boxes_of_users_go_with_them(world):
    boxes = Boxes.of(world.scene)
    before, after = (boxes.places(world._motion_at(at_ns)) for at_ns in (0, SECOND))
    moved = np.linalg.norm(after.middle - before.middle, axis=1)
    fixed = boxes.owner < 0
    assert (moved[fixed] == 0).all()
    lead = boxes.owner == world.scene.key_user
    assert (moved[lead] > 8).all()
    shape = corners(before.middle, before.yaw, boxes.half)
    assert shape.mean(axis=1) == pytest.approx(before.middle)
