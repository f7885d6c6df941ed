"""LiDAR sweeps small enough for a page: one point a cell, on a grid of 2 cm.

The view is from above, so of the points in one column of 0.1 m x 0.1 m only the highest is kept,
and if those are still too many, an even part of them. A sweep is written as int16 x and y in units
of 2 cm, all x y pairs first, then int8 z in decimetres, as base64.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.payload.cloud import Coordinates

GRID = 0.02  # metres
CELL = 0.1  # metres
HEIGHT = 0.1  # metres
REACH = 32_000 * GRID
SWEEPS_MAX = 240
POINTS_MAX = 7_000
BYTES_MAX = 1_900_000
POINT_BYTES = 5


class Sweep(NamedTuple):
    """One packed sweep: how many points it had, how many are left, and these."""

    points: int
    kept: int
    packed: str


def points_for(sweeps: int) -> int:
    """Return how many points each of so many sweeps may have."""
    return min(POINTS_MAX, BYTES_MAX // (POINT_BYTES * max(1, sweeps)))


def pack(xyz: Coordinates, most: int) -> Sweep:
    """Return a sweep, (N, 3) float32 metres, with at most so many points."""
    finite = xyz[np.isfinite(xyz).all(axis=1)]
    near = finite[(np.abs(finite[:, :2]) < REACH).all(axis=1)]
    kept = near[_highest(near)]
    kept = kept[:: max(1, -(-len(kept) // most))]
    xy = np.round(kept[:, :2] / GRID).astype("<i2")
    z = np.clip(np.round(kept[:, 2] / HEIGHT), -128, 127).astype(np.int8)
    data = base64.b64encode(xy.tobytes() + z.tobytes()).decode("ascii")
    return Sweep(len(xyz), len(kept), data)


def _highest(xyz: Coordinates) -> NDArray[np.int64]:
    """Return the places of the highest point of every cell, in a fixed order."""
    cells = np.floor(xyz[:, :2] / CELL).astype(np.int64)
    order = np.lexsort((xyz[:, 2], cells[:, 1], cells[:, 0]))
    ordered = cells[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.asarray(order[last])
