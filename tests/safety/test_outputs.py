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
    outputs = SoleOutputs(None)
    assert outputs.fault(PLAN) is outputs.fault(TRACKS) is None
    assert outputs.fault(replace(PLAN, speed=np.full(4, value))).kind == IMPOSSIBLE
    assert outputs.fault(replace(PLAN, yaw=T[:3])).kind == IMPOSSIBLE
    assert outputs.fault(replace(TRACKS, ego_speed=value)).kind == IMPOSSIBLE


def test_of_other_payloads_no_number_may_mean_something():
    assert SoleOutputs(None).fault({"far": np.array([np.nan])}) is None


def test_the_own_test_compares_with_what_was_accepted_before():
    outputs = SoleOutputs(rising)
    found = [outputs.fault(value) for value in (3, 2, 3, 4)]
    assert [fault and fault.kind for fault in found] == [None, REFUSED, REFUSED, None]
    outputs.forget()
    assert outputs.fault(1) is None


def test_a_test_that_raises_refuses():
    assert SoleOutputs(raising).fault(1).kind == REFUSED
