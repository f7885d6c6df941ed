"""The filter of one track: where it is and how it moves.

State (x, y, vx, vy, yaw): position relative to the tracker's frame, velocity over ground in the
axes of that frame, SI units. Motion is constant velocity with white-noise acceleration (Bar-Shalom,
Li and Kirubarajan, "Estimation with Applications to Tracking and Navigation", 2001, section 6.2.2).
The frame moves and turns with the ego vehicle meanwhile, so the state is written anew in the axes
where the frame went. Yaw is a random walk, measured up to half a turn: a box does not tell front
from rear. The covariance update is Joseph's, which stays symmetric and positive definite under
rounding.

Shape letters: K tracks, D detections, M measured numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.geometry import wrapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.stages.fusion.planar import Shift

STATES = 5
MEASURED = (0, 1, 4)  # x, y, yaw
ACCELERATION_NOISE = 3.0  # m^2/s^3: a road user brakes or turns by 1.7 m/s within a second
YAW_NOISE = 0.01  # rad^2/s


def predict(
    mean: NDArray[np.float64], covariance: NDArray[np.float64], dt: float, shift: Shift
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (K, 5) and covariance (K, 5, 5) after `dt` seconds, dt >= 0.

    `shift` is where the tracker's frame went meanwhile: everything moves and turns the other way.
    The noise is the same in all directions, so it needs no turning.
    """
    cos, sin = math.cos(shift.yaw), math.sin(shift.yaw)
    turn, onward = np.eye(STATES), np.eye(STATES)
    turn[:2, :2] = turn[2:4, 2:4] = [[cos, sin], [-sin, cos]]
    onward[0, 2] = onward[1, 3] = dt
    step = turn @ onward
    moved = mean @ step.T - turn @ (shift.x, shift.y, 0.0, 0.0, shift.yaw)
    moved[:, 4] = [wrapped(yaw) for yaw in moved[:, 4].tolist()]
    after = step @ covariance @ step.T + _noise(dt)
    return moved, (after + after.transpose(0, 2, 1)) / 2


def _noise(dt: float) -> NDArray[np.float64]:
    """Return the covariance that `dt` seconds add, (5, 5)."""
    noise = np.zeros((STATES, STATES))
    noise[[0, 1], [0, 1]] = ACCELERATION_NOISE * dt**3 / 3
    noise[[0, 2, 1, 3], [2, 0, 3, 1]] = ACCELERATION_NOISE * dt**2 / 2
    noise[[2, 3], [2, 3]] = ACCELERATION_NOISE * dt
    noise[4, 4] = YAW_NOISE * dt
    return noise


def update(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    measured: tuple[float, float, float],
    sigma: tuple[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and covariance after a box was measured.

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
    return corrected(mean, covariance, observe, innovation, noise)


def corrected(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    observe: NDArray[np.float64],
    innovation: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and covariance after M numbers were measured.

    Args:
        mean: (5,) float64.
        covariance: (5, 5) float64.
        observe: (M, 5) float64, how the numbers change with the state.
        innovation: (M,) float64, measured less expected.
        noise: (M, M) float64, covariance of the measurement.
    """
    spread = observe @ covariance @ observe.T + noise
    gain = np.linalg.solve(spread, observe @ covariance).T
    keep = np.eye(STATES) - gain @ observe
    moved = mean + gain @ innovation
    moved[4] = wrapped(float(moved[4]))
    after = keep @ covariance @ keep.T + gain @ noise @ gain.T
    return moved, (after + after.T) / 2


def distances(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    xy: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return squared Mahalanobis distance and log determinant of its covariance, (K, D) each.

    Args:
        mean: (K, 5) float64.
        covariance: (K, 5, 5) float64.
        xy: (K, D, 2) float64, metres: each detection as it is for each track.
        sigma: (D,) float64, metres: standard deviation of x and y of each detection.
    """
    dx, dy = xy[..., 0] - mean[:, None, 0], xy[..., 1] - mean[:, None, 1]
    a, b = covariance[:, None, 0, 0] + sigma**2, covariance[:, None, 1, 1] + sigma**2
    c = covariance[:, None, 0, 1]
    determinant = a * b - c * c
    squared = (b * dx * dx - 2 * c * dx * dy + a * dy * dy) / determinant
    return squared, np.log(determinant)


def half_turn(angle: float) -> float:
    """Return the angle modulo half a turn, in [-pi/2, pi/2]."""
    return math.remainder(angle, math.pi)
