"""The arrays of a comma2k19 log: times and values, read and checked before anything uses them.

Files are numpy's `.npy` without the ending. Objects are refused (they would be pickles, which can
run anything), archives too, and whatever numpy raises over a damaged header is an `InputError`.
"""

from __future__ import annotations

from tokenize import TokenError
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FRAME_BYTES = 8
ADDRESS_MAX = (1 << 29) - 1  # of an extended frame
BUS_MAX = 255
NPY_MAGIC = b"\x93NUMPY"
TIME_S_MAX = float((1 << 31) - 1)  # where ROS 2 time ends
UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError, TokenError,
    RecursionError,
)  # fmt: skip


class CanFrames(NamedTuple):
    """Raw frames of a bus: times (N,) seconds, bus (N,), address (N,), data (N, 8) uint8."""

    times: NDArray[np.float64]
    bus: NDArray[np.int64]
    address: NDArray[np.int64]
    data: NDArray[np.uint8]


def read_log(place: Path, columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times (N,) seconds, in order, and the values (N, columns) of a log.

    Raises:
        InputError: they are missing, damaged, or do not belong together.
    """
    times, values = read_times(place / "t"), _numbers(place / "value")
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != (len(times), columns):
        expected = f"expected as many times as rows of {columns} values"
        raise InputError(f"{expected}, found {times.shape} and {values.shape}", str(place))
    return times, values


def read_times(path: Path) -> NDArray[np.float64]:
    """Return times (N,) in seconds, in order.

    Raises:
        InputError: they are missing, damaged, or go back.
    """
    times = _numbers(path)
    if times.ndim != 1:
        raise InputError(f"expected a row of times, found {times.shape}", str(path))
    good = bool(((times >= 0) & (times <= TIME_S_MAX)).all())  # NaN is neither
    if not good or bool((np.diff(times) < 0).any()):
        what = f"expected times in seconds from 0 to {TIME_S_MAX:.0f} that do not go back"
        raise InputError(what, str(path))
    return times


def read_frames(place: Path) -> CanFrames:
    """Return the frames of a bus.

    Raises:
        InputError: they are missing, damaged, or do not belong together.
    """
    times, data = read_times(place / "t"), _load(place / "data")
    address = whole_numbers(_numbers(place / "address"), ADDRESS_MAX, place / "address")
    bus = whole_numbers(_numbers(place / "src"), BUS_MAX, place / "src")
    if data.dtype.kind != "S" or data.dtype.itemsize > FRAME_BYTES:
        what = f"expected frames of up to {FRAME_BYTES} bytes, found {data.dtype}"
        raise InputError(what, str(place / "data"))
    shapes = {array.shape for array in (times, address, bus, data)}
    if len(shapes) > 1:
        what = f"expected as many times as addresses, sources and data, found {sorted(shapes)}"
        raise InputError(what, str(place))
    padded = data.astype(f"S{FRAME_BYTES}").view(np.uint8).reshape(-1, FRAME_BYTES)
    return CanFrames(times, bus, address, padded)


def whole_numbers(values: NDArray[np.float64], largest: int, place: Path) -> NDArray[np.int64]:
    """Return values (N,) that are whole numbers from 0 to `largest`.

    Raises:
        InputError: one is not.
    """
    if not bool(((values >= 0) & (values <= largest) & (values == np.floor(values))).all()):
        raise InputError(f"expected whole numbers from 0 to {largest}", str(place))
    return values.astype(np.int64)


def _numbers(path: Path) -> NDArray[np.float64]:
    """Return the numbers of one file."""
    array = _load(path)
    if array.dtype.kind not in "fiu":
        raise InputError(f"expected an array of numbers, found {array.dtype}", str(path))
    return np.asarray(array, np.float64)


def _load(path: Path) -> NDArray[np.float64] | NDArray[np.bytes_]:
    """Return the array of one file."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("expected a file", str(path))
        with path.open("rb") as file:
            if file.read(len(NPY_MAGIC)) != NPY_MAGIC:
                raise InputError("expected a numpy array", str(path))
            file.seek(0)
            array: NDArray[np.float64] | NDArray[np.bytes_] = np.load(file, allow_pickle=False)
    except UNREADABLE as error:
        what = getattr(error, "strerror", None) or error
        raise InputError(f"expected a numpy array: {what}", str(path)) from None
    return array
