"""Angles and oriented boxes in the plane: the few formulas that several stages share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.payload import Box


def wrapped(angle: float) -> float:
    """Return the angle in (-pi, pi], radians."""
    turned = math.remainder(angle, 2 * math.pi)
    return math.pi if turned == -math.pi else turned


def anchored(low: float, high: float, size: float) -> tuple[float, float]:
    """Return an extent of another size whose end nearer to the sensor, which is at 0, stays.

    An extent that straddles the sensor's line of sight keeps its middle: both ends were seen.
    """
    if low > 0:
        return low, low + size
    if high < 0:
        return high - size, high
    middle = (low + high) / 2
    return middle - size / 2, middle + size / 2


def resized(box: Box, length: float, width: float) -> Box:
    """Return the box with another footprint, its sides that face the sensor kept in place."""
    cos, sin = math.cos(box.yaw), math.sin(box.yaw)
    along, across = box.x * cos + box.y * sin, box.y * cos - box.x * sin
    along = sum(anchored(along - box.length / 2, along + box.length / 2, length)) / 2
    across = sum(anchored(across - box.width / 2, across + box.width / 2, width)) / 2
    return replace(
        box,
        x=along * cos - across * sin,
        y=along * sin + across * cos,
        length=length,
        width=width,
    )
