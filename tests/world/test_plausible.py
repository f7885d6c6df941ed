"""Many seeds of every scene: nobody runs into anybody, and the ground is the ground.

The test takes some; `python tests/world/test_plausible.py 100` takes a hundred.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from outlines import footprint_overlap

from avrt.world import SCENES, World, make_scene
from avrt.world.lidar import HDL_32E
from avrt.world.mounting import LIDAR, ego_pose

SECOND = 1_000_000_000
SLACK = 5 * HDL_32E.noise  # metres
SEEDS = 15


def above_ground(world, at_ns):
    """Return how far the points of a sweep are above the ground, metres."""
    cloud = world.lidar(at_ns)
    motion = world._motion(at_ns, cloud.seconds.astype(np.float64))
    ground = world.scene.road.ground
    pose = ego_pose(ground, motion)
    points = pose.point(LIDAR.place) + np.einsum("nij,nj->ni", pose.axes, cloud.xyz)
    return points[:, 2] - ground.height(points[:, 0], points[:, 1])


def overlapping(outlines):
    """Return the pairs of users that overlap: those near each other are looked at closely."""
    reach = np.hypot(outlines[:, 3], outlines[:, 4]) / 2
    apart = np.hypot(*(outlines[:, None, :2] - outlines[None, :, :2]).transpose(2, 0, 1))
    near = np.argwhere(np.triu(apart < reach[:, None] + reach[None], 1))
    return [(i, j) for i, j in near.tolist() if footprint_overlap(outlines[i], outlines[j])]


def check(name, seed):
    """Look at one world for 20 s, and at one of its sweeps."""
    world = World(make_scene(name, seed), 20.0)
    world.advance()
    for step in range(0, 200, 4):
        outlines = world.outlines(step * SECOND // 10)
        assert overlapping(outlines) == [], (seed, step / 10)
    above = above_ground(world, (seed * 37 % 190) * SECOND // 10)
    assert above.min() > -SLACK, seed
    assert len(above) > 10_000
    speeds = world._motion_at(19 * SECOND).speed
    assert (speeds >= 0).all()
    assert (speeds < 25).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENES))
def test_no_seed_makes_an_impossible_scene(name):
    for seed in range(SEEDS):
        check(name, seed)


if __name__ == "__main__":
    for scene in SCENES:
        for number in range(int(sys.argv[1])):
            check(scene, number)
        sys.stdout.write(f"{scene} ok\n")
