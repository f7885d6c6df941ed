"""Whether the times of a cloud's points fit their directions: a LiDAR that spins goes round evenly.

Points next to each other in time lie next to each other in direction. How much is von Neumann's
ratio (Ann. Math. Statist. 12, 1941) for angles: with d the azimuth from one point to the next in
time, and R the length of the mean direction of all of them, it is

    (mean cos d - R^2) / (1 - R^2)

1 where neighbours look the same way, and 0 where times are drawn at random, since cos d is R^2 in
the mean then: so it means the same for a full turn and for a narrow view. Other LiDARs are anywhere
in between, so a single number says little, and a guard believes a sensor that it spins only after a
while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from avrt.payload import PointCloud

SAMPLE, SAMPLE_LEAST = 512, 128
PLACES = np.arange(SAMPLE) * ((np.sqrt(5) - 1) / 2) % 1
"""Of the sample within a cloud: even, and in step with no number of rings, columns or mirrors."""
SPINNING = 0.9  # at least; sensors that go round evenly have 0.99 and more
NARROW = 1e-3  # of 1 - R^2: 2 degrees; there is no turn to be seen in less


class Spin:
    """Knows whether a sensor spins: once its sweeps did so for `believed_after` times in a row."""

    def __init__(self, least: float, believed_after: int) -> None:
        self._least = least
        self._believed_after = believed_after
        self._turns = 0

    def is_broken_by(self, found: float | None) -> bool:
        """Take the `turning` of one sweep; of a sensor that spins it must be `least` or more."""
        if found is None:
            return False
        if self._turns >= self._believed_after:
            return found < self._least
        self._turns = self._turns + 1 if found >= SPINNING else 0
        return False


def turning(cloud: PointCloud) -> float | None:
    """Return how well the times of a sample of the points fit their directions, 1 at the best.

    About SAMPLE points are looked at. None of a cloud without times, of one with too few points
    that are numbers or with a single time, and of one that sees in one direction only.
    """
    if cloud.seconds is None:
        return None
    rows = (PLACES * cloud.count).astype(np.int64) if cloud.count > SAMPLE else slice(None)
    xy, seconds = cloud.xyz[rows, :2], cloud.seconds[rows]
    known = np.isfinite(seconds) & np.isfinite(xy).all(axis=1)
    xy, seconds = xy[known].astype(np.float64), seconds[known]
    if len(seconds) < SAMPLE_LEAST or seconds.min() == seconds.max():
        return None
    turns = np.exp(1j * np.arctan2(xy[:, 1], xy[:, 0]))[np.argsort(seconds, kind="stable")]
    by_chance = float(abs(turns.mean()) ** 2)
    if 1 - by_chance < NARROW:
        return None
    alike = float((turns[1:] * turns[:-1].conj()).real.mean())
    return (alike - by_chance) / (1 - by_chance)
