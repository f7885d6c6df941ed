"""Percentiles by nearest rank, against their definition."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.metrics import distribution as module
from avrt.metrics.distribution import PERCENTILES, Distribution

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=250)


def distribution(values):
    figures = Distribution()
    for value in values:
        figures.add(value)
    return figures


def nearest_rank(values, share):
    """The smallest value with at least that share of the values at or below it."""
    return min(
        candidate
        for candidate in values
        if Fraction(sum(v <= candidate for v in values), len(values)) >= Fraction(share, 100)
    )


@settings(max_examples=60)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=120))
def test_percentiles_are_by_nearest_rank(values):
    summary = distribution(values).summary()
    for share in PERCENTILES:
        assert summary[f"p{share}"] == nearest_rank(values, share)


@settings(max_examples=60)
@given(VALUES)
def test_max_and_count_are_exact_and_every_figure_was_measured(values):
    figures = distribution(values)
    summary = figures.summary()
    assert len(figures) == summary["count"] == len(values)
    assert summary["max"] == (max(values) if values else None)
    for share in PERCENTILES:
        assert summary[f"p{share}"] in (values or [None])


def test_a_hundred_values_have_their_percentiles_where_one_expects_them():
    summary = distribution(range(100, 0, -1)).summary()
    assert summary == {"p50": 50, "p95": 95, "p99": 99, "max": 100, "count": 100}


def test_no_value_gives_no_figure():
    assert Distribution().summary() == {
        "p50": None,
        "p95": None,
        "p99": None,
        "max": None,
        "count": 0,
    }


def test_one_value_is_every_percentile():
    assert set(distribution([7]).summary().values()) == {7, 1}


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=200), st.integers(2, 60))
def test_of_more_values_than_are_kept_percentiles_are_little_too_high(values, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT_MAX", kept)
        summary = distribution(values).summary()
    assert summary["count"] == len(values)
    assert summary["max"] == max(values)
    for share in PERCENTILES:
        exact = nearest_rank(values, share)
        assert exact <= summary[f"p{share}"] <= exact + abs(exact) / 256 + 0.5


def test_memory_is_bounded_however_many_values_there_are(monkeypatch):
    monkeypatch.setattr(module, "KEPT_MAX", 100)
    figures = distribution(range(100_000, 300_000, 7))
    assert len(list(figures._exact())) < 100
    assert len(figures._rounded._above) == module.PLACES
    assert len(figures) == len(figures.values) == len(range(100_000, 300_000, 7))


@given(st.integers(0, 3 * module.BLOCK), st.integers(1, 200))
def test_the_newest_values_are_the_last_ones_in_order(count, wanted):
    figures = distribution(range(count))
    assert figures.newest(wanted) == tuple(range(count))[-wanted:]
    assert figures.values == tuple(range(count))


@given(st.integers(0, 2**63 - 1) | st.integers(0, 2000))
def test_every_rounded_value_has_a_place_of_its_own(value):
    rounded = module._rounded(value)
    place = module._place(rounded)
    assert 0 <= place < module.PLACES
    assert module._value(place) == rounded
    assert module._place(module._rounded(rounded + 1)) in {place, place + 1}
