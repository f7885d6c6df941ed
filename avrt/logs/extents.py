"""Logs that are made of chunks: every good message by log time, then one account of the damage.

A format says where the parts of its file lie and what is in one of them; the order, the counting
of what is lost and the account of what is damaged are the same for all. A part is opened when its
earliest message is due and forgotten when its last one is delivered, so memory holds only parts
that overlap in time. Payloads are views of their part. A part whose check fails is not delivered
at all: its messages count as lost. Runs that lie one behind the other over the same times (`runs`)
are played one after the other; a file that may hold some is read through once before.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import zstandard

from avrt.errors import InputError
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo, tell_damage
from avrt.logs.runs import beginnings, may_begin_anew

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

BLOCK_BYTES = 1 << 20
CHUNK_BYTES_MAX = 1 << 32
PAST_ALL = (1 << 63, 0)


class File:
    """A file read by position, and the decompressor for its chunks.

    A short read means that the file ends there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.zstd = zstandard.ZstdDecompressor()
        if path.exists() and not path.is_file():
            raise InputError("expected a file, found something else", str(path))
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be opened: {error.strerror}", str(path)) from None
        self.size_bytes = os.fstat(self._file.fileno()).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        """Read what the file has of these bytes; no length makes it reserve more than that."""
        length = min(length, self.size_bytes - offset)
        if length <= 0:
            return b""
        try:
            return os.pread(self._file.fileno(), length, offset)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", self.place(offset)) from None

    def find(self, pattern: bytes, start: int) -> Iterator[int]:
        """Yield where a pattern stands, from `start` on."""
        overlap = len(pattern) - 1
        for offset in range(start, self.size_bytes, BLOCK_BYTES):
            block = self.read_at(offset, BLOCK_BYTES + overlap)
            position = block.find(pattern)
            while position >= 0:
                yield offset + position
                position = block.find(pattern, position + 1)

    def place(self, offset: int) -> str:
        return f"{self.path}, byte {offset}"

    def close(self) -> None:
        self._file.close()


class Decompressor(Protocol):
    """One frame of bz2 or lz4 while it is uncompressed."""

    @property
    def eof(self) -> bool:
        """Whether the end of the frame was reached."""

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


def uncompress(decompressor: Decompressor, packed: bytes | memoryview, size_bytes: int) -> bytes:
    """Uncompress a frame that is said to hold so many bytes; what holds more stays small.

    Raises:
        ValueError: it holds another number of bytes.
    """
    check_size(size_bytes, size_bytes)
    data = decompressor.decompress(packed, max_length=size_bytes + 1)
    if len(data) <= size_bytes and not decompressor.eof:
        raise ValueError("it ends before its end mark")
    check_size(len(data), size_bytes)
    return data


def check_size(found: int, expected: int) -> None:
    """Raise ValueError unless a chunk has its size, and that is one that memory can hold."""
    if found != expected or expected > CHUNK_BYTES_MAX:
        raise ValueError(f"expected {expected} bytes (at most {CHUNK_BYTES_MAX}), found {found}")


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of the file that holds messages: one chunk, or a run of messages outside of chunks.

    Attributes:
        offset, length: position and size in bytes, with its record header.
        start_ns, end_ns: earliest and latest log time in it, inclusive.
        channels: ids of the channels it is said to have messages of, or None when unknown.
        chunked: it is a chunk record.
        cut: the file ends inside it.
    """

    offset: int
    length: int
    start_ns: int
    end_ns: int
    channels: frozenset[int] | None = None
    chunked: bool = True
    cut: bool = False

    @property
    def end_offset(self) -> int:
        return self.offset + self.length


class Due(NamedTuple):
    """A message that waits for its turn; equal log times follow the order in the file."""

    log_ns: int
    offset: int
    position: int
    message: RawMessage


class ExtentReader(ABC):
    """One open file of extents."""

    def __init__(self, file: File, channels: Sequence[Channel], counts: Mapping[int, int]) -> None:
        """Take the file's channels and how many messages of each it promises."""
        self._file = file
        self._channels = {channel.id: channel for channel in channels}
        self._counts = counts
        self._damage: dict[str, InputError] = {}
        self._lost: set[int] = set()
        self._anomalies = Anomalies()

    @abstractmethod
    def extents(self, channels: frozenset[int] | None = None) -> list[Extent]:
        """Return the extents that may hold messages of these channels (of any, when None)."""

    @abstractmethod
    def open_extent(
        self, extent: Extent, wanted: Mapping[int, Channel]
    ) -> Iterator[tuple[int, RawMessage]]:
        """Yield (position, message) of the wanted channels in an extent.

        Raises:
            InputError: the extent is damaged; what was yielded before is good.
        """

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Earliest and latest log time that the file promises, inclusive."""
        extents = self.extents()
        if not extents:
            return None
        return min(e.start_ns for e in extents), max(e.end_ns for e in extents)

    def topics(self) -> dict[str, TopicInfo]:
        known: dict[str, TopicInfo] = {}
        for channel in self._channels.values():
            before = known[channel.topic].messages if channel.topic in known else 0
            known[channel.topic] = TopicInfo(
                channel.type,
                before + self._counts.get(channel.id, 0),
                channel.encoding,
                channel.schema_encoding,
                channel.schema.decode("utf-8", "replace"),
            )
        return known

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = {
            id_: channel
            for id_, channel in self._channels.items()
            if names is None or channel.topic in names
        }
        seen = dict.fromkeys(wanted, 0)
        latest_ns, run = -1, 0
        for message in self._in_order(wanted):
            seen[message.channel.id] += 1
            if message.run > run:
                what = f"log time goes back from {latest_ns} ns: another run, played behind it"
                self._anomalies.add("loop", None, message.log_ns, what)
                latest_ns, run = -1, message.run
            if message.log_ns < latest_ns:
                what = f"expected a message at or after {latest_ns} ns, found {message.log_ns} ns"
                self._anomalies.add("log_order", message.topic, message.log_ns, what)
            latest_ns = max(latest_ns, message.log_ns)
            yield message
        self._count_lost(seen)
        tell_damage(self._damage.values(), sum(seen.values()))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def note_damage(self, error: InputError, at_ns: int | None = None) -> None:
        """Keep what is wrong at one place; it is told when everything good was delivered."""
        if error.place not in self._damage:
            self._damage[error.place] = error
            self._anomalies.add("damaged", None, at_ns, str(error))

    def _in_order(self, wanted: Mapping[int, Channel]) -> Iterator[RawMessage]:
        """Yield one run after the other, each by (log time, byte offset, place in the extent)."""
        extents = sorted(self.extents(frozenset(wanted)), key=lambda extent: extent.offset)
        begins = [(0, 0), *self._beginnings(extents, wanted)]
        for run, (first, end) in enumerate(zip(begins, [*begins[1:], PAST_ALL], strict=True)):
            of_run = [one for one in extents if one.end_offset > first[0] and one.offset <= end[0]]
            for message in self._merged(of_run, wanted, first, end):
                message.run = run
                yield message

    def _beginnings(
        self, extents: Sequence[Extent], wanted: Mapping[int, Channel]
    ) -> list[tuple[int, int]]:
        """Return where runs after the first begin; what is wrong there is told when it is due."""
        if not may_begin_anew(extents):
            return []
        kept = self._damage, self._anomalies
        self._damage, self._anomalies = {}, Anomalies()
        try:
            return beginnings(due for extent in extents for due in self._open(extent, wanted))
        finally:
            self._damage, self._anomalies = kept

    def _merged(
        self,
        extents: Sequence[Extent],
        wanted: Mapping[int, Channel],
        first: tuple[int, int],
        end: tuple[int, int],
    ) -> Iterator[RawMessage]:
        """Merge the part of the extents from one place in the file to another, exclusive."""
        coming = [(extent.start_ns, extent.offset, extent) for extent in extents]
        heapify(coming)
        due: list[Due] = []
        while coming or due:
            while coming and (not due or coming[0][0] <= due[0].log_ns):
                extent = heappop(coming)[2]
                for entry in self._open(extent, wanted):
                    if first <= (entry.offset, entry.position) < end:
                        heappush(due, entry)
            if due:
                yield heappop(due).message

    def _open(self, extent: Extent, wanted: Mapping[int, Channel]) -> list[Due]:
        """Return the messages of an extent; damage is noted and what precedes it is kept."""
        found: list[Due] = []
        try:
            for position, message in self.open_extent(extent, wanted):
                found.append(Due(message.log_ns, extent.offset, position, message))
        except InputError as error:
            self.note_damage(error, extent.start_ns)
        return found

    def _count_lost(self, seen: Mapping[int, int]) -> None:
        """Compare what was found with what the file promises, topic by topic."""
        for id_, found in seen.items():
            promised = self._counts.get(id_, 0)
            topic = self._channels[id_].topic
            if found == promised or id_ in self._lost:
                continue
            what = f"expected {promised} messages on {topic}, found {found}"
            kind = "lost" if found < promised else "miscounted"
            self._lost.add(id_)
            self._anomalies.add(kind, topic, None, what, abs(promised - found))
            if not self._damage:
                self.note_damage(InputError(what, str(self._file.path)))
