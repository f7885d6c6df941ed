"""Reduce a sweep to points of things that stand upright: walls, trunks, poles, cars, hedges.

What tells one sweep's place from another's is what stands. The road does not: the rings a LiDAR
draws on it move along with the vehicle and say that it stands still. So the plan is cut into square
columns, and a column whose points span enough height holds something upright; its foot is left out.
Of those, one point a voxel is kept. The voxels' grid is shifted from sweep to sweep, because a grid
that moves along with the vehicle would say the same as the rings.

Each kept point gets the direction of the surface at it in the plan, from the covariance of its
neighbours: long and thin means a wall, whose place along itself says nothing.

Shape letters: N points of the sweep, F features, K neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMN = 0.3  # metres
GRID = 1 << 12  # columns a side
RANGE_LIMIT = 600.0  # metres: further away there are no columns
HEIGHT_MIN = 0.5  # metres that an upright thing spans
FOOT = 0.2  # metres above a column's lowest point: the road it stands on
VOXEL = 0.3  # metres
VOXELS = 1 << 16  # a side
SHIFT = np.array([0.754877666, 0.569840291, 0.430159709])
"""Powers of 1 / 1.3247...: multiples of it fill the unit cube evenly (Roberts, "The Unreasonable
Effectiveness of Quasirandom Sequences", 2018)."""
NEIGHBOURS = 8
THINNESS_MIN = 0.9  # 1 - smaller / larger variance of the neighbours of a wall's point


@dataclass(frozen=True, slots=True)
class Features:
    """What stands upright in one or more sweeps.

    Attributes:
        xyz: (F, 3) float64, metres.
        normal: (F, 2) float64, unit vectors across the surface in the plan.
        is_wall: (F,) bool: the surface is long and thin, so its normal means something.
    """

    xyz: NDArray[np.float64]
    normal: NDArray[np.float64]
    is_wall: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.xyz)

    def placed(self, x: float, y: float, yaw: float) -> Features:
        """Return them in the frame in which their own frame has this pose."""
        cos, sin = np.cos(yaw), np.sin(yaw)
        turn = np.array([[cos, sin], [-sin, cos]])
        xyz = self.xyz.copy()
        xyz[:, :2] = xyz[:, :2] @ turn + (x, y)
        return Features(xyz, self.normal @ turn, self.is_wall)

    def thinned(self, size: float, sweep: int) -> Features:
        """Return one of them for each voxel of this size, metres."""
        kept = _one_a_voxel(self.xyz, size, sweep)
        return Features(self.xyz[kept], self.normal[kept], self.is_wall[kept])


def joined(parts: tuple[Features, ...]) -> Features:
    """Return the features of several sweeps, at least one, as one set."""
    return Features(
        np.concatenate([part.xyz for part in parts]),
        np.concatenate([part.normal for part in parts]),
        np.concatenate([part.is_wall for part in parts]),
    )


def features(xyz: NDArray[np.float32], sweep: int) -> Features:
    """Return what stands upright in a sweep.

    Args:
        xyz: (N, 3) float32, metres, finite, z up, x and y within RANGE_LIMIT.
        sweep: its number; it shifts the grid.
    """
    standing = xyz[_is_upright(xyz)].astype(np.float64)
    kept = standing[_one_a_voxel(standing, VOXEL, sweep)]
    if len(kept) <= NEIGHBOURS:
        return Features(kept, np.zeros((len(kept), 2)), np.zeros(len(kept), np.bool_))
    normal, thinness = _surfaces(kept)
    return Features(kept, normal, thinness > THINNESS_MIN)


def _is_upright(xyz: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Tell which points belong to something upright and not to its foot: (N,) bool."""
    if len(xyz) == 0:
        return np.zeros(0, np.bool_)
    column = np.floor(xyz[:, :2] / np.float32(COLUMN)).astype(np.int32) + GRID // 2
    key = column[:, 0] * GRID + column[:, 1]
    order = np.argsort(key, kind="stable")
    starts = np.concatenate([[0], np.nonzero(np.diff(key[order]))[0] + 1])
    z = xyz[order, 2]
    low, high = np.minimum.reduceat(z, starts), np.maximum.reduceat(z, starts)
    size = np.diff(np.append(starts, len(z)))
    upright = np.empty(len(z), np.bool_)
    upright[order] = np.repeat(high - low >= HEIGHT_MIN, size) & (z > np.repeat(low + FOOT, size))
    return upright


def _one_a_voxel(xyz: NDArray[np.float64], size: float, sweep: int) -> NDArray[np.int64]:
    """Return the index of the first point of each voxel, in the order of the voxels."""
    shifted = xyz + SHIFT * sweep % 1 * size
    voxel = np.floor(shifted / size).astype(np.int64) + VOXELS // 2
    key = (voxel[:, 0] * VOXELS + voxel[:, 1]) * VOXELS + voxel[:, 2]
    first: NDArray[np.int64] = np.unique(key, return_index=True)[1]
    return first


def _surfaces(xyz: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the normal in the plan, (F, 2), and how thin the surface is, (F,) from 0 to 1."""
    _, near = cKDTree(xyz).query(xyz, k=NEIGHBOURS)
    offset = xyz[near, :2] - xyz[near, :2].mean(axis=1, keepdims=True)
    xx, yy = (offset**2).mean(axis=1).T
    xy = (offset[..., 0] * offset[..., 1]).mean(axis=1)
    along = np.arctan2(2 * xy, xx - yy) / 2
    middle, half = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
    thinness = 1 - (middle - half) / np.maximum(middle + half, 1e-9)
    return np.stack([-np.sin(along), np.cos(along)], axis=1), thinness
