"""A probabilistic worst case: right where its assumptions hold, refused where they do not."""

import numpy as np
import pytest
from scipy import stats

from avrt.metrics.extremes import (
    LEAST_JOBS,
    PROBABILITIES,
    Tail,
    fit_tail,
    identical_distribution,
    independence,
    worst_case,
)

MS = 1_000_000


def draws(seed, count=4000):
    return np.random.default_rng(seed).exponential(MS, count) + 5 * MS


def whole(values):
    return [round(value) for value in values]


def test_the_extrapolation_of_an_exponential_tail_is_near_the_truth():
    """Independent exponential times: 1 in 10,000 jobs exceeds 5 ms + ln(10,000) ms = 14.2 ms."""
    found = worst_case(whole(draws(1)))
    assert found.refused == ""
    truth_ns = 5 * MS + np.log(1e4) * MS
    assert found.estimates_ns[1e-4] == pytest.approx(truth_ns, rel=0.15)
    assert tuple(found.estimates_ns) == PROBABILITIES
    assert list(found.estimates_ns.values()) == sorted(found.estimates_ns.values())
    assert set(found.p_values) == {"independence", "identical_distribution", "fit"}


def test_an_estimate_is_never_below_what_was_measured():
    values = whole(draws(1))
    assert min(worst_case(values).estimates_ns.values()) >= max(values)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.2])
def test_the_fit_finds_the_shape_and_scale_that_were_drawn(shape):
    generator = np.random.default_rng(3)
    values = stats.genpareto.rvs(shape, scale=MS, size=40_000, random_state=generator)
    tail, excess = fit_tail(values)
    assert tail.shape == pytest.approx(shape, abs=0.06)
    assert tail.scale_ns == pytest.approx(MS * 10**shape, rel=0.08)  # stable above a threshold
    assert len(excess) == 4000


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3])
def test_the_quantiles_of_a_tail_are_those_of_scipy(shape):
    tail = Tail(10.0, 0.1, 2.0, shape)
    expected = 10 + stats.genpareto.isf(1e-3 / 0.1, shape, scale=2.0)
    assert tail.exceeded_ns(1e-3) == pytest.approx(expected)


def test_too_few_jobs_are_refused():
    found = worst_case(whole(draws(1, LEAST_JOBS - 1)))
    assert found.refused == "expected 500 jobs at least, found 499"
    assert found.tail is None
    assert found.estimates_ns == {}


def test_equal_times_have_no_tail():
    assert "no tail" in worst_case([7] * LEAST_JOBS).refused


def test_times_that_depend_on_earlier_ones_are_refused():
    noise = draws(2)
    slow = np.convolve(noise, np.ones(5) / 5, mode="same")
    assert "times depend on earlier ones" in worst_case(whole(slow)).refused


def test_a_drift_is_refused():
    values = draws(4, 1000)
    values[500:] += MS
    assert worst_case(whole(values)).refused != ""
    assert identical_distribution(values) < 0.001


def test_a_tail_without_a_variance_is_refused():
    values = 5 * MS + MS * np.random.default_rng(5).pareto(0.8, 4000)
    assert "too heavy" in worst_case(whole(values)).refused


@pytest.mark.parametrize("test", [independence, identical_distribution])
def test_a_test_refuses_what_is_right_about_as_often_as_it_says(test):
    """200 sets of independent times: 5 % are refused, give or take three standard errors."""
    refused = sum(test(draws(seed, 500)) < 0.05 for seed in range(200))
    assert abs(refused / 200 - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 200)
