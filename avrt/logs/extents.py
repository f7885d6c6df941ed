"""Logs that are made of chunks: every good message by log time, then one account of the damage.

A format says where the parts of its file lie and what is in one of them; the order, the counting
of what is lost and the account of what is damaged are the same for all. A part is opened when its
earliest message is due and forgotten when its last one is delivered, so memory holds only parts
that overlap in time. Payloads are views of their part. A part whose check fails is not delivered
at all: its messages count as lost. Runs that were put into one file (`mcap.runs`) come one after
another.

Every place of damage is told with the topics and log times that it costs. A strict reader stops
there: what comes earlier is delivered, nothing from the first log time that the place may hold.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
import zstandard

from avrt.errors import InputError
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo, tell_damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

BLOCK_BYTES = 1 << 20
CHUNK_BYTES_MAX = 1 << 32


class Place(str):
    """A place in a file, as a person reads it.

    Attributes:
        offset: in bytes from the beginning of the file.
    """

    __slots__ = ("offset",)
    offset: int

    def __new__(cls, path: Path, offset: int) -> Self:
        place = super().__new__(cls, f"{path}, byte {offset}")
        place.offset = offset
        return place


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

    def place(self, offset: int) -> Place:
        return Place(self.path, offset)

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
        index_bytes: size of the index of its messages, which follows it; 0 when unknown.
        part: which positions in it count, from and to (exclusive), or None for all.
        run: which of the runs that were put into one file it belongs to, from 0.
    """

    offset: int
    length: int
    start_ns: int
    end_ns: int
    channels: frozenset[int] | None = None
    chunked: bool = True
    cut: bool = False
    index_bytes: int = 0
    part: tuple[int, int] | None = None
    run: int = 0

    def holds(self, position: int) -> bool:
        """Whether a message at a position in it counts."""
        return self.part is None or self.part[0] <= position < self.part[1]


class Due(NamedTuple):
    """A message that waits for its turn; equal log times follow the order in the file."""

    run: int
    log_ns: int
    offset: int
    position: int
    message: RawMessage


def times_by_topic(
    parts: Iterable[tuple[str, NDArray[np.int64]]],
) -> dict[str, NDArray[np.int64]]:
    """Return the log times of each topic together and in order, given by topic and part."""
    found: dict[str, list[NDArray[np.int64]]] = {}
    for topic, times in parts:
        found.setdefault(topic, []).append(times)
    return {topic: np.sort(np.concatenate(times)) for topic, times in found.items()}


class ExtentReader(ABC):
    """One open file of extents."""

    def __init__(
        self, file: File, channels: Sequence[Channel], counts: Mapping[int, int], *, strict: bool
    ) -> None:
        """Take the file's channels and how many messages of each it promises."""
        self._file = file
        self._strict = strict
        self._stop: tuple[tuple[int, int], InputError] | None = None
        self._channels = {channel.id: channel for channel in channels}
        self._counts = counts
        self._damage: dict[str, InputError] = {}
        self._lost: set[int] = set()
        self._anomalies = Anomalies()

    @abstractmethod
    def extents(self, channels: frozenset[int] | None = None) -> list[Extent]:
        """Return the extents that may hold messages of these channels (of any, when None)."""

    @abstractmethod
    def index_of(self, extent: Extent) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (channel id, log times in ns) of an extent's messages by the index behind it.

        Raises:
            InputError: it has none, or one that is damaged.
        """

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
        return _span(extents)

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

    def log_times(self) -> dict[str, NDArray[np.int64]] | None:
        extents = {extent.offset: extent for extent in self.extents()}.values()
        try:
            return times_by_topic(
                (self._channels[id_].topic, times)
                for extent in extents
                for id_, times in self.index_of(extent)
                if id_ in self._channels
            )
        except InputError:
            return None

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = {
            id_: channel
            for id_, channel in self._channels.items()
            if names is None or channel.topic in names
        }
        seen = dict.fromkeys(wanted, 0)
        run, latest_ns = 0, -1
        for message in self._in_order(wanted):
            now = message.run, message.log_ns
            if self._strict and self._stop is not None and now >= self._stop[0]:
                tell_damage([self._stop[1]], sum(seen.values()), strict=True)
            seen[message.channel.id] += 1
            if message.run != run:
                run, latest_ns = message.run, -1
            if message.log_ns < latest_ns:
                what = f"expected a message at or after {latest_ns} ns, found {message.log_ns} ns"
                self._anomalies.add("log_order", message.topic, message.log_ns, what)
            latest_ns = max(latest_ns, message.log_ns)
            yield message
        self._count_lost(seen)
        tell_damage(self._damage.values(), sum(seen.values()), strict=self._strict)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def note_damage(self, error: InputError, at_ns: int | None = None) -> None:
        """Keep what is wrong at one place, and what that costs, to be told.

        `at_ns` is the log time of the one message that it concerns.
        """
        if error.place in self._damage:
            return
        run = 0
        if at_ns is None and isinstance(error.place, Place):
            run, at_ns, lost = self._lost_at(error.place.offset)
            error = InputError(f"{error.what}; {lost}", error.place)
        self._damage[error.place] = error
        self._anomalies.add("damaged", None, at_ns, str(error))
        if at_ns is not None and (self._stop is None or (run, at_ns) < self._stop[0]):
            self._stop = (run, at_ns), error

    def tell_runs(self) -> None:
        """Tell which runs were put into the file, if there are several."""
        count = 1 + max((extent.run for extent in self.extents()), default=0)
        if count > 1:
            spans = [_span([e for e in self.extents() if e.run == run]) for run in range(count)]
            listed = ", ".join(f"{start_ns} to {end_ns} ns" for start_ns, end_ns in spans)
            what = f"{count} runs were put into one log, and are played one after another: {listed}"
            self._anomalies.add("runs", None, spans[0][0], what, count)

    def _lost_at(self, offset: int) -> tuple[int, int | None, str]:
        """Return the run and the first log time that a damaged place may hold, and what is lost."""
        extents = self.extents()
        here = next((extent for extent in extents if extent.offset == offset), None)
        if here is not None:
            names = {self._channels[i].topic for i in here.channels or () if i in self._channels}
            topics = ", ".join(sorted(names)) or "unknown topics"
            what = f"there lie {topics} from {here.start_ns} to {here.end_ns} ns"
            return here.run, here.start_ns, what
        before = max(((e.run, e.end_ns) for e in extents if e.offset < offset), default=None)
        after = min(((e.run, e.start_ns) for e in extents if e.offset > offset), default=None)
        what = "messages of unknown topics may be lost"
        if after is None:
            what = "no message is left" if before is None else f"{what} after {before[1]} ns"
            return 0, None, what
        since = "" if before is None else f" after {before[1]} ns and"
        return (*after, f"{what}{since} before {after[1]} ns")

    def _in_order(self, wanted: Mapping[int, Channel]) -> Iterator[RawMessage]:
        """Merge the extents of each run by (log time, byte offset, place in the extent)."""
        extents = [
            ((extent.run, extent.start_ns), extent.offset, extent)
            for extent in self.extents(frozenset(wanted))
        ]
        heapify(extents)
        due: list[Due] = []
        while extents or due:
            while extents and (not due or extents[0][0] <= due[0][:2]):
                extent = heappop(extents)[2]
                for entry in self._open(extent, wanted):
                    heappush(due, entry)
            if due:
                yield heappop(due).message

    def _open(self, extent: Extent, wanted: Mapping[int, Channel]) -> list[Due]:
        """Return the messages of an extent; damage is noted and what precedes it is kept."""
        found: list[Due] = []
        try:
            for position, message in self.open_extent(extent, wanted):
                if extent.holds(position):
                    message.run = extent.run
                    found.append(Due(extent.run, message.log_ns, extent.offset, position, message))
        except InputError as error:
            self.note_damage(error)
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


def _span(extents: Sequence[Extent]) -> tuple[int, int]:
    return min(e.start_ns for e in extents), max(e.end_ns for e in extents)
