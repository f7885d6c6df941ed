"""Lists of objects and plans that say something else: by example and by property."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.inject.edits import swerved, with_ghost, without_nearest
from avrt.payload import Plan, Tracks
from avrt.safety.objects import Objects
from avrt.safety.trajectory import Trajectory

T = np.arange(21) / 4
SEEN = with_ghost(with_ghost(Tracks((), 10.0), 30.0, 0.0), 20.0, 4.0)


def plan(speed, curvature=0.0):
    yaw = curvature * speed * T
    x = np.sin(yaw) / curvature if curvature else speed * T
    y = (1 - np.cos(yaw)) / curvature if curvature else np.zeros_like(T)
    each = np.full_like(T, curvature), np.full_like(T, speed), np.zeros_like(T)
    return Plan(T, np.stack([x, y], axis=1), yaw, each[1], each[2], each[0], "cruise", None, None)


def test_a_ghost_is_one_object_more_and_a_miss_one_less():
    places = [(track.id, track.box.x, track.box.y) for track in SEEN.objects]
    assert places == [(1, 30.0, 0.0), (2, 20.0, 4.0)]
    assert [track.id for track in without_nearest(SEEN, 22.0, 3.0).objects] == [1]
    assert [track.id for track in without_nearest(SEEN, 28.0, 0.0).objects] == [2]


@given(st.floats(-1000, 1000), st.floats(-1000, 1000))
def test_what_a_ghost_says_can_be_believed(ahead, aside):
    assert not Objects().problem(with_ghost(SEEN, ahead, aside))


@given(st.floats(2, 40), st.floats(-3, 3), st.floats(-0.004, 0.004))
def test_a_plan_that_swerves_ends_aside_and_can_be_driven(speed, aside, curvature):
    straight = plan(speed, curvature if speed < 20 else 0.0)
    assert not Trajectory().problem(straight)
    found = swerved(straight, aside)
    assert not Trajectory().problem(found)
    assert found.xy[-1] - straight.xy[-1] == pytest.approx([0.0, aside])
    assert found.xy[0] == pytest.approx(straight.xy[0])
    assert (found.speed == straight.speed).all()
    slope = np.gradient(found.xy[:, 1], found.xy[:, 0])
    assert np.tan(found.yaw[5:-5]) == pytest.approx(slope[5:-5], abs=0.1)


@pytest.mark.parametrize(
    ("alter", "payload"),
    [
        (lambda item: with_ghost(item, 20.0, 0.0), [1.0]),
        (lambda item: without_nearest(item, 20.0, 0.0), [1.0]),
        (lambda item: without_nearest(item, 20.0, 0.0), Tracks((), 10.0)),
        (lambda item: swerved(item, 3.0), SEEN),
        (lambda item: swerved(item, 3.0), plan(0.5)),
        (lambda item: swerved(item, 0.0), plan(10.0)),
    ],
)
def test_what_has_nothing_to_change_is_returned_itself(alter, payload):
    assert alter(payload) is payload
