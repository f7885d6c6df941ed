"""The outline of a box on the ground."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.payload.objects import Box


def contains(box: Box, x: float, y: float, margin: float) -> bool:
    """Tell whether (x, y) lies in the box's footprint, grown by `margin` metres on all sides."""
    cos, sin = math.cos(box.yaw), math.sin(box.yaw)
    along = (x - box.x) * cos + (y - box.y) * sin
    across = (y - box.y) * cos - (x - box.x) * sin
    return abs(along) <= box.length / 2 + margin and abs(across) <= box.width / 2 + margin


def half_extents(box: Box) -> tuple[float, float]:
    """Return half the extent of the box's footprint along the frame's x and y, metres."""
    cos, sin = abs(math.cos(box.yaw)), abs(math.sin(box.yaw))
    return (
        box.length / 2 * cos + box.width / 2 * sin,
        box.length / 2 * sin + box.width / 2 * cos,
    )
