"""Agreement by kind: numbers, angles, classes, structures, object lists and plans."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from driven import plan, scene, track
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.payload import Box, PlanCause
from avrt.safety import objects
from avrt.safety.agreement import EXACT, Choice, Scalar, Tolerance
from avrt.safety.objects import NEW_IDS, Objects
from avrt.safety.trajectory import Trajectory

# Structures


def test_structures_of_one_build_are_compared_number_by_number():
    a = {"boxes": [scene(track(1, 10.0, 0.0))], "score": 0.5, "name": "x"}
    b = {"boxes": [scene(track(1, 10.0 + 1e-5, 0.0))], "score": 0.5, "name": "x"}
    assert Tolerance(1e-5).distance(a, a) == 0
    assert 0 < Tolerance(1e-5).distance(a, b) <= 1
    assert Tolerance(1e-7).distance(a, b) > 1
    assert EXACT.distance(a, b) == math.inf
    assert EXACT.distance(a, a) == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (True, 1),
        ([1.0], (1.0,)),
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, {"b": 1.0}),
        ("x", "y"),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2, np.float32), np.zeros(2, np.float64)),
        (np.array([1, 2]), np.array([1, 3])),
        (torch.zeros(2), torch.ones(2)),
        (math.nan, math.nan),
        (np.array([math.nan]), np.array([math.nan])),
        (None, 0),
    ],
)
def test_what_is_built_or_counted_otherwise_never_agrees(a, b):
    assert Tolerance(0.1).distance(a, b) == math.inf or Tolerance(0.1).distance(a, b) > 1


def test_tensors_and_empty_arrays_are_compared():
    assert Tolerance().distance(torch.ones(3), torch.ones(3)) == 0
    assert Tolerance().distance(np.zeros((0, 3)), np.zeros((0, 3))) == 0


@pytest.mark.parametrize(
    "payload",
    [
        math.inf,
        [1.0, math.nan],
        {"a": np.array([1.0, -math.inf])},
        np.float32("nan"),
        torch.tensor([math.nan]),
        scene(track(1, math.nan, 0.0)),
    ],
)
def test_what_is_not_finite_is_no_value(payload):
    assert Tolerance().problem(payload) == "nonfinite"


def test_integers_and_texts_are_finite():
    assert not Tolerance().problem([1, "x", None, True, b"z", np.array([1]), torch.tensor([1])])


def test_something_that_is_no_payload_is_refused():
    with pytest.raises(TypeError, match="plain data"):
        Tolerance().distance(object(), object())


# Numbers and classes


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_numbers_agree_within_their_absolute_or_relative_tolerance(a, b):
    agreement = Scalar(absolute=0.5, share=0.01)
    allowed = max(0.5, 0.01 * max(abs(a), abs(b)))
    assert (agreement.distance(a, b) <= 1) == (abs(a - b) / allowed <= 1)


def test_angles_agree_across_the_seam():
    agreement = Scalar(absolute=0.1, period=2 * math.pi)
    assert agreement.distance(3.1, -3.1) <= 1
    assert agreement.distance(0.0, 3.0) > 1


@pytest.mark.parametrize("payload", ["5", None, True, [5.0]])
def test_what_is_no_number_is_of_another_schema(payload):
    assert Scalar().problem(payload) == "schema"


def test_the_conservative_side_of_numbers_is_declared():
    assert Scalar(safe="least").settle([5.0, 3.0]) == 3.0
    assert Scalar(safe="greatest").settle([5.0, 3.0]) == 5.0
    assert Scalar().settle([5.0, 3.0]) is None


def test_classes_are_equal_or_not():
    signal = Choice(("red", "amber", "green"))
    assert signal.problem("blue") == "range"
    assert signal.distance("red", "red") == 0
    assert signal.distance("red", "green") == math.inf
    assert signal.settle(["green", "amber"]) == "amber"
    assert Choice().settle(["a", "b"]) is None


# Object lists


CLOSE, FAR_OFF = scene(track(1, 10, 0), track(2, 30, 4)), scene(track(1, 10, 0), track(2, 30, 9))


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        (CLOSE, CLOSE, True),
        (CLOSE, scene(track(7, 30.5, 4.2), track(8, 10.3, 0.2)), True),
        (CLOSE, FAR_OFF, False),
        (CLOSE, scene(track(1, 10, 0)), False),
        (scene(), scene(), True),
        (scene(), scene(track(1, 150, 0)), True),
        (CLOSE, scene(track(1, 10, 0, "pedestrian"), track(2, 30, 4)), False),
        (CLOSE, scene(track(1, 10, 0, vx=5.0), track(2, 30, 4)), False),
    ],
)
def test_lists_agree_that_show_the_same_objects(a, b, agree):
    assert (Objects().distance(a, b) <= 1) == agree
    assert (Objects().distance(b, a) <= 1) == agree


def test_one_ghost_among_many_is_agreement_unless_it_is_in_the_way():
    many = [track(i, 5 * i, 10) for i in range(11)]
    assert Objects().distance(scene(*many), scene(*many, track(99, 20, -20))) <= 1
    assert Objects().distance(scene(*many), scene(*many, track(99, 20, 0))) == math.inf


def test_where_no_two_agree_every_object_is_kept_once():
    a = scene(track(1, 10, 0), track(2, 30, 4))
    b = scene(track(5, 10.2, 0), track(6, 20, -5, "pedestrian"))
    c = scene(track(9, 20.1, -5, "pedestrian"))
    merged = Objects().settle([a, b, c])
    assert [t.id for t in merged.objects] == [1, 2, NEW_IDS + 6]
    assert [t.existence for t in merged.objects] == [2 / 3, 1 / 3, 2 / 3]


def test_what_only_others_show_is_kept_where_it_is_in_the_way():
    pair = scene(track(1, 10, 0), track(2, 30, 4))
    third = scene(track(1, 10, 0), track(7, 20, 1), track(8, 20, 9), track(9, 70, 0))
    kept = Objects().completed(pair, [pair, third])
    assert kept.objects[:2] == pair.objects
    assert [(t.id, t.box.x, t.existence) for t in kept.objects[2:]] == [
        (2 * NEW_IDS + 7, 20, 1 / 3)
    ]


def test_what_several_of_the_others_show_is_kept_once():
    two = [scene(track(5, 20, 0)), scene(track(6, 20.2, 0))]
    kept = Objects().completed(scene(), [scene(), scene(), *two])
    assert [(t.id, t.existence) for t in kept.objects] == [(3 * NEW_IDS + 5, 2 / 5)]


def test_what_others_show_in_another_way_is_no_other_thing():
    pair = scene(track(1, 10, 0))
    for keys in ({"confirmed": False}, {"covariance": 9 * np.eye(5)}, {"nearest_x": 90.0}):
        third = scene(replace(track(1, 10, 0), **keys))
        assert Objects().distance(pair, third) == math.inf
        assert Objects().completed(pair, [pair, third]) is None


def test_no_more_is_kept_than_a_list_may_hold(monkeypatch):
    monkeypatch.setattr(objects, "OBJECTS_MAX", 3)
    pair = scene(track(1, 5, 20), track(2, 15, 20))
    third = scene(*[track(i, 50 - 10 * i, 0) for i in range(3)])
    (*_, nearest) = Objects().completed(pair, [pair, third]).objects
    assert nearest.box.x == 30


@settings(max_examples=50)
@given(st.data())
def test_nothing_in_the_way_is_lost_and_nothing_that_nobody_shows_is_kept(data):
    places = st.tuples(st.integers(-1, 7), st.integers(-2, 2))
    lists = [
        scene(*[track(100 * copy + i, 10.0 * x, 4.0 * y) for i, (x, y) in enumerate(own)])
        for copy, own in enumerate(
            data.draw(st.lists(st.sets(places, max_size=4), min_size=2, max_size=4))
        )
    ]
    selected, *others = lists
    kept = Objects().completed(selected, others)
    shown = {(t.box.x, t.box.y) for one in lists for t in one.objects}
    in_the_way = {(x, y) for x, y in shown if 0 <= x <= 60 and abs(y) <= 2.5}
    published = [(t.box.x, t.box.y) for t in (kept or selected).objects]
    own = [(t.box.x, t.box.y) for t in selected.objects]
    assert sorted(published) == sorted({*own, *in_the_way})
    assert (kept is None) == (published == own)
    assert len({t.id for t in (kept or selected).objects}) == len(published)


@pytest.mark.parametrize(
    "keys",
    [
        {"confirmed": False},
        {"nearest_x": 90.0},
        {"closing_speed": -50.0},
        {"box": Box(10.0, 0.0, 0.8, 9.0, 1.8, 1.6, 0.0)},
        {"box": Box(10.0, 0.0, 0.8, 4.0, 1.8, 1.6, 1.5)},
        {"covariance": np.diag([1.0, 4.0, 1.0, 1.0, 1.0])},
        {"covariance": np.diag([1.0, 1e300, 1.0, 1.0, 1.0])},
        {"covariance": np.eye(5) + np.eye(5, k=2)},
    ],
)
def test_whatever_a_planner_reads_of_a_track_must_agree(keys):
    right = track(1, 10.0, 0.0)
    assert Objects().distance(scene(right), scene(replace(right, **keys))) == math.inf


@pytest.mark.parametrize("keys", [{"ego_speed": 0.0}, {"yaw_rate": 1.0}])
def test_the_motion_of_the_vehicle_itself_must_agree(keys):
    assert Objects().distance(CLOSE, replace(CLOSE, **keys)) == math.inf


@pytest.mark.parametrize("key", ["closing_speed", "nearest_x", "existence", "vx"])
def test_no_number_of_a_track_may_be_none(key):
    spoilt = scene(replace(track(1, 10.0, 0.0), **{key: math.nan}))
    assert Objects().problem(spoilt) == "nonfinite"


def test_of_three_lists_that_agree_the_odd_one_is_the_furthest():
    right = scene(track(1, 10, 0), track(2, 30, 4))
    odd = scene(track(1, 10, 0), replace(track(2, 30, 4), covariance=1.1 * np.eye(5)))
    assert Objects().distance(right, right) == 0 < Objects().distance(right, odd) <= 1


def test_lists_agree_alike_in_both_directions():
    a, b = scene(track(1, 30.0, 9.0)), scene(track(1, 31.55, 9.0))
    assert Objects().distance(a, b) == Objects().distance(b, a)


def test_lists_that_cannot_be_voted_for_are_told():
    assert Objects().problem([1]) == "schema"
    assert Objects().problem(scene(track(1, math.inf, 0))) == "nonfinite"
    assert Objects().problem(scene(*[track(i, i, 0) for i in range(1001)])) == "range"
    impossible = replace(track(1, 10, 0), covariance=np.diag([-1.0, 1.0, 1.0, 1.0, 1.0]))
    assert Objects().problem(scene(impossible)) == "range"
    assert Objects().problem(CLOSE) == ""


# Plans


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        (plan(), plan(), True),
        (plan(), plan(10.2), True),
        (plan(), plan(11.0), False),
        (plan(), plan(aside=0.7), True),
        (plan(aside=0.5), plan(aside=-0.5), False),
        (plan(), plan(kind="follow"), False),
        (plan(), plan(braking=1.0), False),
        (plan(), replace(plan(), acceleration=np.full(21, -8.0)), False),
        (plan(), replace(plan(), yaw=np.full(21, 3.0)), False),
        (plan(), replace(plan(), curvature=np.full(21, 0.9)), False),
    ],
)
def test_plans_agree_that_stay_close_together(a, b, agree):
    assert (Trajectory().distance(a, b) <= 1) == agree
    assert (Trajectory().distance(b, a) <= 1) == agree


def test_of_plans_that_differ_the_slowest_is_safest():
    careful = plan(braking=3.0, kind="brake")
    assert Trajectory().settle([plan(), careful, plan(9.0)]) is careful


@pytest.mark.parametrize(
    ("spoilt", "problem"),
    [
        ("not a plan", "schema"),
        (replace(plan(), speed=np.zeros(3)), "schema"),
        (replace(plan(), yaw=np.full(21, math.nan)), "nonfinite"),
        (replace(plan(), t=np.zeros(21)), "range"),
        (replace(plan(), curvature=np.full(21, 0.5)), "range"),
        (replace(plan(), acceleration=np.full(21, -20.0)), "range"),
        (replace(plan(), acceleration=np.full(21, 20.0)), "range"),
        (replace(plan(), speed=np.full(21, -1.0)), "range"),
        (replace(plan(), speed=np.full(21, 70.1), curvature=np.zeros(21)), "range"),
        (replace(plan(), xy=plan().xy + 5), "range"),
        (replace(plan(), t=plan().t - 9), "range"),
        (replace(plan(), t=plan().t * 1e12), "range"),
        (replace(plan(), yaw=np.full(21, 1.0)), "range"),
        (plan(), ""),
        (replace(plan(), cause=PlanCause(1, (), np.full((2, 3), math.nan), 1.0, math.nan)), ""),
    ],
)
def test_a_plan_that_cannot_be_driven_is_no_vote(spoilt, problem):
    assert Trajectory().problem(spoilt) == problem


@pytest.mark.parametrize("curvature", [0.0, 0.01])
def test_a_speed_whose_square_is_no_number_is_refused_without_a_warning(curvature):
    """A flipped bit of the exponent makes one; a warning is text that nobody asked for."""
    fast = plan(1e200)
    spoilt = replace(fast, xy=plan().xy, curvature=np.full_like(fast.t, curvature))
    assert Trajectory().problem(spoilt) == "range"
