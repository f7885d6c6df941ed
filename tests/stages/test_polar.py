"""Cells become returns: one a reflector, across the seam too, wherever the noise is stronger."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.stages.radar.polar import Grid, returns

REACH = (2, 2)


def picture(cells, shape=(20, 12)):
    """Return (level, detected) with the given levels by (row, column) detected, and zero else."""
    level = np.zeros(shape, np.uint8)
    for place, value in cells.items():
        level[place] = value
    return level, level > 0


def test_the_place_is_the_mean_weighted_by_power():
    found = returns(*picture({(8, 5): 100, (8, 6): 80, (9, 5): 60}), REACH, decibel=0.5)
    weights = np.array([1.0, 0.1, 0.01])
    weights /= weights.sum()
    assert found.row == pytest.approx([8 + weights[2]])
    assert found.column == pytest.approx([5 + weights[1]])
    assert found.level.tolist() == [100]
    assert found.cells.tolist() == [3]


def test_a_reflector_on_the_seam_is_one_return():
    found = returns(*picture({(8, 11): 100, (8, 0): 100}), REACH, decibel=0.5)
    assert len(found.row) == 1
    assert found.column[0] % 12 == pytest.approx(11.5)


def test_a_stronger_neighbour_that_is_no_return_takes_nothing_away():
    level, detected = picture({(8, 5): 60})
    level[9, 5] = 90
    found = returns(level, detected, REACH, decibel=0.5)
    assert found.row == pytest.approx([8])
    assert found.cells.tolist() == [1]


def test_equal_neighbours_are_one_return():
    cells = {(r, c): 77 for r in (8, 9) for c in (5, 6)}
    found = returns(*picture(cells), REACH, decibel=0.5)
    assert found.row == pytest.approx([8.5])
    assert found.column == pytest.approx([5.5])


def test_a_wall_is_a_row_of_returns_along_it():
    cells = {(10, c): 60 + 7 * c % 12 for c in range(12)}
    found = returns(*picture(cells), REACH, decibel=0.5)
    assert len(found.row) > 1
    assert found.row == pytest.approx(10)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_turning_the_picture_turns_the_returns(seed):
    generator = np.random.default_rng(seed)
    level = generator.permutation(240).reshape(20, 12).astype(np.uint8)
    detected = generator.random((20, 12)) < 0.3
    detected[[0, 1, -2, -1]] = False
    shift = int(generator.integers(12))
    found = returns(level, detected, REACH, decibel=0.5)
    turned = returns(np.roll(level, shift, 1), np.roll(detected, shift, 1), REACH, decibel=0.5)
    assert sorted(turned.level.tolist()) == sorted(found.level.tolist())
    places = {
        int(n): (r, (c + shift) % 12)
        for n, r, c in zip(found.level, found.row, found.column, strict=True)
    }
    for n, r, c in zip(turned.level, turned.row, turned.column, strict=True):
        row, column = places[int(n)]
        assert r == pytest.approx(row)
        assert abs((c - column + 6) % 12 - 6) < 1e-9


def test_cells_are_where_their_middle_is():
    grid = Grid(20, 4, 0.5, azimuth_first=10.0, direction="counterclockwise")
    x, y = grid.xy(np.array([3.0]), np.array([0.0]))[0]
    assert math.hypot(x, y) == pytest.approx(1.75)
    assert math.degrees(math.atan2(y, x)) == pytest.approx(55.0)
