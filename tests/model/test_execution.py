"""Execution models: bounds, moments, and that they are quantile functions."""

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.model.execution import (
    Constant,
    LogNormal,
    Mixture,
    Normal,
    Recorded,
    Sampled,
    Traced,
    Uniform,
)

MS = 1_000_000
N = 4000
SHARES = np.random.Generator(np.random.PCG64(7)).random(N)
MODELS = {
    "constant": (Constant(5 * MS), 5 * MS, 5 * MS),
    "uniform": (Uniform(2 * MS, 8 * MS), 2 * MS, 8 * MS),
    "normal": (Normal(10 * MS, 2 * MS, 5 * MS, 12 * MS), 5 * MS, 12 * MS),
    "lognormal": (LogNormal(4 * MS, 0.5, 9 * MS), 1, 9 * MS),
    "sampled": (Sampled((3, 5, 5, 9)), 3, 9),
    "mixture": (Mixture((0.9, 0.1), (Uniform(10, 20), Constant(99))), 10, 99),
}


def draws(model):
    return np.array([model.cost_ns(float(share), 0) for share in SHARES])


@pytest.mark.parametrize("name", MODELS)
@given(share=st.floats(0, 1, exclude_max=True))
def test_every_time_is_within_the_bounds(name, share):
    model, low_ns, high_ns = MODELS[name]
    assert low_ns <= model.cost_ns(share, 0) <= high_ns


@pytest.mark.parametrize("name", [name for name in MODELS if name != "mixture"])
@given(pair=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 2))
def test_a_greater_share_takes_no_less(name, pair):
    model, _, _ = MODELS[name]
    low, high = sorted(pair)
    assert model.cost_ns(low, 0) <= model.cost_ns(high, 0)


@pytest.mark.parametrize(
    "model", [Constant(0), Uniform(0, 0), Sampled((0,)), Traced((0,)), Normal(-9, 1, -20, 0)]
)
def test_no_time_is_below_1_ns(model):
    assert model.cost_ns(0.5, 0) == 1


def test_uniform_has_its_mean_and_deviation():
    found = draws(Uniform(2 * MS, 8 * MS))
    assert found.mean() == pytest.approx(5 * MS, abs=4 * 6 * MS / sqrt(12 * N))
    assert found.std() == pytest.approx(6 * MS / sqrt(12), rel=0.05)


def test_uniform_gives_every_whole_time_alike():
    counts = np.bincount(draws(Uniform(1, 4)))[1:]
    assert len(counts) == 4
    assert counts == pytest.approx(N / 4, abs=4 * sqrt(N * 3 / 16))


def test_normal_has_its_mean_and_deviation_where_the_bounds_are_far():
    found = draws(Normal(50 * MS, 4 * MS, 10 * MS, 90 * MS))
    assert found.mean() == pytest.approx(50 * MS, abs=4 * 4 * MS / sqrt(N))
    assert found.std() == pytest.approx(4 * MS, rel=0.05)


def test_normal_is_truncated_and_not_heaped_up_at_its_bound():
    found = draws(Normal(50 * MS, 4 * MS, 10 * MS, 50 * MS))
    # a half normal: its mean lies sqrt(2 / pi) deviations below
    assert found.mean() == pytest.approx(50 * MS - 4 * MS * 0.79788, abs=4 * 2.41 * MS / sqrt(N))
    assert (found == 50 * MS).sum() <= 1


def test_lognormal_has_its_median_and_its_tail():
    model = LogNormal(4 * MS, 0.5, 4000 * MS)
    found = draws(model)
    assert model.mass == pytest.approx(1)
    assert np.median(found) == pytest.approx(4 * MS, rel=0.04)
    assert np.quantile(found, 0.975) == pytest.approx(4 * MS * exp(0.5 * 1.96), rel=0.08)
    assert np.log(found).std() == pytest.approx(0.5, rel=0.05)


def test_a_mixture_has_its_shares_and_its_parts_keep_their_shape():
    found = draws(Mixture((0.8, 0.2), (Uniform(1 * MS, 2 * MS), Uniform(10 * MS, 20 * MS))))
    rare = found[found > 5 * MS]
    assert len(rare) / N == pytest.approx(0.2, abs=4 * sqrt(0.16 / N))
    assert rare.mean() == pytest.approx(15 * MS, rel=0.03)
    assert rare.min() >= 10 * MS


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_mixture_of_the_same_is_the_same(share):
    parts = Mixture((0.3, 0.3, 0.4), (Constant(7),) * 3)
    assert parts.cost_ns(share, 0) == 7


def test_sampled_times_come_as_often_as_they_were_measured():
    found = draws(Sampled((3, 5, 5, 9)))
    assert (found == 5).mean() == pytest.approx(0.5, abs=4 * sqrt(0.25 / N))


def test_a_trace_comes_in_order_and_again():
    model = Traced((4, 6, 5))
    assert [model.cost_ns(0.9, index) for index in range(5)] == [4, 6, 5, 4, 6]


def test_bounds_far_out_are_seen_by_the_mass_that_they_hold():
    assert Normal(50, 1, 60, 70).mass < 1e-6
    assert Normal(50, 10, 40, 60).mass == pytest.approx(0.6827, abs=1e-4)


def test_a_recorded_model_is_read_before_it_is_drawn_from():
    with pytest.raises(AssertionError, match="read before"):
        Mixture((0.5, 0.5), (Recorded("r", "s", in_order=False), Constant(1))).cost_ns(0.1, 0)
