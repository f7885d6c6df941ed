"""The world is the same for the same seed, and its sensors see what is really there."""

from __future__ import annotations

import io

import numpy as np
import pytest
from outlines import footprint_overlap, inside
from PIL import Image

from avrt.errors import SpecError
from avrt.world import SCENES, SECONDS_MAX, World, make_scene
from avrt.world.lidar import HDL_32E
from avrt.world.mounting import LIDAR, ego_pose

SECOND = 1_000_000_000
SLACK = 5 * HDL_32E.noise  # metres


@pytest.fixture(scope="module")
def world():
    made = World(make_scene("cut_in", 0), 12.0)
    made.advance()
    return made


def test_the_same_seed_gives_the_same_readings_in_any_order(world):
    other = World(make_scene("cut_in", 0), 12.0)
    other.advance()
    other.lidar(5 * SECOND)
    assert other.camera(3 * SECOND) == world.camera(3 * SECOND)
    assert np.array_equal(other.lidar(3 * SECOND).xyz, world.lidar(3 * SECOND).xyz)
    assert np.array_equal(other.radar(3 * SECOND).xy, world.radar(3 * SECOND).xy)
    assert other.truth(3 * SECOND) == world.truth(3 * SECOND)


def test_another_seed_gives_another_world(world):
    other = World(make_scene("cut_in", 1), 1.0)
    other.advance()
    assert other.scene.users != world.scene.users
    assert not np.array_equal(other.lidar(0).xyz[:100], world.lidar(0).xyz[:100])


def test_an_unknown_scene_is_told_with_the_nearest_name():
    with pytest.raises(SpecError, match=r"'cutin'.*cut_in"):
        make_scene("cutin")


def in_world(world, at_ns, cloud):
    """Return the points in the world, and how far each is above the ground."""
    motion = world._motion(at_ns, cloud.seconds.astype(np.float64))
    ground = world.scene.road.ground
    pose = ego_pose(ground, motion)
    points = pose.point(LIDAR.place) + np.einsum("nij,nj->ni", pose.axes, cloud.xyz)
    return points, points[:, 2] - ground.height(points[:, 0], points[:, 1])


@pytest.mark.parametrize("at_s", [0, 4, 9])
def test_every_point_lies_on_the_ground_or_on_a_body(world, at_s):
    cloud = world.lidar(at_s * SECOND)
    assert 10_000 < cloud.count < 25_000
    points, above = in_world(world, at_s * SECOND, cloud)
    assert above.min() > -SLACK
    standing = above > SLACK
    middle = at_s * SECOND + SECOND // 20
    places = world.boxes.places(world._motion_at(middle))
    moved = 0.05 * 20.0  # metres: how far a fast car is from its middle at the ends of a sweep
    assert inside(points[standing], places, world.boxes.half, SLACK + moved).all()


def test_an_image_is_a_picture_of_the_size_that_its_model_says(world):
    with Image.open(io.BytesIO(world.camera(0))) as picture:
        assert picture.size == (960, 480)


def test_radar_tells_how_fast_the_car_ahead_comes_nearer(world):
    at_ns = 9 * SECOND
    key = next(one for one in world.truth(at_ns).objects if one.id == world.scene.key_user)
    ego = world.ego(at_ns).motion.speed
    found = [world.radar(at_ns + k * SECOND // 20) for k in range(10)]
    rates = np.concatenate([t.range_rate[np.hypot(*(t.xy - [key.box.x - 6.0, key.box.y]).T) < 3.0]
                            for t in found])  # fmt: skip
    assert len(rates) > 5
    assert abs(np.median(rates) - (key.vx - ego)) < 1.5


@pytest.mark.parametrize(
    "read", ["lidar", "camera", "radar", "imu", "fix", "wheels", "truth", "ego"]
)
def test_nothing_is_read_later_than_the_world_has_come(read):
    world = World(make_scene("cut_in", 0), 2.0)
    world.advance(SECOND)
    with pytest.raises(SpecError, match=r"come to 1 s .* advance it first"):
        getattr(world, read)(SECOND + SECOND // 20)


def test_nothing_is_read_before_the_world_begins(world):
    for read in (world.lidar, world.imu, world.truth, world.ego):
        with pytest.raises(SpecError, match="begins at 0 ns"):
            read(-1)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENES))
def test_the_road_is_as_long_as_the_longest_drive(name):
    world = World(make_scene(name, 0), SECONDS_MAX)
    world.advance()
    end_ns = int(SECONDS_MAX * SECOND)
    before, after = (world._motion_at(at_ns) for at_ns in (end_ns - SECOND // 10, end_ns))
    for user in range(len(world.scene.users)):
        way = np.hypot(after.x[0, user] - before.x[0, user], after.y[0, user] - before.y[0, user])
        mean = (after.speed[0, user] + before.speed[0, user]) / 2
        assert way == pytest.approx(mean / 10, abs=0.1)


@pytest.mark.parametrize("name", list(SCENES))
def test_nobody_runs_into_anybody(name):
    world = World(make_scene(name, 5), 20.0)
    world.advance()
    for at_s in range(0, 20, 2):
        outlines = world.outlines(at_s * SECOND)
        for i, first in enumerate(outlines):
            for second in outlines[i + 1 :]:
                assert not footprint_overlap(first, second)
