"""Camera images, decompressed only when somebody asks for pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.payload import compressed, layout
from avrt.payload.layout import LAYOUTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from avrt.payload.layout import Values


@dataclass(frozen=True, slots=True)
class Lens:
    """How the image of a camera is bent before it is rectified (`sensor_msgs/CameraInfo`).

    Attributes:
        model: "plumb_bob", "rational_polynomial", "equidistant", or what the driver calls it.
        coefficients: (D,) float64, in the order of the model.
        matrix: (3, 3) float64, pixels: K, of the image as it was taken, whole and not binned.
        rectification: (3, 3) float64: R, from the optical frame to the rectified one.
    """

    model: str
    coefficients: NDArray[np.float64]
    matrix: NDArray[np.float64]
    rectification: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """Pinhole model of a rectified camera.

    Attributes:
        width_px, height_px: image size; 0 where it is not told.
        projection: (3, 4) float64, pixels: P of sensor_msgs/CameraInfo, from the optical frame, of
            the part of the image that is sent and binned as it is.
        lens: how the image is bent before it is rectified; None where it is not.
    """

    width_px: int
    height_px: int
    projection: NDArray[np.float64]
    lens: Lens | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """One camera image, compressed or raw.

    Attributes:
        encoding: of a raw image one of `layout.LAYOUTS` ("rgb8", "mono16", "32FC1"); of a
            compressed one as `compressed` has it ("jpeg", "bayer_rggb8; png").
        data: (B,) uint8 of the encoded image, rows without padding, numbers little-endian; mostly a
            view of the message.
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
            ValueError: it is broken, a raw image's size does not fit it, or it holds distances.
        """
        raw = LAYOUTS.get(self.encoding)
        if raw is None:
            return compressed.rgb(self.encoding, self.data)
        return layout.rgb(raw, self.data, self.width_px, self.height_px)

    def values(self) -> Values:
        """Decode an image of one number a pixel, (height, width): grey levels or distances.

        uint8 or uint16 grey levels, uint16 millimetres, or float32 metres, as the encoding says.

        Raises:
            OSError, ValueError: likewise; or it has colours.
        """
        raw = LAYOUTS.get(self.encoding)
        if raw is None:
            return compressed.values(self.encoding, self.data)
        return layout.values(raw, self.data, self.width_px, self.height_px)

    def grey(self, side_px: int) -> tuple[NDArray[np.uint8], int]:
        """Return (h, w) uint8 grey levels of a sample of the pixels, and how many pixels there are.

        The sample has `side_px` rows or columns, whichever are fewer, or up to twice as many. Raw
        colours are taken by their green part; a JPEG is decoded no larger than it takes.

        Raises:
            OSError, ValueError: the data is no image, or it is cut off.
        """
        raw = LAYOUTS.get(self.encoding)
        if raw is None:
            levels, size = compressed.grey(self.encoding, self.data, side_px)
        else:
            levels = layout.grey(raw, self.data, self.width_px, self.height_px)
            size = self.width_px * self.height_px
        step = max(1, min(levels.shape) // side_px)
        return levels[::step, ::step], size

    @property
    def row_bytes(self) -> int:
        """How many bytes a row of a raw image has."""
        raw = LAYOUTS.get(self.encoding)
        if raw is None:
            return self.data.size // max(1, self.height_px)
        return raw.row_bytes(self.width_px)


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
