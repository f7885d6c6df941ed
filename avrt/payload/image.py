"""Camera images, decompressed only when somebody asks for pixels."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """Pinhole model of a rectified camera.

    Attributes:
        width_px, height_px: image size; 0 where it is not told.
        projection: (3, 4) float64, pixels: P of sensor_msgs/CameraInfo, from the optical frame.
    """

    width_px: int
    height_px: int
    projection: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Image:
    """One camera image, compressed (`encoding` "jpeg", "png") or raw ("rgb8", "bgr8", "mono8").

    Attributes:
        data: (B,) uint8 of the encoded image; a view of the message.
        width_px, height_px: size of a raw image; 0 for a compressed one until it is decoded.
        info: the camera model, where the log has one.
    """

    encoding: str
    data: NDArray[np.uint8]
    width_px: int = 0
    height_px: int = 0
    info: CameraInfo | None = None

    def pixels(self) -> NDArray[np.uint8]:
        """Decode to (height, width, 3) uint8 RGB; decoding happens at each call.

        Raises:
            OSError: the data is no image that Pillow reads, or it is cut off.
            ValueError: a raw image's size does not fit its data.
        """
        if self.encoding in {"rgb8", "bgr8"}:
            rgb = self.data.reshape(self.height_px, self.width_px, 3)
            return rgb if self.encoding == "rgb8" else rgb[..., ::-1]
        if self.encoding == "mono8":
            grey = self.data.reshape(self.height_px, self.width_px, 1)
            return np.broadcast_to(grey, (self.height_px, self.width_px, 3))
        with PillowImage.open(io.BytesIO(self.data.tobytes())) as picture:
            return np.asarray(picture.convert("RGB"))

    def grey(self, side_px: int) -> tuple[NDArray[np.uint8], int]:
        """Return (h, w) uint8 grey levels of a sample of the pixels, and how many pixels there are.

        The sample has `side_px` rows or columns, whichever are fewer, or up to twice as many. Raw
        colours are taken by their green part; a JPEG is decoded no larger than it takes.

        Raises:
            OSError, ValueError, SyntaxError: the data is no image, or it is cut off.
        """
        if self.encoding in {"rgb8", "bgr8", "mono8"}:
            channels = 1 if self.encoding == "mono8" else 3
            raw = self.data.reshape(self.height_px, self.width_px, channels)
            return _sample(raw[..., channels // 2], side_px), self.width_px * self.height_px
        with PillowImage.open(io.BytesIO(self.data.tobytes())) as picture:
            size = picture.width * picture.height
            picture.draft("L", (side_px, side_px))
            return _sample(np.asarray(picture.convert("L")), side_px), size


def _sample(grey: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    step = max(1, min(grey.shape) // side_px)
    return grey[::step, ::step]


@dataclass(frozen=True, slots=True)
class ImageBoxes:
    """Outlines of 3D boxes in an image.

    Attributes:
        edges: (N, 12, 2, 2) float32, pixels (u, v) of both ends of each box's twelve edges; NaN
            where an edge lies behind the camera.
        labels: one text a box.
    """

    edges: NDArray[np.float32]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImageDetections:
    """Objects that a network found in one image, N of them; none means that nothing was seen.

    Attributes:
        boxes: (N, 4) float32, pixels: left, top, right, bottom.
        scores: (N,) float32, 0 to 1.
        labels: one class a box: "car", "truck", "pedestrian", "cyclist" or "unknown".
        width_px, height_px: size of the image.
        info: the camera model, where the log or the pipeline has one.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: tuple[str, ...]
    width_px: int
    height_px: int
    info: CameraInfo | None = None


@dataclass(frozen=True, slots=True)
class RoadMask:
    """Where an image shows road that can be driven on, and lane lines.

    Attributes:
        drivable, lane: (H, W) bool, pixels of an image scaled to that size.
        width_px, height_px: size of the image before it was scaled.
    """

    drivable: NDArray[np.bool_]
    lane: NDArray[np.bool_]
    width_px: int
    height_px: int
