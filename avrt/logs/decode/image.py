"""Images and camera models, as the camera sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.payload import CameraInfo, Image

if TYPE_CHECKING:
    from avrt.logs.raw import RawMessage

RAW_CHANNELS = {"rgb8": 3, "bgr8": 3, "mono8": 1}


def read_compressed_image(_raw: RawMessage, message: object) -> Image:
    assert isinstance(message, ros.sensor_msgs__msg__CompressedImage)
    return Image(_codec(message.format), message.data)


def read_image(raw: RawMessage, message: object) -> Image:
    """Read a raw image; the padding of its rows is left out."""
    assert isinstance(message, ros.sensor_msgs__msg__Image)
    channels = RAW_CHANNELS.get(message.encoding)
    if channels is None:
        raise raw.error(f"an image in {', '.join(RAW_CHANNELS)}", repr(message.encoding))
    width, height, row = message.width, message.height, message.step
    if not width or not height:
        raise raw.error("an image of a pixel at least", f"{width} x {height}")
    if len(message.data) != height * row or row < width * channels:
        expected = f"{height} rows of {row} bytes, each of {width} pixels of {channels} bytes"
        raise raw.error(expected, f"{len(message.data)} bytes")
    rows = message.data.reshape(height, row)[:, : width * channels]
    return Image(message.encoding, rows.reshape(-1), width, height)


def read_camera_info(_raw: RawMessage, message: object) -> CameraInfo:
    assert isinstance(message, ros.sensor_msgs__msg__CameraInfo)
    return CameraInfo(message.width, message.height, message.p.reshape(3, 4))


def _codec(text: str) -> str:
    """Return the codec of a format such as "rgb8; jpeg compressed bgr8" or "jpg"."""
    text = text.lower()
    if "png" in text:
        return "png"
    return "jpeg" if "jpeg" in text or "jpg" in text else text
