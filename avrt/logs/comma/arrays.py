"""The arrays of a comma2k19 log: times and values, read and checked before anything uses them.

Files are numpy's `.npy` without the ending. Objects are refused (they would be pickles, which can
run anything), archives too, and whatever numpy raises over a damaged header is an `InputError`.
"""

from __future__ import annotations

from tokenize import TokenError
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

NPY_MAGIC = b"\x93NUMPY"
TIME_S_MAX = float((1 << 31) - 1)  # where ROS 2 time ends
UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError, TokenError,
    RecursionError,
)  # fmt: skip


def read_log(place: Path, columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times (N,) seconds, in order, and the values (N, columns) of a log.

    Raises:
        InputError: they are missing, damaged, or do not belong together.
    """
    times, values = _load(place / "t"), _load(place / "value")
    if values.ndim == 1:
        values = values[:, None]
    if times.ndim != 1 or values.shape != (len(times), columns):
        expected = f"expected as many times as rows of {columns} values"
        raise InputError(f"{expected}, found {times.shape} and {values.shape}", str(place))
    good = bool(((times >= 0) & (times <= TIME_S_MAX)).all())  # NaN is neither
    if not good or bool((np.diff(times) < 0).any()):
        what = f"expected times in seconds from 0 to {TIME_S_MAX:.0f} that do not go back"
        raise InputError(what, str(place))
    return times, values


def whole_numbers(values: NDArray[np.float64], largest: int, place: Path) -> NDArray[np.int64]:
    """Return values (N,) that are whole numbers from 0 to `largest`.

    Raises:
        InputError: one is not.
    """
    if not bool(((values >= 0) & (values <= largest) & (values == np.floor(values))).all()):
        raise InputError(f"expected whole numbers from 0 to {largest}", str(place))
    return values.astype(np.int64)


def _load(path: Path) -> NDArray[np.float64]:
    """Return the numbers of one file."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("expected a file", str(path))
        with path.open("rb") as file:
            if file.read(len(NPY_MAGIC)) != NPY_MAGIC:
                raise InputError("expected a numpy array", str(path))
            file.seek(0)
            array = np.load(file, allow_pickle=False)
    except UNREADABLE as error:
        what = getattr(error, "strerror", None) or error
        raise InputError(f"expected a numpy array: {what}", str(path)) from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"expected an array of numbers, found {array.dtype}", str(path))
    return np.asarray(array, np.float64)
