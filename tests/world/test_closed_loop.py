"""The vehicle drives by its own plans: with perfect perception nobody is touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_plausible import overlapping

from avrt.errors import SpecError
from avrt.model.message import Message, Stamp
from avrt.payload import Track, Tracks
from avrt.stages.planning import Planner
from avrt.world import SCENES, PlanFollower, World, make_scene
from avrt.world.mounting import REAR_AXLE
from avrt.world.road import OUTER_LANE
from avrt.world.traffic import RoadUser

MS = 1_000_000
CYCLE_NS, DELAY_NS = 100 * MS, 100 * MS


def scene_of(world, at_ns):
    """Return what a perfect tracker says, from the vehicle's middle."""
    moving = world.ego(at_ns).motion
    tracks = tuple(_track(one) for one in world.truth(at_ns).objects)
    stamp = Stamp("truth", at_ns // CYCLE_NS, at_ns, at_ns, at_ns)
    return Message(stamp, Tracks(tracks, moving.speed, moving.yaw_rate))


def _track(one):
    x = one.box.x - REAR_AXLE
    box = type(one.box)(x, one.box.y, *(getattr(one.box, n) for n in
                                        ("z", "length", "width", "height", "yaw")))  # fmt: skip
    reach = abs(np.cos(box.yaw)) * box.length / 2 + abs(np.sin(box.yaw)) * box.width / 2
    return Track(
        id=one.id, label=one.label, box=box, vx=one.vx, vy=one.vy, closing_speed=0.0,
        covariance=np.eye(5) * 0.01, existence=1.0, hits=9, misses=0, confirmed=True,
        sensors=("truth",), nearest_x=x - reach, points=np.zeros((0, 3), np.float32),
    )  # fmt: skip


def driven(name, seed, seconds):
    """Drive a scene by plans that come DELAY_NS after what they rest on."""
    world, planner, follower = World(make_scene(name, seed), seconds), Planner(), PlanFollower()
    world.advance(CYCLE_NS)
    for at_ns in range(CYCLE_NS, int(seconds * 1e9) - DELAY_NS, CYCLE_NS):
        plan = planner.process(scene_of(world, at_ns))
        world.advance(at_ns + DELAY_NS, follower)
        follower.take(plan, at_ns / 1e9)
    return world


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENES))
@pytest.mark.parametrize("seed", range(3))
def test_a_vehicle_that_follows_its_plans_touches_nobody(name, seed):
    world = driven(name, seed, 20.0)
    times = range(0, 19_500 * MS, 200 * MS)
    for at_ns in times:
        assert [pair for pair in overlapping(world.outlines(at_ns)) if 0 in pair] == [], at_ns
    places = [world.outlines(at_ns)[0, :2] for at_ns in times]
    d = [world.scene.road.project(x, y, np.hypot(x, y))[1] for x, y in places]
    assert abs(np.array(d) - world.scene.users[0].d).max() < 0.3


def test_the_others_react_to_a_vehicle_that_somebody_drives():
    def brakes(_state):
        return -3.0, 0.0

    behind = RoadUser(1, "car", -20.0, OUTER_LANE, 12.0, 1, (4.3, 1.8, 1.5), (200, 0, 0))
    scene = make_scene("hard_brake", 0)
    world = World(replace(scene, users=(scene.users[0], behind), key_user=1), 8.0)
    world.advance(None, brakes)
    assert world.ego(5_000 * MS).motion.speed == 0
    assert world.truth(7_500 * MS).objects[0].vx == pytest.approx(0.0, abs=0.1)
    assert overlapping(world.outlines(7_500 * MS)) == []


def test_who_drives_the_vehicle_may_not_let_go_of_it():
    world = World(make_scene("cut_in", 0), 3.0)
    world.advance(1_000 * MS, PlanFollower())
    with pytest.raises(SpecError, match="driven by a control"):
        world.advance(2_000 * MS)
    world.advance(2_000 * MS, PlanFollower())
    assert world.ego(2_000 * MS).place[0] > world.ego(1_000 * MS).place[0]


@pytest.mark.parametrize("wanted", [(np.nan, 0.0), (0.0, np.inf)])
def test_a_control_that_wants_no_number_is_refused_and_nobody_moves(wanted):
    world = World(make_scene("cut_in", 0), 2.0)
    with pytest.raises(SpecError, match=r"wants an acceleration of .* at 0 s"):
        world.advance(1_000 * MS, lambda _state: wanted)
    with pytest.raises(SpecError, match="come to 0 s"):
        world.ego(20 * MS)
    world.advance()
    other = World(make_scene("cut_in", 0), 2.0)
    other.advance()
    assert world.truth(2_000 * MS) == other.truth(2_000 * MS)


def test_without_a_plan_the_vehicle_slows_down():
    world = World(make_scene("cut_in", 0), 3.0)
    world.advance(None, PlanFollower())
    before, after = (world.ego(at_ns).motion.speed for at_ns in (0, 2_000 * MS))
    assert after == pytest.approx(before - 2.0, abs=0.1)
