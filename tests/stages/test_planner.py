"""Every plan keeps the limits; a stop is always there; who made it brake is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.model.message import Message, Stamp
from avrt.payload import Box, Track, Tracks
from avrt.stages.planning.planner import HARD_BRAKING, Planner
from avrt.stages.planning.reference import Arc
from avrt.stages.planning.trajectories import INSTANTS, Limits, emergency_stop, sample

CHECKED = settings(derandomize=True, deadline=None, max_examples=40)
LIMITS = Limits(acceleration=2.0, braking=8.0, jerk=12.0, braking_jerk=40.0, curvature=0.2)
CLOSE = 1e-9


def thing(  # noqa: PLR0913 - each is one column of the tables below
    near, *, track_id=1, y=0.0, vx=0.0, vy=0.0, confirmed=True, sigma=0.1
):
    points = np.array([[near, y, -1.0]], np.float32)
    return Track(
        id=track_id,
        label="car",
        box=Box(near + 2.1, y, -1.0, 4.2, 1.8, 1.5, 0.0),
        vx=vx,
        vy=vy,
        closing_speed=-vx,
        covariance=np.eye(5) * sigma**2,
        existence=0.99,
        hits=10,
        misses=0,
        confirmed=confirmed,
        sensors=("lidar",),
        nearest_x=near,
        points=points,
    )


def planned(*things, speed=10.0, **parameters):
    scene = Message(Stamp("test", 0, 0, 0, 0), Tracks(tuple(things), speed))
    return Planner(**parameters).process(scene)


@given(speed=st.floats(0, 40), speed_max=st.floats(0.1, 40))
@CHECKED
def test_all_samples_keep_the_limits(speed, speed_max):
    made = sample(speed, speed_max, LIMITS)
    assert made.acceleration.max() <= LIMITS.acceleration + CLOSE
    assert made.acceleration.min() >= -LIMITS.braking - CLOSE
    assert made.jerk.max() <= LIMITS.jerk + CLOSE
    assert np.abs(made.curvature).max() <= LIMITS.curvature + CLOSE
    assert made.speed.min() >= -CLOSE
    assert (np.diff(made.along, axis=1) >= -CLOSE).all()
    assert (made.speed[0] == speed).all()
    assert (made.aside[0] == 0).all()


@given(speed=st.floats(0, 60))
@CHECKED
def test_the_emergency_stop_brakes_to_rest_at_any_speed(speed):
    made = emergency_stop(speed, LIMITS)
    assert made.acceleration.min() >= -LIMITS.braking
    assert (np.diff(made.speed[0]) <= CLOSE).all()
    assert made.speed.min() >= 0
    assert (made.speed[0, -1] == 0) == (speed < 8.0 * (5.0 - 0.1))
    assert np.isclose(made.speed[0, 0], speed)


@given(
    speed=st.floats(0, 30),
    near=st.floats(2.0, 80),
    y=st.floats(-6, 6),
    vx=st.floats(-20, 30),
    vy=st.floats(-3, 3),
)
@CHECKED
def test_there_is_always_a_plan_within_the_limits(speed, near, y, vx, vy):
    plan = planned(thing(near, y=y, vx=vx, vy=vy), speed=speed)
    assert plan.xy.shape == (len(INSTANTS), 2)
    assert plan.acceleration.min() >= -8.0 - CLOSE
    assert plan.acceleration.max() <= 2.0 + CLOSE
    assert np.abs(plan.curvature).max() <= 0.2 + CLOSE
    assert np.isfinite(plan.xy).all()
    if plan.acceleration.min() < -HARD_BRAKING:
        assert plan.kind in {"brake", "stop"}
        assert plan.cause is not None


def test_a_free_road_means_cruising():
    plan = planned(speed=10.0)
    assert plan.kind == "cruise"
    assert plan.time_gap is None
    assert plan.cause is None
    assert plan.speed[-1] > 10.0


@pytest.mark.parametrize("speed", [0.0, 0.5, 5.0, 13.9, 20.0])
def test_a_free_corridor_is_never_a_stop(speed):
    beside = [thing(8.0, track_id=1, y=3.2), thing(12.0, track_id=2, y=-3.4)]
    plan = planned(*beside, speed=speed)
    assert plan.kind == "cruise"
    assert plan.speed[-1] > 1.0


def test_a_slower_vehicle_is_followed_at_the_time_gap():
    plan = planned(thing(30.0, vx=8.0), speed=10.0)
    assert plan.kind == "follow"
    assert plan.time_gap == pytest.approx((30.0 - 2.7) / 10.0)
    gap = 30.0 + 8.0 * plan.t - plan.xy[:, 0] - 2.7
    assert gap.min() > 10.0
    assert plan.acceleration.min() > -HARD_BRAKING


def test_hard_braking_names_track_sensors_and_points():
    obstacle = thing(16.0, track_id=42)
    plan = planned(obstacle, thing(40.0, track_id=7, y=4.0), speed=12.0)
    assert plan.kind in {"brake", "stop"}
    assert plan.acceleration.min() < -HARD_BRAKING
    assert plan.cause is not None
    assert plan.cause.track_id == 42
    assert plan.cause.sensors == ("lidar",)
    assert plan.cause.points is obstacle.points
    assert plan.cause.distance == pytest.approx(16.0 - 2.7)
    assert plan.xy[-1, 0] < 16.0 - 2.7


def test_what_cannot_be_avoided_is_met_with_the_emergency_stop():
    plan = planned(thing(4.0, track_id=3), speed=20.0)
    assert plan.acceleration.min() == -8.0
    assert plan.cause is not None
    assert plan.cause.track_id == 3


def test_a_tentative_track_stops_nobody_but_nobody_speeds_up_towards_it():
    plan = planned(thing(12.0, confirmed=False))
    assert plan.kind == "cruise"
    assert (plan.speed == 10.0).all()


def test_an_uncertain_track_takes_more_room():
    sure, unsure = (planned(thing(28.0, vx=9.0, sigma=s), speed=10.0) for s in (0.05, 1.0))
    assert unsure.xy[-1, 0] <= sure.xy[-1, 0]


def test_a_crossing_vehicle_is_seen_coming():
    crossing = thing(18.0, track_id=5, y=-8.0, vy=4.0)
    plan = planned(crossing, speed=10.0)
    assert plan.time_gap is not None
    assert plan.speed[-1] < 10.0


def test_standing_behind_a_standing_vehicle_is_standing_still():
    plan = planned(thing(4.4), speed=0.0)
    assert plan.kind == "stop"
    assert plan.xy[-1, 0] < 0.5


@pytest.mark.parametrize(
    "wrong", [{"cruise_speed": 0}, {"margin": -1}, {"time_gap": "1.5 s"}, {"front_offset": None}]
)
def test_a_wrong_parameter_is_the_users_mistake(wrong):
    with pytest.raises(SpecError) as caught:
        Planner(**wrong)
    assert caught.value.key == tuple(wrong)


# The road bends as the vehicle turns


@given(
    curvature=st.floats(-0.02, 0.02),
    along=st.floats(-20, 60),
    aside=st.floats(-10, 10),
)
@CHECKED
def test_a_place_on_an_arc_is_found_again(curvature, along, aside):
    arc = Arc.of(10.0, 10.0 * curvature)
    (place,), (heading,) = arc.bent(np.array([along]), np.array([aside]))
    assert arc.along(*place) == pytest.approx((along, aside, heading), abs=1e-6)


@pytest.mark.parametrize(
    ("speed", "yaw_rate"), [(2.9, 1.0), (10.0, np.nan), (10.0, 0.0), (np.nan, 1.0)]
)
def test_a_slow_vehicle_or_an_unknown_rate_bends_nothing(speed, yaw_rate):
    assert Arc.of(speed, yaw_rate).curvature == 0


def turning(*things, radius, speed=12.0):
    scene = Tracks(tuple(things), speed, yaw_rate=speed / radius)
    return Planner().process(Message(Stamp("test", 0, 0, 0, 0), scene))


def on_bend(along, aside, *, radius, speed=0.0):
    """A car that faces along a bend to the left."""
    (place,), (heading,) = Arc(1 / radius).bent(np.array([along]), np.array([aside]))
    car = thing(0.0, vx=speed * np.cos(heading), vy=speed * np.sin(heading), sigma=0.05)
    box = Box(*place, -1.0, 4.2, 1.8, 1.5, heading)
    return replace(car, box=box, nearest_x=place[0] - 2.1)


def test_who_stands_beside_a_bend_is_in_nobodys_way():
    parked = on_bend(35.0, -3.0, radius=200.0)
    assert parked.box.y > -0.1  # straight ahead it would be in the way
    plan = turning(parked, radius=200.0)
    assert (plan.kind, plan.time_gap) == ("cruise", None)
    assert turning(parked, radius=1e9).kind != "cruise"


def test_who_drives_ahead_on_a_bend_is_followed_and_the_plan_bends():
    ahead = on_bend(25.0, 0.0, radius=100.0, speed=8.0)
    plan = turning(ahead, radius=100.0)
    assert plan.time_gap is not None
    assert plan.speed[-1] < 12.0
    assert plan.curvature[0] == pytest.approx(0.01)
    assert np.hypot(plan.xy[:, 0], plan.xy[:, 1] - 100.0) == pytest.approx(100.0, abs=0.7)
