"""Inertial units, satellite receivers and the vehicle's own speed.

A quantity that its message marks as not measured is NaN, or None for an orientation. The marks are
those of sensor_msgs: -1 as the first element of a covariance, type 0 for the covariance of a fix, a
negative status for a receiver without a position. Nor is a fix valid at a latitude or longitude
that is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.payload import Fix, Imu, Speed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.logs.raw import RawMessage

UNKNOWN = -1.0
LATITUDE_MAX, LONGITUDE_MAX = 90.0, 360.0


def read_imu(_raw: RawMessage, message: object) -> Imu:
    assert isinstance(message, ros.sensor_msgs__msg__Imu)
    q = message.orientation
    orientation = np.array([q.x, q.y, q.z, q.w])
    known = message.orientation_covariance[0] != UNKNOWN and bool(orientation.any())
    return Imu(
        _vector(message.linear_acceleration, message.linear_acceleration_covariance),
        _vector(message.angular_velocity, message.angular_velocity_covariance),
        orientation if known and bool(np.isfinite(orientation).all()) else None,
    )


def read_fix(_raw: RawMessage, message: object) -> Fix:
    assert isinstance(message, ros.sensor_msgs__msg__NavSatFix)
    unknown = message.position_covariance_type == message.COVARIANCE_TYPE_UNKNOWN
    variances = message.position_covariance[[0, 4, 8]]
    sigma = np.full(3, np.nan) if unknown else np.sqrt(np.where(variances < 0, np.nan, variances))
    placed = abs(message.latitude) <= LATITUDE_MAX and abs(message.longitude) <= LONGITUDE_MAX
    valid = placed and message.status.status >= message.status.STATUS_FIX
    return Fix(message.latitude, message.longitude, message.altitude, sigma, valid)


def read_twist(_raw: RawMessage, message: object) -> Speed:
    if isinstance(message, ros.geometry_msgs__msg__TwistWithCovarianceStamped):
        return _speed(message.twist.twist)
    assert isinstance(message, ros.geometry_msgs__msg__TwistStamped)
    return _speed(message.twist)


def read_odometry(_raw: RawMessage, message: object) -> Speed:
    """Read the twist of an odometry, which is in its child's frame; its pose is left."""
    assert isinstance(message, ros.nav_msgs__msg__Odometry)
    return _speed(message.twist.twist)


def _speed(twist: ros.geometry_msgs__msg__Twist) -> Speed:
    return Speed(twist.linear.x, twist.angular.z)


def _vector(
    vector: ros.geometry_msgs__msg__Vector3, covariance: NDArray[np.float64]
) -> NDArray[np.float64]:
    if covariance[0] == UNKNOWN:
        return np.full(3, np.nan)
    return np.array([vector.x, vector.y, vector.z])
