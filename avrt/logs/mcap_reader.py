"""MCAP logs: every good message by log time, then one account of what is damaged.

Chunks are opened when their earliest message is due and forgotten when their last one is delivered,
so memory holds only chunks that overlap in time. Payloads are views of their chunk. A chunk whose
CRC is wrong is not delivered at all: its messages count as lost.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Self

from mcap.opcode import Opcode

from avrt.errors import DamagedInputError, InputError
from avrt.logs.mcap_file import MESSAGE, Content, Extent, File, read_extent
from avrt.logs.mcap_layout import find_layout
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Due = tuple[int, int, int, RawMessage]


class McapReader:
    """One open MCAP file."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._layout = find_layout(file)
        self._channels = {id_: self._channel(id_) for id_ in self._layout.channels}
        self._damage = {error.place: error for error in self._layout.damage}
        self._lost: set[str] = set()
        self._anomalies = Anomalies()
        for error in self._layout.damage:
            self._anomalies.add("damaged", None, None, str(error))

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Earliest and latest log time that the file promises, inclusive."""
        extents = self._layout.extents
        if not extents:
            return None
        return min(e.start_ns for e in extents), max(e.end_ns for e in extents)

    def topics(self) -> dict[str, TopicInfo]:
        known: dict[str, TopicInfo] = {}
        for channel in self._channels.values():
            before = known[channel.topic].messages if channel.topic in known else 0
            known[channel.topic] = TopicInfo(
                channel.type,
                before + self._layout.counts.get(channel.id, 0),
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
        latest_ns = -1
        for message in self._in_order(wanted):
            seen[message.channel.id] += 1
            if message.log_ns < latest_ns:
                what = f"expected a message at or after {latest_ns} ns, found {message.log_ns} ns"
                self._anomalies.add("log_order", message.topic, message.log_ns, what)
            latest_ns = max(latest_ns, message.log_ns)
            yield message
        self._count_lost(seen)
        self._tell_damage(sum(seen.values()))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _in_order(self, wanted: Mapping[int, Channel]) -> Iterator[RawMessage]:
        """Merge the extents by (log time, byte offset, place in the extent)."""
        extents = [
            (extent.start_ns, extent.offset, extent)
            for extent in self._layout.extents_of(wanted.keys())
        ]
        heapify(extents)
        due: list[Due] = []
        while extents or due:
            while extents and (not due or extents[0][0] <= due[0][0]):
                extent = heappop(extents)[2]
                for entry in self._open(extent, wanted):
                    heappush(due, entry)
            if due:
                yield heappop(due)[3]

    def _open(self, extent: Extent, wanted: Mapping[int, Channel]) -> list[Due]:
        """Return the messages of an extent; damage is noted and what precedes it is kept."""
        found: list[Due] = []
        try:
            content = read_extent(self._file, extent)
            if content.fault is not None:
                raise content.fault
            self._collect(content, extent.offset, wanted, found)
        except InputError as error:
            self._note(error, extent.start_ns)
        return found

    def _collect(
        self, content: Content, offset: int, wanted: Mapping[int, Channel], found: list[Due]
    ) -> None:
        data = content.data
        for opcode, start, end in content.records():
            if opcode != Opcode.MESSAGE:
                continue
            id_, sequence, log_ns, publish_ns = MESSAGE.unpack_from(data, start)
            channel = wanted.get(id_)
            if channel is not None:
                payload = data[start + MESSAGE.size : end]
                message = RawMessage(channel, log_ns, publish_ns, sequence, payload)
                found.append((log_ns, offset, start, message))
            elif id_ not in self._channels:
                what = f"expected a message of a known channel, found channel {id_}"
                self._note(InputError(what, content.place), log_ns)

    def _note(self, error: InputError, at_ns: int | None) -> None:
        if error.place not in self._damage:
            self._damage[error.place] = error
            self._anomalies.add("damaged", None, at_ns, str(error))

    def _count_lost(self, seen: Mapping[int, int]) -> None:
        """Compare what was found with what the file promises, topic by topic."""
        for id_, found in seen.items():
            promised = self._layout.counts.get(id_, 0)
            topic = self._channels[id_].topic
            if found == promised or topic in self._lost:
                continue
            what = f"expected {promised} messages on {topic}, found {found}"
            self._lost.add(topic)
            self._anomalies.add("lost", topic, None, what, max(0, promised - found))
            if not self._damage:
                self._note(InputError(what, str(self._file.path)), None)

    def _tell_damage(self, good_messages: int) -> None:
        if not self._damage:
            return
        first, *others = self._damage.values()
        more = f"; and {len(others)} more" if others else ""
        kind = DamagedInputError if good_messages else InputError
        raise kind(f"{first.what}{more}", first.place, good_messages)

    def _channel(self, id_: int) -> Channel:
        channel = self._layout.channels[id_]
        schema = self._layout.schemas.get(channel.schema_id)
        if schema is None:
            return Channel(id_, channel.topic, "", channel.message_encoding)
        return Channel(
            id_,
            channel.topic,
            schema.name,
            channel.message_encoding,
            schema.encoding,
            schema.data,
        )
