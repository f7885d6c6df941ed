"""What nobody votes on is tested by itself: numbers, and the stage's own test."""

from dataclasses import replace

import numpy as np
import pytest

from avrt.payload import Plan, Tracks
from avrt.safety.outputs import IMPOSSIBLE, REFUSED, SoleOutputs

T = np.arange(4.0)
PLAN = Plan(T, np.stack((T, T), axis=1), *[T] * 4, "cruise", None, None)
TRACKS = Tracks((), 10.0)


def rising(output, previous):
    return previous is None or output > previous


def raising(_output, _previous):
    raise ValueError("no")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_plans_and_tracks_hold_numbers(value):
    outputs = SoleOutputs({"s": None})
    assert outputs.fault("s", PLAN) is outputs.fault("s", TRACKS) is None
    assert outputs.fault("s", replace(PLAN, speed=np.full(4, value))).kind == IMPOSSIBLE
    assert outputs.fault("s", replace(PLAN, yaw=T[:3])).kind == IMPOSSIBLE
    assert outputs.fault("s", replace(TRACKS, ego_speed=value)).kind == IMPOSSIBLE


def test_of_other_payloads_no_number_may_mean_something():
    assert SoleOutputs({"s": None}).fault("s", {"far": np.array([np.nan])}) is None


def test_the_own_test_compares_with_what_was_accepted_before():
    outputs = SoleOutputs({"s": rising})
    found = [outputs.fault("s", value) for value in (3, 2, 3, 4)]
    assert [fault and fault.kind for fault in found] == [None, REFUSED, REFUSED, None]
    outputs.forget("s")
    assert outputs.fault("s", 1) is None


def test_a_test_that_raises_refuses():
    assert SoleOutputs({"s": raising}).fault("s", 1).kind == REFUSED


def test_of_a_stage_that_is_voted_on_there_is_nothing_to_say():
    assert SoleOutputs({"s": raising}).fault("other", 1) is None
