"""Intervals: known values, and that they cover the truth as often as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.metrics.probability import CONFIDENCE, exact_interval, miss_probability

TRIALS = 400
SLACK = 4 * (CONFIDENCE * (1 - CONFIDENCE) / TRIALS) ** 0.5


def rng(seed=3):
    return np.random.Generator(np.random.PCG64(seed))


def test_known_intervals():
    # Clopper and Pearson's: 0 of 10, 5 of 10, 10 of 10
    assert exact_interval(0, 10).high == pytest.approx(0.3085, abs=1e-4)
    assert (exact_interval(5, 10).low, exact_interval(5, 10).high) == pytest.approx(
        (0.1871, 0.8129), abs=1e-4
    )
    assert exact_interval(10, 10).low == pytest.approx(0.6915, abs=1e-4)


@given(data=st.data(), trials=st.integers(1, 10_000))
def test_the_estimate_lies_in_its_interval(data, trials):
    found = exact_interval(data.draw(st.integers(0, trials)), trials)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("truth", [0.02, 0.3, 0.9])
def test_the_interval_of_runs_covers_the_truth(truth):
    hits = rng().binomial(50, truth, TRIALS)
    covered = [found.low <= truth <= found.high for h in hits for found in [exact_interval(h, 50)]]
    assert np.mean(covered) >= CONFIDENCE - SLACK


@pytest.mark.parametrize("together", [1, 5, 20])
def test_the_interval_of_jobs_covers_the_truth_where_misses_come_together(together):
    """40 runs of 100 jobs; `together` jobs in a row share their fate, 10 % miss."""
    groups = rng().binomial(100 // together, 0.1, (TRIALS, 40)) * together
    covered = [
        found.low <= 0.1 <= found.high
        for runs in groups
        for found in [miss_probability([(int(missed), 100) for missed in runs]).a_job]
    ]
    assert np.mean(covered) >= CONFIDENCE - SLACK


def test_counting_every_job_would_not_cover_it():
    groups = rng().binomial(5, 0.1, (TRIALS, 40)) * 20
    naive = [exact_interval(int(runs.sum()), 4000) for runs in groups]
    assert np.mean([found.low <= 0.1 <= found.high for found in naive]) < 0.7


def test_without_a_miss_the_runs_count():
    found = miss_probability([(0, 100)] * 20)
    assert found.a_job == found.a_run == exact_interval(0, 20)


def test_runs_that_all_miss_alike_show_no_spread():
    found = miss_probability([(5, 10)] * 20)
    assert found.a_job == exact_interval(10, 20)
    assert found.a_run.value == 1


def test_counts():
    found = miss_probability([(0, 10), (2, 10), (1, 20)])
    assert (found.misses, found.jobs, found.runs_with, found.runs) == (3, 40, 2, 3)
    assert found.a_job is not None
    assert found.a_job.value == pytest.approx(3 / 40)


def test_one_run_says_little_and_no_job_nothing():
    one = miss_probability([(5, 100)]).a_job
    assert one is not None
    assert one.high > 0.9
    assert miss_probability([(0, 0), (0, 0)]).a_job is None
