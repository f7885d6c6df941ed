"""Fit an oriented rectangle to the visible sides of each thing.

Method: search-based L-shape fitting with the closeness criterion (Zhang, Xu, Dong and Dolan,
"Efficient L-Shape Fitting for Vehicle Detection Using Laser Scanners", IV 2017, algorithms 2 and
4): of all directions, take the one whose rectangle has the most points close to its sides. Unlike
there, the two sides are those that face the sensor, not the two with the smaller sum of distances:
a roof's points then do not pull at the far side. All things are fitted in one pass over arrays.

Shape letters: A directions, T points, C things. Things are consecutive runs of points: thing c is
points `at[c]` to `at[c + 1]`, exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)

CLOSE = np.float32(0.06)  # metres: nearer than this counts as on the side
COARSE = np.deg2rad(np.arange(0.0, 90.0, 3.0)).astype(np.float32)
FINE = np.deg2rad(np.array([-2.0, -1.0, 0.0, 1.0, 2.0])).astype(np.float32)
SAMPLE = 160  # points a thing that are looked at, evenly spread over its points
STRAY = 0.02  # share of a thing's points left out at each end of an axis
EDGE = 0.25  # metres: nearer to a side than this is on the outline


@dataclass(frozen=True, slots=True)
class Outlines:
    """Rectangles around C things.

    Attributes:
        yaw: (C,) float64, radians in [0, pi/2): direction of the first axis, the second is 90
            degrees to its left.
        low, high: (C, 2) float64, metres: extent along both axes, origin at the sensor.
        edge: (C,) float64, share of a thing's points on the outline, 0 to 1.
    """

    yaw: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    edge: NDArray[np.float64]


def fit(xy: NDArray[np.float32], at: NDArray[np.int64]) -> Outlines:
    """Return the outline of each thing.

    Args:
        xy: (T, 2) float32, metres, sensor frame.
        at: (C + 1,) start of each thing in xy; every thing has at least one point.
    """
    xy, at = _sample(xy, at)
    yaw = _directions(xy, at).astype(np.float64)
    owner = np.repeat(np.arange(len(yaw)), np.diff(at))
    along, across = _turned(xy.astype(np.float64), np.cos(yaw)[owner], np.sin(yaw)[owner])
    sides = np.stack([along, across], axis=1)
    low, high = _extent(sides, at, owner)
    inside = np.minimum(np.abs(sides - low[owner]), np.abs(high[owner] - sides)).min(axis=1)
    edge = np.add.reduceat((inside < EDGE).astype(np.float64), at[:-1]) / np.diff(at)
    return Outlines(yaw, low, high, edge)


def _extent(
    sides: NDArray[np.float64], at: NDArray[np.int64], owner: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper extent, (C, 2) each, without the outermost STRAY of the points."""
    skip = (STRAY * np.diff(at)).astype(np.int64)
    low, high = np.empty((len(skip), 2)), np.empty((len(skip), 2))
    for axis in (0, 1):
        ordered = sides[np.lexsort((sides[:, axis], owner)), axis]
        low[:, axis] = ordered[at[:-1] + skip]
        high[:, axis] = ordered[at[1:] - 1 - skip]
    return low, high


def _sample(
    xy: NDArray[np.float32], at: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    size = np.diff(at)
    kept = np.minimum(size, SAMPLE)
    starts = np.concatenate([[0], np.cumsum(kept)])
    owner = np.repeat(np.arange(len(size)), kept)
    rank = np.arange(starts[-1]) - starts[owner]
    return xy[at[owner] + rank * size[owner] // kept[owner]], starts


def _directions(xy: NDArray[np.float32], at: NDArray[np.int64]) -> NDArray[np.float32]:
    things = len(at) - 1
    owner = np.repeat(np.arange(things), np.diff(at))
    pick = np.arange(things)
    directions = np.repeat(COARSE[:, None], things, axis=1)
    best = directions[_closeness(xy, at, owner, directions).argmax(axis=0), pick]
    directions = best[None, :] + FINE[:, None]
    best = directions[_closeness(xy, at, owner, directions).argmax(axis=0), pick]
    return np.asarray(np.mod(best, np.float32(np.pi / 2)))


def _closeness(
    xy: NDArray[np.float32],
    at: NDArray[np.int64],
    owner: NDArray[np.int64],
    directions: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the closeness score of each direction for each thing, (A, C); directions: (A, C)."""
    cos, sin = np.cos(directions)[:, owner], np.sin(directions)[:, owner]
    distance = None
    for values in _turned(xy, cos, sin):
        low = np.minimum.reduceat(values, at[:-1], axis=1)
        high = np.maximum.reduceat(values, at[:-1], axis=1)
        side = np.where(low + high > 0, low, high)
        apart = np.abs(values - side[:, owner])
        distance = apart if distance is None else np.minimum(distance, apart)
    assert distance is not None
    score = 1 / np.maximum(distance, CLOSE)
    return np.asarray(np.add.reduceat(score, at[:-1], axis=1))


def _turned(
    xy: NDArray[np.float32], cos: NDArray[F], sin: NDArray[F]
) -> tuple[NDArray[F], NDArray[F]]:
    x, y = xy[:, 0], xy[:, 1]
    return x * cos + y * sin, y * cos - x * sin
