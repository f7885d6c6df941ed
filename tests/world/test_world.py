"""The world is the same for the same seed, and its sensors see what is really there."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from avrt.payload import Box
from avrt.world import LIDAR_TO_CAMERA, camera_info, make_scene, render, sweep
from avrt.world.camera import BRAKE_LIGHT, SKY
from avrt.world.lidar import CLEARANCE, RANGE_MAX, RANGE_NOISE

SECOND = 1_000_000_000
SLACK = 5 * RANGE_NOISE  # metres


@pytest.fixture(scope="module")
def scene():
    return make_scene(0)


def inside(xyz, box, slack=SLACK):
    half = np.array([box.length, box.width, box.height]) / 2 + slack
    return np.all(np.abs(xyz - [box.x, box.y, box.z]) <= half, axis=1)


def pixels(jpeg):
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")).astype(int)


def test_the_same_seed_gives_the_same_frames():
    first, second = make_scene(3), make_scene(3)
    assert first == second
    assert np.array_equal(sweep(first, SECOND).xyz, sweep(second, SECOND).xyz)
    assert render(first, SECOND) == render(second, SECOND)


def test_another_seed_gives_other_frames():
    first, second = make_scene(3), make_scene(4)
    assert first.actors != second.actors
    assert not np.array_equal(sweep(first, 0).xyz[:100], sweep(second, 0).xyz[:100])
    assert render(first, 0) != render(second, 0)


def test_a_frame_does_not_depend_on_the_frames_before_it(scene):
    alone = sweep(scene, SECOND).xyz
    sweep(scene, 2 * SECOND)
    assert np.array_equal(sweep(scene, SECOND).xyz, alone)


@pytest.mark.parametrize("at_s", [0, 3, 6, 12])
def test_a_sweep_has_the_size_and_the_types_of_a_real_one(scene, at_s):
    cloud = sweep(scene, at_s * SECOND)
    assert 10_000 < cloud.count < 20_000
    assert cloud.xyz.dtype == np.float32
    assert cloud.intensity.shape == (cloud.count,)
    ranges = np.linalg.norm(cloud.xyz, axis=1)
    assert ranges.max() < RANGE_MAX + SLACK
    assert np.all(np.abs(cloud.xyz[:, 1]) <= cloud.xyz[:, 0] + SLACK)


@pytest.mark.parametrize("at_s", [0, 3, 6, 12])
def test_every_point_lies_on_the_road_or_on_something(scene, at_s):
    at_ns = at_s * SECOND
    xyz = sweep(scene, at_ns).xyz
    explained = np.abs(xyz[:, 2] - scene.road_z(xyz[:, 0])) < SLACK
    for truth in scene.truth(at_ns):
        explained |= inside(xyz, truth.box)
    for box in scene.pole_boxes(at_ns):
        explained |= inside(xyz, box)
    assert explained.all()


def test_the_near_face_of_the_lead_vehicle_is_seen(scene):
    lead = next(t for t in scene.truth(0) if t.id == 1)
    xyz = sweep(scene, 0).xyz
    points = xyz[inside(xyz, lead.box) & (xyz[:, 2] > scene.road_z(lead.box.x) + CLEARANCE)]
    assert len(points) > 50
    face = lead.box.x - lead.box.length / 2
    assert np.median(points[:, 0]) == pytest.approx(face, abs=3 * RANGE_NOISE)


def test_something_near_hides_what_is_behind_it(scene):
    at_ns = 3 * SECOND
    hidden = Box(60.0, 0.0, scene.road_z(60.0) + 0.7, 1.0, 0.5, 0.6, 0.0)
    assert not inside(sweep(scene, at_ns).xyz, hidden).any()


def test_the_lead_vehicle_brakes_and_is_never_hit(scene):
    lead = scene.actors[0]
    speeds = [lead.state(at_s * SECOND)[1] for at_s in range(16)]
    assert speeds[0] == speeds[4] == scene.ego_speed
    assert speeds[7] == pytest.approx(scene.ego_speed - 3.0)
    assert speeds[15] == pytest.approx(scene.ego_speed)
    assert [lead.is_braking(s * SECOND) for s in (3, 4, 6, 7)] == [False, True, True, False]
    for at_s in range(30):
        box = next(t for t in scene.truth(at_s * SECOND) if t.id == 1).box
        assert box.x - box.length / 2 > 5.0


def test_distance_is_the_integral_of_speed(scene):
    lead = scene.actors[0]
    step_ns = SECOND // 1000
    summed = sum(lead.state(n * step_ns)[1] for n in range(12_000)) / 1000
    assert lead.state(12 * SECOND)[0] == pytest.approx(summed, abs=0.02)


def test_truth_is_told_nearest_first_in_the_sensor_frame(scene):
    truths = scene.truth(5 * SECOND)
    distances = [abs(truth.box.x) for truth in truths]
    assert distances == sorted(distances)
    assert {t.label for t in truths} == {"car", "truck"}
    oncoming = next(t for t in truths if t.vx < 0)
    assert oncoming.box.yaw == pytest.approx(np.pi)
    for truth in truths:
        bottom = truth.box.z - truth.box.height / 2
        assert bottom == pytest.approx(scene.road_z(truth.box.x))


def test_the_image_is_a_jpeg_of_the_camera_s_size(scene):
    info = camera_info()
    picture = pixels(render(scene, 0))
    assert picture.shape == (info.height_px, info.width_px, 3)
    assert np.abs(picture[5, 5] - SKY).max() < 12


def test_the_camera_sees_the_lead_vehicle_where_the_model_says(scene):
    at_ns = 5 * SECOND
    lead = next(t for t in scene.truth(at_ns) if t.id == 1)
    rear = np.array([lead.box.x - lead.box.length / 2, lead.box.y, lead.box.z, 1.0])
    u, v, depth = camera_info().projection @ np.append(LIDAR_TO_CAMERA @ rear, 1.0)
    colour = pixels(render(scene, at_ns))[round(v / depth), round(u / depth)]
    assert colour[2] > colour[0] + 40  # it is blue


def test_brake_lights_are_on_only_while_braking(scene):
    def red(at_ns):
        picture = pixels(render(scene, at_ns))
        return int((np.abs(picture - BRAKE_LIGHT).max(axis=2) < 60).sum())

    assert red(5 * SECOND) > 0
    assert red(2 * SECOND) == 0


def test_a_vehicle_beside_the_ego_is_cut_at_the_near_plane():
    scene = make_scene(1)
    beside = [
        at_ns
        for at_ns in range(0, 12 * SECOND, SECOND // 4)
        if any(abs(t.box.x) < 2.0 for t in scene.truth(at_ns))
    ]
    assert beside
    for at_ns in beside:
        assert sweep(scene, at_ns).count > 10_000
        assert len(render(scene, at_ns)) > 1_000
