"""What a log holds before anybody decodes it: channels, messages, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.errors import DamagedInputError, InputError, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from avrt.errors import AvrtError

NODE = "callerid"  # a ROS 1 bag names the node of a connection so, and an MCAP file made of one


OTHERS_MAX = 20
"""So many places of damage are told one by one, besides the first."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One stream of messages of one type.

    Attributes:
        id: number within its file.
        type: message type, such as "sensor_msgs/msg/PointCloud2"; empty when the log has none.
        encoding: how messages are written: "cdr", "json", "ros1", ...
        schema_encoding: what `schema` is written in: "ros2msg", "jsonschema", ...
        schema: definition of the type, as the log has it.
        writer: which of those that write to this topic of this file, where there are several.
    """

    id: int
    topic: str
    type: str
    encoding: str
    schema_encoding: str = ""
    schema: bytes = b""
    writer: str = ""


def writers_told_apart(channels: Iterable[Channel], nodes: Mapping[int, str]) -> Iterator[Channel]:
    """Yield the channels of a file, those that share a topic with who writes each.

    That is the node that the file names, by channel, or the number of the channel: in an MCAP file
    it stands for who writes.
    """
    known = list(channels)
    counts = Counter(channel.topic for channel in known)
    for channel in known:
        writer = nodes.get(channel.id) or str(channel.id)
        yield replace(channel, writer=writer) if counts[channel.topic] > 1 else channel


@dataclass(slots=True, weakref_slot=True)
class RawMessage:
    """One message as the log has it.

    Attributes:
        log_ns: when it was recorded, recorder's clock.
        publish_ns: when it was published, publisher's clock.
        sequence: the publisher's counter, as recorded.
        data: the encoded bytes; a view of the log's chunk, which lives as long as the view.
        run: which of the runs that were put into one log it is of; each begins its times anew.
    """

    channel: Channel
    log_ns: int
    publish_ns: int
    sequence: int
    data: bytes | memoryview
    run: int = 0

    @property
    def topic(self) -> str:
        return self.channel.topic

    @property
    def type(self) -> str:
        return self.channel.type

    def error(self, expected: str, found: str) -> InputError:
        """Return the error of a message that is not what it should be."""
        return InputError(
            f"expected {expected}, found {found}", f"{self.topic} at {self.log_ns} ns"
        )


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What the log says about one topic; `messages` is what it promises, damaged ones included."""

    type: str
    messages: int
    encoding: str
    schema_encoding: str
    schema: str


@dataclass(slots=True)
class Anomaly:
    """Something in the input that is not as it should be; equal ones are counted together.

    Attributes:
        topic: None when it concerns the file.
        at_ns: when it was first seen, or None where no time belongs to it.
        count: how many messages it concerns.
    """

    kind: str
    topic: str | None
    at_ns: int | None
    count: int
    detail: str


class Anomalies:
    """Anomalies in the order they were first seen, one for each kind and topic."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], Anomaly] = {}

    def __iter__(self) -> Iterator[Anomaly]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, kind_and_topic: tuple[str, str | None]) -> bool:
        return kind_and_topic in self._known

    def add(
        self, kind: str, topic: str | None, at_ns: int | None, detail: str, count: int = 1
    ) -> None:
        """Count `count` more; the first one's time and detail are kept."""
        known = self._known.get((kind, topic))
        if known is None:
            self._known[kind, topic] = Anomaly(kind, topic, at_ns, count, detail)
        else:
            known.count += count


def tell_damage(
    damage: Collection[InputError], good_messages: int, *, strict: bool = False
) -> None:
    """Raise what is wrong with a log, if anything is, once everything good was delivered.

    Raises:
        DamagedInputError: something was delivered, or the log was read strictly.
        InputError: nothing was.
    """
    if not damage:
        return
    first, *others = damage
    more = f"; and {len(others)} more" if others else ""
    kind = DamagedInputError if good_messages or strict else InputError
    raise kind(f"{first.what}{more}", first.place, good_messages, others[:OTHERS_MAX])


def refusal(what: str, key: tuple[str, ...], anomalies: Iterable[Anomaly]) -> AvrtError:
    """Return why a log cannot give what a pipeline asks of it at `key`.

    It is the user's mistake, unless the log is damaged: what is asked for may have been in it.
    """
    for anomaly in anomalies:
        if anomaly.kind == "damaged":
            return InputError(f"{what}; the log is damaged: {anomaly.detail}", ".".join(key))
    return SpecError(what, key)
