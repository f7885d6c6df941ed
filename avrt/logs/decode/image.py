"""Images and camera models, as the camera sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.payload import CameraInfo, Image
from avrt.payload.compressed import SUPPORTED, encoding_of
from avrt.payload.layout import LAYOUTS

if TYPE_CHECKING:
    from avrt.logs.raw import RawMessage


def read_compressed_image(raw: RawMessage, message: object) -> Image:
    """Read a compressed image, which stays compressed."""
    assert isinstance(message, ros.sensor_msgs__msg__CompressedImage)
    encoding = encoding_of(message.format, message.data)
    if encoding is None:
        found = f"format {message.format!r} and bytes {message.data[:8].tobytes().hex(' ')}"
        raise raw.error(f"an image in {SUPPORTED}", found)
    return Image(encoding, message.data)


def read_image(raw: RawMessage, message: object) -> Image:
    """Read a raw image; the padding of its rows is left out, its numbers are little-endian."""
    assert isinstance(message, ros.sensor_msgs__msg__Image)
    layout = LAYOUTS.get(message.encoding)
    if layout is None:
        raise raw.error(f"an image in {', '.join(LAYOUTS)}", repr(message.encoding))
    width, height, step = message.width, message.height, message.step
    problem = layout.problem(width, height)
    if problem:
        raise raw.error(f"an image of {problem} in {message.encoding}", f"{width} x {height}")
    rows, row = layout.rows(height), layout.row_bytes(width)
    if len(message.data) != rows * step or step < row:
        expected = f"{rows} rows of {step} bytes, {row} of them for {width} pixels"
        raise raw.error(expected, f"{len(message.data)} bytes")
    data = message.data.reshape(rows, step)[:, :row].reshape(-1)
    if message.is_bigendian and layout.sample_bytes > 1:
        data = data.view(f"u{layout.sample_bytes}").byteswap().view(np.uint8)
    return Image(message.encoding, data, width, height)


def read_camera_info(_raw: RawMessage, message: object) -> CameraInfo:
    assert isinstance(message, ros.sensor_msgs__msg__CameraInfo)
    return CameraInfo(message.width, message.height, message.p.reshape(3, 4))
