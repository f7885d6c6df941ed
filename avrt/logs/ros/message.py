"""Building ROS 2 messages from arrays: the parts that more than one writer needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros
from rosbags.typesys.stores.ros2_dashing import sensor_msgs__msg__NavSatStatus as NavSatStatus

from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from avrt.payload import Fix, Imu, PointCloud, Targets

    Column = NDArray[np.float32] | NDArray[np.float64] | NDArray[np.int64]

SEC_MAX = (1 << 31) - 1
POINT_TYPES: Mapping[int, str] = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8",
}  # fmt: skip
DATATYPES = {name: number for number, name in POINT_TYPES.items()}


def ros_time(ns: int) -> ros.builtin_interfaces__msg__Time:
    """Return a ROS time; its 32-bit seconds end in 2038, later times are shown as that."""
    sec, nanosec = divmod(ns, NS_PER_S)
    return ros.builtin_interfaces__msg__Time(max(-SEC_MAX, min(SEC_MAX, sec)), nanosec)


def header(stamp_ns: int, frame: str) -> ros.std_msgs__msg__Header:
    return ros.std_msgs__msg__Header(ros_time(stamp_ns), frame)


def twist(speed: float, yaw_rate: float) -> ros.geometry_msgs__msg__Twist:
    """Return a twist along x, m/s, and about z, rad/s."""
    vector = ros.geometry_msgs__msg__Vector3
    return ros.geometry_msgs__msg__Twist(vector(speed, 0.0, 0.0), vector(0.0, 0.0, yaw_rate))


def imu_message(head: ros.std_msgs__msg__Header, imu: Imu) -> ros.sensor_msgs__msg__Imu:
    """Return a reading; an orientation of None is marked as not measured."""
    vector, covariance = ros.geometry_msgs__msg__Vector3, np.zeros(9)
    covariance[0] = -1.0 if imu.orientation is None else 0.0
    turn = np.zeros(4) if imu.orientation is None else imu.orientation
    return ros.sensor_msgs__msg__Imu(
        head,
        ros.geometry_msgs__msg__Quaternion(*turn.tolist()),
        covariance,
        vector(*imu.angular_rate.tolist()),
        np.zeros(9),
        vector(*imu.acceleration.tolist()),
        np.zeros(9),
    )


def fix_message(head: ros.std_msgs__msg__Header, fix: Fix) -> ros.sensor_msgs__msg__NavSatFix:
    """Return a position; a sigma of NaN is marked as unknown."""
    known = bool(np.isfinite(fix.sigma).all())
    variances = np.diag(np.where(known, fix.sigma, 0.0) ** 2).ravel()
    status = NavSatStatus(status=0 if fix.valid else -1, service=1)
    kind = 2 if known else 0  # a known diagonal, or unknown
    return ros.sensor_msgs__msg__NavSatFix(
        head, status, fix.latitude, fix.longitude, fix.altitude, variances, kind
    )


def cloud_rows(cloud: PointCloud) -> NDArray[np.void]:
    """Return the points of a sweep as a structured array: x, y, z, and what else it has."""
    x, y, z = cloud.xyz.T
    columns: dict[str, Column] = {"x": x, "y": y, "z": z}
    if cloud.intensity is not None:
        columns["intensity"] = cloud.intensity
    if cloud.seconds is not None:
        columns["time"] = cloud.seconds
    return structured(columns)


def target_rows(targets: Targets) -> NDArray[np.void]:
    """Return radar targets as points on the ground plane, with what the radar measured."""
    x, y = targets.xy.T
    vx, vy = targets.velocity.T
    return structured(
        {
            "x": x,
            "y": y,
            "z": np.zeros_like(x),
            "range_rate": targets.range_rate,
            "vx": vx,
            "vy": vy,
            "strength": targets.strength,
            "id": targets.ids,
        }
    )


def structured(columns: Mapping[str, Column]) -> NDArray[np.void]:
    """Return columns (N,) as one structured array (N,).

    Whole numbers become int32; float64 stays, which is a place that float32 does not tell.
    """
    kinds = [(name, _kind(column)) for name, column in columns.items()]
    rows = np.zeros(len(next(iter(columns.values()))), kinds)
    for name, column in columns.items():
        rows[name] = column
    return rows


def _kind(column: Column) -> str:
    if column.dtype.kind in "iu":
        return "<i4"
    return "<f8" if column.dtype == np.float64 else "<f4"


def cloud_message(
    head: ros.std_msgs__msg__Header, rows: NDArray[np.void], height: int = 1
) -> ros.sensor_msgs__msg__PointCloud2:
    """Return a cloud of a structured array (N,), in `height` rows: its fields are the point's."""
    dtype = rows.dtype
    assert dtype.names is not None
    assert dtype.fields is not None
    fields = []
    for name in dtype.names:
        kind, offset = dtype.fields[name][:2]
        number = DATATYPES[f"{kind.kind}{kind.itemsize}"]
        fields.append(ros.sensor_msgs__msg__PointField(name, offset, number, 1))
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(-1)
    size, width = dtype.itemsize, len(rows) // height
    return ros.sensor_msgs__msg__PointCloud2(
        head, height, width, fields, False, size, size * width, data, False
    )
