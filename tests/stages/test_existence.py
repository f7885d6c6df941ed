"""Seeing makes a thing more likely, not seeing less, and what says nothing changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.stages.fusion.existence import detected, missed, survived

inside = st.floats(0.01, 0.99)


@given(existence=inside, rate=inside, ratio=st.floats(1, 1e4))
def test_a_measurement_that_is_likelier_than_clutter_speaks_for_a_thing(existence, rate, ratio):
    after = detected(existence, rate, ratio)
    assert existence - 1e-12 <= after <= 1


@given(existence=inside, rate=inside)
def test_a_miss_speaks_against_it_the_more_the_surer_the_sensor_is(existence, rate):
    assert missed(existence, rate) < existence
    assert missed(existence, rate) <= missed(existence, rate / 2)
    assert missed(existence, 0.0) == existence


@given(existence=inside, rate=inside, ratio=st.floats(0.01, 1e3))
def test_it_is_the_rule_of_bayes(existence, rate, ratio):
    """A thing shows with `rate`; then its density over clutter's is `ratio`."""
    odds = existence / (1 - existence) * (1 - rate + rate * ratio)
    assert detected(existence, rate, ratio) == pytest.approx(odds / (1 + odds))


def test_things_leave_the_view_slowly():
    assert survived(0.9, 0.0) == 0.9
    assert survived(0.9, 1.0) == pytest.approx(0.9 * 0.951, abs=0.001)
