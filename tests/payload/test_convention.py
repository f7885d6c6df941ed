"""A box is the same whoever wrote it, and nobody guesses how it was written."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.payload.convention import box_of
from avrt.payload.projection import box_corners

SIDES = st.floats(0.1, 30)
PLACES = st.tuples(*[st.floats(-200, 200)] * 3)


@settings(max_examples=30)
@given(PLACES, SIDES, SIDES, SIDES, st.floats(-10, 10))
def test_one_box_has_one_outline_in_every_convention(centre, length, width, height, yaw):
    written = {
        "iso8855": ((length, width, height), (yaw,)),
        "nuscenes": ((width, length, height), (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))),
        "second": ((width, length, height), (-yaw - math.pi / 2,)),
    }
    outlines = [box_corners(box_of(name, centre, *rest)) for name, rest in written.items()]
    for outline in outlines:
        assert np.abs(outline - outlines[0]).max() < 1e-9


@pytest.mark.parametrize("convention", ["iso8855", "nuscenes", "second"])
def test_a_heading_is_within_half_a_turn(convention):
    heading = (1.0, 0, 0, 0) if convention == "nuscenes" else (20.0,)
    assert abs(box_of(convention, (0, 0, 0), (4, 2, 1), heading).yaw) <= math.pi


@pytest.mark.parametrize(
    ("convention", "size", "heading", "key", "what"),
    [
        (None, (4, 2, 1), (0.0,), "convention", "known are iso8855, nuscenes, second"),
        ("nuscene", (4, 2, 1), (0.0,), "convention", "did you mean 'nuscenes'?"),
        ("iso8855", (4, 2), (0.0,), "size", "expected 3 numbers, found 2"),
        ("nuscenes", (4, 2, 1), (0.0,), "heading", "expected 4 numbers, found 1"),
    ],
)
def test_what_is_not_written_in_a_convention_is_refused(convention, size, heading, key, what):
    with pytest.raises(SpecError) as refused:
        box_of(convention, (0, 0, 0), size, heading)
    assert refused.value.key == (key,)
    assert refused.value.what.endswith(what)
