"""The rate of false alarms is the design value, and returns do not hide each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.stages.radar.cfar import METHODS, Cfar, ca_factor, os_factor

CELLS = (600, 400)


def noise_db(seed, shape=CELLS):
    """Return the level of a square-law receiver's noise: (R, A) float32, dB."""
    power = np.random.default_rng(seed).exponential(size=shape)
    return (10 * np.log10(power)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pfa", [1e-2, 1e-3])
def test_the_rate_of_false_alarms_in_noise_is_the_design_value(method, pfa):
    cfar = Cfar(method, pfa, guard=2, window=8)
    found = np.count_nonzero(cfar.detected(noise_db(1)))
    tested = (CELLS[0] - 2 * cfar.margin) * CELLS[1]
    spread = math.sqrt(tested * pfa * (1 - pfa))
    assert abs(found - tested * pfa) < 3.3 * spread  # 0.1 % of all seeds, were cells independent


@pytest.mark.parametrize("method", METHODS)
def test_how_strong_the_noise_is_does_not_matter(method):
    cfar = Cfar(method, 1e-2, guard=1, window=6)
    level = noise_db(2, (200, 40))
    assert np.array_equal(cfar.detected(level), cfar.detected(level + np.float32(32)))


def test_factors_are_the_published_ones():
    """Cell averaging in closed form; the ordered statistic by its product (Rohling 1983)."""
    assert ca_factor(1e-6, 16) == pytest.approx(16 * (10 ** (6 / 16) - 1))
    alpha = os_factor(1e-6, 16, 12)
    product = math.prod((16 - i) / (16 - i + alpha) for i in range(12))
    assert product == pytest.approx(1e-6, rel=1e-6)


@given(st.floats(1e-9, 0.5), st.integers(1, 64), st.data())
@settings(max_examples=25)
def test_rarer_false_alarms_need_a_higher_threshold(pfa, count, data):
    k = data.draw(st.integers(1, count))
    assert os_factor(pfa / 2, count, k) > os_factor(pfa, count, k) > 0
    assert ca_factor(pfa / 2, count) > ca_factor(pfa, count) > 0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_counting_gives_what_sorting_gives(seed):
    cfar = Cfar("os", 0.05, guard=1, window=4)
    level = noise_db(seed, (24, 3))
    found = cfar.detected(level)
    alpha_db = np.float32(10 * math.log10(cfar.alpha()))
    for r in range(5, 19):
        around = np.concatenate([level[r - 5 : r - 1], level[r + 2 : r + 6]])
        smallest = np.sort(around, axis=0)[cfar.k - 1]
        assert np.array_equal(found[r], smallest < level[r] - alpha_db)


def test_a_strong_neighbour_hides_a_weak_return_from_the_mean_only():
    level = noise_db(3, (100, 1))
    level[50], level[56] = 20.0, 60.0
    assert Cfar("os", 1e-4, guard=2, window=8).detected(level)[50, 0]
    assert not Cfar("ca", 1e-4, guard=2, window=8).detected(level)[50, 0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.0, 127.5])
def test_nothing_stands_out_where_all_is_the_same(method, level):
    flat = np.full((80, 5), level, np.float32)
    assert not Cfar(method, 1e-3, guard=2, window=8).detected(flat).any()


@pytest.mark.parametrize("method", METHODS)
def test_cells_without_all_their_references_are_not_tested(method):
    cfar = Cfar(method, 1e-3, guard=2, window=8)
    level = noise_db(4, (60, 4))
    level[[0, 9, 50, 59]] = 90.0
    found = cfar.detected(level)
    assert not found[:10].any()
    assert not found[50:].any()


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
@settings(max_examples=40)
def test_the_mean_is_that_of_the_reference_cells(seed, guard):
    cfar = Cfar("ca", 0.05, guard, window=4)
    level = noise_db(seed, (30, 3))
    power = 10 ** (level.astype(np.float64) / 10)
    found = cfar.detected(level)
    for r in range(cfar.margin, 30 - cfar.margin):
        near = power[r - cfar.margin : r - guard]
        far = power[r + guard + 1 : r + cfar.margin + 1]
        assert len(near) == len(far) == 4
        mean = np.concatenate([near, far]).mean(axis=0)
        assert np.array_equal(found[r], power[r] > cfar.alpha() * mean)
