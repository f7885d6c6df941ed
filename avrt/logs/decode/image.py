"""Images and camera models, as the camera sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.payload import CameraInfo, Image, Lens
from avrt.payload.compressed import SUPPORTED, encoding_of
from avrt.payload.layout import LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.logs.raw import RawMessage

COEFFICIENTS: Mapping[str, tuple[int, ...]] = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (8, 12, 14),
    "equidistant": (4,),
    "fisheye": (4,),
}
"""How many of them a lens has by its model; none, or zeros alone, say that it does not bend."""


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


def read_camera_info(raw: RawMessage, message: object) -> CameraInfo:
    """Read a camera's model, for the part of its image that is sent, and binned as that is.

    ROS gives size and matrices of the whole image, each pixel apart.
    """
    assert isinstance(message, ros.sensor_msgs__msg__CameraInfo)
    model, lens = message.distortion_model, message.d
    allowed = COEFFICIENTS.get(model, (len(lens),))
    if len(lens) not in {0, *allowed}:
        expected = f"{' or '.join(map(str, allowed))} coefficients of a {model} lens"
        raise raw.error(expected, f"{len(lens)}")
    numbers = (message.p, message.k, message.r, lens)
    if not all(np.isfinite(part).all() for part in numbers):
        raise raw.error("finite numbers in P, K, R and D", "others")
    roi, x_bin, y_bin = message.roi, max(1, message.binning_x), max(1, message.binning_y)
    projection = message.p.reshape(3, 4).copy()
    projection[0] = (projection[0] - roi.x_offset * projection[2]) / x_bin
    projection[1] = (projection[1] - roi.y_offset * projection[2]) / y_bin
    return CameraInfo(
        (roi.width or message.width) // x_bin,
        (roi.height or message.height) // y_bin,
        projection,
        Lens(model, lens, message.k.reshape(3, 3), message.r.reshape(3, 3)) if lens.any() else None,
    )
