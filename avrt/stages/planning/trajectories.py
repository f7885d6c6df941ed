"""Sample trajectories along a straight road: how fast to become, how soon, and how far aside.

Method: Werling, Ziegler, Kammel and Thrun, "Optimal Trajectory Generation for Dynamic Street
Scenarios in a Frenet Frame" (ICRA 2010), with the ego vehicle's x axis as the reference line.
Speed keeping is their quartic with zero acceleration at both ends,

    v(t) = v0 + dv (3 u^2 - 2 u^3),  u = t / T,   |a| <= 1.5 |dv| / T,   |jerk| <= 6 |dv| / T^2

and the way aside is their quintic over the arc length, as they do at low speed, so its curvature
is finite at any speed. Trajectories outside the limits are not generated.

Shape letters: J trajectories, S instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

INSTANTS = np.arange(21, dtype=np.float64) / 4  # seconds: five of them, in quarters
DURATIONS = (1.0, 1.5, 2.5, 4.0)  # seconds until the new speed is reached
SPEEDS = np.linspace(0.0, 1.0, 9) ** 2  # of the highest speed: finer where it is slow
SLOWER = np.array([1.0, 0.75, 0.5, 0.25])  # of the present speed
ASIDES = (0.0, -0.3, 0.3, -0.6, 0.6)  # metres, within the lane


@dataclass(frozen=True, slots=True)
class Limits:
    """What the vehicle may do; all are magnitudes.

    Attributes:
        acceleration: speeding up, m/s^2.
        braking: slowing down, m/s^2.
        jerk: m/s^3, of all trajectories but the emergency stop.
        braking_jerk: m/s^3, of the emergency stop.
        curvature: 1/m.
    """

    acceleration: float
    braking: float
    jerk: float
    braking_jerk: float
    curvature: float


@dataclass(frozen=True, slots=True)
class Trajectories:
    """J trajectories at INSTANTS, in the vehicle's frame at instant 0.

    Attributes:
        along, aside: (J, S) float64, metres.
        speed: (J, S) float64, m/s.
        acceleration: (J, S) float64, m/s^2, along the path.
        yaw: (J, S) float64, radians.
        curvature: (J, S) float64, 1/m.
        jerk: (J,) float64, m/s^3: largest magnitude.
        last_speed, last_aside: (J,) float64, m/s and metres: what each aims for.
    """

    along: NDArray[np.float64]
    aside: NDArray[np.float64]
    speed: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    yaw: NDArray[np.float64]
    curvature: NDArray[np.float64]
    jerk: NDArray[np.float64]
    last_speed: NDArray[np.float64]
    last_aside: NDArray[np.float64]


def sample(speed: float, speed_max: float, limits: Limits) -> Trajectories:
    """Return the trajectories within the limits; keeping the speed straight on is the first.

    Args:
        speed: now, m/s, at least 0.
        speed_max: highest speed aimed for unless the vehicle is faster now, m/s.
        limits: what the vehicle may do.
    """
    speeds = np.concatenate([speed * SLOWER, max(speed, speed_max) * SPEEDS])
    grid = np.meshgrid(speeds, np.array(DURATIONS), np.array(ASIDES), indexing="ij")
    last, duration, aside = (values.ravel() for values in grid)
    change = last - speed
    jerk = 6 * np.abs(change) / duration**2
    peak = 1.5 * change / duration
    kept = (jerk <= limits.jerk) & (peak <= limits.acceleration) & (peak >= -limits.braking)
    made = _trajectories(speed, last[kept], duration[kept], aside[kept], jerk[kept])
    gentle = np.abs(made.curvature).max(axis=1) <= limits.curvature
    return chosen(made, gentle)


def emergency_stop(speed: float, limits: Limits) -> Trajectories:
    """Return the one trajectory that brakes as hard as the vehicle can, straight ahead."""
    ramp = limits.braking / limits.braking_jerk
    fine = np.linspace(0.0, float(INSTANTS[-1]), 501)
    pressed = np.minimum(fine, ramp)
    planned = (
        speed - limits.braking_jerk * pressed**2 / 2 - limits.braking * np.maximum(fine - ramp, 0)
    )
    moving = np.maximum(planned, 0.0)
    step = fine[1] - fine[0]
    along = np.concatenate([[0.0], np.cumsum((moving[1:] + moving[:-1]) / 2) * step])
    deceleration = np.where(
        planned > 0, np.minimum(limits.braking_jerk * fine, limits.braking), 0.0
    )
    at = np.searchsorted(fine, INSTANTS - 1e-9)
    zero = np.zeros((1, len(INSTANTS)))
    return Trajectories(
        along=along[None, at],
        aside=zero,
        speed=moving[None, at],
        acceleration=-deceleration[None, at],
        yaw=zero,
        curvature=zero,
        jerk=np.array([limits.braking_jerk]),
        last_speed=np.zeros(1),
        last_aside=np.zeros(1),
    )


def _trajectories(
    speed: float,
    last: NDArray[np.float64],
    duration: NDArray[np.float64],
    aside: NDArray[np.float64],
    jerk: NDArray[np.float64],
) -> Trajectories:
    change = (last - speed)[:, None]
    t = duration[:, None]
    u = np.minimum(INSTANTS[None, :] / t, 1.0)
    after = np.maximum(INSTANTS[None, :] - t, 0.0)
    before = np.minimum(INSTANTS[None, :], t)
    along = speed * before + change * t * (u**3 - u**4 / 2) + last[:, None] * after
    reach = np.maximum(along[:, -1:], 1e-3)
    w = along / reach
    offset = aside[:, None]
    slope = offset / reach * (30 * w**2 - 60 * w**3 + 30 * w**4)
    bend = offset / reach**2 * (60 * w - 180 * w**2 + 120 * w**3)
    return Trajectories(
        along=along,
        aside=offset * (10 * w**3 - 15 * w**4 + 6 * w**5),
        speed=speed + change * (3 * u**2 - 2 * u**3),
        acceleration=change / t * 6 * u * (1 - u),
        yaw=np.arctan(slope),
        curvature=bend / (1 + slope**2) ** 1.5,
        jerk=jerk,
        last_speed=last,
        last_aside=aside,
    )


def chosen(made: Trajectories, kept: NDArray[np.bool_] | NDArray[np.int64]) -> Trajectories:
    """Return some of the trajectories, by mask or by index."""
    return Trajectories(
        along=made.along[kept],
        aside=made.aside[kept],
        speed=made.speed[kept],
        acceleration=made.acceleration[kept],
        yaw=made.yaw[kept],
        curvature=made.curvature[kept],
        jerk=made.jerk[kept],
        last_speed=made.last_speed[kept],
        last_aside=made.last_aside[kept],
    )
