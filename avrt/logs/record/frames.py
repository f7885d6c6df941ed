"""Objects through a pipe to another process of ours, arrays without a copy under the interpreter.

One frame: how many buffers follow, the length of the pickle and of each buffer (8 bytes each, in
this machine's order), the pickle, the buffers. Arrays and raw messages travel as buffers (pickle
protocol 5, PEP 574): writing them lets other threads run.
"""

from __future__ import annotations

import os
import pickle
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.logs.raw import RawMessage

PROTOCOL = 5
WORD = struct.Struct("=Q")


def write_frame(descriptor: int, item: object) -> None:
    """Write one object; returns once the pipe has taken it.

    Raises:
        OSError: nobody reads any more.
    """
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(item, PROTOCOL, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    sizes = (len(views), len(body), *(view.nbytes for view in views))
    _write(descriptor, b"".join(map(WORD.pack, sizes)) + body)
    for view in views:
        _write(descriptor, view)


def read_frame(descriptor: int) -> object:
    """Return the next object.

    Raises:
        EOFError: there is none.
    """
    count, size = (_word(descriptor) for _ in range(2))
    sizes = [_word(descriptor) for _ in range(count)]
    body = _read(descriptor, size)
    item: object = pickle.loads(body, buffers=[_read(descriptor, n) for n in sizes])  # noqa: S301
    return item


def portable(raw: RawMessage) -> RawMessage:
    """Return a message whose bytes can travel, whatever memory they are a view of."""
    return replace(raw, data=pickle.PickleBuffer(raw.data))  # type: ignore[arg-type]


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data).cast("B")
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
