"""Payloads as the messages that a log would hold, without a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import SpecError
from avrt.logs.encode import Encoder
from avrt.logs.raw import Channel, RawMessage
from avrt.logs.ros.types import schema_text
from avrt.payload import Fix, Image, Imu, PointCloud, Speed, Targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.model.source import Reading


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


def encoded(topic: str, frame: str, reading: Reading, stamp_ns: int, log_ns: int) -> RawMessage:
    """Return what a live source read as a message for the record.

    Raises:
        SpecError: it is no payload that a source can give.
    """
    made: list[RawMessage] = []
    log = RawMessages(made.append)
    match reading.payload:
        case PointCloud() as cloud:
            xyz, intensity, seconds = cloud.xyz, cloud.intensity, cloud.seconds
            log.add_cloud(topic, frame, stamp_ns, xyz, intensity, seconds=seconds, log_ns=log_ns)
        case Image() as image:
            log.add_image(topic, frame, stamp_ns, image, log_ns=log_ns)
        case Targets() as targets:
            log.add_targets(topic, frame, stamp_ns, targets, log_ns=log_ns)
        case Imu() as imu:
            log.add_imu(topic, frame, stamp_ns, imu, log_ns=log_ns)
        case Fix() as fix:
            log.add_fix(topic, frame, stamp_ns, fix, log_ns=log_ns)
        case Speed() as speed:
            log.add_speed(topic, frame, stamp_ns, speed, log_ns=log_ns)
        case other:
            what = f"a source gives a payload of its type, found {type(other).__name__}"
            raise SpecError(what)
    return made[0]
