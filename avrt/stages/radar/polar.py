"""The picture of a scanning radar: which cell is where, and which cells are one return.

Rows are range, nearest first; columns are azimuths in the order in which they were measured, and
the last one lies beside the first. The beam is wider than a column and a bin is shorter than what
reflects, so one reflector fills several cells: a return is a detected cell that no other within
reach exceeds, and its place is the mean of the detected cells within reach, weighted by power. That
finds a row of returns along a wall, where the centre of all connected cells lies nowhere on it.

Shape letters: R range cells, A azimuths, D detected cells, N returns, W neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.parameters import check_choice, check_number, check_positive, check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIRECTIONS = ("clockwise", "counterclockwise")


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cells are.

    Attributes:
        bins, azimuths: rows and columns.
        range_resolution: metres a row; row r reflects from (r + 1/2) of it.
        azimuth_first: where column 0 begins, degrees from the x axis, positive to the left.
        direction: which way columns turn, seen from above; one of DIRECTIONS.
    """

    bins: int
    azimuths: int
    range_resolution: float
    azimuth_first: float
    direction: str

    def __post_init__(self) -> None:
        check_whole(bins=(self.bins, 1), azimuths=(self.azimuths, 3))
        check_positive(range_resolution=self.range_resolution)
        check_number(azimuth_first=self.azimuth_first)
        check_choice(DIRECTIONS, direction=self.direction)

    def distance(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return metres from the sensor of fractional rows, of which 0 is the middle of row 0."""
        return (row + 0.5) * self.range_resolution

    def azimuth(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return radians from the x axis, left positive; column 0 is the middle of the first."""
        turn = (column + 0.5) * (2 * np.pi / self.azimuths)
        return math.radians(self.azimuth_first) + (-turn if self.direction == "clockwise" else turn)

    def xy(self, row: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N, 2) metres of fractional cells: x forward, y left."""
        distance, azimuth = self.distance(row), self.azimuth(column)
        return np.stack([distance * np.cos(azimuth), distance * np.sin(azimuth)], axis=1)


@dataclass(frozen=True, slots=True)
class Returns:
    """What reflects, N of it.

    Attributes:
        row, column: (N,) float64, cells; a column may lie a little outside 0 .. A - 1.
        level: (N,) uint8 of the strongest cell.
        cells: (N,) int64, detected cells within reach.
    """

    row: NDArray[np.float64]
    column: NDArray[np.float64]
    level: NDArray[np.uint8]
    cells: NDArray[np.int64]


def returns(
    level: NDArray[np.uint8],
    detected: NDArray[np.bool_],
    reach: tuple[int, int],
    decibel: float,
) -> Returns:
    """Return the returns in order of their cells, row by row.

    Args:
        level: (R, A) uint8, the picture.
        detected: (R, A) bool, its cells above the noise; none in the outer `reach` rows.
        reach: rows and columns on each side that one reflector fills.
        decibel: dB of power that one step of `level` means.
    """
    row, column = np.nonzero(detected)
    down, aside = _offsets(reach)
    place = np.arange(level.size).reshape(level.shape)
    order = np.where(detected, level * np.int64(level.size) + place, -1)  # no two are equal
    for r, a in zip(down.tolist(), aside.tolist(), strict=True):
        other = order[row + r, (column + a) % level.shape[1]]
        highest = other <= order[row, column]
        row, column = row[highest], column[highest]
    rows, columns = row[:, None] + down, (column[:, None] + aside) % level.shape[1]
    part = detected[rows, columns]
    below = level[rows, columns].astype(np.float64) - level[row, column][:, None]
    weight = np.where(part, 10 ** (below * decibel / 10), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return Returns(
        row=row + (weight * down).sum(axis=1),
        column=column + (weight * aside).sum(axis=1),
        level=level[row, column],
        cells=np.count_nonzero(part, axis=1),
    )


def _offsets(reach: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns of all W cells within reach, nearest first: most end the search."""
    down, aside = np.mgrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1].reshape(2, -1)
    nearest = np.argsort(np.abs(down) + np.abs(aside), kind="stable")
    return down[nearest], aside[nearest]
