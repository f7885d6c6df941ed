"""Choose among radar targets, and say how fast they are over ground.

Shape letters: N targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import Targets
from avrt.stages.mounting import Mount

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.payload import EgoMotion

HERE = Mount()


def chosen(targets: Targets, index: NDArray[np.int64], left_out: int = 0) -> Targets:
    """Return the targets of these indices, and `left_out` more that are not told."""
    return Targets(
        xy=targets.xy[index],
        sigma=targets.sigma[index],
        range_rate=targets.range_rate[index],
        velocity=targets.velocity[index],
        strength=targets.strength[index],
        ids=targets.ids[index],
        left_out=targets.left_out + left_out,
    )


def nearest(targets: Targets, count_max: int, first: NDArray[np.bool_] | None = None) -> Targets:
    """Return at most `count_max` targets, nearest first, and count the others as left out.

    Args:
        targets: with finite positions.
        count_max: most targets that are kept.
        first: (N,) bool: those that are kept before all others, or None.
    """
    distance = np.hypot(targets.xy[:, 0], targets.xy[:, 1])
    later = np.zeros(targets.count, np.bool_) if first is None else ~first
    kept = np.lexsort((distance, later))[:count_max]
    kept = kept[np.argsort(distance[kept], kind="stable")]
    return chosen(targets, kept, targets.count - len(kept))


def range_rates(targets: Targets) -> NDArray[np.float64]:
    """Return range rates, (N,) float64, m/s: from the velocity where only that was measured."""
    xy = targets.xy.astype(np.float64)
    distance = np.maximum(np.hypot(xy[:, 0], xy[:, 1]), 1e-9)
    known = np.isfinite(targets.velocity).all(axis=1, keepdims=True)
    along = (xy * np.where(known, targets.velocity, np.nan)).sum(axis=1) / distance
    return np.where(np.isfinite(targets.range_rate), targets.range_rate, along)


def ground_speed(targets: Targets, ego: EgoMotion, mount: Mount = HERE) -> NDArray[np.float64]:
    """Return each target's speed over ground along the line of sight.

    It is zero for what stands still, positive for what drives away, and says nothing of motion
    across the line of sight.

    Args:
        targets: in the sensor's frame.
        ego: how the vehicle moves.
        mount: where the sensor is on it.

    Returns:
        (N,) float64, m/s; NaN where the sensor told neither range rate nor velocity.
    """
    return range_rates(targets) - mount.still_range_rate(targets.xy, ego)
