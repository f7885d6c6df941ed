"""What the vehicle measures of its own motion: inertial unit, satellite receiver, wheels.

The inertial unit feels the change of velocity and gravity, in its own axes, with a bias that stays
for the drive and white noise. The receiver's error is correlated: a first-order Gauss-Markov
process, as multipath and atmosphere make it. Wheels tell speed with an error of scale and, from
their difference, the yaw rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import Fix, Imu, Speed
from avrt.world.mounting import GNSS, ego_pose
from avrt.world.traffic import STEP_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.road import Ground
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

GRAVITY = 9.81  # m/s^2
ACCELERATION_SIGMA, ACCELERATION_BIAS = 0.06, 0.04  # m/s^2
RATE_SIGMA, RATE_BIAS = 0.002, 0.0015  # rad/s
FIX_SIGMA, FIX_WHITE, FIX_SECONDS = 0.8, 0.03, 40.0  # metres, metres, correlation time
SCALE_SIGMA, SPEED_SIGMA, WHEEL_RATE_SIGMA = 0.006, 0.03, 0.01
ORIGIN = (49.0110, 8.4170, 115.0)  # degrees, degrees, metres: where the world's frame begins
EQUATOR, POLAR_SHARE = 6378137.0, 0.00669438  # WGS 84: metres, first eccentricity squared


@dataclass(frozen=True)
class Errors:
    """What is wrong with the sensors for a whole drive, drawn once."""

    acceleration: Array
    rate: Array
    scale: float
    way: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, seconds: float) -> Errors:
        """Draw them; `way` is the receiver's error, (T, 3) metres in steps of 0.1 s."""
        keep = np.exp(-0.1 / FIX_SECONDS)
        pushes = rng.normal(0, FIX_SIGMA * np.sqrt(1 - keep**2), (int(seconds * 10) + 2, 3))
        way = [rng.normal(0, FIX_SIGMA, 3)]
        for push in pushes[1:]:
            way.append(keep * way[-1] + push)
        return cls(
            acceleration=rng.normal(0, ACCELERATION_BIAS, 3),
            rate=rng.normal(0, RATE_BIAS, 3),
            scale=float(1 + rng.normal(0, SCALE_SIGMA)),
            way=np.array(way),
        )


def imu(ground: Ground, motion: Motion, errors: Errors, rng: np.random.Generator) -> Imu:
    """Return a reading; `motion` has three instants, STEP_S apart, the middle one being now."""
    pose = ego_pose(ground, motion)
    velocity = np.diff(pose.origin, axis=0) / STEP_S
    push = (velocity[1] - velocity[0]) / STEP_S + np.array([0.0, 0.0, GRAVITY])
    axes = pose.axes
    spin = axes[1].T @ (axes[2] - axes[0]) / (2 * STEP_S)
    rate = np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
    acceleration = axes[1].T @ push + errors.acceleration
    acceleration = acceleration + rng.normal(0, ACCELERATION_SIGMA, 3)
    rate = rate + errors.rate + rng.normal(0, RATE_SIGMA, 3)
    return Imu(np.round(acceleration, 4), np.round(rate, 6))


def fix(
    ground: Ground, motion: Motion, at_s: float, errors: Errors, rng: np.random.Generator
) -> Fix:
    """Return a position; `motion` has one instant, `at_s` seconds after the start."""
    pose = ego_pose(ground, motion)
    index = min(int(at_s * 10), len(errors.way) - 1)
    x, y, z = pose.point(GNSS.place)[0] + errors.way[index] + rng.normal(0, FIX_WHITE, 3)
    latitude, longitude = geodetic(float(x), float(y))
    sigma = np.array([FIX_SIGMA, FIX_SIGMA, 2 * FIX_SIGMA])
    return Fix(
        round(latitude, 9), round(longitude, 9), round(ORIGIN[2] + float(z), 3), sigma, valid=True
    )


def geodetic(x: float, y: float) -> tuple[float, float]:
    """Return latitude and longitude of a place of the world's frame, degrees.

    By the radii of curvature of the ellipsoid at its origin, right to centimetres within 1 km.
    """
    latitude = np.deg2rad(ORIGIN[0])
    flat = 1 - POLAR_SHARE * np.sin(latitude) ** 2
    across = EQUATOR / np.sqrt(flat)
    along = EQUATOR * (1 - POLAR_SHARE) / flat**1.5
    north, east = np.rad2deg(y / along), np.rad2deg(x / (across * np.cos(latitude)))
    return float(ORIGIN[0] + north), float(ORIGIN[1] + east)


def wheels(motion: Motion, errors: Errors, rng: np.random.Generator) -> Speed:
    """Return what the wheels tell; `motion` has two instants, STEP_S apart, the second is now."""
    speed = float(motion.speed[1, 0])
    rate = float(motion.yaw[1, 0] - motion.yaw[0, 0]) / STEP_S
    if speed > 0:
        speed = speed * errors.scale + float(rng.normal(0, SPEED_SIGMA))
        rate += float(rng.normal(0, WHEEL_RATE_SIGMA))
    return Speed(round(max(0.0, speed), 3), round(rate, 4))
