"""Files that hold one message each: pictures and rows of float32, whole or told as damaged."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

from avrt.errors import InputError
from avrt.payload import Image

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PNG, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
JPEG, JPEG_END = b"\xff\xd8", b"\xff\xd9"
FLOAT_BYTES = 4


def read_bytes(path: Path) -> bytes:
    """Return what is in a file.

    Raises:
        InputError: it is missing, empty, or cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InputError("expected a file, found something else", str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    if not data:
        what = "expected a file with something in it, found an empty file"
        raise InputError(what, str(path))
    return data


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text that are not blank.

    Raises:
        InputError: it is missing, empty, or no text.
    """
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"expected a text: {error}", str(path)) from None
    return [line for line in text.splitlines() if line.strip()]


def read_rows(path: Path, columns: int) -> NDArray[np.float32]:
    """Return the rows (N, columns) of a file of little-endian float32.

    Raises:
        InputError: it is missing or cut.
    """
    data = read_bytes(path)
    step = columns * FLOAT_BYTES
    if len(data) % step:
        what = f"expected rows of {columns} float32, {step} bytes each, found {len(data)} bytes"
        raise InputError(what, str(path))
    return np.frombuffer(data, "<f4").reshape(-1, columns)


def read_picture(path: Path) -> Image:
    """Return a PNG or JPEG as it is, not decoded.

    Raises:
        InputError: it is missing, cut, or none of both.
    """
    data = read_bytes(path)
    for encoding, start, end in (("png", PNG, PNG_END), ("jpeg", JPEG, JPEG_END)):
        if data.startswith(start):
            if not data.rstrip(b"\0").endswith(end):
                raise InputError(f"expected a whole {encoding}, found one that is cut", str(path))
            return Image(encoding, np.frombuffer(data, np.uint8))
    raise InputError(f"expected a PNG or a JPEG, found {data[:8]!r}", str(path))


def picture_size(path: Path) -> tuple[int, int]:
    """Return width and height of a picture, by its header.

    Raises:
        InputError: it is missing or none.
    """
    try:
        with PillowImage.open(BytesIO(read_bytes(path))) as picture:
            return picture.size
    except (OSError, SyntaxError, ValueError, PillowImage.DecompressionBombError) as error:
        raise InputError(f"expected a picture: {error}", str(path)) from None
