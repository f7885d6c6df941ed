"""Payloads as the messages that a log would hold, without a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.logs.encode import Encoder
from avrt.logs.raw import Channel, RawMessage
from avrt.logs.ros.types import schema_text

if TYPE_CHECKING:
    from collections.abc import Callable


class RawMessages(Encoder):
    """Gives each message that it makes to `take`."""

    def __init__(self, take: Callable[[RawMessage], object]) -> None:
        super().__init__()
        self._take = take
        self._channels: dict[str, Channel] = {}
        self._counts: dict[str, int] = {}

    def add_raw(
        self, topic: str, type_name: str, log_ns: int, data: bytes, *, encoding: str = "cdr"
    ) -> None:
        channel = self._channels.get(topic)
        if channel is None:
            text = schema_text(self._store, type_name)
            channel = Channel(len(self._channels), topic, type_name, encoding, "ros2msg", text)
            self._channels[topic] = channel
        sequence = self._counts.get(topic, 0)
        self._counts[topic] = sequence + 1
        self._take(RawMessage(channel, log_ns, log_ns, sequence, data))
