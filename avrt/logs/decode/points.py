"""LiDAR sweeps: packed points and planar scans.

A point's own time is given in several ways. Whole numbers are nanoseconds after the stamp (Ouster
`t`, Livox `offset_time`); a float is seconds after the stamp (Velodyne `time`), or absolute seconds
(Hesai, RoboSense `timestamp`) or nanoseconds (Livox `timestamp`), which its size tells; a float32
cannot hold absolute ones. Times that lie further than `SWEEP_S_MAX` from the stamp are none of this
sweep: such a cloud has no times.

Shapes: N points, B bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.ros.message import POINT_TYPES
from avrt.payload import PointCloud
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from avrt.logs.raw import RawMessage

FLOAT32 = 7
TIMES = ("t", "time", "timestamp", "time_stamp", "offset_time")
SWEEP_S_MAX = 2.0
ABSOLUTE_S_MIN = 1e6
ABSOLUTE_NS_MIN = 1e15


def read_cloud(raw: RawMessage, message: object) -> PointCloud:
    assert isinstance(message, ros.sensor_msgs__msg__PointCloud2)
    points = unpack(raw, message)
    if not points.count:
        return PointCloud(np.empty((0, 3), np.float32))
    intensity = points.column("intensity") if "intensity" in points.fields else None
    stamp = message.header.stamp
    return PointCloud(points.xyz(), intensity, points.seconds(stamp.sec * NS_PER_S + stamp.nanosec))


def has_lost_times(message: object, cloud: PointCloud) -> bool:
    """Whether the points of a message have times, and they are none of its sweep."""
    if not cloud.count or cloud.seconds is not None:
        return False
    if isinstance(message, ros.sensor_msgs__msg__LaserScan):
        return message.time_increment != 0
    assert isinstance(message, ros.sensor_msgs__msg__PointCloud2)
    return any(field.name in TIMES for field in message.fields)


def read_scan(raw: RawMessage, message: object) -> PointCloud:
    """Read a planar scan: z is 0, and a beam that met nothing within range gives no point."""
    assert isinstance(message, ros.sensor_msgs__msg__LaserScan)
    ranges = message.ranges
    if not _can_be(message):
        found = (
            f"angles from {message.angle_min:g} by {message.angle_increment:g}, ranges from "
            f"{message.range_min:g} to {message.range_max:g}"
        )
        raise raw.error("beams that differ in angle, and a range", found)
    met = np.isfinite(ranges) & (ranges >= message.range_min) & (ranges <= message.range_max)
    index = np.flatnonzero(met)
    angle = message.angle_min + index * message.angle_increment
    xyz = np.zeros((len(index), 3), np.float32)
    xyz[:, 0] = ranges[index] * np.cos(angle)
    xyz[:, 1] = ranges[index] * np.sin(angle)
    if len(message.intensities) not in {0, len(ranges)}:
        expected = f"{len(ranges)} intensities, or none"
        raise raw.error(expected, f"{len(message.intensities)}")
    intensity = message.intensities[index] if len(message.intensities) else None
    timed = message.time_increment != 0
    seconds = _in_sweep(index * message.time_increment) if timed else None
    return PointCloud(xyz, intensity, seconds)


def _can_be(scan: ros.sensor_msgs__msg__LaserScan) -> bool:
    """Whether beams have angles of their own and there are ranges that count; none may be NaN."""
    angles = math.isfinite(scan.angle_min) and math.isfinite(scan.angle_increment)
    apart = scan.angle_increment != 0 or len(scan.ranges) < 2
    return angles and apart and scan.range_min < scan.range_max


@dataclass(frozen=True, slots=True)
class Points:
    """Packed points: `data` (N * step,) uint8, without padding between rows."""

    data: NDArray[np.uint8]
    step: int
    order: str
    fields: Mapping[str, ros.sensor_msgs__msg__PointField]

    @property
    def count(self) -> int:
        return len(self.data) // self.step if self.step else 0

    def column(self, name: str) -> NDArray[np.float32]:
        """Return a field as (N,) float32: a view where it is one already."""
        return self.exact(name).astype(np.float32, copy=False)

    def exact(self, name: str) -> NDArray[np.float32]:
        """Return a field as (N,) of its own type."""
        field = self.fields[name]
        dtype = np.dtype(self.order + POINT_TYPES[field.datatype])
        return np.ndarray((self.count,), dtype, self.data.data, field.offset, (self.step,))

    def xyz(self) -> NDArray[np.float32]:
        """Return (N, 3) float32: a view where x, y, z follow each other as float32."""
        x, y, z = (self.fields[name] for name in "xyz")
        kinds = {x.datatype, y.datatype, z.datatype}
        follow = (y.offset - x.offset, z.offset - x.offset) == (4, 8)
        if kinds == {FLOAT32} and follow and self.order == "<":
            shape, strides = (self.count, 3), (self.step, 4)
            return np.ndarray(shape, np.float32, self.data.data, x.offset, strides)
        return np.stack([self.column(name) for name in "xyz"], axis=1)

    def seconds(self, stamp_ns: int) -> NDArray[np.float32] | None:
        """Return (N,) float32 seconds after the stamp, or None where the points have no times."""
        name = next((name for name in TIMES if name in self.fields), None)
        if name is None:
            return None
        exact = self.exact(name)
        times = exact.astype(np.float64)
        largest = np.max(np.abs(times))
        if exact.dtype.kind != "f":
            times /= NS_PER_S
        elif largest >= ABSOLUTE_S_MIN and exact.dtype.itemsize < 8:
            return None
        elif largest >= ABSOLUTE_NS_MIN:
            times = (times - stamp_ns) / NS_PER_S
        elif largest >= ABSOLUTE_S_MIN:
            times -= stamp_ns / NS_PER_S
        return _in_sweep(times)


def _in_sweep(times: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return times (N,) seconds after the stamp, or None where one is none of the sweep."""
    largest = np.max(np.abs(times), initial=0.0)  # NaN where one is
    return times.astype(np.float32) if largest <= SWEEP_S_MAX else None


def unpack(raw: RawMessage, message: ros.sensor_msgs__msg__PointCloud2) -> Points:
    """Return the points of a message whose layout and bytes agree.

    Raises:
        InputError: they do not, or x, y and z are missing.
    """
    step, width, height = message.point_step, message.width, message.height
    row_step = message.row_step if height > 1 else width * step
    if len(message.data) != height * row_step or row_step < width * step:
        expected = f"{height} x {width} points of {step} bytes in rows of {row_step} bytes"
        raise raw.error(expected, f"{len(message.data)} bytes")
    fields = {field.name: field for field in message.fields}
    for name, field in fields.items():
        kind = POINT_TYPES.get(field.datatype)
        if kind is None or field.offset + int(kind[1]) * max(1, field.count) > step:
            found = f"type {field.datatype} at byte {field.offset}"
            raise raw.error(f"field {name} within {step} bytes", found)
    if not fields.keys() >= {"x", "y", "z"}:
        raise raw.error("fields x, y and z", ", ".join(fields) or "no fields")
    order = ">" if message.is_bigendian else "<"
    if not len(message.data):
        return Points(np.empty(0, np.uint8), step, order, fields)
    rows = message.data.reshape(height, row_step)[:, : width * step]
    return Points(rows.reshape(-1), step, order, fields)
