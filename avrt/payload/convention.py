"""Boxes as other tools write them, made boxes of avrt.

Tools differ in the order of the sides, in where a heading begins and in which way it turns. Nothing
in the numbers tells which was meant, so whoever has them says it; nothing is guessed.

* `iso8855`: length, width, height; yaw from x towards y, radians. It is avrt's own, that of ROS
  (REP 103) and of the LiDAR boxes of OpenPCDet and of mmdet3d from 1.0 on.
* `nuscenes`: width, length, height; quaternion w, x, y, z (nuscenes-devkit).
* `second`: width, length, height; yaw clockwise from -y, radians (SECOND, mmdet3d before 1.0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.errors import SpecError, did_you_mean
from avrt.payload.objects import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Numbers = Sequence[float]


def box_of(convention: str | None, centre: Numbers, size: Numbers, heading: Numbers) -> Box:
    """Return the box that another tool describes.

    Args:
        convention: see the module; boxes without one are refused.
        centre: x, y and z of the middle, metres, in a frame whose z points up.
        size: its three sides, metres, in the order of the convention.
        heading: the one number or the four of the convention.

    Raises:
        SpecError: the convention is not known, or it has another count of numbers.
    """
    known = None if convention is None else CONVENTIONS.get(convention)
    if known is None:
        remedy = did_you_mean(str(convention), CONVENTIONS)
        what = f"expected the convention that boxes are written in, found {convention!r}; {remedy}"
        raise SpecError(what, ("convention",))
    _check("centre", centre, 3)
    _check("size", size, 3)
    _check("heading", heading, known.numbers)
    x, y, z = centre
    width = size[1 - known.length_at]
    return Box(x, y, z, size[known.length_at], width, size[2], known.yaw(heading))


def _check(name: str, numbers: Numbers, count: int) -> None:
    if len(numbers) != count:
        raise SpecError(f"expected {count} numbers, found {len(numbers)}", (name,))


def yaw_of_quaternion(turn: Numbers) -> float:
    """Return how far a quaternion w, x, y, z turns the x axis to the left, radians."""
    w, x, y, z = turn
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2))


@dataclass(frozen=True, slots=True)
class Convention:
    """How a tool writes a box: where its length stands, and its yaw from so many numbers."""

    length_at: int
    numbers: int
    yaw: Callable[[Numbers], float]


CONVENTIONS: Mapping[str, Convention] = {
    "iso8855": Convention(0, 1, lambda heading: math.remainder(heading[0], math.tau)),
    "nuscenes": Convention(1, 4, yaw_of_quaternion),
    "second": Convention(1, 1, lambda heading: math.remainder(-heading[0] - math.pi / 2, math.tau)),
}
