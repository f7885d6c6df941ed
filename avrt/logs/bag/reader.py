"""ROS 1 bags (version 2.0); `ros1` says how their messages become ROS 2's.

A bag is records of a header (fields NAME=VALUE) and data. Chunks hold connections and messages; the
index records behind a chunk tell its log times and counts. The file is walked from record to
record, whether or not it has a summary at its end: a recorder that was killed wrote none. Where a
record is damaged, the walk goes on at the next chunk that the summary knows, or else at the next
bytes that can be nothing but the head of one: where bytes are missing, all places have moved.

Format: http://wiki.ros.org/Bags/Format/2.0.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.bag.file import (
    BAG_HEADER,
    BAG_MAGIC,
    CHUNK,
    CHUNK_INFO,
    CONNECTION,
    COUNT,
    ENTRY,
    INDEX,
    MESSAGE,
    Record,
    find_chunk,
    number,
    parse_fields,
    read_chunk,
    read_record,
    records,
    time_ns,
)
from avrt.logs.extents import Extent, ExtentReader, File
from avrt.logs.raw import NODE, Channel, RawMessage, writers_told_apart
from avrt.logs.ros.ros1 import Ros1Converter
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray


@dataclass(slots=True)
class Layout:
    """What the walk found: chunks, and channels, nodes and promised messages by connection."""

    extents: list[Extent] = field(default_factory=list)
    channels: dict[int, Channel] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    damage: list[InputError] = field(default_factory=list)
    ros1: Ros1Converter = field(default_factory=Ros1Converter)


class BagReader(ExtentReader):
    """One open ROS 1 bag."""

    format = "ROS 1 bag"

    def __init__(self, file: File, *, strict: bool = False) -> None:
        self._layout = Walk(file).run()
        channels = writers_told_apart(self._layout.channels.values(), self._layout.nodes)
        super().__init__(file, list(channels), self._layout.counts, strict=strict)
        for error in self._layout.damage:
            self.note_damage(error)

    def extents(self, channels: frozenset[int] | None = None) -> list[Extent]:
        return [
            extent
            for extent in self._layout.extents
            if channels is None or extent.channels is None or extent.channels & channels
        ]

    def index_of(self, extent: Extent) -> Iterator[tuple[int, NDArray[np.int64]]]:
        offset = extent.offset + extent.length
        while offset < self._file.size_bytes:
            record = read_record(self._file, offset)
            if record.opcode != INDEX:
                return
            body = self._file.read_at(record.start, record.end - record.start)
            times = np.array(_index_times(body), np.int64)
            yield number(record, b"conn", self._file.place(offset)), times
            offset = record.end

    def open_extent(
        self, extent: Extent, wanted: Mapping[int, Channel]
    ) -> Iterator[tuple[int, RawMessage]]:
        data, place = read_chunk(self._file, extent)
        for record in records(data, place, cut=extent.cut):
            if record.opcode != MESSAGE:
                continue
            id_ = number(record, b"conn", place)
            log_ns = time_ns(record.fields.get(b"time", b""), place)
            if id_ in wanted:
                raw = data[record.start : record.end]
                message = RawMessage(wanted[id_], log_ns, log_ns, 0, raw)
                self._layout.ros1.convert(message, self._anomalies)
                yield record.start, message
            elif id_ not in self._layout.channels:
                what = f"expected a message of a known connection, found connection {id_}"
                self.note_damage(InputError(what, place), log_ns)


class Walk:
    """Walk a bag from record to record, with the chunks its summary knows as places to resume."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._layout = Layout()
        self._chunk: Extent | None = None
        self._indexed: dict[int, int] = {}
        self._known: dict[int, dict[int, int]] = {}
        self._offsets: list[int] = []
        self._finished = False

    def run(self) -> Layout:
        offset: int | None = len(BAG_MAGIC)
        while offset is not None and offset < self._file.size_bytes:
            offset = self._step(offset)
        self._close_chunk()
        if not self._finished:
            what = "the recorder did not finish the bag: it has no index"
            self._damaged(self._file.size_bytes, what)
        for lost in self._known.keys() - {extent.offset for extent in self._layout.extents}:
            self._promise(self._known[lost])
        return self._layout

    def _step(self, offset: int) -> int | None:
        """Take in the record at `offset` and return where the next one is; None at the end."""
        following = bisect_right(self._offsets, offset)
        resume = self._offsets[following] if following < len(self._offsets) else None
        limit = self._file.size_bytes if resume is None else resume
        try:
            record = read_record(self._file, offset)
        except InputError as error:
            self._layout.damage.append(error)
            return find_chunk(self._file, offset + 1) if resume is None else resume
        cut = record.end > limit
        if cut:
            what = f"expected a record that ends before byte {limit}, found one to {record.end}"
            self._damaged(offset, what)
            if resume is None:
                resume = find_chunk(self._file, offset + 1)
                limit = limit if resume is None else resume
        if record.opcode == CHUNK:
            self._open_chunk(offset, min(record.end, limit) - offset, cut=cut)
        elif not cut:
            self._take(record, offset)
        return resume if cut else record.end

    def _take(self, record: Record, offset: int) -> None:
        try:
            if record.opcode == INDEX:
                self._take_index(record)
            elif record.opcode == CONNECTION:
                self._close_chunk()
                body = self._file.read_at(record.start, record.end - record.start)
                self._connect(record, memoryview(body), self._file.place(offset))
            elif record.opcode == BAG_HEADER:
                self._take_header(record)
        except InputError as error:
            self._layout.damage.append(error)
        except (ValueError, struct.error) as error:
            self._damaged(offset, f"expected a whole record of kind {record.opcode}: {error}")

    def _take_header(self, record: Record) -> None:
        """Read the summary that the header points to, as far as it is there."""
        if record.fields.get(b"encryptor"):
            raise InputError("the bag is encrypted; decrypt it first", str(self._file.path))
        offset = record.number(b"index_pos")
        self._finished = offset > 0
        chunks = record.number(b"chunk_count")
        try:
            self._read_summary(offset)
        finally:
            self._offsets = sorted(self._known)
        if self._finished and len(self._known) != chunks:
            raise ValueError(f"{chunks} chunks promised, {len(self._known)} told of")

    def _read_summary(self, offset: int) -> None:
        while 0 < offset < self._file.size_bytes:
            item = read_record(self._file, offset)
            body = self._file.read_at(item.start, item.end - item.start)
            if item.opcode == CONNECTION:
                self._connect(item, memoryview(body), self._file.place(offset))
            elif item.opcode == CHUNK_INFO:
                self._known[item.number(b"chunk_pos")] = dict(COUNT.iter_unpack(body))
            offset = item.end

    def _take_index(self, record: Record) -> None:
        """Learn the log times and counts of the chunk before from one of its indices."""
        chunk = self._chunk
        if chunk is None:
            raise ValueError("no chunk before it")
        id_, count = record.number(b"conn"), record.number(b"count")
        body = self._file.read_at(record.start, record.end - record.start)
        times = _index_times(body)
        if len(times) != count:
            raise ValueError(f"{count} entries promised, {len(times)} there")
        self._indexed[id_] = self._indexed.get(id_, 0) + count
        first = not chunk.end_ns
        self._chunk = _spanning(chunk, times if first else [*times, chunk.start_ns, chunk.end_ns])

    def _open_chunk(self, offset: int, length: int, *, cut: bool) -> None:
        self._close_chunk()
        self._chunk = Extent(offset, length, 0, 0, cut=cut)

    def _close_chunk(self) -> None:
        """Keep the chunk before; open it if its index is missing or names new connections."""
        chunk, indexed = self._chunk, self._indexed
        self._chunk, self._indexed = None, {}
        if chunk is None:
            return
        if not indexed or not indexed.keys() <= self._layout.channels.keys():
            chunk, found = self._scan(chunk)
            indexed = indexed or found
        self._layout.extents.append(replace(chunk, channels=frozenset(indexed) or None))
        self._promise(indexed)

    def _promise(self, counts: Mapping[int, int]) -> None:
        for id_, count in counts.items():
            self._layout.counts[id_] = self._layout.counts.get(id_, 0) + count

    def _scan(self, chunk: Extent) -> tuple[Extent, dict[int, int]]:
        """Take connections out of a chunk; return its span and its messages by connection."""
        counts: dict[int, int] = {}
        times: list[int] = []
        try:
            data, place = read_chunk(self._file, chunk)
            for record in records(data, place, cut=chunk.cut):
                if record.opcode == MESSAGE:
                    id_ = number(record, b"conn", place)
                    times.append(time_ns(record.fields.get(b"time", b""), place))
                    counts[id_] = counts.get(id_, 0) + 1
                elif record.opcode == CONNECTION:
                    self._connect(record, data[record.start : record.end], place)
        except InputError as error:
            self._layout.damage.append(error)
        return _spanning(chunk, times), counts

    def _connect(self, record: Record, body: memoryview, place: str) -> None:
        id_ = number(record, b"conn", place)
        if id_ not in self._layout.channels:
            fields = parse_fields(bytes(body), place)
            topic, kind = (
                given.get(name, b"").decode("utf-8", "replace")
                for given, name in ((record.fields, b"topic"), (fields, b"type"))
            )
            definition = fields.get(b"message_definition", b"")
            self._layout.nodes[id_] = fields.get(NODE.encode(), b"").decode("utf-8", "replace")
            self._layout.channels[id_] = self._layout.ros1.channel(id_, topic, kind, definition)

    def _damaged(self, offset: int, what: str) -> None:
        self._layout.damage.append(InputError(what, self._file.place(offset)))


def _index_times(body: bytes) -> list[int]:
    """Return the log times of an index record."""
    return [sec * NS_PER_S + nsec for sec, nsec, _ in ENTRY.iter_unpack(body)]


def _spanning(chunk: Extent, times: list[int]) -> Extent:
    return replace(chunk, start_ns=min(times), end_ns=max(times)) if times else chunk
