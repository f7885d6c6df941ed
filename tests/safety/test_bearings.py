"""Turned mountings, by how far apart in direction two sensors see things."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.safety.bearings import BASE, SURE, TURNS, WITHIN, Bearings

OTHERS = ("camera", "radar")
SMALL = st.floats(-1.5, 1.5)
ANY = st.floats(-WITHIN, WITHIN)
NOISE = st.floats(-0.8, 0.8)
CHECKED = settings(max_examples=50)


def after(frames):
    known = Bearings()
    for offsets in frames:
        known = known.after(offsets)
    return known


def frames_of(name, offset, least=0, most=4):
    """Return frames of one sensor, each with some things that have one offset each."""
    things = st.lists(st.tuples(offset), min_size=least, max_size=most)
    return st.lists(st.fixed_dictionaries({name: things}), max_size=6)


@CHECKED
@given(st.sampled_from(OTHERS).flatmap(lambda name: frames_of(name, SMALL)))
def test_offsets_nearer_to_no_turn_than_to_any_are_never_evidence(frames):
    assert not any(after(frames).peaks.values())


@CHECKED
@given(
    st.sampled_from(OTHERS),
    st.sampled_from(TURNS),
    st.lists(st.lists(NOISE, min_size=3, max_size=4), min_size=6, max_size=6),
)
def test_a_turn_that_three_things_show_is_told_with_the_sixth_frame(name, turn, noises):
    turned = after({name: [[turn + one] for one in noise]} for noise in noises).turned
    assert turned is not None
    assert abs(turned.degrees - turn) <= 1
    assert set(turned.suspects) == {BASE, name}


@CHECKED
@given(st.sampled_from(OTHERS).flatmap(lambda name: frames_of(name, ANY)), st.randoms())
def test_the_order_within_a_frame_changes_nothing(frames, random):
    mixed = [
        {name: random.sample(things, len(things)) for name, things in one.items()} for one in frames
    ]
    assert after(frames) == after(mixed)


@CHECKED
@given(st.lists(ANY, max_size=16), st.randoms())
def test_the_order_of_what_one_thing_is_compared_with_changes_nothing(offsets, random):
    beside = [2.0]
    mixed = random.sample(offsets, len(offsets))
    assert after([{"radar": [offsets, beside]}]) == after([{"radar": [mixed, beside]}])


@CHECKED
@given(st.lists(st.tuples(st.lists(ANY, max_size=4), st.lists(ANY, max_size=2)), max_size=8))
def test_one_thing_alone_is_never_believed(frames):
    known = after({"camera": [one], "radar": [other]} for one, other in frames)
    assert known.turned is None


@CHECKED
@given(
    st.lists(st.tuples(st.sampled_from(OTHERS), st.lists(st.tuples(ANY), max_size=6)), max_size=6)
)
def test_six_pairs_are_never_enough(frames):
    few, left = [], 6
    for name, things in frames:
        few.append({name: things[:left]})
        left -= len(things[:left])
    assert after(few).turned is None


@pytest.mark.parametrize(
    ("camera", "radar", "suspects"),
    [(5, 5, ("lidar",)), (5, 0, ("camera",)), (0, 5, ("radar",))],
)
def test_of_three_sensors_the_one_that_is_alone_is_suspected(camera, radar, suspects):
    frame = {"camera": [[camera]] * 3, "radar": [[radar]] * 3}
    known = Bearings()
    while known.turned is None:
        known = known.after(frame)
    assert known.turned.suspects == suspects
    assert known.turned.degrees == 5


def test_it_says_who_lies_off_from_whom():
    frame = {"camera": [[-4.0]] * 3}
    assert str(after([frame] * 10).turned) == (
        "the lidar sees things 4 degrees to the right of the camera: "
        "check the mounting of the camera or the lidar"
    )


def test_what_was_told_holds_until_the_sensors_agree_again():
    turned = after([{"radar": [[5.0]] * 5}] * 10)
    assert turned.turned is not None
    assert turned.after({}) == turned
    agreed = turned.after({"radar": [[0.0]] * 5})
    for _ in range(9):
        agreed = agreed.after({"radar": [[0.0]] * 5})
    assert agreed.turned is None
    assert agreed.peaks[BASE] < SURE


def test_a_thing_with_a_counterpart_and_others_beside_it_tells_nothing():
    crowd = [[-5.0, 0.1, 5.0], [-5.0, -0.2, 5.0], [0.3, 5.0]]
    assert after([{"camera": crowd}] * 100).turned is None
