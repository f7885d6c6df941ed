"""Every sensor has its say about the tracks, and none is needed."""

from __future__ import annotations

import numpy as np
import pytest
from traffic import Car, Traffic, frames

from avrt.errors import DataFault
from avrt.stages.fusion import Tracker

CARS = [Car(30, 0, 9, 0), Car(45, -3.5, 7, 0), Car(60, 4, -8, 0), Car(35, 3.5, 0, 0)]


def made(camera_yaw=0.0, **parameters):
    tracker = Tracker(vehicle_frame="base", **parameters)
    tracker.calibrate(frames(camera_yaw))
    return tracker


def drive(tracker, world, steps, sensors=("lidar", "radar", "camera", "ego"), start=0):
    """Run a world through the tracker at 10 Hz, each sensor a little older than the LiDAR."""
    results = []
    for k in range(start, start + steps):
        t = 0.1 * k
        inputs = {"lidar": world.lidar(t)}
        if "ego" in sensors:
            inputs["ego"] = world.ego(t - 0.01)
        if "radar" in sensors:
            inputs["radar"] = world.radar(t - 0.02)
        if "camera" in sensors:
            inputs["camera"] = world.camera(t - 0.05)
        results.append(tracker.process(**inputs))
    return results


def used(tracks, name):
    return next(one for one in tracks.inputs if one.name == name)


def test_all_sensors_support_a_track_in_a_bend():
    world = Traffic(CARS, speed=8.0, yaw_rate=0.1, seed=1)
    last = drive(made(), world, 25)[-1]
    assert [one.sensors for one in last.objects[:2]] == [("camera", "lidar", "radar")] * 2
    truth = sorted(world.seen_from(2.4, 1.0))
    for one, (x, y, vx, vy, _) in zip(
        sorted(last.objects, key=lambda o: o.box.x), truth, strict=True
    ):
        assert (one.box.x, one.box.y) == pytest.approx((x, y), abs=0.4)
        assert (one.vx, one.vy) == pytest.approx((vx, vy), abs=0.8)
    assert [one.name for one in last.inputs] == ["ego", "lidar", "radar", "camera"]
    assert [one.age_ns for one in last.inputs] == [10_000_000, 0, 20_000_000, 50_000_000]
    assert [one.anomaly for one in last.inputs] == [""] * 4
    assert last.ego_speed == 8.0
    assert last.yaw_rate == 0.1


def test_a_missing_transform_names_both_frames():
    world = Traffic(CARS)
    with pytest.raises(DataFault, match=r"'radar'.*'lidar'"):
        Tracker().process(lidar=world.lidar(0.0), radar=world.radar(0.0))


def test_a_camera_whose_mounting_is_wrong_by_five_degrees_is_told():
    world = Traffic(CARS, speed=8.0, seed=1)
    right, wrong = (drive(made(np.deg2rad(yaw)), world, 25)[-1] for yaw in (0.0, 5.0))
    assert used(right, "camera").residual < 10
    assert used(right, "camera").anomaly == ""
    assert used(wrong, "camera").residual > 40
    assert "check the transform" in used(wrong, "camera").anomaly
    for one, other in zip(right.objects, wrong.objects, strict=True):
        assert (one.box.x, one.box.y) == pytest.approx((other.box.x, other.box.y), abs=0.3)
