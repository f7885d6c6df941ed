"""How the vehicle itself moves: what its sensors say, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Imu:
    """One reading of an inertial unit, in its own frame: x forward, y left, z up.

    Attributes:
        acceleration: (3,) float64, m/s^2; gravity is included unless the unit took it out.
        angular_rate: (3,) float64, rad/s.
        orientation: (4,) float64, quaternion x, y, z, w, or None where the unit has none.
    """

    acceleration: NDArray[np.float64]
    angular_rate: NDArray[np.float64]
    orientation: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """One position of a satellite receiver (WGS 84).

    Attributes:
        latitude, longitude: degrees.
        altitude: metres above the ellipsoid, NaN where unknown.
        sigma: (3,) float64, metres east, north and up; NaN where unknown.
        valid: the receiver has a position.
    """

    latitude: float
    longitude: float
    altitude: float
    sigma: NDArray[np.float64]
    valid: bool


@dataclass(frozen=True, slots=True)
class Speed:
    """The vehicle's speed as its wheels or its bus tell it.

    Attributes:
        speed: along x, m/s; negative in reverse.
        yaw_rate: rad/s, left positive; NaN where it is not told.
    """

    speed: float
    yaw_rate: float = float("nan")


@dataclass(frozen=True, slots=True)
class EgoMotion:
    """How the vehicle moves at the message's capture time.

    Attributes:
        x, y, yaw: pose in a frame fixed where the vehicle was when it began, metres and radians in
            (-pi, pi]; it drifts, so only differences over short times mean anything.
        speed: along x, m/s.
        yaw_rate: rad/s, left positive.
        covariance: (2, 2) float64 of (speed, yaw_rate), SI units.
        sensors: names of the inputs that it rests on now; empty when it is only predicted.
    """

    x: float
    y: float
    yaw: float
    speed: float
    yaw_rate: float
    covariance: NDArray[np.float64]
    sensors: tuple[str, ...]
