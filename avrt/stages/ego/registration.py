"""Find the pose in the plan at which a sweep fits what was seen before.

Method: iterated closest points. Every feature of the sweep is paired with the nearest one of the
map; points on walls pull along the wall's normal only (Censi, "An ICP variant using a point-to-line
metric", ICRA 2008), others weakly in both directions; Gauss and Newton solve for x, y and yaw. As
in KISS-ICP (Vizzo et al., "KISS-ICP: In Defense of Point-to-Point ICP", IEEE RA-L 8(2), 2023,
section III) pairs are weighed by the Geman-McClure kernel, and the search begins as wide as the
prediction is uncertain. Unlike there the kernel then narrows with every iteration down to the
LiDAR's own noise, which lets go of what moves.

Shape letters: P pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.stages.ego.upright import Features

ITERATIONS_MAX = 20
ITERATIONS_MIN = 6
NARROWING = 0.7  # of the kernel, from one iteration to the next
KERNEL_MIN = 0.05  # metres: two and a half standard deviations of a LiDAR's range
REACH, REACH_MIN = 2.0, 0.4  # kernels, metres: pairs further apart are none
POINT_WEIGHT = 0.3  # of a pair that is not on a wall
PREDICTION_WEIGHT = 0.1  # pairs: it keeps what nothing tells where it was
DONE_METRES, DONE_RADIANS = 1e-3, 1e-4


@dataclass(frozen=True, slots=True)
class Match:
    """Where a sweep fits.

    Attributes:
        pose: (3,) float64 of x, y in metres and yaw in radians.
        covariance: (3, 3) float64, as far as the pairs' own scatter tells.
        share: sum of the weights over all features of the sweep, 0 to 1.
        weight: sum of the weights.
    """

    pose: NDArray[np.float64]
    covariance: NDArray[np.float64]
    share: float
    weight: float


class Target:
    """What a sweep is fitted to."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self._tree = cKDTree(features.xyz, balanced_tree=False, compact_nodes=False)

    def fitted(self, sweep: Features, pose: NDArray[np.float64], kernel: float) -> Match:
        """Return where the sweep fits, from a predicted pose (3,) and a kernel's width, metres.

        Neither may be empty.
        """
        predicted = pose
        for iteration in range(ITERATIONS_MAX):
            width = max(KERNEL_MIN, kernel * NARROWING**iteration)
            pairs = self._pairs(sweep, pose, width)
            information, pull = _normal_equations(pairs, pose)
            information = information + PREDICTION_WEIGHT * np.eye(3)
            pull = pull + PREDICTION_WEIGHT * (predicted - pose)
            step = np.linalg.solve(information, pull)
            pose = pose + step
            small = np.abs(step) < (DONE_METRES, DONE_METRES, DONE_RADIANS)
            if iteration >= ITERATIONS_MIN and width == KERNEL_MIN and bool(small.all()):
                break
        weight = float(pairs.weight.sum())
        scatter = float((pairs.weight * pairs.squared).sum()) / max(weight, 1.0)
        covariance = np.asarray(np.linalg.inv(information) * max(scatter, 1e-6), np.float64)
        return Match(pose, covariance, weight / len(sweep), weight)

    def share_within(self, sweep: Features, pose: NDArray[np.float64], reach: float) -> float:
        """Return the share of the sweep's features that have a neighbour within `reach` metres."""
        x, y, yaw = pose.tolist()
        distance, _ = self._tree.query(sweep.placed(x, y, yaw).xyz, distance_upper_bound=reach)
        return float(np.isfinite(distance).mean())

    def _pairs(self, sweep: Features, pose: NDArray[np.float64], width: float) -> _Pairs:
        x, y, yaw = pose.tolist()
        placed = sweep.placed(x, y, yaw).xyz
        reach = max(REACH * width, REACH_MIN)
        distance, nearest = self._tree.query(placed, distance_upper_bound=reach)
        found = np.isfinite(distance)
        at, index = placed[found, :2], np.asarray(nearest)[found]
        off = self.features.xyz[index, :2] - at
        normal, wall = self.features.normal[index], self.features.is_wall[index]
        squared = np.where(wall, (off * normal).sum(axis=1) ** 2, (off**2).sum(axis=1))
        weight = (width**2 / (width**2 + squared)) ** 2
        return _Pairs(at, off, normal, wall, squared, weight)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Features of a sweep with their neighbours in the map.

    Attributes:
        at: (P, 2) float64, metres: where the sweep's feature is now.
        off: (P, 2): from there to its neighbour.
        normal, is_wall: of the neighbour.
        squared: (P,): square of the distance that counts, metres^2.
        weight: (P,): of the kernel, 0 to 1.
    """

    at: NDArray[np.float64]
    off: NDArray[np.float64]
    normal: NDArray[np.float64]
    is_wall: NDArray[np.bool_]
    squared: NDArray[np.float64]
    weight: NDArray[np.float64]


def _normal_equations(
    pairs: _Pairs, pose: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the information (3, 3) and the pull (3,) of the pairs on x, y and yaw."""
    nx, ny = pairs.normal.T
    xx = pairs.weight * np.where(pairs.is_wall, nx * nx, POINT_WEIGHT)
    xy = pairs.weight * np.where(pairs.is_wall, nx * ny, 0.0)
    yy = pairs.weight * np.where(pairs.is_wall, ny * ny, POINT_WEIGHT)
    by_yaw_x, by_yaw_y = -(pairs.at[:, 1] - pose[1]), pairs.at[:, 0] - pose[0]
    turn_x, turn_y = xx * by_yaw_x + xy * by_yaw_y, xy * by_yaw_x + yy * by_yaw_y
    off_x, off_y = pairs.off.T
    pull_x, pull_y = xx * off_x + xy * off_y, xy * off_x + yy * off_y
    sums = [part.sum() for part in (xx, xy, yy, turn_x, turn_y)]
    turned = (turn_x * by_yaw_x + turn_y * by_yaw_y).sum()
    information = np.array(
        [
            [sums[0], sums[1], sums[3]],
            [sums[1], sums[2], sums[4]],
            [sums[3], sums[4], turned],
        ]
    )
    torque = (pull_x * by_yaw_x + pull_y * by_yaw_y).sum()
    return information, np.array([pull_x.sum(), pull_y.sum(), torque])
