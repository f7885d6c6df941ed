"""Where a vehicle reflects, as a radar sees it: anywhere on its outline, most on the near side.

Shape letters: N places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.stages.fusion.hypothesis import Hypothesis

STRAIGHT = 1e-9
SQRT_12 = 12**0.5  # a width over this is the standard deviation of a uniform distribution


def axes_of(one: Hypothesis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes of a track's box, (2, 2) in columns, and its half extents, (2,)."""
    cos, sin = math.cos(one.mean[4]), math.sin(one.mean[4])
    return np.array([[cos, -sin], [sin, cos]]), np.array([one.length / 2, one.width / 2])


def within(one: Hypothesis, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place within the outline of a track nearest to each of these, (N, 2) metres."""
    axes, half = axes_of(one)
    local = np.clip((xy - one.mean[:2]) @ axes, -half, half)
    return np.asarray(local @ axes.T + one.mean[:2])


def against(
    one: Hypothesis, place: NDArray[np.float64], along: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far a reflection is from where a track is expected to reflect, and its spread.

    It is expected in the middle of the side that the line of sight enters by. Returns (2,) metres
    and (2, 2) m^2: along the side it may be anywhere, behind it by less than half of its depth.
    """
    axes, half = axes_of(one)
    local, back = (place - one.mean[:2]) @ axes, -along @ axes
    inside = np.clip(local, -half, half)
    face = np.copysign(half, back)
    crossed = np.abs(back) > STRAIGHT
    way = np.where(crossed, (face - inside) / np.where(crossed, back, 1.0), np.inf)
    side = int(np.argmin(way))
    expected, sigma = np.zeros(2), 2 * half / SQRT_12
    expected[side] = face[side]
    sigma[side] = abs(face[side] - inside[side]) / 2
    return axes @ (local - expected), (axes * sigma**2) @ axes.T
