"""Where things are in nuScenes: a translation (m) and a quaternion w, x, y, z in the map or car."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.payload import Speed
from avrt.payload.convention import yaw_of_quaternion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.logs.messages import Pose
    from avrt.logs.nuscenes.tables import Row

    Array = NDArray[np.float64]


class Place(NamedTuple):
    """A pose: where it is (3,), and how it is turned (4,): w, x, y, z."""

    at: Array
    turn: Array

    @property
    def yaw(self) -> float:
        return yaw_of_quaternion(self.turn.tolist())

    def pose(self) -> Pose:
        x, y, z = self.at.tolist()
        w, *turn = self.turn.tolist()
        return x, y, z, turn[0], turn[1], turn[2], w

    def level(self, vector: Array) -> Array:
        """Return a vector (3,) of the map in the axes of the pose, which stand upright."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        x, y, z = vector.tolist()
        return np.array([cos * x + sin * y, cos * y - sin * x, z])


def place_of(row: Row) -> Place:
    """Return where a record is.

    Raises:
        InputError: it does not say.
    """
    return Place(row.numbers("translation", 3), row.numbers("rotation", 4))


def speeds_of(places: Sequence[Place], at_ns: NDArray[np.int64]) -> list[Speed]:
    """Return the motion at each of the places, by what lies before and after it."""
    if len(places) < 2:
        return [Speed(math.nan) for _ in places]
    seconds = (at_ns - at_ns[0]) / 1e9
    velocity = np.gradient(np.array([place.at for place in places]), seconds, axis=0)
    turning = np.gradient(np.unwrap([place.yaw for place in places]), seconds)
    ahead = (place.level(v)[0] for place, v in zip(places, velocity, strict=True))
    return [Speed(float(v), float(rate)) for v, rate in zip(ahead, turning, strict=True)]
