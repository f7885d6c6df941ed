"""Raw pixels, in every layout in which cameras send them (`sensor_msgs/image_encodings`).

* Colours: `rgb`, `bgr`, `rgba`, `bgra`, each of 8 or 16 bits; how opaque they are is left out.
* Grey: `mono8`, `mono16`, and OpenCV's word for the first, `8UC1`.
* A mosaic (`bayer_rggb8` ...): one colour a pixel, in the order of its first two rows (`mosaic`).
* Luma and colour differences: `uyvy` (once `yuv422`) and `yuyv` (once `yuv422_yuy2`) have a pair of
  differences for two pixels of a row; `nv12` and `nv21` one for two by two, in a plane below that
  of the luma. They are taken as JPEG has them, ITU-R BT.601 in full range (0 to 255).
* Distances, which are no picture: `16UC1` in millimetres, `32FC1` in metres (REP 118); 0, NaN and
  infinity are none.

What has two bytes or more is little-endian here; a picture is made of the upper byte. OpenCV's
other words (`8UC3`) do not say which channel is which colour, so they are none of these.

Shape letters: H rows, W columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from PIL import Image as PillowImage

from avrt.payload.mosaic import PATTERNS, demosaiced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.float32]

Kind = Literal["colour", "grey", "mosaic", "pairs", "planes", "distance"]
NO_PICTURE = "it holds distances and no picture; `Image.values` gives them"
NO_VALUES = "it has colours, not one number a pixel; `Image.pixels` gives them"
NEAREST = PillowImage.Resampling.NEAREST
METRES_MAX = 100.0  # of a distance that is drawn as white


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to write an image.

    Attributes:
        kind: what a pixel is; "pairs" and "planes" are luma with colour differences.
        sample: numpy type of a number.
        channels: how many numbers a pixel has in its row.
        swapped: blue comes before red, or, of colour differences, the one of red before blue's; of
            pairs, the luma comes before its difference.
        pattern: colours of the first two rows of a mosaic, two columns each.
    """

    kind: Kind
    sample: str = "u1"
    channels: int = 1
    swapped: bool = False
    pattern: str = ""

    @property
    def sample_bytes(self) -> int:
        return int(self.sample[-1])

    def row_bytes(self, width: int) -> int:
        return width * self.channels * self.sample_bytes

    def rows(self, height: int) -> int:
        """Return how many rows of bytes there are."""
        return height + height // 2 if self.kind == "planes" else height

    def problem(self, width: int, height: int) -> str:
        """Return what such an image must be and one of this size is not; "" where it is."""
        if self.kind == "pairs" and width % 2:
            return "an even width"
        if self.kind == "planes" and (width % 2 or height % 2):
            return "an even width and height"
        if self.kind == "mosaic" and min(width, height) < 2:
            return "two rows and columns at least"
        return "" if width and height else "a pixel at least"


COLOURS = {"rgb": (3, False), "bgr": (3, True), "rgba": (4, False), "bgra": (4, True)}
SAMPLES = {"8": "u1", "16": "<u2"}
LAYOUTS: Mapping[str, Layout] = {
    **{
        f"{name}{bits}": Layout("colour", sample, channels, swapped)
        for name, (channels, swapped) in COLOURS.items()
        for bits, sample in SAMPLES.items()
    },
    "mono8": Layout("grey"),
    "mono16": Layout("grey", "<u2"),
    "8UC1": Layout("grey"),
    **{
        f"bayer_{pattern}{bits}": Layout("mosaic", sample, pattern=pattern)
        for pattern in PATTERNS
        for bits, sample in SAMPLES.items()
    },
    "uyvy": Layout("pairs", channels=2),
    "yuv422": Layout("pairs", channels=2),
    "yuyv": Layout("pairs", channels=2, swapped=True),
    "yuv422_yuy2": Layout("pairs", channels=2, swapped=True),
    "nv12": Layout("planes"),
    "nv21": Layout("planes", swapped=True),
    "16UC1": Layout("distance", "<u2"),
    "32FC1": Layout("distance", "<f4"),
}


def rgb(layout: Layout, data: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB: a view of the data where it is that already.

    Raises:
        ValueError: the size does not fit the data, or it holds distances.
    """
    match layout.kind:
        case "colour":
            high = _upper(layout, data, height, width)
            return high[..., 2::-1] if layout.swapped else high[..., :3]
        case "grey":
            return np.broadcast_to(_upper(layout, data, height, width), (height, width, 3))
        case "mosaic":
            return demosaiced(_upper(layout, data, height, width)[..., 0], layout.pattern)
        case "pairs" | "planes":
            bands = _luma_and_differences(layout, data, width, height)
            scaled = (
                PillowImage.fromarray(band).resize((width, height), NEAREST) for band in bands
            )
            return np.asarray(PillowImage.merge("YCbCr", tuple(scaled)).convert("RGB"))
        case "distance":
            raise ValueError(NO_PICTURE)


def grey(layout: Layout, data: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Return uint8 grey levels of all pixels or of an even part of them, mostly a view.

    Colours are taken by their green part. Distances grow from black with their square root, so
    that near ones differ; what has none is black.

    Raises:
        ValueError: the size does not fit the data.
    """
    match layout.kind:
        case "colour":
            return _upper(layout, data, height, width)[..., 1]
        case "grey":
            return _upper(layout, data, height, width)[..., 0]
        case "mosaic":
            first = layout.pattern.index("g")
            return _upper(layout, data, height, width)[::2, first::2, 0]
        case "pairs":
            return data.reshape(height, width, 2)[..., 0 if layout.swapped else 1]
        case "planes":
            return _planes(layout, data, height, width)[:height]
        case "distance":
            return drawn(values(layout, data, width, height))


def values(layout: Layout, data: NDArray[np.uint8], width: int, height: int) -> Values:
    """Return the numbers of an image that has one a pixel, (H, W), a view of the data.

    Raises:
        ValueError: it has several a pixel, or the size does not fit the data.
    """
    if layout.kind not in {"grey", "distance"}:
        raise ValueError(NO_VALUES)
    numbers: Values = data.view(layout.sample).reshape(height, width)
    return numbers


def drawn(distances: Values) -> NDArray[np.uint8]:
    """Return distances, (H, W) in millimetres if they are whole numbers, else metres, as grey."""
    metres = distances / 1000.0 if distances.dtype.kind == "u" else distances
    known = np.nan_to_num(metres, nan=0.0, posinf=0.0, neginf=0.0)
    return (255 * np.sqrt(np.clip(known / METRES_MAX, 0.0, 1.0))).astype(np.uint8)


def _upper(layout: Layout, data: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Return the upper byte of each number, (H, W, channels), a view."""
    return data.reshape(height, width, layout.channels, layout.sample_bytes)[..., -1]


def _planes(layout: Layout, data: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Return the rows of luma, and below them those of the differences."""
    return data.reshape(layout.rows(height), width)


def _luma_and_differences(
    layout: Layout, data: NDArray[np.uint8], width: int, height: int
) -> tuple[NDArray[np.uint8], ...]:
    """Return luma, and the differences of blue and of red as far as they are told, each uint8."""
    if layout.kind == "pairs":
        luma = 0 if layout.swapped else 1
        pairs = data.reshape(height, width // 2, 4)
        both = pairs[..., 1 - luma :: 2]
        return data.reshape(height, width, 2)[..., luma], both[..., 0], both[..., 1]
    rows = _planes(layout, data, height, width)
    both = rows[height:].reshape(height // 2, width // 2, 2)
    blue, red = (1, 0) if layout.swapped else (0, 1)
    return rows[:height], both[..., blue], both[..., red]
