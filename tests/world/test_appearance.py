"""Road users are where the truth says, and what stands before them hides them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from avrt.stages.camera.overlay import box_corners
from avrt.world import World, camera_info, make_scene
from avrt.world.mounting import CAMERA

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def world():
    made = World(make_scene("occlusion", 3), 12.0)
    made.advance()
    return made


def by_user(world, at_s, mounting=CAMERA):
    return {one.user: one for one in world.appearances(round(at_s * SECOND), mounting)}


def test_a_box_lies_within_the_projected_truth(world):
    projection = camera_info().projection
    found = by_user(world, 4)
    assert len(found) > 5
    truth = {one.id: one.box for one in world.truth(4 * SECOND).objects}
    for user, appearance in found.items():
        seen = (box_corners(truth[user]) - CAMERA.place) @ CAMERA.axes
        if seen[:, 2].min() < 1.0:
            continue
        uvw = seen @ projection[:, :3].T
        uv = np.clip(uvw[:, :2] / uvw[:, 2:], 0, (960, 480))
        outline = np.concatenate([uv.min(axis=0), uv.max(axis=0)])
        # users stand upright and the vehicle on the slope of its road: a pixel or a twentieth
        slack = 1.5 + 0.05 * (outline[3] - outline[1])
        assert (np.array(appearance.box)[:2] > outline[:2] - slack).all()
        assert (np.array(appearance.box)[2:] < outline[2:] + slack).all()


def test_a_cyclist_behind_a_truck_is_hidden_until_it_comes_out(world):
    key = world.scene.key_user
    assert by_user(world, 5)[key].visible < 0.35
    assert by_user(world, 9)[key].visible > 0.9


def test_a_truck_that_is_driven_past_leaves_the_image(world):
    shares = [by_user(world, at_s)[1].inside for at_s in (8, 9, 10)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.1


def test_shares_are_shares(world):
    found = [one for at_s in range(0, 12, 3) for one in by_user(world, at_s).values()]
    assert all(0 <= one.visible <= 1 and 0 <= one.inside <= 1 for one in found)


def test_a_camera_that_is_mounted_lower_sees_the_far_road_higher(world):
    lower = CAMERA._replace(z=1.0)
    high, low = by_user(world, 4)[1], by_user(world, 4, lower)[1]
    assert low.box[3] < high.box[3]
    with Image.open(io.BytesIO(world.camera(0, lower))) as picture:
        assert picture.size == (960, 480)
    assert world.camera(0, lower) != world.camera(0)
