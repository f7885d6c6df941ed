"""The line that trajectories are sampled along: the arc on which the vehicle is now.

Without a map the road is taken to go on as the vehicle turns: with the curvature yaw rate / speed,
as adaptive cruise control predicts its path (ISO 15622, "straight and curve capability"). Places
along and aside the arc are exact; the curvature is bounded, and zero for a vehicle that is slow,
whose rate says little about the road.

Shape letters: S instants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CURVATURE_MAX = 0.02  # 1/m
SPEED_MIN = 3.0  # m/s
STRAIGHT = 1e-6  # 1/m: less is none


@dataclass(frozen=True, slots=True)
class Arc:
    """A reference line that begins at the origin along x; `curvature` in 1/m, left positive."""

    curvature: float = 0.0

    @classmethod
    def of(cls, speed: float, yaw_rate: float) -> Arc:
        """Return the arc of a vehicle's motion, m/s and rad/s."""
        if not (speed >= SPEED_MIN and math.isfinite(yaw_rate)):
            return cls()
        curvature = max(-CURVATURE_MAX, min(CURVATURE_MAX, yaw_rate / speed))
        return cls(curvature if abs(curvature) > STRAIGHT else 0.0)

    def along(self, x: float, y: float) -> tuple[float, float, float]:
        """Return where a place is along and aside, metres, and the arc's heading there, radians."""
        k = self.curvature
        if k == 0:
            return x, y, 0.0
        heading = math.atan2(k * x, 1 - k * y)
        return heading / k, (1 - math.hypot(k * x, 1 - k * y)) / k, heading

    def bent(
        self, along: NDArray[np.float64], aside: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return places, (S, 2) metres, and the arc's heading there, (S,) radians."""
        k = self.curvature
        if k == 0:
            return np.stack([along, aside], axis=1), np.zeros_like(along)
        heading = k * along
        half = heading / 2
        chord = along * np.sinc(half / np.pi)  # sinc(0) is 1
        x = chord * np.cos(half) - aside * np.sin(heading)
        y = chord * np.sin(half) + aside * np.cos(heading)
        return np.stack([x, y], axis=1), heading
