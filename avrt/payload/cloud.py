"""LiDAR points as one array a sweep, a view of the message where its layout allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PointCloud:
    """One LiDAR sweep.

    Attributes:
        xyz: (N, 3) float32, metres, frame of the message's stamp; may be a read-only view.
        intensity: (N,) float32 as the sensor gives it, or None.
        seconds: (N,) float32, when each point was measured, seconds after the stamp; or None.
        compensated: the points lie where they would be had all been measured at the stamp.
    """

    xyz: NDArray[np.float32]
    intensity: NDArray[np.float32] | None = None
    seconds: NDArray[np.float32] | None = None
    compensated: bool = False

    @property
    def count(self) -> int:
        return len(self.xyz)
