"""From a log to one ordered stream of source messages, stamped in pipeline time.

* Order: (log time, order of the sources in the pipeline file, position in the file).
* Pipeline time zero is the log time of the first message that is delivered.
* Three clocks are kept apart: the sensor's stamp (`raw_header_ns`), the log's time, pipeline time.
  `clock_map` says how a stamp becomes mapped capture time. A stamp that cannot be one (zero,
  negative, a second's worth of nanoseconds) falls back to the log time.
* A camera image carries the latest CameraInfo logged at or before it; equal log time counts.
* A log can be played several times in a row. Each pass begins one usual step after the end of the
  one before, in a new epoch, with what was odd told in the first pass only. Runs that were put into
  one log are played one after another likewise.
* A pass may begin some time after the log does. What is told once for all that follows, mountings
  and camera models, counts from before, too.

What is odd or lost is counted in `anomalies`, never passed over; `log_time` says which log times
are none. Messages of one log time are held
together in memory; nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from avrt.errors import DamagedInputError, InputError, SpecError, did_you_mean
from avrt.logs.decode import INFO, Payload, decode, why_unreadable
from avrt.logs.log_source import LogSource
from avrt.logs.log_time import simultaneous
from avrt.logs.passes import Pass
from avrt.logs.raw import Anomalies, Anomaly, RawMessage, refusal
from avrt.payload import CameraInfo, Image
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from avrt.logs.clock_map import ClockMap
    from avrt.logs.decode import Decoded
    from avrt.logs.reader import LogReader
    from avrt.model.spec import SourceSpec

TOPICS_SHOWN = 10
RECTIFIED = "rect"  # in the name of a topic of rectified images, by ROS's convention


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One sensor message for the pipeline.

    Attributes:
        sequence: counts the delivered messages of the source from 0.
        log_ns, capture_ns: log time and mapped capture time, pipeline ns.
        raw_header_ns: the sensor's own stamp, as it was sent.
        raw: the message as the log has it, absolute log time included; moved into its pass.
        raw_info: the CameraInfo that came since the source's last image, likewise, or None.
        epoch: how often the source's clock had begun anew.
        jumped: its clock jumped against the log's just before.
        said_frame: the frame that the message itself names; `frame` is the source's.
    """

    source: str
    sequence: int
    log_ns: int
    capture_ns: int
    raw_header_ns: int
    frame: str
    payload: Payload
    raw: RawMessage
    raw_info: RawMessage | None = None
    epoch: int = 0
    jumped: bool = False
    said_frame: str = ""


@dataclass(frozen=True, slots=True)
class TopicCount:
    """What became of one topic's messages: delivered, lost, or unread outside of the run."""

    type: str
    messages: int
    delivered: int
    lost: int
    unread: int


class MergedLog:
    """The messages of a pipeline's sources, `loops` times over, in order."""

    def __init__(
        self,
        reader: LogReader,
        sources: Sequence[SourceSpec],
        loops: int = 1,
        *,
        start_ns: int = 0,
        strict: Path | None = None,
    ) -> None:
        """Check every source against the log.

        Args:
            reader: of an open log.
            sources: of the pipeline.
            loops: how often it is played.
            start_ns: how long after the log's first message each pass begins.
            strict: the log to name; the first message that cannot be used ends a strict stream.

        Raises:
            SpecError: a source names a topic that the log lacks, or one that it cannot read; or
                nothing of them comes after the start.
            InputError: the same of a damaged log, which may have had it.
            DamagedInputError: the log is strict and damaged before its first message.
        """
        self._reader = reader
        self._strict = strict
        self._start_ns = start_ns
        self._from_ns: int | None = None
        self._left_out: dict[str, int] = {}
        self._loops = loops
        self._infos = reader.topics()
        self._anomalies = Anomalies()
        self._found_by_reader: list[Anomaly] | None = None
        self._delivered: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._ended = False
        self._sources: dict[str, list[LogSource]] = {}
        self._camera_infos: dict[str, list[LogSource]] = {}
        for order, spec in enumerate(sources):
            self._add(LogSource(spec, order))
        self._zero_ns: int | None = None
        self._begins_ns: int | None = None
        self._pass = Pass()
        self._begun = 1
        self._stream = self._run()
        self._first = next(self._stream, None)
        if self._begins_ns is None and start_ns:
            what = f"nothing of the sources' topics comes later than {format_ns(start_ns)}"
            raise SpecError(what, ("start",), ", ".join(self._sources))

    @property
    def zero_ns(self) -> int:
        """Pipeline time zero in the log's clock; 0 for a log that delivers nothing."""
        return self._zero_ns or 0

    @property
    def anomalies(self) -> list[Anomaly]:
        """What was odd so far, times in pipeline ns."""
        by_reader = self._found_by_reader
        found = [*(self._reader.anomalies if by_reader is None else by_reader), *self._anomalies]
        return [a if a.at_ns is None else replace(a, at_ns=a.at_ns - self.zero_ns) for a in found]

    def topics(self) -> dict[str, TopicCount]:
        """Return the counts of every topic the pipeline reads; final when the stream has ended."""
        used = [*self._sources, *self._camera_infos]
        counts: dict[str, TopicCount] = {}
        for topic in dict.fromkeys(used):
            info, delivered = self._infos[topic], self._delivered.get(topic, 0)
            lost = self._lost.get(topic, 0)
            begun = max(info.messages * self._begun, delivered + lost)
            lost = begun - delivered - self._left_out.get(topic, 0) if self._ended else lost
            messages = begun + info.messages * (self._loops - self._begun)
            rest = messages - delivered
            counts[topic] = TopicCount(info.type, messages, delivered, lost, rest - lost)
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

    def _add(self, source: LogSource) -> None:
        spec = source.spec
        if spec.topic is None:
            what = "a source without a topic cannot be read from a log; add its 'topic'"
            raise SpecError(what, ("sources", spec.name))
        self._check(spec.name, "topic", spec.topic, spec.type)
        self._sources.setdefault(spec.topic, []).append(source)
        if spec.info_topic is not None:
            self._check(spec.name, "info_topic", spec.info_topic, INFO)
            self._camera_infos.setdefault(spec.info_topic, []).append(source)

    def _check(self, source: str, key: str, topic: str, kind: str) -> None:
        if topic not in self._infos:
            what = f"the log has no topic {topic!r}; {self._remedy(topic, kind)}"
        else:
            what = why_unreadable(self._infos[topic], kind)
        if what:
            raise refusal(what, ("sources", source, key), self._reader.anomalies)

    def _remedy(self, topic: str, kind: str) -> str:
        """Return the nearest topic, and those of the log that such a source reads."""
        if not self._infos:
            return "it is empty"
        near = did_you_mean(topic, self._infos)
        fitting = [name for name, info in self._infos.items() if not why_unreadable(info, kind)]
        if not fitting:
            return near
        listed = ", ".join(f"{name} ({self._infos[name].type})" for name in fitting[:TOPICS_SHOWN])
        what = f"a source of this kind can read {listed}"
        return f"{near} {what}" if near.startswith("did you mean") else what

    def _run(self) -> Iterator[SourceMessage]:
        for index in range(self._loops):
            if index:
                self._begin_anew()
            yield from self._play()
        self._ended = True

    def _begin_anew(self) -> None:
        """Prepare another pass over a log that was undamaged in the first."""
        if self._found_by_reader is None:
            self._found_by_reader = self._reader.anomalies
        self._begun += 1
        what = "the log is played again from its beginning"
        self._begin_epoch(0, self._begins_ns or 0, "loop", what)

    def _begin_run(self, run: int, begins_ns: int) -> None:
        """Go on with another run of the log; the first to come needs no preparation."""
        if self._pass.first_ns is None:
            self._pass.run = run
        else:
            what = "times and counters of the log begin again: another run; state begins anew"
            self._begin_epoch(run, begins_ns, "run", what)

    def _begin_epoch(self, run: int, begins_ns: int, kind: str, what: str) -> None:
        at_ns = self._pass.end_ns
        self._pass = self._pass.following(run, begins_ns)
        self._anomalies.add(kind, None, at_ns, what)
        for source in (s for sources in self._sources.values() for s in sources):
            source.begin_anew()

    def _play(self) -> Iterator[SourceMessage]:
        for group in self._from_start():
            if group[0].run != self._pass.run:
                self._begin_run(group[0].run, group[0].log_ns)
            if self._begins_ns is None:
                self._begins_ns = group[0].log_ns
            self._pass.see(group[0].log_ns)
            for raw in group:
                if raw.topic in self._camera_infos:
                    self._take_info(raw)
            ready: list[tuple[int, SourceMessage]] = []
            for raw in group:
                ready += self._deliver(raw, self._sources.get(raw.topic, ()))
            ready.sort(key=lambda entry: entry[0])
            for _, message in ready:
                yield message

    def _from_start(self) -> Iterator[list[RawMessage]]:
        """Yield the messages of one log time together, without those of before the start."""
        for group in self._groups():
            log_ns, run = group[0].log_ns, group[0].run
            if self._from_ns is None:
                self._from_ns = log_ns + self._start_ns
            if run > 0 or log_ns >= self._from_ns:
                yield group
                continue
            for raw in group:
                if raw.topic in self._camera_infos:
                    self._take_info(raw)
                else:
                    self._count(self._left_out, raw.topic)

    def _groups(self) -> Iterator[list[RawMessage]]:
        """Yield the messages of one log time together, the last ones before damage is raised."""
        messages = self._reader.messages({*self._sources, *self._camera_infos})
        try:
            yield from simultaneous(messages, self._lose)
        except DamagedInputError:
            self._ended = self._strict is None
            raise

    def _lose(self, raw: RawMessage, why: str) -> None:
        self._count(self._lost, raw.topic)
        self._tell(raw, "log_time", why)
        self._stop_at(raw, why)

    def _stop_at(self, raw: RawMessage, why: str) -> None:
        """End a strict stream at a message that is lost."""
        if self._strict is not None:
            place = f"{self._strict}, {raw.topic} at {raw.log_ns} ns"
            raise DamagedInputError(why, place, sum(self._delivered.values()))

    def _deliver(
        self, raw: RawMessage, sources: Sequence[LogSource]
    ) -> Iterator[tuple[int, SourceMessage]]:
        """Yield (order, message) for each source of a message; it is decoded once for each kind."""
        decoded = {kind: self._decode(raw, kind) for kind in {s.spec.type: None for s in sources}}
        if any(decoded.values()):
            self._count(self._delivered, raw.topic)
        elif sources:
            self._count(self._lost, raw.topic)
        for source in sources:
            found = decoded[source.spec.type]
            if found is not None:
                yield source.order, self._stamp(source, raw, found)

    def _decode(self, raw: RawMessage, kind: str) -> Decoded | None:
        try:
            return decode(raw, kind)
        except InputError as error:
            self._tell(raw, "undecodable", str(error))
            self._stop_at(raw, error.what)
            return None

    def _take_info(self, raw: RawMessage) -> None:
        decoded = self._decode(raw, INFO)
        self._count(self._lost if decoded is None else self._delivered, raw.topic)
        if decoded is not None:
            assert isinstance(decoded.payload, CameraInfo)
            for source in self._camera_infos[raw.topic]:
                source.info = decoded.payload
                source.raw_info = self._moved(raw)

    def _count(self, counts: dict[str, int], topic: str) -> None:
        counts[topic] = counts.get(topic, 0) + 1

    def _tell(self, raw: RawMessage, kind: str, detail: str) -> None:
        if self._found_by_reader is None:
            self._anomalies.add(kind, raw.topic, raw.log_ns + self._pass.shift_ns, detail)

    def _moved(self, raw: RawMessage) -> RawMessage:
        """Return a message at the time of its pass."""
        shift_ns = self._pass.shift_ns
        if not shift_ns:
            return raw
        return replace(raw, log_ns=raw.log_ns + shift_ns, publish_ns=raw.publish_ns + shift_ns)

    def _stamp(self, source: LogSource, raw: RawMessage, decoded: Decoded) -> SourceMessage:
        if self._zero_ns is None:
            self._zero_ns = raw.log_ns
        payload = decoded.payload
        if isinstance(payload, Image) and source.spec.info_topic is not None:
            payload = replace(payload, info=source.info)
            self._tell_of_model(raw, source)
        if decoded.lost_times:
            what = (
                "its points have one time for all, or times seconds away from its stamp: not used"
            )
            self._tell(raw, "point_times", what)
        start_ns = self._pass.shift_ns - self._zero_ns
        clock = source.clock_of(raw.channel.writer)
        capture_ns = self._capture_ns(clock, raw, decoded)
        message = SourceMessage(
            source=source.spec.name,
            sequence=source.delivered,
            log_ns=raw.log_ns + start_ns,
            capture_ns=capture_ns + start_ns,
            raw_header_ns=decoded.header_ns,
            frame=source.spec.frame or decoded.frame,
            payload=payload,
            raw=self._moved(raw),
            raw_info=source.raw_info,
            epoch=clock.epoch,
            jumped=decoded.stamp_valid and clock.jumped,
            said_frame=decoded.frame,
        )
        source.raw_info = None
        source.delivered += 1
        return message

    def _tell_of_model(self, raw: RawMessage, source: LogSource) -> None:
        """Tell of an image without a model, or of one that may not be as its model has it."""
        info = source.info
        if info is None:
            what = f"no {source.spec.info_topic} was logged at or before it"
            self._tell(raw, "info_missing", what)
        elif info.lens is not None and RECTIFIED not in raw.topic:
            what = f"a {info.lens.model} lens bends it unless it is rectified, as it is taken to be"
            self._tell(raw, "lens", what)

    def _capture_ns(self, clock: ClockMap, raw: RawMessage, decoded: Decoded) -> int:
        if not decoded.stamp_valid:
            what = f"stamp {decoded.header_ns} ns is none; the log time stands in for it"
            self._tell(raw, "stamp_invalid", what)
            return raw.log_ns
        return clock.capture_ns(decoded.header_ns, raw.log_ns, partial(self._tell, raw))
