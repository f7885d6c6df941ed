"""ROS 2 messages (CDR bytes) to payloads; arrays are views of the message wherever possible.

The CDR itself is read by `rosbags`; what this adds is the check that sizes, fields and bytes of a
message agree, and the step from a field list to arrays. A payload holds what the sensor sent: NaN
points stay, images stay compressed.

Shapes: N points, B bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.payload import CameraInfo, Image, PointCloud
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from rosbags.typesys.store import Typestore

    from avrt.logs.raw import RawMessage

T = TypeVar("T")

CLOUD = "sensor_msgs/msg/PointCloud2"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
READABLE = (CLOUD, COMPRESSED_IMAGE, IMAGE, CAMERA_INFO)
POINT_TYPES: Mapping[int, str] = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8",
}  # fmt: skip
FLOAT32 = 7
RAW_CHANNELS = {"rgb8": 3, "bgr8": 3, "mono8": 1}


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decoded message.

    Attributes:
        header_ns: the sensor's own stamp, sensor's clock, as it was sent.
        stamp_valid: the stamp is later than zero and has nanoseconds below one second.
    """

    header_ns: int
    stamp_valid: bool
    frame: str
    payload: PointCloud | Image | CameraInfo


class Decoder:
    """Decodes the message types of `READABLE`."""

    def __init__(self) -> None:
        self._store = _typestore()

    def decode(self, raw: RawMessage) -> Decoded:
        """Decode one message.

        Raises:
            InputError: it is of no readable type, or its bytes do not hold what it promises.
        """
        if raw.channel.encoding != "cdr" or raw.type not in READABLE:
            found = f"{raw.type or 'no type'} in {raw.channel.encoding or 'no'} encoding"
            raise _error(raw, f"a CDR message of {', '.join(READABLE)}", found)
        message = self._parse(raw)
        payload: PointCloud | Image | CameraInfo
        match message:
            case ros.sensor_msgs__msg__PointCloud2():
                payload = _cloud(raw, message)
            case ros.sensor_msgs__msg__CompressedImage():
                payload = Image(_codec(message.format), message.data)
            case ros.sensor_msgs__msg__Image():
                payload = _image(raw, message)
            case ros.sensor_msgs__msg__CameraInfo():
                payload = CameraInfo(message.width, message.height, message.p.reshape(3, 4))
            case _:
                raise AssertionError(type(message))
        stamp = message.header.stamp
        header_ns = stamp.sec * NS_PER_S + stamp.nanosec
        valid = stamp.nanosec < NS_PER_S and stamp.sec >= 0 and header_ns > 0
        return Decoded(header_ns, valid, message.header.frame_id, payload)

    def _parse(self, raw: RawMessage) -> object:
        try:
            return self._store.deserialize_cdr(raw.data, raw.type)
        except (SerdeError, IndexError, OverflowError, MemoryError) as error:
            found = f"{len(raw.data)} bytes, which are not one: {error}"
            raise _error(raw, f"a {raw.type}", found) from None


@cache
def _typestore() -> Typestore:
    """Return the types, once a process: rosbags compiles a reader for each at its first use."""
    return get_typestore(Stores.ROS2_JAZZY)


def _cloud(raw: RawMessage, message: ros.sensor_msgs__msg__PointCloud2) -> PointCloud:
    step, width, height = message.point_step, message.width, message.height
    row_step = message.row_step if height > 1 else width * step
    if len(message.data) != height * row_step or row_step < width * step:
        expected = f"{height} x {width} points of {step} bytes in rows of {row_step} bytes"
        raise _error(raw, expected, f"{len(message.data)} bytes")
    fields = {field.name: field for field in message.fields}
    for name, field in fields.items():
        kind = POINT_TYPES.get(field.datatype)
        if kind is None or field.offset + int(kind[1]) * max(1, field.count) > step:
            found = f"type {field.datatype} at byte {field.offset}"
            raise _error(raw, f"field {name} within {step} bytes", found)
    if not fields.keys() >= {"x", "y", "z"}:
        raise _error(raw, "fields x, y and z", ", ".join(fields) or "no fields")
    if not len(message.data):
        return PointCloud(np.empty((0, 3), np.float32))
    rows = message.data.reshape(height, row_step)[:, : width * step]
    order = ">" if message.is_bigendian else "<"
    points = _Points(rows.reshape(-1), step, order, fields)
    intensity = points.column("intensity") if "intensity" in fields else None
    return PointCloud(points.xyz(), intensity)


@dataclass(frozen=True, slots=True)
class _Points:
    """Packed points: `data` (N * step,) uint8, without padding between rows."""

    data: NDArray[np.uint8]
    step: int
    order: str
    fields: Mapping[str, ros.sensor_msgs__msg__PointField]

    @property
    def count(self) -> int:
        return len(self.data) // self.step

    def column(self, name: str) -> NDArray[np.float32]:
        """Return a field as (N,) float32: a view where it is one already."""
        field = self.fields[name]
        dtype = np.dtype(self.order + POINT_TYPES[field.datatype])
        raw: NDArray[np.float32] = np.ndarray(
            (self.count,), dtype, self.data.data, field.offset, (self.step,)
        )
        return raw.astype(np.float32, copy=False)

    def xyz(self) -> NDArray[np.float32]:
        """Return (N, 3) float32: a view where x, y, z follow each other as float32."""
        x, y, z = (self.fields[name] for name in "xyz")
        kinds = {x.datatype, y.datatype, z.datatype}
        follow = (y.offset - x.offset, z.offset - x.offset) == (4, 8)
        if kinds == {FLOAT32} and follow and self.order == "<":
            shape, strides = (self.count, 3), (self.step, 4)
            return np.ndarray(shape, np.float32, self.data.data, x.offset, strides)
        return np.stack([self.column(name) for name in "xyz"], axis=1)


def _image(raw: RawMessage, message: ros.sensor_msgs__msg__Image) -> Image:
    channels = RAW_CHANNELS.get(message.encoding)
    if channels is None:
        raise _error(raw, f"an image in {', '.join(RAW_CHANNELS)}", repr(message.encoding))
    width, height, row = message.width, message.height, message.step
    if len(message.data) != height * row or row < width * channels:
        expected = f"{height} rows of {row} bytes, each of {width} pixels of {channels} bytes"
        raise _error(raw, expected, f"{len(message.data)} bytes")
    rows = message.data.reshape(height, row)[:, : width * channels]
    return Image(message.encoding, rows.reshape(-1), width, height)


def _codec(text: str) -> str:
    """Return the codec of a format such as "rgb8; jpeg compressed bgr8" or "jpg"."""
    text = text.lower()
    if "png" in text:
        return "png"
    return "jpeg" if "jpeg" in text or "jpg" in text else text


def _error(raw: RawMessage, expected: str, found: str) -> InputError:
    return InputError(f"expected {expected}, found {found}", f"{raw.topic} at {raw.log_ns} ns")
