"""The records of a ROS 1 bag (version 2.0), read and uncompressed.

Every length is checked against the file before it is used, so a damaged bag costs an `InputError`
that names the byte, never an allocation or an exception of a library.

Format: http://wiki.ros.org/Bags/Format/2.0 (magic; records of header length, header of fields
NAME=VALUE, data length, data).
"""

from __future__ import annotations

import bz2
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lz4.frame  # type: ignore[import-untyped]

from avrt.errors import InputError
from avrt.logs.extents import uncompress
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.logs.extents import Extent, File

BAG_MAGIC = b"#ROSBAG V2.0\n"
MESSAGE, BAG_HEADER, INDEX, CHUNK, CHUNK_INFO, CONNECTION = 2, 3, 4, 5, 6, 7
OPCODES = frozenset({MESSAGE, BAG_HEADER, INDEX, CHUNK, CHUNK_INFO, CONNECTION})
LENGTH = struct.Struct("<I")
TIME = struct.Struct("<II")
ENTRY = struct.Struct("<III")
COUNT = struct.Struct("<II")
HEAD_BYTES_MAX = 1 << 20
CHUNK_HEAD_BYTES = 64
CHUNK_FIELDS = frozenset({b"op", b"compression", b"size"})


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its fields, and where its data lies, `end` exclusive."""

    fields: Mapping[bytes, bytes]
    start: int
    end: int

    @property
    def opcode(self) -> int:
        value = self.fields.get(b"op", b"")
        return value[0] if value else 0

    def number(self, name: bytes) -> int:
        """Return a field that is a whole number; ValueError when it is missing."""
        if name not in self.fields:
            raise ValueError(f"no field {name.decode()}")
        return int.from_bytes(self.fields[name], "little")


def read_record(file: File, offset: int) -> Record:
    """Read a record's header; its data may reach beyond the end of the file.

    Raises:
        InputError: there is no record.
    """
    place = file.place(offset)
    length = file.read_at(offset, LENGTH.size)
    size = LENGTH.unpack(length)[0] if len(length) == LENGTH.size else 0
    if not 0 < size <= HEAD_BYTES_MAX:
        raise InputError(f"expected a record header, found one of {size} bytes", place)
    body = file.read_at(offset + LENGTH.size, size + LENGTH.size)
    if len(body) < size + LENGTH.size:
        raise InputError("expected a record header, found the end of the file", place)
    start = offset + len(length) + len(body)
    record = Record(
        parse_fields(body[:size], place), start, start + LENGTH.unpack_from(body, size)[0]
    )
    if record.opcode not in OPCODES:
        raise InputError(f"expected a record, found one of kind {record.opcode}", place)
    return record


def find_chunk(file: File, start: int) -> int | None:
    """Return where the next whole chunk is, or None when there is none."""
    for mark in file.find(b"op=" + bytes([CHUNK]), start):
        for offset in range(mark - 2 * LENGTH.size, max(start, mark - CHUNK_HEAD_BYTES) - 1, -1):
            try:
                record = read_record(file, offset)
            except InputError:
                continue
            if record.fields.keys() >= CHUNK_FIELDS and record.end <= file.size_bytes:
                return offset
    return None


def records(data: memoryview, place: str, *, cut: bool) -> Iterator[Record]:
    """Yield the records inside a chunk.

    Raises:
        InputError: one does not fit, unless the chunk is known to be cut.
    """
    position, end = 0, len(data)
    while position < end:
        try:
            size = LENGTH.unpack_from(data, position)[0]
            body = position + LENGTH.size + size
            start = body + LENGTH.size
            stop = start + LENGTH.unpack_from(data, body)[0]
        except struct.error:
            stop = end + 1
        if stop > end:
            if cut:
                return
            raise InputError(f"expected a record within {end} bytes at byte {position}", place)
        fields = parse_fields(bytes(data[position + LENGTH.size : body]), place)
        yield Record(fields, start, stop)
        position = stop


def parse_fields(data: bytes, place: str) -> dict[bytes, bytes]:
    """Return the NAME=VALUE fields of a header.

    Raises:
        InputError: they do not fill it.
    """
    fields: dict[bytes, bytes] = {}
    position = 0
    while position < len(data):
        start = position + LENGTH.size
        size = int.from_bytes(data[position:start], "little")
        name, equals, value = data[start : start + size].partition(b"=")
        if not equals or start + size > len(data):
            raise InputError(f"expected fields of {len(data)} bytes, found {data[:40]!r}", place)
        fields[name] = value
        position = start + size
    return fields


def read_chunk(file: File, extent: Extent) -> tuple[memoryview, str]:
    """Read and uncompress a chunk; return its bytes and its place.

    Raises:
        InputError: it cannot be uncompressed.
    """
    place = file.place(extent.offset)
    record = read_record(file, extent.offset)
    packed = file.read_at(record.start, extent.offset + extent.length - record.start)
    name = record.fields.get(b"compression", b"")
    size = number(record, b"size", place)
    if name == b"none":
        return memoryview(packed), place
    if extent.cut:
        raise InputError(f"the file ends inside a chunk compressed with {name!r}", place)
    try:
        if name == b"bz2":
            data = uncompress(bz2.BZ2Decompressor(), packed, size)
        elif name == b"lz4":
            data = uncompress(lz4.frame.LZ4FrameDecompressor(), packed, size)
        else:
            raise InputError(f"expected compression none, bz2 or lz4, found {name!r}", place)
    except (OSError, EOFError, RuntimeError, ValueError, MemoryError) as error:
        raise InputError(f"a chunk of {len(packed)} bytes cannot be used: {error}", place) from None
    return memoryview(data), place


def number(record: Record, name: bytes, place: str) -> int:
    try:
        return record.number(name)
    except ValueError as error:
        raise InputError(f"a record of kind {record.opcode} has {error}", place) from None


def time_ns(data: bytes, place: str) -> int:
    if len(data) != TIME.size:
        raise InputError(f"expected a time of {TIME.size} bytes, found {data!r}", place)
    sec, nsec = TIME.unpack(data)
    return int(sec) * NS_PER_S + int(nsec)
