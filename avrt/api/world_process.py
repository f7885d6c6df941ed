"""A process that makes drives through the built-in world, for whoever reads its file meanwhile.

`python -m avrt.api.world_process FILE SCENE SEED SECONDS PASSES` writes pickles, one after another:
what each topic holds, the channels, the latched messages, and then each message as `(topic, log_ns,
data)`, with None after each drive. The next drive is of the same scene with the next seed. Standard
output says how many ns of driving are in the file, a line each time.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from avrt.api.drive import add_mountings, add_reading
from avrt.api.raw_messages import RawMessages
from avrt.logs.raw import TopicInfo
from avrt.units import NS_PER_S
from avrt.world import SENSORS, World, expected, make_scene, readings

if TYPE_CHECKING:
    from avrt.logs.raw import Channel, RawMessage

TOLD_AT = "/lidar/points"
Header = tuple[dict[str, TopicInfo], dict[str, "Channel"], list["RawMessage"]]


def produce(out: BinaryIO, scene: str, seed: int, seconds: float, passes: int) -> None:
    """Write drives to a file, and how far they are to standard output."""
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
            if raw.topic == TOLD_AT:
                out.flush()
                _tell(round(index * seconds * NS_PER_S) + reading.log_ns)
        pickle.dump(None, out)
        out.flush()
        _tell(round((index + 1) * seconds * NS_PER_S))


def _tell(made_ns: int) -> None:
    sys.stdout.write(f"{made_ns}\n")
    sys.stdout.flush()


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
    path, scene, seed, seconds, passes = sys.argv[1:]
    with suppress(BrokenPipeError), Path(path).open("wb") as out:
        produce(out, scene, int(seed), float(seconds), int(passes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
