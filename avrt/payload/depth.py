"""Compressed distances, as ROS's `compressedDepth` image transport writes them.

Twelve bytes (a number of the method, two float32 a and b), then one number of 16 bits a pixel, as a
PNG or as RVL; 0 means that nothing was measured. Of `16UC1` the numbers are the distances; of
`32FC1` they are inverse: metres = a / (number - b).

RVL (Wilson, "Fast Lossless Depth Image Compression", ISS 2017): width and height, then runs of
zeros and of others in turn, each its length before it; of the others each one's difference from the
one before, with the sign in the lowest bit. All of these are in groups of three bits, the lowest
first, the fourth bit of a group telling that another one follows; eight groups make a word of
32 bits, the first one on top.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

HEADER = struct.Struct("<iff")
SIZE = struct.Struct("<II")
PIXELS_MAX = 1 << 26
UINT16_MAX = (1 << 16) - 1
GROUPS_MAX = 10  # of a number; 32 bits have no more
TOP_FIRST = np.arange(28, -1, -4, dtype=np.uint32)


def distances(
    data: bytes, codec: str, *, inverse: bool
) -> NDArray[np.uint16] | NDArray[np.float32]:
    """Return (H, W): uint16 millimetres, or, where the numbers are inverse, float32 metres.

    Nothing measured is 0, or NaN.

    Raises:
        OSError: the PNG is none, or it is cut off.
        ValueError: what follows the header is not what the codec writes.
    """
    if len(data) < HEADER.size:
        raise ValueError(f"expected a header of {HEADER.size} bytes, found {len(data)} bytes")
    _, a, b = HEADER.unpack_from(data)
    numbers = CODECS[codec](data[HEADER.size :])
    if not inverse:
        return numbers
    with np.errstate(all="ignore"):
        metres = np.float32(a) / (numbers.astype(np.float32) - np.float32(b))
    return np.where(numbers == 0, np.float32(np.nan), metres)


def _png(data: bytes) -> NDArray[np.uint16]:
    with PillowImage.open(io.BytesIO(data), formats=("PNG",)) as picture:
        numbers = np.asarray(picture)
    if numbers.ndim != 2 or numbers.dtype.itemsize < 2:
        raise ValueError(f"expected a PNG with 16 bits a pixel, found mode {picture.mode}")
    return numbers.astype(np.uint16)


def _rvl(data: bytes) -> NDArray[np.uint16]:
    if len(data) < SIZE.size:
        raise ValueError(f"expected the size of an image, found {len(data)} bytes")
    width, height = SIZE.unpack_from(data)
    if width * height > PIXELS_MAX:
        raise ValueError(f"expected {PIXELS_MAX} pixels at most, found {width} x {height}")
    numbers = _numbers(np.frombuffer(data, "<u4", (len(data) - SIZE.size) // 4, SIZE.size))
    runs = _runs(numbers, width * height)
    kinds = np.tile([False, True], len(runs))
    is_step = np.repeat(kinds, np.stack([np.full(len(runs), 2), runs[:, 1]], axis=1).ravel())
    steps = numbers[: len(is_step)][is_step]
    image = np.zeros(width * height, np.uint16)
    image[np.repeat(kinds, runs.ravel())] = np.cumsum((steps >> 1) ^ -(steps & 1)) & UINT16_MAX
    return image.reshape(height, width)


def _runs(numbers: NDArray[np.int64], pixels: int) -> NDArray[np.int64]:
    """Return (R, 2): how many zeros and then how many others there are, run by run."""
    runs: list[tuple[int, int]] = []
    at, used = 0, 0
    while at < pixels:
        if used + 2 > len(numbers):
            raise ValueError(f"expected {pixels} pixels, found {at}")
        zeros, others = int(numbers[used]), int(numbers[used + 1])
        at, used = at + zeros + others, used + 2 + others
        if at > pixels or used > len(numbers):
            raise ValueError(f"expected {pixels} pixels, found a run of {others} up to {at}")
        runs.append((zeros, others))
    return np.array(runs, np.int64).reshape(-1, 2)


def _numbers(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the numbers that words hold."""
    groups = ((words[:, None] >> TOP_FIRST) & 15).astype(np.int64).ravel()
    ends = np.flatnonzero(groups < 8)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if not len(ends):
        return np.zeros(0, np.int64)
    if lengths.max() > GROUPS_MAX + 1:
        raise ValueError(f"expected numbers of 32 bits, found one of {3 * lengths.max()}")
    whole = groups[: ends[-1] + 1] & 7
    place = np.arange(len(whole)) - np.repeat(starts, lengths)
    return np.add.reduceat(whole << 3 * place, starts)


CODECS: Mapping[str, Callable[[bytes], NDArray[np.uint16]]] = {"png": _png, "rvl": _rvl}
