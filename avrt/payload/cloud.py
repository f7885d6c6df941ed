"""LiDAR points as one array a sweep, a view of the message where its layout allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Coordinates: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PointCloud:
    """One LiDAR sweep.

    Attributes:
        xyz: (N, 3) float32, metres, frame of the message's stamp; may be a read-only view. float64
            where they are further away than float32 tells to a millimetre, as on a map; NaN where
            nothing was measured.
        intensity: (N,) float32 as the sensor gives it, or None.
        seconds: (N,) float32, when each point was measured, seconds after the stamp; or None.
        compensated: the points lie where they would be had all been measured at the stamp.
        shape: rows and columns of an organised cloud, as its message has them.
    """

    xyz: Coordinates
    intensity: NDArray[np.float32] | None = None
    seconds: NDArray[np.float32] | None = None
    compensated: bool = False
    shape: tuple[int, int] = (0, 0)

    @property
    def count(self) -> int:
        return len(self.xyz)

    @property
    def rows(self) -> int:
        """How many rows the points still lie in: 1 once some of them were left out."""
        rows, columns = self.shape
        return rows if rows and rows * columns == self.count else 1

    @property
    def grid(self) -> Coordinates:
        """`xyz` as (rows, columns, 3), one row of all points once some of them were left out."""
        return self.xyz.reshape(self.rows, -1, 3)
