"""LiDAR sweeps: packed points and planar scans.

A point's own time is given in several ways. Whole numbers are nanoseconds after the stamp (Ouster
`t`, Livox `offset_time`, Aeva `time_offset_ns`); a float is seconds after the stamp (Velodyne
`time`), or absolute seconds (Hesai, RoboSense `timestamp`) or nanoseconds (Livox `timestamp`),
which its size tells; a float32 cannot hold absolute ones. Two whole numbers make one absolute time
(`PAIRS`): seconds and nanoseconds (SICK), or the halves of 64 bits. Times that lie further than
`SWEEP_S_MAX` from the stamp are none of this sweep, and one time for all points tells none of them
apart (drivers that measure no times send that): such a cloud has no times.

A point whose own `range` is zero was not measured, whatever its other fields say: drivers of
organised clouds (Ouster) leave zeros where nothing came back or a packet was lost. It becomes NaN,
which is what others send in its place; in the sensor itself nothing is. The time of a point that is
nowhere says nothing, and is NaN, too.

Shapes: N points, S bytes of a point.
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
    from avrt.payload.cloud import Coordinates

    Column = NDArray[np.float32] | NDArray[np.float64] | NDArray[np.int64]

FLOAT32, WIDER = 7, (5, 6, 8)
TIMES = (
    "t", "time", "timestamp", "time_stamp", "offset_time", "time_offset", "time_offset_ns",
    "point_time_offset", "stamps", "ts",
)  # fmt: skip
PAIRS: Mapping[tuple[str, str], tuple[int, int]] = {
    ("lidar_sec", "lidar_nsec"): (NS_PER_S, 1),
    ("t_lo", "t_hi"): (1, 1 << 32),
}
"""Fields that make one absolute time together, and how many nanoseconds one of each is."""
SWEEP_S_MAX = 2.0
ABSOLUTE_S_MIN = 1e6
ABSOLUTE_NS_MIN = 1e15
FLOAT32_METRES_MAX = 8192.0  # beyond it float32 rounds by more than half a millimetre
RANGE = "range"


def read_cloud(raw: RawMessage, message: object) -> PointCloud:
    assert isinstance(message, ros.sensor_msgs__msg__PointCloud2)
    points = unpack(raw, message)
    xyz = points.measured()
    intensity = points.column("intensity") if "intensity" in points.fields else None
    stamp = message.header.stamp
    seconds = points.seconds(stamp.sec * NS_PER_S + stamp.nanosec, xyz)
    return PointCloud(xyz, intensity, seconds, shape=(message.height, message.width))


def has_lost_times(message: object, cloud: PointCloud) -> bool:
    """Whether the points of a message have times, and they are none of its sweep."""
    if not cloud.count or cloud.seconds is not None:
        return False
    if isinstance(message, ros.sensor_msgs__msg__LaserScan):
        return message.time_increment != 0
    assert isinstance(message, ros.sensor_msgs__msg__PointCloud2)
    names = {field.name for field in message.fields}
    return any(name in names for name in TIMES) or any(names.issuperset(pair) for pair in PAIRS)


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
    """Packed points: `data` (N, S) uint8, without the padding between rows."""

    data: NDArray[np.uint8]
    order: str
    fields: Mapping[str, ros.sensor_msgs__msg__PointField]

    @property
    def count(self) -> int:
        return len(self.data)

    def column(self, name: str) -> NDArray[np.float32]:
        """Return a field as (N,) float32: a view where it is one already."""
        return self.exact(name).astype(np.float32, copy=False)

    def exact(self, name: str) -> Column:
        """Return a field as (N,) of its own type, a view."""
        field = self.fields[name]
        dtype = np.dtype(self.order + POINT_TYPES[field.datatype])
        part = self.data[:, field.offset : field.offset + dtype.itemsize]
        return np.asarray(part.view(dtype)[:, 0])

    def xyz(self) -> Coordinates:
        """Return (N, 3) float32: a view where x, y, z follow each other as float32.

        float64 where they are given as wider numbers than float32 could hold to half a millimetre.
        """
        x, y, z = (self.fields[name] for name in "xyz")
        kinds = {x.datatype, y.datatype, z.datatype}
        follow = (y.offset - x.offset, z.offset - x.offset) == (4, 8)
        if kinds == {FLOAT32} and follow and self.order == "<":
            return self.data[:, x.offset : x.offset + 12].view(np.float32)
        exact = [self.exact(name) for name in "xyz"]
        if not kinds.isdisjoint(WIDER) and any(_is_far(one) for one in exact):
            return np.stack([one.astype(np.float64) for one in exact], axis=1)
        return np.stack([one.astype(np.float32) for one in exact], axis=1)

    def measured(self) -> Coordinates:
        """Return `xyz`, with NaN for points whose own range says that they were not measured."""
        xyz = self.xyz()
        missing = self.exact(RANGE) == 0 if RANGE in self.fields else None
        if missing is None or not missing.any():
            return xyz
        placed = np.empty(xyz.shape, xyz.dtype)
        for index in range(3):  # a tenth of the time of all columns at once
            placed[:, index] = np.where(missing, xyz.dtype.type(np.nan), xyz[:, index])
        return placed

    def seconds(self, stamp_ns: int, xyz: Coordinates) -> NDArray[np.float32] | None:
        """Return (N,) float32 seconds after the stamp, or None where the points have no times.

        Args:
            stamp_ns: of the message, sensor's clock.
            xyz: (N, 3) where the points are; the time of one that is nowhere is NaN.
        """
        name = next((name for name in TIMES if name in self.fields), None)
        told = self._of_pair(stamp_ns) if name is None else self.exact(name)
        if told is None:
            return None
        times = told.astype(np.float64)
        nowhere = ~_are_there(xyz)
        if nowhere.any():
            np.copyto(times, np.nan, where=nowhere)
        if np.count_nonzero(np.isnan(times)) != np.count_nonzero(nowhere):
            return None
        if not _count_from(stamp_ns, times, told):
            return None
        low, high = _span(times)
        is_one = low == high and len(times) - np.count_nonzero(nowhere) > 1
        return None if is_one or max(-low, high) > SWEEP_S_MAX else times.astype(np.float32)

    def _of_pair(self, stamp_ns: int) -> NDArray[np.float64] | None:
        """Return (N,) seconds after the stamp, of two fields that make one time."""
        pair = next((pair for pair in PAIRS if self.fields.keys() >= set(pair)), None)
        if pair is None:
            return None
        parts = zip(pair, PAIRS[pair], strict=True)
        at_ns = sum(self.exact(name).astype(np.int64) * unit for name, unit in parts)
        return np.asarray((at_ns - stamp_ns) / NS_PER_S)


def _count_from(stamp_ns: int, times: NDArray[np.float64], told: Column) -> bool:
    """Change times (N,) to seconds after the stamp; False where their type cannot hold them.

    Args:
        stamp_ns: of the message, sensor's clock.
        times: (N,) as they were told, NaN for points that are nowhere.
        told: the same, of the type in which the message has them.
    """
    if told.dtype.kind != "f":
        times /= NS_PER_S
        return True
    low, high = _span(times)
    largest = max(-low, high)
    if largest >= ABSOLUTE_S_MIN and told.dtype.itemsize < 8:
        return False
    if largest >= ABSOLUTE_NS_MIN:
        times -= stamp_ns
        times /= NS_PER_S
    elif largest >= ABSOLUTE_S_MIN:
        times -= stamp_ns / NS_PER_S
    return True


def _span(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest value that are numbers, 0 of none."""
    low, high = (reduce(values, initial=np.nan) for reduce in (np.fmin.reduce, np.fmax.reduce))
    return (0.0, 0.0) if np.isnan(low) else (float(low), float(high))


def _is_far(values: Column) -> bool:
    return bool(np.any((np.abs(values) > FLOAT32_METRES_MAX) & np.isfinite(values)))


def _are_there(xyz: Coordinates) -> NDArray[np.bool_]:
    """Return (N,) which points are somewhere: column by column, a tenth of the time of rows."""
    return np.asarray(np.isfinite(xyz[:, 0]) & np.isfinite(xyz[:, 1]) & np.isfinite(xyz[:, 2]))


def _in_sweep(times: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Return times (N,) seconds after the stamp, or None where one is none of the sweep."""
    largest = np.max(np.abs(times), initial=0.0)  # NaN where one is
    return times.astype(np.float32) if largest <= SWEEP_S_MAX else None


def unpack(raw: RawMessage, message: ros.sensor_msgs__msg__PointCloud2) -> Points:
    """Return the points of a message whose layout and bytes agree.

    A single row may be padded or not, and its `row_step` be left zero: its length tells.

    Raises:
        InputError: they do not, or x, y and z are missing.
    """
    step, width, height = message.point_step, message.width, message.height
    row_step, size = message.row_step, len(message.data)
    if height == 1 and size == width * step:
        row_step = size
    if size != height * row_step or row_step < width * step:
        expected = f"{height} x {width} points of {step} bytes in rows of {row_step} bytes"
        raise raw.error(expected, f"{size} bytes")
    fields = _fields(raw, message)
    order = ">" if message.is_bigendian else "<"
    if not width * height:
        return Points(np.empty((0, step), np.uint8), order, fields)
    rows = message.data.reshape(height, row_step)[:, : width * step]
    return Points(rows.reshape(-1, step), order, fields)


def _fields(
    raw: RawMessage, message: ros.sensor_msgs__msg__PointCloud2
) -> dict[str, ros.sensor_msgs__msg__PointField]:
    """Return the fields by name, whatever their order; padding may have any name.

    Raises:
        InputError: one lies outside of the point, has no type, or x, y, z are not there once each.
    """
    step = message.point_step
    for field in message.fields:
        kind = POINT_TYPES.get(field.datatype)
        if kind is None or field.offset + int(kind[1]) * max(1, field.count) > step:
            found = f"type {field.datatype} at byte {field.offset}"
            raise raw.error(f"field {field.name} within {step} bytes", found)
    names = [field.name for field in message.fields]
    if any(names.count(name) != 1 for name in "xyz"):
        raise raw.error("fields x, y and z", ", ".join(names) or "no fields")
    return {field.name: field for field in message.fields}
