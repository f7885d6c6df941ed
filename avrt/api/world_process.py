"""A process that makes drives through the built-in world, for whoever reads its standard output.

`python -m avrt.api.world_process SCENE SEED SECONDS PASSES` writes pickles, one after another: what
each topic holds, the channels, the latched messages, and then each message as `(topic, log_ns,
data)`, with None after each drive. The next drive is of the same scene with the next seed. How far
the world runs ahead is up to the pipe and whoever reads it.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from avrt.api.drive import add_mountings, add_reading
from avrt.api.raw_messages import RawMessages
from avrt.logs.raw import TopicInfo
from avrt.world import SENSORS, World, expected, make_scene, readings

if TYPE_CHECKING:
    from avrt.logs.raw import Channel, RawMessage

Header = tuple[dict[str, TopicInfo], dict[str, "Channel"], list["RawMessage"]]


def produce(out: BinaryIO, scene: str, seed: int, seconds: float, passes: int) -> None:
    """Write drives to a binary stream."""
    made: list[RawMessage] = []
    encoder = RawMessages(made.append)
    for index in range(passes):
        world = World(make_scene(scene, seed + index), seconds)
        world.advance()
        if index == 0:
            pickle.dump(_header(world), out)
        for reading in readings(world):
            add_reading(encoder, reading)
            raw = made.pop()
            pickle.dump((raw.topic, raw.log_ns, bytes(raw.data)), out)
            out.flush()
        pickle.dump(None, out)
        out.flush()


def _header(world: World) -> Header:
    """Return what the topics hold, their channels, and the latched messages."""
    latched: list[RawMessage] = []
    add_mountings(RawMessages(latched.append))
    made: list[RawMessage] = []
    encoder = RawMessages(made.append)
    missing = {sensor.topic for sensor in SENSORS}
    for reading in readings(world):
        if reading.topic in missing:
            add_reading(encoder, reading)
            missing.remove(reading.topic)
        if not missing:
            break
    channels = {raw.topic: raw.channel for raw in (*latched, *made)}
    counts = {**expected(world.scene, world.seconds), **{raw.topic: 1 for raw in latched}}
    topics = {topic: _info(channel, counts[topic]) for topic, channel in channels.items()}
    return topics, channels, latched


def _info(channel: Channel, messages: int) -> TopicInfo:
    text = channel.schema.decode()
    return TopicInfo(channel.type, messages, channel.encoding, channel.schema_encoding, text)


def main() -> int:
    scene, seed, seconds, passes = sys.argv[1:]
    with suppress(BrokenPipeError, KeyboardInterrupt):  # nobody reads any more
        produce(sys.stdout.buffer, scene, int(seed), float(seconds), int(passes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
