"""What a number that a sensor told says about the vehicle's state: the measurement equations.

Each function returns a `Reading`: the numbers, their covariance, and what they should be
if the state (see `vehicle`) were right, with the derivatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.ego.vehicle import (
    ACCELERATION,
    GYRO_BIAS,
    SLOPE,
    SPEED,
    STATES,
    WHEEL_ERROR,
    YAW,
    YAW_RATE,
    Reading,
    X,
    Y,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


def gyro(yaw_rate: float, sigma: float) -> Reading:
    """Return a yaw rate, rad/s, that a gyro with a bias told."""
    return _linear(yaw_rate, sigma, {YAW_RATE: 1.0, GYRO_BIAS: 1.0})


def yaw_rate(told: float, sigma: float) -> Reading:
    """Return a yaw rate, rad/s, without a bias."""
    return _linear(told, sigma, {YAW_RATE: 1.0})


def accelerometer(along: float, sigma: float) -> Reading:
    """Return an acceleration along x, m/s^2, with gravity's share on a slope in it."""
    return _linear(along, sigma, {ACCELERATION: 1.0, SLOPE: 1.0})


def speed(told: float, sigma: float) -> Reading:
    """Return a true speed along x, m/s."""
    return _linear(told, sigma, {SPEED: 1.0})


def wheels(told: float, sigma: float) -> Reading:
    """Return a speed, m/s, from turns of wheels whose radius is known up to an error of scale."""

    def expected(mean: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scale = 1 + mean[WHEEL_ERROR]
        change = np.zeros((1, STATES))
        change[0, SPEED], change[0, WHEEL_ERROR] = scale, mean[SPEED]
        return np.array([scale * mean[SPEED]]), change

    return Reading(np.array([told]), np.array([[sigma**2]]), expected)


def position(x: float, y: float, sigma: float) -> Reading:
    """Return a place in the frame of the state, metres."""
    change = np.zeros((2, STATES))
    change[(0, 1), (X, Y)] = 1.0
    return Reading(np.array([x, y]), sigma**2 * np.eye(2), _linearly(change))


def pose(x: float, y: float, yaw: float, noise: NDArray[np.float64]) -> Reading:
    """Return a place and a heading in the frame of the state; `noise` is (3, 3)."""
    change = np.zeros((3, STATES))
    change[(0, 1, 2), (X, Y, YAW)] = 1.0
    return Reading(np.array([x, y, yaw]), noise, _linearly(change), angles=(2,))


def _linear(value: float, sigma: float, weights: Mapping[int, float]) -> Reading:
    """Return a number that is a weighted sum of states."""
    change = np.zeros((1, STATES))
    for state, weight in weights.items():
        change[0, state] = weight
    return Reading(np.array([value]), np.array([[sigma**2]]), _linearly(change))


def _linearly(
    change: NDArray[np.float64],
) -> Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    return lambda mean: (change @ mean, change)
