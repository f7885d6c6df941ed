"""Point cloud files of PCL (.pcd) with binary data: each point a row of fields of mixed types.

A header of text names FIELDS, their SIZE in bytes, TYPE (F, I, U) and COUNT, and how many POINTS
there are; after the line "DATA binary" come the rows, packed, little endian
(https://pointclouds.org/documentation/tutorials/pcd_file_format.html).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_bytes
from avrt.logs.ros.message import DATATYPES

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DATA = b"\nDATA "
HEADER_BYTES_MAX = 1 << 12
TYPES = {"F": "f", "I": "i", "U": "u"}


def read_pcd(path: Path) -> NDArray[np.void]:
    """Return the points as a structured array (N,).

    Raises:
        InputError: it is missing or cut, or written in another way.
    """
    data = read_bytes(path)
    place = data.find(DATA, 0, HEADER_BYTES_MAX)
    end = data.find(b"\n", place + 1)
    kind = data[place + len(DATA) : end].strip().decode("ascii", "replace")
    if place < 0 or end < 0 or kind != "binary":
        found = f"DATA {kind}" if 0 <= place < end else repr(data[:20])
        raise InputError(f"expected a PCD file with binary data, found {found}", str(path))
    lines = (line.split() for line in data[:place].decode("ascii", "replace").splitlines())
    header = {words[0]: words[1:] for words in lines if words}
    try:
        dtype = _dtype(header)
        count = int(header["POINTS"][0])
    except (KeyError, ValueError, IndexError) as error:
        what = f"expected FIELDS, SIZE, TYPE, COUNT of 1 and POINTS: {error}"
        raise InputError(what, str(path)) from None
    expected = count * dtype.itemsize
    if len(data) - end - 1 < expected or count < 0:
        what = f"expected {count} points of {dtype.itemsize} bytes, found {len(data) - end - 1}"
        raise InputError(f"{what} bytes", str(path))
    return np.frombuffer(data, dtype, count, end + 1)


def _dtype(header: dict[str, list[str]]) -> np.dtype[np.void]:
    """Return the type of a point; KeyError or ValueError if it is none."""
    fields = []
    counts = header.get("COUNT", ["1"] * len(header["FIELDS"]))
    columns = zip(header["FIELDS"], header["SIZE"], header["TYPE"], counts, strict=True)
    for name, size, kind, count in columns:
        code = f"{TYPES[kind]}{int(size)}"
        if code not in DATATYPES or int(count) != 1:
            raise ValueError(f"field {name} is of {count} {kind}{size}")
        fields.append((name, f"<{code}"))
    return np.dtype(fields)
