"""Draws: reproducible, uniform, and each independent of the others."""

from math import sqrt

import numpy as np
import pytest

from avrt.drivers.draws import Draws

N = 3000
PINNED = [0.9394560669100331, 0.03721631999667363]


def numbers(purpose="a", seed=0, count=N):
    draws = Draws(seed)
    return np.array([draws.uniform(purpose, index) for index in range(count)])


def test_the_same_seed_purpose_and_index_give_the_same_number_in_any_order():
    forwards, draws = numbers(count=20), Draws(0)
    assert [draws.uniform("a", index) for index in reversed(range(20))] == list(forwards[::-1])


def test_these_numbers_stay_what_they_are():
    assert [Draws(7).uniform("detect", index) for index in (0, 1)] == PINNED


def test_numbers_are_uniform():
    found = numbers()
    counts = np.histogram(found, bins=10, range=(0, 1))[0]
    assert counts.sum() == N
    assert counts == pytest.approx(N / 10, abs=4.5 * sqrt(N * 0.09))


@pytest.mark.parametrize("other", [{"purpose": "b"}, {"seed": 1}])
def test_another_purpose_or_seed_is_independent(other):
    assert abs(np.corrcoef(numbers(), numbers(**other))[0, 1]) < 4 / sqrt(N)


def test_neighbours_are_independent():
    found = numbers()
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 4 / sqrt(N)
