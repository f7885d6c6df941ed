"""The picture behind a mosaic of one colour a pixel, as most sensors are built (Bayer, US 3971065).

Two by two pixels have two green ones on one diagonal, a red and a blue one. What a pixel lacks is
the mean of its nearest neighbours that have it: two or four of them. Rows and columns are mirrored
at the border, which keeps the order of the colours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATTERNS = ("rggb", "bggr", "gbrg", "grbg")
"""Colours of the first row's first two pixels, then of the second's."""
CROSS = ((-1, 0), (1, 0), (0, -1), (0, 1))
DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
ALONG, ACROSS = CROSS[2:], CROSS[:2]
OTHER = {"r": "b", "b": "r"}


def demosaiced(mosaic: NDArray[np.uint8], pattern: str) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB of a mosaic, (H, W) uint8 of two rows and columns at least."""
    planes = _Planes(mosaic)
    picture = np.empty((*mosaic.shape, 3), np.uint8)
    for place, colour in enumerate(pattern):
        row, column = divmod(place, 2)
        parts = {colour: mosaic[row::2, column::2]}
        if colour == "g":
            parts[pattern[2 * row + 1 - column]] = planes.mean(row, column, ALONG)
            parts[pattern[2 * (1 - row) + column]] = planes.mean(row, column, ACROSS)
        else:
            parts["g"] = planes.mean(row, column, CROSS)
            parts[OTHER[colour]] = planes.mean(row, column, DIAGONAL)
        for index, name in enumerate("rgb"):
            picture[row::2, column::2, index] = parts[name]
    return picture


class _Planes:
    """A mosaic as four planes, one for each place in the two by two: their sums are fast."""

    def __init__(self, mosaic: NDArray[np.uint8]) -> None:
        self._shape = mosaic.shape
        wide = np.pad(mosaic, 1, "reflect").astype(np.uint16)
        self._planes = [[wide[r::2, c::2].copy() for c in (0, 1)] for r in (0, 1)]

    def mean(self, row: int, column: int, steps: tuple[tuple[int, int], ...]) -> NDArray[np.uint8]:
        """Return the mean of the neighbours, some steps away, of each pixel of a place."""
        height = len(range(row, self._shape[0], 2))
        width = len(range(column, self._shape[1], 2))
        total = np.full((height, width), len(steps) // 2, np.uint16)  # rounds
        for down, aside in steps:
            (top, odd_row), (left, odd_column) = (
                divmod(1 + row + down, 2),
                divmod(1 + column + aside, 2),
            )
            plane = self._planes[odd_row][odd_column]
            total += plane[top : top + height, left : left + width]
        return (total >> (len(steps).bit_length() - 1)).astype(np.uint8)
