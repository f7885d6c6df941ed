"""Compressed images: what their format says, what their bytes are, and how they are opened.

The format of a CompressedImage is free text: "jpeg", "jpg", "rgb8; jpeg compressed bgr8" (pixels
before, codec, pixels in between), "16UC1; compressedDepth rvl", or nothing. Its codec is told by
the first bytes where they are known, by the text else. Of its other words only two change what the
numbers mean: a mosaic that was compressed as if it were grey, and distances. Colours are those of
the file: whatever order the words name, a JPEG or PNG says itself which is red.

Here an encoding is the codec, with the pixels before it where they are a mosaic or distances:
"jpeg", "bayer_rggb8; png", "16UC1; png", "32FC1; compressedDepth png".
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image as PillowImage

from avrt.payload import depth
from avrt.payload.layout import LAYOUTS, NO_PICTURE, NO_VALUES, drawn
from avrt.payload.mosaic import demosaiced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from avrt.payload.layout import Layout, Values

MAGIC: Mapping[bytes, str] = {
    b"\xff\xd8\xff": "jpeg",
    b"\x89PNG\r\n\x1a\n": "png",
    b"II*\0": "tiff",
    b"MM\0*": "tiff",
}
WORDS: Mapping[str, str] = {
    "jpeg": "jpeg", "jpg": "jpeg", "png": "png", "tiff": "tiff", "webp": "webp",
}  # fmt: skip
FORMATS = ("JPEG", "PNG", "TIFF", "WEBP")  # no more of Pillow's, some of which run programs
DEPTH: Final = "compressedDepth"
SUPPORTED = (
    f"jpeg, png, tiff, webp, {DEPTH} png or {DEPTH} rvl; the last two of 16UC1, mono16 or 32FC1"
)
SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B")
UINT16_MAX = (1 << 16) - 1
DISTANCES = {"16uc1": "16UC1", "mono16": "16UC1", "32fc1": "32FC1"}


def encoding_of(text: str, data: NDArray[np.uint8]) -> str | None:
    """Return the encoding of an image whose format is `text`, or None where nobody could open it.

    Args:
        text: format of its message.
        data: (B,) uint8 of the message.
    """
    text = text.lower()
    pixels, _, rest = (part.strip() for part in text.partition(";"))
    if DEPTH.lower() in text or (pixels in {"16uc1", "32fc1"} and not rest):
        return _depth(pixels, rest)
    codec = _sniffed(data[:12].tobytes()) or next((WORDS[w] for w in WORDS if w in text), None)
    if codec is None:
        return None
    is_mosaic = pixels in LAYOUTS and LAYOUTS[pixels].kind == "mosaic"
    before = pixels if is_mosaic else {"16uc1": "16UC1", "32fc1": "32FC1"}.get(pixels)
    return codec if before is None else f"{before}; {codec}"


def _depth(pixels: str, rest: str) -> str | None:
    """Return the encoding of compressed distances; one that names no codec is of the old kind."""
    words = rest.split()
    codec = words[1] if len(words) > 1 else "png"
    if pixels not in DISTANCES or codec not in depth.CODECS:
        return None
    return f"{DISTANCES[pixels]}; {DEPTH} {codec}"


def _sniffed(first: bytes) -> str:
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "webp"
    return next((codec for magic, codec in MAGIC.items() if first.startswith(magic)), "")


def rgb(encoding: str, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 RGB.

    Raises:
        OSError: the data is no image that Pillow reads, or it is cut off.
        ValueError: it is broken, or holds distances.
    """
    layout = _layout_of(encoding)
    if layout is not None and layout.kind == "distance":
        raise ValueError(NO_PICTURE)
    with _broken_told():
        picture = _opened(data)
        if picture.mode == "F":
            raise ValueError("expected colours or grey levels, found floating-point numbers")
        if picture.mode not in {"L", *SIXTEEN_BITS}:
            return np.asarray(picture.convert("RGB"))
        levels = _levels(picture)
    if layout is not None:
        return demosaiced(levels, layout.pattern)
    return np.broadcast_to(levels[..., None], (*levels.shape, 3))


def grey(encoding: str, data: NDArray[np.uint8], side_px: int) -> tuple[NDArray[np.uint8], int]:
    """Return (h, w) uint8 grey levels, and how many pixels there are.

    A JPEG is decoded no larger than it takes for `side_px` rows and columns.

    Raises:
        OSError, ValueError: likewise, except that distances have grey levels.
    """
    layout = _layout_of(encoding)
    if layout is not None and layout.kind == "distance":
        distances = values(encoding, data)
        return drawn(distances), distances.size
    with _broken_told():
        picture = _opened(data)
        size = picture.width * picture.height
        picture.draft("L", (side_px, side_px))
        return _levels(picture), size


def values(encoding: str, data: NDArray[np.uint8]) -> Values:
    """Return the numbers of an image that has one a pixel, (H, W).

    Raises:
        OSError, ValueError: likewise, or it has several a pixel.
    """
    before, _, codec = encoding.partition("; ")
    with _broken_told():
        if codec.startswith(DEPTH):
            codec = codec.removeprefix(f"{DEPTH} ")
            return depth.distances(data.tobytes(), codec, inverse=before == "32FC1")
        picture = _opened(data)
        if picture.mode in SIXTEEN_BITS:
            return _sixteen_bits(picture)
        if picture.mode not in {"L", "F"}:
            raise ValueError(NO_VALUES)
        return np.asarray(picture)


def _layout_of(encoding: str) -> Layout | None:
    before, split, _ = encoding.partition("; ")
    return LAYOUTS[before] if split else None


def _opened(data: NDArray[np.uint8]) -> PillowImage.Image:
    return PillowImage.open(io.BytesIO(data.tobytes()), formats=FORMATS)


@contextmanager
def _broken_told() -> Iterator[None]:
    """Tell what else Pillow raises of broken images: a broken PNG is a SyntaxError to it."""
    try:
        yield
    except (SyntaxError, PillowImage.DecompressionBombError) as error:
        raise ValueError(str(error)) from None


def _levels(picture: PillowImage.Image) -> NDArray[np.uint8]:
    """Return (H, W) uint8; of 16 bits the upper 8, which Pillow would cut off at 255."""
    if picture.mode in SIXTEEN_BITS:
        return (_sixteen_bits(picture) >> 8).astype(np.uint8)
    return np.asarray(picture.convert("L"))


def _sixteen_bits(picture: PillowImage.Image) -> NDArray[np.uint16]:
    """Return (H, W) uint16; Pillow has had 32 bits for them."""
    numbers = np.asarray(picture)
    if numbers.size and (numbers.max() > UINT16_MAX or numbers.min() < 0):
        raise ValueError("expected numbers of 16 bits, found wider ones")
    return numbers.astype(np.uint16)
