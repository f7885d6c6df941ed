"""Logs made of arrays or of a file for each message: read as ROS 2 messages, by log time.

A format says which topics there are: a `Series` each, with the times of its messages and a function
that makes the payload of one. Messages are made when their turn comes and not kept. One that cannot
be made, because its file is missing or cut, costs that message only, and is told.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from zipfile import BadZipFile

import numpy as np

from avrt.errors import InputError, SpecError
from avrt.logs.messages import message_of
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo, tell_damage
from avrt.logs.ros.types import known_types, schema_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

NO_NS = np.empty(0, np.int64)
UNREADABLE = (OSError, ValueError, EOFError, BadZipFile, zlib.error, struct.error)


@dataclass(frozen=True, slots=True)
class Series:
    """The messages of one topic.

    Attributes:
        topic: its name, such as "/lidar/points".
        type: of its messages, such as "sensor_msgs/msg/PointCloud2"; docs/logs.md lists them.
        frame: of the sensor.
        stamp_ns: (N,) int64, when each was measured; ns since 1970, or of any clock of its own.
        make: returns the payload (one of `avrt.payload`, or a whole message of the type) of the
            message at an index; raises `InputError` or one of `UNREADABLE` if it is damaged.
        log_ns: (N,) int64, when each was recorded; None where that is when it was measured.
        damage: why the log has none of its messages, where that is so.
    """

    topic: str
    type: str
    frame: str
    stamp_ns: NDArray[np.int64]
    make: Callable[[int], object]
    log_ns: NDArray[np.int64] | None = None
    damage: InputError | None = None

    def __post_init__(self) -> None:
        """Check the times.

        Raises:
            SpecError: they are no whole numbers, or not as many of one kind as of the other.
        """
        for name, times in (("stamp_ns", self.stamp_ns), ("log_ns", self.recorded_ns)):
            if times.dtype.kind not in "iu" or times.shape != (len(self.stamp_ns),):
                what = f"expected {name} to be ({len(self.stamp_ns)},) whole numbers"
                found = f"found {times.shape} {times.dtype}"
                raise SpecError(f"{what}, {found}", (self.topic,))

    @property
    def recorded_ns(self) -> NDArray[np.int64]:
        return self.stamp_ns if self.log_ns is None else self.log_ns

    @classmethod
    def damaged(cls, topic: str, type_name: str, why: InputError) -> Series:
        """Return a topic of which nothing can be read; what is wrong is told after the rest."""
        return cls(topic, type_name, "", NO_NS, _make_none, damage=why)


class SeriesReader:
    """An open log of series; equal log times follow the order of the series."""

    def __init__(self, kind: str, series: Iterable[Series], *, strict: bool = False) -> None:
        """Take what kind of log it is, for a person, and its topics; a strict one stops at damage.

        Raises:
            SpecError: two series are of one topic.
            InputError: all of them are damaged.
        """
        self._kind = kind
        self._strict = strict
        self._series = list(series)
        self._channels = [_channel(number, one) for number, one in enumerate(self._series, 1)]
        self._anomalies = Anomalies()
        self._damage: dict[str, InputError] = {}
        self._lost: set[str] = set()
        topics = [one.topic for one in self._series]
        if len(set(topics)) < len(topics):
            raise SpecError(f"expected a series for each topic, found {', '.join(topics)}")
        for one in self._series:
            if one.damage is not None:
                self._note(one.damage, None)
        if self._damage and all(one.damage is not None for one in self._series):
            raise next(iter(self._damage.values()))

    @property
    def format(self) -> str:
        return self._kind

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    def topics(self) -> dict[str, TopicInfo]:
        return {
            one.topic: TopicInfo(
                one.type, len(one.stamp_ns), "cdr", "ros2msg", channel.schema.decode()
            )
            for one, channel in zip(self._series, self._channels, strict=True)
        }

    def log_times(self) -> dict[str, NDArray[np.int64]] | None:
        return {one.topic: np.sort(one.recorded_ns) for one in self._series}

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = [n for n, s in enumerate(self._series) if names is None or s.topic in names]
        lost: dict[int, int] = {}
        good = 0
        if self._strict:
            tell_damage(self._damage.values(), 0, strict=True)
        for number, index, log_ns in self._turns(wanted):
            try:
                data = self._encode(number, index)
            except InputError as error:
                lost[number] = lost.get(number, 0) + 1
                self._note(error, log_ns)
                if self._strict:
                    tell_damage([error], good, strict=True)
                continue
            good += 1
            yield RawMessage(self._channels[number], log_ns, log_ns, index, data)
        for number, count in lost.items():
            self._note_lost(self._series[number], count)
        tell_damage(self._damage.values(), good)

    def close(self) -> None:
        """Do nothing: no file is open between two messages."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _turns(self, wanted: list[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (number of the series, index in it, log time) of each message in turn."""
        times = [self._series[number].recorded_ns for number in wanted]
        sizes = [len(part) for part in times]
        log_ns = np.concatenate([NO_NS, *times])
        numbers = np.repeat(np.array(wanted, np.int64), sizes)
        indices = np.concatenate([NO_NS, *(np.arange(size) for size in sizes)])
        for place in np.argsort(log_ns, kind="stable"):
            yield int(numbers[place]), int(indices[place]), int(log_ns[place])

    def _encode(self, number: int, index: int) -> memoryview:
        """Return one message in CDR.

        Raises:
            InputError: it cannot be made.
            SpecError: what was made is of another type than the series.
        """
        one = self._series[number]
        try:
            made = one.make(index)
        except UNREADABLE as error:
            what = f"message {index} cannot be made: {error}"
            raise InputError(what, f"{one.topic}, message {index}") from None
        store = known_types()
        if not isinstance(made, store.types[one.type]):
            found, made = message_of(made, int(one.stamp_ns[index]), one.frame)
            if found != one.type:
                what = f"expected messages of {one.type}, found one of {found}"
                raise SpecError(what, (one.topic,))
        return store.serialize_cdr(made, one.type)

    def _note(self, error: InputError, at_ns: int | None) -> None:
        if error.place not in self._damage:
            self._damage[error.place] = error
            self._anomalies.add("damaged", None, at_ns, str(error))

    def _note_lost(self, one: Series, count: int) -> None:
        """Tell once how many messages of a topic are lost."""
        if one.topic in self._lost:
            return
        self._lost.add(one.topic)
        promised = len(one.stamp_ns)
        what = f"expected {promised} messages on {one.topic}, found {promised - count}"
        self._anomalies.add("lost", one.topic, None, what, count)


def _channel(number: int, one: Series) -> Channel:
    """Return the channel of a series.

    Raises:
        SpecError: its type is not known.
    """
    store = known_types()
    if one.type not in store.fielddefs:
        raise SpecError(
            f"expected a message type that avrt knows, found {one.type!r}", (one.topic,)
        )
    return Channel(number, one.topic, one.type, "cdr", "ros2msg", schema_text(store, one.type))


def _make_none(index: int) -> object:
    raise IndexError(f"message {index} of a topic without any")
