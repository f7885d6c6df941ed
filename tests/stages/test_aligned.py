"""A LiDAR's detections pass on while camera and radar see them in the same directions."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from traffic import Car, Traffic, frames, targets

from avrt.errors import DataFault, SpecError
from avrt.payload import Box, CameraInfo, Detections
from avrt.stages.fusion import Aligned

CARS = (Car(20, 0, 10), Car(25, -4, 10), Car(32, 3.5, 8), Car(45, 0.5, 9), Car(38, -7, 12))
STEPS = 20


def turned(message, degrees):
    """Return a sweep turned to the left about the LiDAR."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    objects = []
    for one in message.payload.objects:
        x, y, z = (np.array([one.box.x, one.box.y, one.box.z]) @ turn).tolist()
        box = Box(x, y, z, 4.2, 1.75, 1.5, one.box.yaw + math.radians(degrees))
        points = (one.points @ turn).astype(np.float32)
        objects.append(replace(one, box=box, points=points))
    return replace(message, payload=Detections(tuple(objects)))


def stage(transforms=None):
    made = Aligned()
    made.calibrate(transforms or frames())
    return made


def drive(made, *, degrees=0.0, use=("camera", "radar"), camera_after=0.0, speed=10.0):
    """Run it until it tells; return the step and what it says, or None."""
    world = Traffic(CARS, speed=speed, seed=3)
    for step in range(STEPS):
        t = step / 10
        given = {}
        if "camera" in use:
            given["camera"] = world.camera(max(0.0, t - camera_after))
        if "radar" in use:
            given["radar"] = world.radar(t)
        sweep = turned(world.lidar(t), degrees)
        try:
            assert made.process(sweep, **given) is sweep.payload
        except DataFault as fault:
            return step, str(fault)
    return None


@pytest.mark.parametrize("use", [("camera", "radar"), ("camera",), ("radar",), ()])
def test_what_all_see_alike_passes(use):
    assert drive(stage(), use=use) is None


@pytest.mark.parametrize("use", [("camera", "radar"), ("camera",), ("radar",)])
@pytest.mark.parametrize("degrees", [5, -5])
def test_a_turn_of_five_degrees_is_told_within_half_a_second(use, degrees):
    step, says = drive(stage(), degrees=degrees, use=use)
    assert step < 5
    found = re.search(r"lidar sees things (\d) degrees to the (\w+) of the ([\w ]+):", says)
    assert abs(int(found[1]) - 5) <= 1
    assert found[2] == ("left" if degrees > 0 else "right")
    assert found[3] == " and ".join(use)


def test_a_turn_that_is_no_more_than_noise_passes():
    assert drive(stage(), degrees=1) is None


def test_a_camera_that_is_mounted_wrongly_is_suspected():
    step, says = drive(stage(frames(camera_yaw=math.radians(5))))
    assert step < 5
    assert says.endswith("check the mounting of the camera")


def test_an_image_that_comes_a_sweep_late_is_compared_with_its_own_sweep():
    made = stage()
    assert drive(made, use=("camera",), camera_after=0.1, speed=30.0) is None
    step, _ = drive(stage(), degrees=5, use=("camera",), camera_after=0.1)
    assert step < 6


def test_a_message_that_comes_again_is_evidence_once():
    world = Traffic(CARS, speed=10.0)
    made, image = stage(), world.camera(0.0)
    for step in range(STEPS):
        made.process(turned(world.lidar(step / 100), 5), camera=image)
    assert 0 < max(made.state.bearings.peaks.values()) < 10


def test_what_is_far_in_time_is_not_compared():
    world = Traffic(CARS, speed=10.0)
    made = stage()
    made.process(world.lidar(0.0), camera=world.camera(0.07), radar=world.radar(0.07))
    assert not made.state.bearings.evidence


def test_an_image_without_a_camera_model_is_not_compared():
    world = Traffic(CARS)
    image = world.camera(0.0)
    no_model = CameraInfo(0, 0, np.zeros((3, 4)))
    for info in (None, no_model):
        made = stage()
        bare = replace(image, payload=replace(image.payload, info=info))
        made.process(world.lidar(0.0), camera=bare)
        assert not made.state.bearings.evidence


def test_a_wall_has_no_direction():
    wall = np.stack([np.full(50, 10.0), np.linspace(-5, 5, 50), np.zeros(50)], axis=1)
    world = Traffic(CARS[:1])
    sweep = world.lidar(0.0)
    (car,) = sweep.payload.objects
    box = replace(car.box, x=10.0, y=0.0, width=10.0, length=0.2)
    one = replace(car, box=box, points=wall.astype(np.float32))
    made = stage()
    made.process(replace(sweep, payload=Detections((one,))), camera=world.camera(0.0))
    assert not len(made.state.sweeps[0].places)
    assert not any(made.state.bearings.peaks.values())


def test_targets_and_things_that_are_not_there_are_none():
    world = Traffic(CARS)
    made = stage()
    nowhere = targets([(np.nan, 1.0), (np.inf, 0.0)])
    made.process(world.lidar(0.0), radar=world.message("radar", 0.0, nowhere))
    nothing = replace(world.lidar(0.1), payload=Detections())
    made.process(nothing, camera=world.camera(0.1), radar=world.radar(0.1))
    assert not any(made.state.bearings.peaks.values())


def test_a_sensor_of_an_unknown_place_is_a_fault():
    world = Traffic(CARS)
    image = world.message("nowhere", 0.0, world.camera(0.0).payload)
    with pytest.raises(DataFault, match="nowhere"):
        stage().process(world.lidar(0.0), camera=image)


def test_a_copy_goes_on_with_what_another_one_knew():
    first = stage()
    assert drive(first, degrees=5) is not None
    other = stage()
    other.thaw(pickle.loads(pickle.dumps(first.freeze())))  # noqa: S301 - our own
    assert other.state.bearings == first.state.bearings
    with pytest.raises(SpecError, match="expected the state of an Aligned, found int"):
        other.thaw(3)
