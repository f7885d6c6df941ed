"""The layout of an MCAP file: from its summary where that is right, else by walking the file.

A complete file's summary says where every chunk lies; it is believed after its CRC and each chunk's
header agree. A file that was cut off, or has no index, is walked from record to record. Where a
record is damaged, the walk goes on at the next chunk that the summary knows, or else at the next
bytes that can be nothing but the head of one: where bytes are missing, all places have moved.

A file promises what its summary has counted, or what the walk has found, whichever is more.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING

from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Metadata, Schema

from avrt.errors import InputError
from avrt.logs.extents import Extent, File
from avrt.logs.mcap.file import (
    CHUNK,
    ENTRY_BYTES,
    HEAD,
    INDEX,
    MAGIC,
    MESSAGE,
    PARSE_ERRORS,
    Layout,
    Record,
    read_extent,
)
from avrt.logs.mcap.summary import Summary, read_summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcap.records import ChunkIndex, Statistics

LENGTH = Struct("<Q")
RUN_BYTES_MAX = 1 << 20


def find_layout(file: File) -> Layout:
    """Find every message of the file; damage is noted in the layout, never raised."""
    summary, damage = _try_summary(file)
    if summary is not None and summary.statistics is not None and summary.is_complete():
        fault = _first_fault(file, summary)
        if fault is None:
            return _from_summary(summary, summary.statistics)
        damage.append(fault)
    return _walk(file, summary, damage)


def walk_layout(file: File) -> Layout:
    """Find every record of the file by walking it, whatever its summary says."""
    return _walk(file, *_try_summary(file))


def _try_summary(file: File) -> tuple[Summary | None, list[InputError]]:
    try:
        return read_summary(file), []
    except InputError as error:
        return None, [error]


def _walk(file: File, summary: Summary | None, damage: list[InputError]) -> Layout:
    summary = summary or Summary()
    walk = Walk(file, summary.chunks)
    walk.run()
    layout = walk.layout
    layout.channels.update(summary.channels)
    layout.schemas.update(summary.schemas)
    layout.damage.extend(damage)
    if summary.statistics is not None:
        for id_, count in summary.statistics.channel_message_counts.items():
            layout.counts[id_] = max(count, layout.counts.get(id_, 0))
    return layout


def _first_fault(file: File, summary: Summary) -> InputError | None:
    for offset, chunk in summary.chunks.items():
        expected = (int(Opcode.CHUNK), chunk.chunk_length - HEAD.size)
        head = file.read_at(offset, HEAD.size) if offset < file.size_bytes else b""
        found = HEAD.unpack(head) if len(head) == HEAD.size else None
        if found != expected or offset + chunk.chunk_length > file.size_bytes:
            what = f"expected a chunk (opcode, bytes) {expected}, found {found}"
            return InputError(what, file.place(offset))
    return None


def _from_summary(summary: Summary, statistics: Statistics) -> Layout:
    extents = [
        Extent(
            offset,
            chunk.chunk_length,
            chunk.message_start_time,
            chunk.message_end_time,
            frozenset(chunk.message_index_offsets) or None,
            index_bytes=chunk.message_index_length,
        )
        for offset, chunk in summary.chunks.items()
    ]
    counts = dict(statistics.channel_message_counts)
    marks = summary.marks
    return Layout(extents, summary.schemas, summary.channels, counts, marks=marks, checked=True)


class Walk:
    """Walk a file from record to record, with the chunks its summary knows as places to resume."""

    def __init__(self, file: File, known: Mapping[int, ChunkIndex]) -> None:
        self.layout = Layout()
        self._file = file
        self._known = {
            offset: chunk
            for offset, chunk in known.items()
            if CHUNK.size <= chunk.chunk_length <= file.size_bytes - offset
        }
        self._offsets = sorted(self._known)
        self._chunk: Extent | None = None
        self._indexed: dict[int, int] = {}

    def run(self) -> None:
        offset: int | None = len(MAGIC)
        while offset is not None:
            offset = self._step(offset)
        self._close_chunk()

    def _step(self, offset: int) -> int | None:
        """Take in the record at `offset` and return where the next one is; None at the end."""
        file = self._file
        head = file.read_at(offset, CHUNK.size)
        opcode, length = HEAD.unpack_from(head) if len(head) >= HEAD.size else (0, 0)
        end: int = offset + HEAD.size + length
        chunk = self._known.get(offset)
        if chunk is not None and (opcode, end) != (Opcode.CHUNK, offset + chunk.chunk_length):
            self._damaged(offset, f"a chunk of {chunk.chunk_length} bytes", opcode, length)
            opcode, end = Opcode.CHUNK, offset + chunk.chunk_length
        if opcode in {Opcode.DATA_END, Opcode.FOOTER} and end <= file.size_bytes:
            self.layout.data_end = offset
            return None
        following = bisect_right(self._offsets, offset)
        resume = self._offsets[following] if following < len(self._offsets) else None
        limit = file.size_bytes if resume is None else resume
        if opcode == 0 or end > limit:
            self._damaged(offset, f"a record that ends before byte {limit}", opcode, length)
            if resume is None:
                resume = self._find_chunk(offset + 1)
            if resume is None and opcode == Opcode.CHUNK and len(head) == CHUNK.size:
                self._open_chunk(offset, file.size_bytes - offset, head, cut=True)
            return resume
        self._take(opcode, offset, end, head)
        return end

    def _find_chunk(self, start: int) -> int | None:
        """Return where the next whole chunk is, by the lengths in its head, which have to agree."""
        for offset in self._file.find(bytes([Opcode.CHUNK]), start):
            head = self._file.read_at(offset, CHUNK.size + len(b"zstd") + LENGTH.size)
            if len(head) < CHUNK.size + LENGTH.size:
                return None
            _, length, *_, name_bytes = CHUNK.unpack_from(head)
            if name_bytes not in {0, len(b"lz4"), len(b"zstd")}:
                continue
            if len(head) < CHUNK.size + name_bytes + LENGTH.size:
                continue
            (packed_bytes,) = LENGTH.unpack_from(head, CHUNK.size + name_bytes)
            body = CHUNK.size - HEAD.size + name_bytes + LENGTH.size + packed_bytes
            if length == body and offset + HEAD.size + length <= self._file.size_bytes:
                return offset
        return None

    def _damaged(self, offset: int, expected: str, opcode: int, length: int) -> None:
        found = f"opcode {opcode} with {length} bytes" if opcode else "the end of the file or zeros"
        what = f"expected {expected}, found {found}"
        self.layout.damage.append(InputError(what, self._file.place(offset)))

    def _take(self, opcode: int, offset: int, end: int, head: bytes) -> None:
        if opcode != Opcode.MESSAGE_INDEX:
            self._close_chunk()
        if opcode == Opcode.CHUNK:
            self._open_chunk(offset, end - offset, head)
        elif opcode == Opcode.MESSAGE_INDEX:
            if self._chunk is None:
                self._damaged(offset, "a chunk before its message index", opcode, end - offset)
            channel, size_bytes = INDEX.unpack_from(head.ljust(CHUNK.size), HEAD.size)
            self._indexed[channel] = self._indexed.get(channel, 0) + size_bytes // ENTRY_BYTES
        elif opcode in {Opcode.SCHEMA, Opcode.CHANNEL}:
            body = self._file.read_at(offset + HEAD.size, end - offset - HEAD.size)
            self._define(opcode, body, self._file.place(offset))
        elif opcode == Opcode.MESSAGE:
            self._extend_run(offset, end, head)
        elif opcode in {Opcode.ATTACHMENT, Opcode.METADATA}:
            self.layout.extras.append(Record(opcode, offset + HEAD.size, end))
            if opcode == Opcode.METADATA:
                self._mark(offset, end)

    def _open_chunk(self, offset: int, length: int, head: bytes, *, cut: bool = False) -> None:
        self._close_chunk()
        if len(head) < CHUNK.size:
            return self._damaged(offset, "a chunk header", Opcode.CHUNK, length)
        _, _, start_ns, end_ns, *_ = CHUNK.unpack(head)
        self._chunk = Extent(offset, length, start_ns, end_ns, cut=cut)
        return None

    def _close_chunk(self) -> None:
        """Keep the chunk before; open it only if its message index names unknown channels."""
        chunk, indexed = self._chunk, self._indexed
        self._chunk, self._indexed = None, {}
        if chunk is None:
            return
        if not indexed or not indexed.keys() <= self.layout.channels.keys():
            found = self._scan(chunk)
            indexed = found or indexed
        self.layout.extents.append(replace(chunk, channels=frozenset(indexed) or None))
        for channel, count in indexed.items():
            self._count(channel, count)

    def _extend_run(self, offset: int, end: int, head: bytes) -> None:
        if end - offset < HEAD.size + MESSAGE.size:
            return self._damaged(offset, "a message", Opcode.MESSAGE, end - offset - HEAD.size)
        channel, _, log_ns, _ = MESSAGE.unpack_from(head, HEAD.size)
        self._count(channel, 1)
        extents = self.layout.extents
        last = extents[-1] if extents else None
        if (
            last is None
            or last.chunked
            or last.offset + last.length != offset
            or last.length > RUN_BYTES_MAX
        ):
            extents.append(Extent(offset, end - offset, log_ns, log_ns, chunked=False))
        else:
            extents[-1] = replace(
                last,
                length=end - last.offset,
                start_ns=min(last.start_ns, log_ns),
                end_ns=max(last.end_ns, log_ns),
            )
        return None

    def _mark(self, offset: int, end: int) -> None:
        body = self._file.read_at(offset + HEAD.size, end - offset - HEAD.size)
        try:
            self.layout.marks.append((offset, Metadata.read(ReadDataStream(BytesIO(body))).name))
        except PARSE_ERRORS as error:
            what = f"expected a metadata record, found {len(body)} bytes: {error}"
            self.layout.damage.append(InputError(what, self._file.place(offset)))

    def _count(self, channel: int, count: int) -> None:
        self.layout.counts[channel] = self.layout.counts.get(channel, 0) + count

    def _scan(self, chunk: Extent) -> dict[int, int]:
        """Count the messages of a chunk by channel; take its definitions if its check holds."""
        counts: dict[int, int] = {}
        try:
            content = read_extent(self._file, chunk)
            if content.fault is not None:
                self.layout.damage.append(content.fault)
            for opcode, start, end in content.records():
                if opcode == Opcode.MESSAGE:
                    channel = MESSAGE.unpack_from(content.data, start)[0]
                    counts[channel] = counts.get(channel, 0) + 1
                elif opcode in {Opcode.SCHEMA, Opcode.CHANNEL} and content.fault is None:
                    self._define(opcode, bytes(content.data[start:end]), content.place)
        except InputError as error:
            self.layout.damage.append(error)
        return counts

    def _define(self, opcode: int, body: bytes, place: str) -> None:
        try:
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(ReadDataStream(BytesIO(body)))
                self.layout.schemas[schema.id] = schema
            else:
                channel = Channel.read(ReadDataStream(BytesIO(body)))
                self.layout.channels[channel.id] = channel
        except PARSE_ERRORS as error:
            what = f"expected a schema or channel, found {len(body)} bytes: {error}"
            self.layout.damage.append(InputError(what, place))
