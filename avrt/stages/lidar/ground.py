"""How high each LiDAR point stands above the road, on slopes too.

Method: a polar grid of low points. A plane is fitted to the near cells by trying a fixed lattice
of slopes and counting inliers (RANSAC's score without its random draws), then every sector carries
the road outwards ring by ring: the height expected from the slope so far is corrected by the low
point of the cell if that lies within a tolerance, and kept otherwise. Neighbouring sectors vote by
median, so one sector behind a vehicle does not drift. Sources: Himmelsbach, von Hundelshausen and
Wuensche, "Fast Segmentation of 3D Point Clouds for Ground Vehicles" (IV 2010) for sectors and
slope limits; Fischler and Bolles, "Random Sample Consensus" (CACM 1981) for the inlier score.

Shape letters: N points, K rings, S sectors.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SECTORS = 90
RING_EDGES = np.concatenate(
    [np.arange(2.0, 20.0, 0.75), np.arange(20.0, 40.0, 1.25), np.arange(40.0, 101.0, 2.5)]
)
RINGS = len(RING_EDGES) - 1
RING_CENTRES = (RING_EDGES[1:] + RING_EDGES[:-1]) / 2
SECTOR_RADIANS = 2 * np.pi / SECTORS
SECTOR_CENTRES = (np.arange(SECTORS) + 0.5) * SECTOR_RADIANS - np.pi

LEVELS, LEVEL_STEP, LEVEL_LOWEST = 2048, 0.01, -12.0  # metres: steps of z within a cell
STRAY = 0.1  # share of a cell's points that may lie below the road
PLANE_RANGE = 20.0  # metres: the cells that the first plane rests on
PLANE_INLIER = 0.15  # metres
PLANE_CELLS_MIN = 12
TOLERANCE_NEAR = 0.15  # metres, at the next ring
TOLERANCE_GROWTH = 0.05  # metres for each metre without a ground point
TOLERANCE_MAX = 0.6
HEIGHT_GAIN = 0.6
SLOPE_METRES = 3.5  # how far a new slope must go on to be believed


@dataclass(frozen=True, slots=True)
class GroundModel:
    """The road under a LiDAR.

    Attributes:
        sensor_height: of the LiDAR above the road under it, metres.
        slope_max: steepest road that is believed, rise over run.
    """

    sensor_height: float
    slope_max: float

    def heights(self, xyz: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return each point's height above the road: (N,) float32, metres.

        Args:
            xyz: (N, 3) float32, metres, sensor frame, finite.
        """
        distance = np.hypot(xyz[:, 0], xyz[:, 1])
        turn = (np.arctan2(xyz[:, 1], xyz[:, 0]) + np.float32(np.pi)) / np.float32(SECTOR_RADIANS)
        sector = np.minimum(turn.astype(np.int64), SECTORS - 1)
        lowest = _lowest(xyz[:, 2], distance, sector)
        road = self._propagate(lowest, self._plane(lowest))
        position = np.interp(distance, RING_CENTRES, np.arange(RINGS)).astype(np.float32)
        ring = np.minimum(position.astype(np.int64), RINGS - 2)
        part = position - ring
        low = road[ring, sector]
        return np.asarray(xyz[:, 2] - (low + part * (road[ring + 1, sector] - low)))

    def _plane(self, lowest: NDArray[np.float64]) -> tuple[float, float, float]:
        """Return (a, b, c) of the road z = a x + b y + c near the vehicle."""
        rings = int(np.searchsorted(RING_CENTRES, PLANE_RANGE))
        ring, sector = np.nonzero(np.isfinite(lowest[:rings]))
        z = lowest[ring, sector]
        x = RING_CENTRES[ring] * np.cos(SECTOR_CENTRES[sector])
        y = RING_CENTRES[ring] * np.sin(SECTOR_CENTRES[sector])
        candidates = _candidates(self.slope_max) - np.array([0.0, 0.0, self.sensor_height])
        a, b, c = candidates.T[:, :, None]
        inliers = np.count_nonzero(np.abs(z - (a * x + b * y + c)) < PLANE_INLIER, axis=1)
        best = candidates[int(np.argmax(inliers))]
        for _ in range(2):
            near = np.abs(z - (best[0] * x + best[1] * y + best[2])) < PLANE_INLIER
            if np.count_nonzero(near) < PLANE_CELLS_MIN:
                break
            best = _least_squares(x[near], y[near], z[near], best)
        return float(best[0]), float(best[1]), float(best[2])

    def _propagate(
        self,
        lowest: NDArray[np.float64],
        plane: tuple[float, float, float],
    ) -> NDArray[np.float32]:
        """Return the road's height at each cell: (K, S) float32, metres, sensor frame."""
        slope_plane = plane[0] * np.cos(SECTOR_CENTRES) + plane[1] * np.sin(SECTOR_CENTRES)
        slope = slope_plane.copy()
        height = plane[2] + slope * RING_EDGES[0]
        gap = np.zeros(SECTORS)
        road = np.empty((RINGS, SECTORS))
        at = float(RING_EDGES[0])
        for k in range(RINGS):
            step = float(RING_CENTRES[k]) - at
            at += step
            gap += step
            expected = _median3(height + slope * step)
            error = lowest[k] - expected
            tolerance = np.minimum(TOLERANCE_NEAR + TOLERANCE_GROWTH * gap, TOLERANCE_MAX)
            seen = (error <= tolerance) & (error >= -tolerance - self.slope_max * gap)
            error = np.where(seen, error, 0.0)
            height = expected + HEIGHT_GAIN * error
            slope = np.where(
                seen,
                slope + (1 - np.exp(-gap / SLOPE_METRES)) * error / gap,
                slope + 0.05 * (slope_plane - slope),
            )
            slope = np.clip(_median3(slope), -self.slope_max, self.slope_max)
            gap = np.where(seen, 0.0, gap)
            road[k] = height
        return road.astype(np.float32)


def _lowest(
    z: NDArray[np.float32], distance: NDArray[np.float32], sector: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the low quantile of z in each cell, (K, S) metres, NaN where it is empty.

    A quantile, not the minimum: mirror images of things lie below the road. Cell and height share
    one integer, so that one sort of plain numbers orders both.
    """
    ring = np.searchsorted(RING_EDGES, distance, side="right") - 1
    level = np.clip((z - LEVEL_LOWEST) / LEVEL_STEP, 0, LEVELS - 1).astype(np.int32)
    key = ((ring * SECTORS + sector) * LEVELS).astype(np.int32) + level
    ordered = np.sort(key[(ring >= 0) & (ring < RINGS)])
    cell = ordered // LEVELS
    lowest = np.full(RINGS * SECTORS, np.nan)
    if len(ordered):
        starts = np.concatenate([[0], np.nonzero(np.diff(cell))[0] + 1])
        size = np.diff(np.append(starts, len(ordered)))
        rank = starts + (STRAY * size).astype(np.int64)
        lowest[cell[starts]] = ordered[rank] % LEVELS * LEVEL_STEP + LEVEL_LOWEST
    return lowest.reshape(RINGS, SECTORS)


def _candidates(slope_max: float) -> NDArray[np.float64]:
    """Return the lattice of planes (a, b, c), flattest first: argmax takes the first of equals."""
    along = np.linspace(-slope_max, slope_max, 13)
    across = np.linspace(-slope_max / 2, slope_max / 2, 5)
    lattice = sorted(
        itertools.product(along, across, (-0.2, 0.0, 0.2)),
        key=lambda plane: (abs(plane[0]) + abs(plane[1]) + abs(plane[2]), plane),
    )
    return np.array(lattice)


def _least_squares(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the plane through the points, held weakly to the prior so that it is always unique."""
    rows = np.stack([x, y, np.ones_like(x)])
    normal = (rows[:, None, :] * rows[None, :, :]).sum(axis=2) + np.eye(3)
    right = (rows * z).sum(axis=1) + prior
    return np.asarray(np.linalg.solve(normal, right))


def _median3(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each value and its two neighbours around the circle."""
    left, right = np.roll(values, 1), np.roll(values, -1)
    low, high = np.minimum(left, right), np.maximum(left, right)
    return np.maximum(low, np.minimum(values, high))
