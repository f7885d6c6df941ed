"""From a log to one ordered stream of source messages, stamped in pipeline time.

* Order: (log time, order of the sources in the pipeline file, position in the file).
* Pipeline time zero is the log time of the first message that is delivered.
* Three clocks are kept apart: the sensor's stamp (`raw_header_ns`), the log's time, pipeline time.
  Mapped capture time is stamp plus the source's clock offset, which is declared, or taken from the
  first message where stamp and log differ by more than a second, and else 0. A stamp that cannot be
  one (zero, negative, a second's worth of nanoseconds) falls back to the log time.
* A camera image carries the latest CameraInfo logged at or before it; equal log time counts.

What is odd or lost is counted in `anomalies`, never passed over. Messages of one log time are held
together in memory; nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.errors import DamagedInputError, InputError, SpecError, did_you_mean
from avrt.logs.decode import CAMERA_INFO, CLOUD, COMPRESSED_IMAGE, IMAGE, READABLE, Decoder
from avrt.logs.raw import Anomalies, Anomaly, RawMessage
from avrt.payload import CameraInfo, Image
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from avrt.logs.decode import Decoded
    from avrt.logs.reader import LogReader
    from avrt.model.spec import SourceSpec
    from avrt.payload import PointCloud

OFFSET_NS_MAX = NS_PER_S
GAP_NS_MAX = 24 * 3600 * NS_PER_S
TYPES: Mapping[str, tuple[str, ...]] = {"camera": (COMPRESSED_IMAGE, IMAGE), "lidar": (CLOUD,)}


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One sensor message for the pipeline.

    Attributes:
        sequence: counts the delivered messages of the source from 0.
        log_ns, capture_ns: log time and mapped capture time, pipeline ns.
        raw_header_ns: the sensor's own stamp, as it was sent.
        raw: the message as the log has it, absolute log time included.
        raw_info: the CameraInfo that came since the source's last image, likewise, or None.
    """

    source: str
    sequence: int
    log_ns: int
    capture_ns: int
    raw_header_ns: int
    frame: str
    payload: PointCloud | Image
    raw: RawMessage
    raw_info: RawMessage | None = None


@dataclass(frozen=True, slots=True)
class TopicCount:
    """What became of one topic's messages: delivered, lost, or unread if the run was stopped."""

    type: str
    messages: int
    delivered: int
    lost: int
    unread: int


@dataclass(slots=True)
class _Source:
    spec: SourceSpec
    order: int
    delivered: int = 0
    offset_ns: int | None = None
    info: CameraInfo | None = None
    raw_info: RawMessage | None = None


class MergedLog:
    """The messages of a pipeline's sources, once, in order."""

    def __init__(self, reader: LogReader, sources: Sequence[SourceSpec]) -> None:
        """Check every source against the log.

        Raises:
            SpecError: a source names a topic that the log lacks, or one of another type.
        """
        self._reader = reader
        self._infos = reader.topics()
        self._decoder = Decoder()
        self._anomalies = Anomalies()
        self._delivered: dict[str, int] = {}
        self._undecodable: dict[str, int] = {}
        self._ended = False
        self._sources: dict[str, list[_Source]] = {}
        self._camera_infos: dict[str, list[_Source]] = {}
        for order, spec in enumerate(sources):
            self._add(_Source(spec, order, offset_ns=spec.clock_offset_ns))
        self._zero_ns: int | None = None
        self._stream = self._run()
        self._first = next(self._stream, None)

    @property
    def zero_ns(self) -> int:
        """Pipeline time zero in the log's clock; 0 for a log that delivers nothing."""
        return self._zero_ns or 0

    @property
    def anomalies(self) -> list[Anomaly]:
        """What was odd so far, times in pipeline ns."""
        found = [*self._reader.anomalies, *self._anomalies]
        return [a if a.at_ns is None else replace(a, at_ns=a.at_ns - self.zero_ns) for a in found]

    def topics(self) -> dict[str, TopicCount]:
        """Return the counts of every topic the pipeline reads; final when the stream has ended."""
        used = [*self._sources, *self._camera_infos]
        counts: dict[str, TopicCount] = {}
        for topic in dict.fromkeys(used):
            info, delivered = self._infos[topic], self._delivered.get(topic, 0)
            rest = max(0, info.messages - delivered)
            lost = rest if self._ended else self._undecodable.get(topic, 0)
            counts[topic] = TopicCount(info.type, info.messages, delivered, lost, rest - lost)
        return counts

    def __iter__(self) -> Iterator[SourceMessage]:
        """Yield every message; to be called once.

        Raises:
            DamagedInputError: after the last good message of a damaged log.
            InputError: the log is damaged and nothing in it is good.
        """
        if self._first is not None:
            yield self._first
        yield from self._stream

    def _add(self, source: _Source) -> None:
        spec = source.spec
        if spec.topic is None:
            what = "a source without a topic cannot be read from a log; add its 'topic'"
            raise SpecError(what, ("sources", spec.name))
        self._check(spec.name, "topic", spec.topic, TYPES.get(spec.type, READABLE[:3]))
        self._sources.setdefault(spec.topic, []).append(source)
        if spec.info_topic is not None:
            self._check(spec.name, "info_topic", spec.info_topic, (CAMERA_INFO,))
            self._camera_infos.setdefault(spec.info_topic, []).append(source)

    def _check(self, source: str, key: str, topic: str, types: tuple[str, ...]) -> None:
        place = ("sources", source, key)
        if topic not in self._infos:
            remedy = did_you_mean(topic, self._infos)
            raise SpecError(f"the log has no topic {topic!r}; {remedy}", place)
        found = self._infos[topic].type
        if found not in types:
            raise SpecError(f"expected a topic of {' or '.join(types)}, found {found}", place)

    def _run(self) -> Iterator[SourceMessage]:
        for group in self._groups():
            for raw in group:
                if raw.topic in self._camera_infos:
                    self._take_info(raw)
            ready: list[tuple[int, SourceMessage]] = []
            for raw in group:
                sources = self._sources.get(raw.topic, ())
                decoded = self._decode(raw) if sources else None
                if decoded is not None:
                    ready += [(s.order, self._stamp(s, raw, decoded)) for s in sources]
            ready.sort(key=lambda entry: entry[0])
            for _, message in ready:
                yield message

    def _groups(self) -> Iterator[list[RawMessage]]:
        """Yield the messages of one log time together, the last ones before damage is raised."""
        group: list[RawMessage] = []
        damage: InputError | None = None
        try:
            for raw in self._reader.messages({*self._sources, *self._camera_infos}):
                if group and raw.log_ns != group[0].log_ns:
                    yield group
                    before, group = group[0], []
                    self._check_gap(before, raw)
                group.append(raw)
        except DamagedInputError as error:
            damage = error
        if group:
            yield group
        self._ended = True
        if damage is not None:
            raise damage

    def _check_gap(self, before: RawMessage, after: RawMessage) -> None:
        """Refuse a hole that no drive has: timer stages would be released all through it."""
        gap_ns = after.log_ns - before.log_ns
        if gap_ns > GAP_NS_MAX:
            what = (
                f"log time jumps {format_ns(gap_ns)} ahead at {after.log_ns} ns; "
                f"expected less than {format_ns(GAP_NS_MAX)} between messages"
            )
            raise DamagedInputError(what, after.topic, sum(self._delivered.values()))

    def _decode(self, raw: RawMessage) -> Decoded | None:
        try:
            decoded = self._decoder.decode(raw)
        except InputError as error:
            self._anomalies.add("undecodable", raw.topic, raw.log_ns, str(error))
            self._undecodable[raw.topic] = self._undecodable.get(raw.topic, 0) + 1
            return None
        self._delivered[raw.topic] = self._delivered.get(raw.topic, 0) + 1
        return decoded

    def _take_info(self, raw: RawMessage) -> None:
        decoded = self._decode(raw)
        if decoded is not None and isinstance(decoded.payload, CameraInfo):
            for source in self._camera_infos[raw.topic]:
                source.info = decoded.payload
                source.raw_info = raw

    def _stamp(self, source: _Source, raw: RawMessage, decoded: Decoded) -> SourceMessage:
        if self._zero_ns is None:
            self._zero_ns = raw.log_ns
        payload = decoded.payload
        assert not isinstance(payload, CameraInfo)
        if isinstance(payload, Image) and source.spec.info_topic is not None:
            payload = replace(payload, info=source.info)
            if source.info is None:
                what = f"no {source.spec.info_topic} was logged at or before it"
                self._anomalies.add("info_missing", raw.topic, raw.log_ns, what)
        message = SourceMessage(
            source=source.spec.name,
            sequence=source.delivered,
            log_ns=raw.log_ns - self._zero_ns,
            capture_ns=self._capture_ns(source, raw, decoded) - self._zero_ns,
            raw_header_ns=decoded.header_ns,
            frame=source.spec.frame or decoded.frame,
            payload=payload,
            raw=raw,
            raw_info=source.raw_info,
        )
        source.raw_info = None
        source.delivered += 1
        return message

    def _capture_ns(self, source: _Source, raw: RawMessage, decoded: Decoded) -> int:
        if not decoded.stamp_valid:
            what = f"stamp {decoded.header_ns} ns is none; the log time stands in for it"
            self._anomalies.add("stamp_invalid", raw.topic, raw.log_ns, what)
            return raw.log_ns
        if source.offset_ns is None:
            ahead_ns = raw.log_ns - decoded.header_ns
            source.offset_ns = ahead_ns if abs(ahead_ns) > OFFSET_NS_MAX else 0
            if source.offset_ns:
                what = (
                    f"the log is {format_ns(ahead_ns)} ahead of the stamps; added to each of them"
                )
                self._anomalies.add("clock_offset", raw.topic, raw.log_ns, what)
        return decoded.header_ns + source.offset_ns
