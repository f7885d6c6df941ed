"""The filter of the vehicle's own motion: how its state moves, and how a reading corrects it.

State (x, y, yaw, speed, yaw rate, acceleration, gyro bias, wheel error, slope), SI units. Between
readings the vehicle drives an arc: constant turn rate and acceleration (Schubert, Richter and
Wanielik, "Comparison and Evaluation of Advanced Motion Models for Vehicle Tracking", FUSION 2008,
section II), written with the chord of the arc, which needs no second formula for driving straight.
The wheels do not slip sideways.
Acceleration decays as in Singer, "Estimating Optimal Tracking
Filter Performance for Manned Maneuvering Targets", IEEE TAES 6(4), 1970; yaw rate, and slowly the
errors of the sensors, walk at random.

A reading may be older than the state, since sensors report with different delays. It is compared
with what the state says about its own time, reached by driving the arc backwards, and what may have
happened since counts as noise of the reading. (Bar-Shalom, "Update with Out-of-Sequence
Measurements in Tracking: Exact Solution", IEEE TAES 38(3), 2002, calls it algorithm C.) The
covariance update is Joseph's, as in `tracking`.

Shape letters: M numbers of a reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import EgoMotion
from avrt.stages.geometry import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

X, Y, YAW, SPEED, YAW_RATE, ACCELERATION, GYRO_BIAS, WHEEL_ERROR, SLOPE = range(9)
STATES = 9

SIGMA_AT_START = (0.0, 0.0, 0.0, 15.0, 0.3, 1.5, 0.01, 0.01, 0.5)
"""Standard deviation of each state before any reading; the frame begins at the vehicle."""

ACCELERATION_SIGMA = 1.2  # m/s^2, of ordinary driving
ACCELERATION_SECONDS = 2.0  # how long a driver keeps to one acceleration
YAW_RATE_NOISE = 0.01  # rad^2/s^3
GYRO_BIAS_NOISE = 1e-8  # rad^2/s^3
WHEEL_ERROR_NOISE = 1e-8  # 1/s
SLOPE_NOISE = 0.01  # (m/s^2)^2/s: how gravity's share of the acceleration along x changes
SLIDING_NOISE = 1e-4  # m^2/s: the wheels do slip a little
STEP_SECONDS_MAX = 0.5  # an arc is not driven further at once


@dataclass(frozen=True, slots=True)
class Vehicle:
    """What is believed about the vehicle: `mean` (9,) and `covariance` (9, 9), float64."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """M numbers a sensor told, and how they follow from the state.

    Attributes:
        values: (M,) float64.
        noise: (M, M) float64, their covariance.
        expected: from the state's mean (9,) to what the reading should be, (M,), and how it
            changes with the state, (M, 9).
        angles: which of the numbers are angles, radians.
    """

    values: NDArray[np.float64]
    noise: NDArray[np.float64]
    expected: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
    angles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Corrected:
    """A state after a reading, and how well the reading fitted: squared Mahalanobis distance."""

    vehicle: Vehicle
    squared: float


def at_start() -> Vehicle:
    """Return the state before any reading."""
    return Vehicle(np.zeros(STATES), np.diag(np.square(SIGMA_AT_START)))


def predicted(vehicle: Vehicle, seconds: float) -> Vehicle:
    """Return the state `seconds` later, at least 0."""
    mean, covariance = vehicle.mean, vehicle.covariance
    while seconds > 0:
        dt = min(seconds, STEP_SECONDS_MAX)
        mean, step = moved(mean, dt)
        covariance = step @ covariance @ step.T + _noise(mean, dt)
        seconds -= dt
    return Vehicle(mean, (covariance + covariance.T) / 2)


def moved(mean: NDArray[np.float64], dt: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean `dt` seconds later, or earlier if negative, and its derivative (9, 9).

    An arc of length s that turns by t has a chord of s sin(t/2) / (t/2) at half the turn.
    """
    yaw, speed, rate, acceleration = mean[YAW:GYRO_BIAS].tolist()
    half = rate * dt / 2
    length, (shorter, change) = speed * dt + acceleration * dt * dt / 2, _sinc(half)
    chord, cos, sin = length * shorter, math.cos(yaw + half), math.sin(yaw + half)
    kept = math.exp(-dt / ACCELERATION_SECONDS)
    after = mean.copy()
    after[X] += chord * cos
    after[Y] += chord * sin
    after[YAW] = wrapped(yaw + rate * dt)
    after[SPEED] += acceleration * dt
    after[ACCELERATION] *= kept
    step = np.eye(STATES)
    turns = np.array([1.0, 0.0, dt / 2, 0.0])  # of yaw, speed, yaw rate, acceleration
    grows = np.array([0.0, shorter * dt, length * change * dt / 2, shorter * dt * dt / 2])
    step[X, YAW:GYRO_BIAS] = grows * cos - turns * chord * sin
    step[Y, YAW:GYRO_BIAS] = grows * sin + turns * chord * cos
    step[YAW, YAW_RATE] = step[SPEED, ACCELERATION] = dt
    step[ACCELERATION, ACCELERATION] = kept
    return after, step


def corrected(vehicle: Vehicle, reading: Reading, age: float) -> Corrected:
    """Return the state after a reading that was taken `age` seconds before it, at least 0."""
    mean, covariance = vehicle.mean, vehicle.covariance
    back, step = moved(mean, -age) if age > 0 else (mean, np.eye(STATES))
    expected, change = reading.expected(back)
    observe = change @ step
    noise = reading.noise
    if age > 0:
        noise = noise + change @ _noise(back, age) @ change.T
    innovation = reading.values - expected
    for index in reading.angles:
        innovation[index] = wrapped(float(innovation[index]))
    spread = observe @ covariance @ observe.T + noise
    gain = np.linalg.solve(spread, observe @ covariance).T
    squared = float(innovation @ np.linalg.solve(spread, innovation))
    after = mean + gain @ innovation
    after[YAW] = wrapped(float(after[YAW]))
    keep = np.eye(STATES) - gain @ observe
    joseph = keep @ covariance @ keep.T + gain @ noise @ gain.T
    return Corrected(Vehicle(after, (joseph + joseph.T) / 2), squared)


def widened(vehicle: Vehicle, variance: Mapping[int, float]) -> Vehicle:
    """Return the state with these variances added, by the number of the state."""
    covariance = vehicle.covariance.copy()
    for index, added in variance.items():
        covariance[index, index] += added
    return Vehicle(vehicle.mean, covariance)


def with_variance(vehicle: Vehicle, variance: Mapping[int, float]) -> Vehicle:
    """Return the state with some of its numbers having these variances, independent of others."""
    covariance = vehicle.covariance.copy()
    for index, value in variance.items():
        covariance[index, :] = covariance[:, index] = 0.0
        covariance[index, index] = value
    return Vehicle(vehicle.mean, covariance)


def carried(
    pose: tuple[float, float, float], before: Vehicle, after: Vehicle
) -> tuple[float, float, float]:
    """Return a pose, x, y and yaw, that moves as the state's mean did from `before` to `after`."""
    x, y, yaw = pose
    dx, dy = (after.mean[[X, Y]] - before.mean[[X, Y]]).tolist()
    turn = yaw - float(before.mean[YAW])
    cos, sin = math.cos(turn), math.sin(turn)
    turned = wrapped(yaw + float(after.mean[YAW] - before.mean[YAW]))
    return x + dx * cos - dy * sin, y + dx * sin + dy * cos, turned


def motion_of(
    vehicle: Vehicle, pose: tuple[float, float, float], sensors: tuple[str, ...]
) -> EgoMotion:
    """Return what the state says to others, at a pose x, y, yaw, resting on these inputs."""
    mean, kept = vehicle.mean, np.ix_((SPEED, YAW_RATE), (SPEED, YAW_RATE))
    return EgoMotion(
        x=pose[0],
        y=pose[1],
        yaw=pose[2],
        speed=float(mean[SPEED]),
        yaw_rate=float(mean[YAW_RATE]),
        covariance=vehicle.covariance[kept],
        sensors=sensors,
    )


def _noise(mean: NDArray[np.float64], dt: float) -> NDArray[np.float64]:
    """Return the covariance that `dt` seconds, at least 0, add: (9, 9).

    The driver changes the acceleration, which goes on to speed and to the way along the heading;
    steering changes the yaw rate, which goes on to yaw and to the way across it.
    """
    yaw, speed = mean[YAW : SPEED + 1].tolist()
    cos, sin = math.cos(yaw), math.sin(yaw)
    along, across = np.zeros((STATES, 3)), np.zeros((STATES, 3))
    along[(X, Y, SPEED, ACCELERATION), (0, 0, 1, 2)] = cos, sin, 1.0, 1.0
    across[(X, Y, YAW, YAW_RATE), (0, 0, 1, 2)] = -sin * speed, cos * speed, 1.0, 1.0
    # White noise on the last of three quantities, of which each is the integral of the next.
    chain = np.array(
        [
            [dt**5 / 20, dt**4 / 8, dt**3 / 6],
            [dt**4 / 8, dt**3 / 3, dt**2 / 2],
            [dt**3 / 6, dt**2 / 2, dt],
        ]
    )
    pushed = 2 * ACCELERATION_SIGMA**2 / ACCELERATION_SECONDS
    noise: NDArray[np.float64] = pushed * (along @ chain @ along.T)
    noise += YAW_RATE_NOISE * (across @ chain @ across.T)
    noise[(X, Y), (X, Y)] += SLIDING_NOISE * dt
    noise[GYRO_BIAS, GYRO_BIAS] += GYRO_BIAS_NOISE * dt
    noise[WHEEL_ERROR, WHEEL_ERROR] += WHEEL_ERROR_NOISE * dt
    noise[SLOPE, SLOPE] += SLOPE_NOISE * dt
    return noise


def _sinc(angle: float) -> tuple[float, float]:
    """Return sin(angle) / angle and its derivative."""
    if abs(angle) < 1e-3:
        return 1 - angle * angle / 6, -angle / 3
    value = math.sin(angle) / angle
    return value, (math.cos(angle) - value) / angle
