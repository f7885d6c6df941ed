"""A survey of a log: its topics, how regular they are, what is odd, what avrt can make of it.

Counts and times come from the log's index, where it has one. Stamps, sizes and frames stand in the
messages: they are read from the beginning until `Limit` is reached, and the survey says how far
that was. What a replay would tell of clocks is told here by the same rules (`clock_map`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.log_time import LOG_NS_MAX, can_be_logged_at, hole_between
from avrt.logs.raw import Anomalies
from avrt.logs.reader import open_log
from avrt.logs.survey.topic import TopicSurvey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from avrt.logs.raw import Anomaly, RawMessage, TopicInfo
    from avrt.logs.reader import LogFile


@dataclass(frozen=True, slots=True)
class Limit:
    """After how much a survey stops to read messages; a second of work or so."""

    messages: float = 50_000
    size_bytes: float = 64 << 20


EVERYTHING = Limit(float("inf"), float("inf"))


@dataclass(slots=True)
class Survey:
    """What is in a log.

    Attributes:
        format: what kind of log it is.
        size_bytes: of its file or files.
        topics: by name; a topic of several types is there for each of them.
        anomalies: what is odd, log times.
        damage: what is wrong with the log, or None.
        read: messages that were looked at; all of them if `complete`.
        indexed: times and counts of the others come from the log's index.
        first_ns, last_ns: earliest and latest log time, or None of an empty log.
        read_to_ns: up to where messages were looked at.
    """

    format: str
    topics: list[TopicSurvey]
    anomalies: list[Anomaly]
    damage: InputError | None = None
    read: int = 0
    complete: bool = True
    indexed: bool = False
    first_ns: int | None = None
    last_ns: int | None = None
    read_to_ns: int | None = None
    size_bytes: int = 0


@dataclass(slots=True)
class _Reading:
    """The messages that were looked at, by topic and type.

    Attributes:
        before: the one before, in the order of the log.
        timeless: how many of a topic have a log time that is none.
    """

    infos: Mapping[str, TopicInfo]
    anomalies: Anomalies = field(default_factory=Anomalies)
    topics: dict[tuple[str, str], TopicSurvey] = field(default_factory=dict)
    count: int = 0
    size_bytes: int = 0
    last_ns: int | None = None
    before: RawMessage | None = None
    timeless: Counter[str] = field(default_factory=Counter)
    complete: bool = False
    damage: InputError | None = None

    def run(self, messages: Iterable[RawMessage], limit: Limit) -> None:
        try:
            for raw in messages:
                if self.count >= limit.messages or self.size_bytes >= limit.size_bytes:
                    return
                self._see(raw)
        except InputError as error:
            self.damage = error
        self.complete = True

    def _see(self, raw: RawMessage) -> None:
        self.count += 1
        self.size_bytes += len(raw.data)
        if not can_be_logged_at(raw.log_ns):
            self.timeless[raw.topic] += 1
            self.anomalies.add("log_time", raw.topic, None, f"log time {raw.log_ns} ns is none")
            return
        before, self.before = self.before, raw
        hole = "" if before is None else hole_between(before, raw)
        if hole:
            self.anomalies.add("log_time", raw.topic, raw.log_ns, hole)
        self.last_ns = max(raw.log_ns, self.last_ns or 0)
        self.topic(raw.topic, raw.type, raw.channel.encoding).see(raw, self.anomalies)

    def sound(self, topic: str, indexed: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Return what the index tells of a topic without what is no log time, which is told."""
        if indexed is None:
            return None
        fine = (indexed >= 0) & (indexed <= LOG_NS_MAX)
        unread = int(np.count_nonzero(~fine)) - self.timeless[topic]
        if unread > 0:
            what = "the log's index has times that are none"
            self.anomalies.add("log_time", topic, None, what, unread)
        return indexed[fine]

    def topic(self, name: str, kind: str, encoding: str) -> TopicSurvey:
        """Return the survey of a topic and type."""
        known = self.topics.get((name, kind))
        if known is None:
            known = self.topics[name, kind] = TopicSurvey(name, self.infos[name], kind, encoding)
        return known


def survey_log(path: str | Path, limit: Limit | None = None) -> Survey:
    """Return what is in a log.

    Args:
        path: of the log.
        limit: how much of its messages is read; `EVERYTHING` checks all of them.

    Raises:
        InputError: it is missing, empty, or of no known format.
    """
    with open_log(path) as reader:
        found = _survey(reader, limit or Limit())
    found.size_bytes = _size_bytes(Path(path))
    return found


def _size_bytes(path: Path) -> int:
    """Return the size of a log's file or folder; 0 of a path that only names a part of one."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _survey(reader: LogFile, limit: Limit) -> Survey:
    reading = _Reading(reader.topics())
    reading.run(reader.messages(), limit)
    seen = Counter(name for name, _ in reading.topics)
    for name, info in reading.infos.items():
        if name not in seen:
            reading.topic(name, info.type, info.encoding)
    times = None if reading.complete else reader.log_times()
    topics = sorted(reading.topics.values(), key=lambda topic: topic.topic)
    for topic in topics:
        alone = seen[topic.topic] <= 1
        if not alone:
            topic.messages = topic.read  # what the log promises is for all types together
        indexed = times.get(topic.topic) if times is not None and alone else None
        topic.close(reading.sound(topic.topic, indexed), reading.anomalies)
    spans = [(steps.first_ns, steps.last_ns) for t in topics if (steps := t.log) is not None]
    return Survey(
        reader.format,
        topics,
        [*reader.anomalies, *reading.anomalies],
        reading.damage,
        reading.count,
        reading.complete,
        times is not None,
        min((first for first, _ in spans), default=None),
        max((last for _, last in spans), default=None),
        reading.last_ns,
    )
