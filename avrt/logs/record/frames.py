"""Objects through a pipe to another process of ours, arrays without a copy under the interpreter.

One frame: how many buffers follow, the length of the pickle and of each buffer (8 bytes each, in
this machine's order), the pickle, the buffers. Arrays travel as buffers (pickle protocol 5, PEP
574), and so may bytes that go along: writing them lets other threads run.

Bytes that go along are no part of the pickle: a PickleBuffer over a memoryview, which the data of a
raw message is, crashes CPython's collector when both are in one cycle, as what an exception holds
may be.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PROTOCOL = 5
WORD = struct.Struct("=Q")


def write_frame(descriptor: int, item: object, along: bytes | memoryview | None = None) -> None:
    """Write one object, and bytes that go along; returns once the pipe has taken all.

    Raises:
        OSError: nobody reads any more.
    """
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(item, PROTOCOL, buffer_callback=buffers.append)
    views = [memoryview(buffer) for buffer in buffers]
    if not all(view.c_contiguous for view in views):
        body, views = pickle.dumps(item, PROTOCOL), []
    if along is not None:
        views.append(memoryview(along))
    sizes = (along is not None, len(views), len(body), *(view.nbytes for view in views))
    _write(descriptor, b"".join(map(WORD.pack, sizes)) + body)
    for view in views:
        if view.nbytes:
            _write(descriptor, view.cast("B"))


def read_frame(descriptor: int) -> tuple[object, bytes | None]:
    """Return the next object, and the bytes that came along.

    Raises:
        EOFError: there is none.
    """
    has_along, count, size = (_word(descriptor) for _ in range(3))
    sizes = [_word(descriptor) for _ in range(count)]
    body = _read(descriptor, size)
    buffers = [_read(descriptor, n) for n in sizes]
    along = buffers.pop() if has_along else None
    return pickle.loads(body, buffers=buffers), along  # noqa: S301 - our own process wrote it


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _word(descriptor: int) -> int:
    (value,) = WORD.unpack(_read(descriptor, WORD.size))
    return int(value)


def _read(descriptor: int, size: int) -> bytes:
    return b"".join(_pieces(descriptor, size))


def _pieces(descriptor: int, size: int) -> Iterable[bytes]:
    while size:
        piece = os.read(descriptor, min(size, 1 << 20))
        if not piece:
            raise EOFError
        size -= len(piece)
        yield piece
