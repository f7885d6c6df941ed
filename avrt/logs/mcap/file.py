"""Where the messages of an MCAP file lie, and reading them out of their chunks.

Every position and length is checked against the file before it is used, so a damaged file costs an
`InputError` that names the byte, never an allocation or an exception of a library.

Format: https://mcap.dev/spec (magic, records of opcode, length and body, summary, footer, magic).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import numpy as np
import zstandard
from mcap.exceptions import McapError
from mcap.opcode import Opcode

from avrt.errors import InputError
from avrt.logs.extents import check_size, uncompress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from mcap.records import Channel, Schema
    from numpy.typing import NDArray

    from avrt.logs.extents import Extent, File

MAGIC = b"\x89MCAP0\r\n"
HEAD = struct.Struct("<BQ")
CHUNK = struct.Struct("<BQQQQII")
MESSAGE = struct.Struct("<HIQQ")
INDEX = struct.Struct("<HI")
ENTRY_BYTES = 16  # of a message index: log time and offset
PARSE_ERRORS = (McapError, struct.error, ValueError, OverflowError, MemoryError)


@dataclass(slots=True)
class Layout:
    """What a file holds and where.

    Attributes:
        counts: messages of each channel id, as the file promises them.
        damage: what is wrong with the file, in the order it was found.
        extras: attachments and metadata, in file order.
        marks: byte offset and name of each metadata record.
        data_end: byte offset of the record that ends the data, or None for a file that lacks it.
        checked: a CRC vouches for what it says of the extents; else they are all to be opened.
    """

    extents: list[Extent] = field(default_factory=list)
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    damage: list[InputError] = field(default_factory=list)
    extras: list[Record] = field(default_factory=list)
    marks: list[tuple[int, str]] = field(default_factory=list)
    data_end: int | None = None
    checked: bool = False

    def extents_of(self, channels: AbstractSet[int]) -> list[Extent]:
        """Return the extents that may hold messages of these channels, in file order."""
        return [
            extent
            for extent in self.extents
            if not self.checked
            or extent.channels is None
            or not extent.channels.isdisjoint(channels)
        ]


class Record(NamedTuple):
    """Where the body of one record lies: from `start` to `end`, exclusive."""

    opcode: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Content:
    """The records of one extent, uncompressed; `fault` says why they cannot be trusted."""

    data: memoryview
    place: str
    cut: bool
    fault: InputError | None

    def records(self) -> Iterator[Record]:
        """Yield every complete record.

        Raises:
            InputError: a record's length does not fit, unless the extent is known to be cut.
        """
        data, end = self.data, len(self.data)
        position = 0
        while position < end:
            has_head = end - position >= HEAD.size
            opcode, length = HEAD.unpack_from(data, position) if has_head else (0, 0)
            start = position + HEAD.size
            position = start + length
            shortest = MESSAGE.size if opcode == Opcode.MESSAGE else 0
            if opcode == 0 or position > end or length < shortest:
                if self.cut:
                    return
                what = (
                    f"expected a record within {end} bytes, found opcode {opcode}, {length} bytes"
                )
                raise InputError(f"{what} at byte {start - HEAD.size} of the chunk", self.place)
            yield Record(opcode, start, position)


def read_index(file: File, extent: Extent) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield (channel id, log times in ns) by the message indices behind a chunk.

    Raises:
        InputError: it has none, or they are damaged.
    """
    start = extent.offset + extent.length
    data = file.read_at(start, extent.index_bytes)
    if not data:
        raise InputError("expected message indices behind a chunk, found none", file.place(start))
    records = Content(memoryview(data), file.place(start), cut=False, fault=None).records()
    for opcode, begin, end in records:
        size = INDEX.unpack_from(data, begin)[1] if end - begin >= INDEX.size else 0
        body = begin + INDEX.size
        if opcode != Opcode.MESSAGE_INDEX or size % ENTRY_BYTES or body + size != end:
            what = f"expected a message index, found opcode {opcode} with {end - begin} bytes"
            raise InputError(what, file.place(start + begin))
        entries = np.frombuffer(data, "<i8", size // 8, body)
        yield INDEX.unpack_from(data, begin)[0], entries[::2]


def read_extent(file: File, extent: Extent) -> Content:
    """Read and uncompress one extent.

    Raises:
        InputError: the chunk cannot be uncompressed.
    """
    place = file.place(extent.offset)
    raw = memoryview(file.read_at(extent.offset, extent.length))
    if not extent.chunked:
        return Content(raw, place, extent.cut, None)
    if len(raw) < CHUNK.size:
        raise InputError(f"expected a chunk header, found {len(raw)} bytes", place)
    *_, size_bytes, crc, name_bytes = CHUNK.unpack_from(raw)
    start = CHUNK.size + name_bytes + 8
    name, packed = bytes(raw[CHUNK.size : start - 8]), raw[start:]
    if extent.cut and not name:
        return Content(packed, place, cut=True, fault=None)
    if extent.cut:
        raise InputError(f"the file ends inside a chunk compressed with {name!r}", place)
    if len(packed) != int.from_bytes(raw[start - 8 : start], "little"):
        raise InputError(
            f"expected a chunk that fills its record, found {len(packed)} bytes", place
        )
    data = _uncompress(file.zstd, name, packed, size_bytes, place)
    found = zlib.crc32(data) if crc else 0
    if found == crc:
        return Content(data, place, cut=False, fault=None)
    what = f"expected a chunk with CRC {crc:#010x}, found {found:#010x}"
    return Content(data, place, cut=False, fault=InputError(what, place))


def _uncompress(
    zstd: zstandard.ZstdDecompressor, name: bytes, packed: memoryview, size_bytes: int, place: str
) -> memoryview:
    if name not in {b"", b"zstd", b"lz4"}:
        raise InputError(f"expected compression zstd, lz4 or none, found {name!r}", place)
    data: bytes | memoryview = packed
    try:
        if name == b"zstd":
            promised = zstandard.get_frame_parameters(packed).content_size
            check_size(
                size_bytes if promised == zstandard.CONTENTSIZE_UNKNOWN else promised, size_bytes
            )
            data = zstd.decompress(packed, max_output_size=size_bytes)
        elif name == b"lz4":
            data = uncompress(lz4.frame.LZ4FrameDecompressor(), packed, size_bytes)
        check_size(len(data), size_bytes)
    except (zstandard.ZstdError, RuntimeError, ValueError, MemoryError) as error:
        raise InputError(f"a chunk of {len(packed)} bytes cannot be used: {error}", place) from None
    return memoryview(data)
