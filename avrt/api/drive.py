"""A drive through the built-in world as an ordinary sensor log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.logs.writer import LogWriter
from avrt.payload import Truth
from avrt.units import NS_PER_S
from avrt.world import MOUNTINGS, VEHICLE, EgoPose, World, make_scene, readings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from avrt.logs.encode import Encoder
    from avrt.world import Reading, Scene

START_NS = 1_700_000_000 * NS_PER_S  # the drive's own clock: an ordinary date, as in a real log
MAP = "map"


def write_drive(
    path: str | Path,
    scene: str | Scene = "cut_in",
    *,
    seed: int = 0,
    seconds: float = 20.0,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write a drive as an MCAP log of ROS 2 messages, ground truth included.

    The same scene, seed and length give the same bytes.

    Args:
        path: of the log.
        scene: a name of `avrt.world.SCENES`, or a scene of your own.
        seed: of a scene that is named.
        seconds: how long, at most `avrt.world.SECONDS_MAX`.
        progress: is told the time that is written, ns since the start.

    Raises:
        SpecError: there is no such scene, seed or length, or the file cannot be created.
    """
    world = World(make_scene(scene, seed) if isinstance(scene, str) else scene, seconds)
    world.advance()
    with LogWriter(path) as log:
        add_mountings(log)
        for reading in readings(world):
            add_reading(log, reading)
            if progress is not None:
                progress(reading.log_ns)


def add_mountings(log: Encoder) -> None:
    """Say where the sensors are, as a robot's description does: a latched topic of transforms."""
    transforms = [
        (VEHICLE, mounting.frame, (*mounting.place, *mounting.quaternion)) for mounting in MOUNTINGS
    ]
    log.add_transforms("/tf_static", START_NS, transforms)


def add_reading(log: Encoder, reading: Reading) -> None:
    """Add what a sensor read, at the time at which a recorder would get it."""
    topic, frame = reading.topic, reading.frame
    stamp_ns, log_ns = START_NS + reading.stamp_ns, START_NS + reading.log_ns
    match reading.payload:
        case bytes() as jpeg:
            log.add_jpeg(topic, frame, stamp_ns, jpeg, log_ns=log_ns)
        case Truth() as truth:
            log.add_truth(topic, frame, stamp_ns, truth)
        case EgoPose() as ego:
            pose = (*ego.place, *ego.quaternion)
            log.add_odometry(topic, (MAP, frame), stamp_ns, pose, ego.motion)
        case payload:
            log.add(topic, frame, stamp_ns, payload, log_ns)
