"""The summary section at the end of an MCAP file: believed only where its CRC holds."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING

from mcap.opcode import Opcode
from mcap.records import Channel, ChunkIndex, MetadataIndex, Schema, Statistics
from mcap.stream_reader import StreamReader

from avrt.errors import InputError
from avrt.logs.mcap.file import HEAD, MAGIC, PARSE_ERRORS

if TYPE_CHECKING:
    from avrt.logs.extents import File

FOOTER = Struct("<BQQQI")


@dataclass(slots=True)
class Summary:
    """The summary section of a file; `chunks` by their byte offset, `marks` as in `Layout`."""

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    chunks: dict[int, ChunkIndex] = field(default_factory=dict)
    statistics: Statistics | None = None
    marks: list[tuple[int, str]] = field(default_factory=list)

    def is_complete(self) -> bool:
        """Whether it alone says where every message is."""
        statistics = self.statistics
        return (
            statistics is not None
            and statistics.chunk_count == len(self.chunks)
            and (statistics.message_count == 0 or statistics.chunk_count > 0)
            and statistics.channel_message_counts.keys() <= self.channels.keys()
            and all(c.schema_id in {0, *self.schemas} for c in self.channels.values())
        )


def read_summary(file: File) -> Summary | None:
    """Return the summary section, or None when the file was written without one.

    Raises:
        InputError: the end of the file is missing, or the section is damaged.
    """
    tail = file.size_bytes - len(MAGIC) - FOOTER.size
    foot = file.read_at(max(0, tail), FOOTER.size + len(MAGIC))
    place = file.place(max(0, tail))
    if tail < len(MAGIC) or not foot.endswith(MAGIC):
        raise InputError(f"expected a footer and {MAGIC!r} at the end, found {foot[-8:]!r}", place)
    opcode, length, start, _, crc = FOOTER.unpack_from(foot)
    if (opcode, length) != (Opcode.FOOTER, FOOTER.size - HEAD.size):
        raise InputError(f"expected a footer, found opcode {opcode} with {length} bytes", place)
    if start == 0:
        return None
    if not len(MAGIC) <= start <= tail:
        raise InputError(f"expected the summary before byte {tail}, found it at {start}", place)
    body = file.read_at(start, tail - start)
    found = zlib.crc32(foot[: FOOTER.size - 4], zlib.crc32(body))
    if crc not in {0, found}:
        raise InputError(f"expected a summary with CRC {crc:#010x}, found {found:#010x}", place)
    try:
        return _parse_summary(body + foot)
    except PARSE_ERRORS as error:
        raise InputError(f"the summary cannot be parsed: {error}", file.place(start)) from None


def _parse_summary(data: bytes) -> Summary:
    summary = Summary()
    reader = StreamReader(BytesIO(data), skip_magic=True, record_size_limit=len(data))
    for record in reader.records:
        match record:
            case Schema():
                summary.schemas[record.id] = record
            case Channel():
                summary.channels[record.id] = record
            case ChunkIndex():
                summary.chunks[record.chunk_start_offset] = record
            case MetadataIndex():
                summary.marks.append((record.offset, record.name))
            case Statistics():
                summary.statistics = record
            case _:
                pass
    return summary
