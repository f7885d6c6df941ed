"""The filter of one track: where it is, how it moves, whether it is there at all.

State (x, y, vx, vy, yaw): position relative to the sensor, velocity over ground in the axes of the
sensor frame, SI units. Motion is constant velocity with white-noise acceleration (Bar-Shalom, Li
and Kirubarajan, "Estimation with Applications to Tracking and Navigation", 2001, section 6.2.2);
the ego vehicle drives straight ahead at its declared speed, so x shrinks by it. Yaw is a random
walk, measured up to half a turn: a box does not tell front from rear. The covariance update is
Joseph's, which stays symmetric and positive definite under rounding. Existence is integrated PDA
(Musicki, Evans and Stankovic, IEEE TAC 39(6), 1994, equations 18 to 21) for one assigned detection.

Shape letters: D detections.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.geometry import wrapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATES = 5
MEASURED = (0, 1, 4)  # x, y, yaw
ACCELERATION_NOISE = 1.0  # m^2/s^3, power of the white-noise acceleration of road users
YAW_NOISE = 0.01  # rad^2/s
LIFE_SECONDS = 20.0  # mean time that a road user stays in view
CLUTTER = 0.002  # false detections for each square metre


def predict(
    mean: NDArray[np.float64], covariance: NDArray[np.float64], dt: float, ego_speed: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (5,) and covariance (5, 5) after `dt` seconds, dt >= 0."""
    step = np.eye(STATES)
    step[0, 2] = step[1, 3] = dt
    moved = mean + np.array([(mean[2] - ego_speed) * dt, mean[3] * dt, 0.0, 0.0, 0.0])
    noise = np.zeros((STATES, STATES))
    noise[[0, 1], [0, 1]] = ACCELERATION_NOISE * dt**3 / 3
    noise[[0, 2, 1, 3], [2, 0, 3, 1]] = ACCELERATION_NOISE * dt**2 / 2
    noise[[2, 3], [2, 3]] = ACCELERATION_NOISE * dt
    noise[4, 4] = YAW_NOISE * dt
    return moved, step @ covariance @ step.T + noise


def update(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    measured: tuple[float, float, float],
    sigma: tuple[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and covariance after a measurement.

    Args:
        mean: (5,) float64.
        covariance: (5, 5) float64.
        measured: x, y in metres and yaw in radians; yaw up to half a turn.
        sigma: standard deviation of x and y, metres, and of yaw, radians.
    """
    observe = np.zeros((3, STATES))
    observe[(0, 1, 2), MEASURED] = 1.0
    noise = np.diag([sigma[0] ** 2, sigma[0] ** 2, sigma[1] ** 2])
    innovation = np.array(measured) - mean[list(MEASURED)]
    innovation[2] = half_turn(float(innovation[2]))
    spread = observe @ covariance @ observe.T + noise
    gain = np.linalg.solve(spread, observe @ covariance).T
    keep = np.eye(STATES) - gain @ observe
    corrected = mean + gain @ innovation
    corrected[4] = wrapped(float(corrected[4]))
    after = keep @ covariance @ keep.T + gain @ noise @ gain.T
    return corrected, (after + after.T) / 2


def distances(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    xy: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return squared Mahalanobis distance and log determinant of its covariance, (D,) each.

    Args:
        mean: (5,) float64.
        covariance: (5, 5) float64.
        xy: (D, 2) float64, metres.
        sigma: (D,) float64, metres: standard deviation of x and y of each detection.
    """
    dx, dy = xy[:, 0] - mean[0], xy[:, 1] - mean[1]
    a, b = covariance[0, 0] + sigma**2, covariance[1, 1] + sigma**2
    c = covariance[0, 1]
    determinant = a * b - c * c
    squared = (b * dx * dx - 2 * c * dx * dy + a * dy * dy) / determinant
    return squared, np.log(determinant)


def half_turn(angle: float) -> float:
    """Return the angle modulo half a turn, in [-pi/2, pi/2]."""
    return math.remainder(angle, math.pi)


def survived(existence: float, dt: float) -> float:
    """Return the probability that the object is still in view `dt` seconds later."""
    return existence * math.exp(-dt / LIFE_SECONDS)


def detected(existence: float, squared: float, log_determinant: float, rate: float) -> float:
    """Return the existence after an assigned detection.

    Args:
        existence: before it, 0 to 1.
        squared: distance of the detection, from `distances`.
        log_determinant: likewise.
        rate: probability that the sensor shows the object if it is there.
    """
    density = math.exp(-(squared + log_determinant) / 2) / (2 * math.pi)
    ratio = 1 - rate + rate * density / CLUTTER
    return ratio * existence / (1 - existence + ratio * existence)


def missed(existence: float, rate: float) -> float:
    """Return the existence after a sweep that did not show the object."""
    return (1 - rate) * existence / (1 - rate * existence)
