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

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cells are.

    Attributes:
        bins, azimuths: rows and columns.
        range_resolution: metres a row; row r reflects from (r + 1/2) of it.
        azimuth_first: where column 0 begins, degrees from the x axis, positive to the left.
        clockwise: columns turn to the right, seen from above.
    """

    bins: int
    azimuths: int
    range_resolution: float
    azimuth_first: float
    clockwise: bool

    def distance(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return metres from the sensor of fractional rows, of which 0 is the middle of row 0."""
        return (row + 0.5) * self.range_resolution

    def azimuth(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return radians from the x axis, left positive; column 0 is the middle of the first."""
        turn = (column + 0.5) * (2 * np.pi / self.azimuths)
        return math.radians(self.azimuth_first) + (-turn if self.clockwise else turn)


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
    down, aside = (
        grid.ravel() for grid in np.mgrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1]
    )
    rows = row[:, None] + down
    columns = (column[:, None] + aside) % level.shape[1]
    order = level.astype(np.int64) * level.size + np.arange(level.size).reshape(level.shape)
    order[~detected] = -1
    highest = order[rows, columns].max(axis=1) == order[row, column]
    rows, columns = rows[highest], columns[highest]
    part = detected[rows, columns]
    below = level[rows, columns].astype(np.float64) - level[row, column][highest][:, None]
    weight = np.where(part, 10 ** (below * decibel / 10), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return Returns(
        row=row[highest] + (weight * down).sum(axis=1),
        column=column[highest] + (weight * aside).sum(axis=1),
        level=level[row, column][highest],
        cells=np.count_nonzero(part, axis=1),
    )
