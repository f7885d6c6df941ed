"""How a frame moves in the plane: velocities, and where they lead.

A vehicle that keeps its speed and its yaw rate drives an arc of a circle (Thrun, Burgard and Fox,
"Probabilistic Robotics", 2005, section 5.3). Every frame that is fixed to it drives an arc too,
with the same yaw rate and a speed of its own: on the outside of a bend a sensor is quicker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.frames import Matrix

STRAIGHT = 1e-9  # radians: a smaller turn is none


@dataclass(frozen=True, slots=True)
class Shift:
    """Where a frame went: metres and radians, in its own axes at the start."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def then(self, other: Shift) -> Shift:
        """Return this shift followed by another one."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return Shift(
            self.x + cos * other.x - sin * other.y,
            self.y + sin * other.x + cos * other.y,
            self.yaw + other.yaw,
        )


@dataclass(frozen=True, slots=True)
class Twist:
    """How a frame on the vehicle moves now.

    Attributes:
        x, y: velocity of its origin over ground in its axes, m/s.
        yaw_rate: rad/s, left positive.
        speed: of the vehicle along its own x axis, m/s.
    """

    x: float = 0.0
    y: float = 0.0
    yaw_rate: float = 0.0
    speed: float = 0.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the velocity over ground, m/s, of a point that is fixed to the vehicle."""
        return self.x - self.yaw_rate * y, self.y + self.yaw_rate * x

    def during(self, seconds: float) -> Shift:
        """Return where the frame goes when it moves on like this."""
        turn = self.yaw_rate * seconds
        if abs(turn) < STRAIGHT:
            return Shift(self.x * seconds, self.y * seconds, turn)
        along, aside = math.sin(turn) / turn * seconds, (1 - math.cos(turn)) / turn * seconds
        return Shift(along * self.x - aside * self.y, aside * self.x + along * self.y, turn)

    def mean(self, other: Twist) -> Twist:
        """Return the twist half-way to another one."""
        return Twist(
            (self.x + other.x) / 2,
            (self.y + other.y) / 2,
            (self.yaw_rate + other.yaw_rate) / 2,
            (self.speed + other.speed) / 2,
        )


def mounted(speed: float, yaw_rate: float, to_frame: Matrix) -> Twist:
    """Return the twist of a frame on a vehicle that drives along x and turns about z.

    Args:
        speed: of the vehicle frame's origin along its x, m/s.
        yaw_rate: rad/s.
        to_frame: the 12 numbers that take a point from the vehicle's frame to that frame.
    """
    a, _, _, x, c, _, _, y = to_frame[:8]  # (x, y): the vehicle's origin as the frame has it
    return Twist(a * speed + yaw_rate * y, c * speed - yaw_rate * x, yaw_rate, speed)


def heading(matrix: Matrix) -> float:
    """Return by how much a transform turns about z, radians."""
    return math.atan2(matrix[4], matrix[0])
