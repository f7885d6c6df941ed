"""When the sensors of the built-in vehicle read, and when a recorder on it would get that.

A sweep is stamped at its first column and comes when its last one is over; an image is stamped at
exposure, in the middle of a sweep, when the LiDAR faces forward. What it takes from there to the
recorder is the sensor's delay, of most plus up to JITTER at random. The recording ends all at once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from avrt.payload import CameraInfo, Fix, Imu, PointCloud, Speed, Targets, Truth
from avrt.units import NS_PER_S
from avrt.world import mounting
from avrt.world.camera import camera_info
from avrt.world.world import EgoPose, World

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from avrt.world.scenes import Scene

Payload: TypeAlias = PointCloud | bytes | CameraInfo | Targets | Imu | Fix | Speed | Truth | EgoPose
MS = 1_000_000
JITTER_NS = MS


@dataclass(frozen=True, slots=True)
class Sensor:
    """One stream of readings.

    Attributes:
        frame: of the readings.
        period_ns, phase_ns: when it reads: phase + k * period.
        span_ns: how long a reading takes after its stamp.
        delay_ns: from then to the recorder, at least.
        read: makes a reading.
        is_steady: nothing comes on top of the delay.
    """

    topic: str
    frame: str
    period_ns: int
    phase_ns: int
    span_ns: int
    delay_ns: int
    read: Callable[[World, int], Payload]
    is_steady: bool = False


class Reading(NamedTuple):
    """One reading; times are ns since the world's start."""

    log_ns: int
    topic: str
    frame: str
    stamp_ns: int
    payload: Payload


SENSORS = (
    Sensor("/lidar/points", mounting.LIDAR.frame, 100 * MS, 0, 100 * MS, 3 * MS, World.lidar),
    Sensor(
        "/camera/front/compressed", mounting.CAMERA.frame, 100 * MS, 50 * MS, 0, 25 * MS,
        World.camera,
    ),
    Sensor(
        "/camera/front/camera_info", mounting.CAMERA.frame, 100 * MS, 50 * MS, 0, 24 * MS,
        lambda *_: camera_info(),
    ),
    Sensor("/radar/targets", mounting.RADAR.frame, 50 * MS, 10 * MS, 0, 15 * MS, World.radar),
    Sensor("/imu/data", mounting.IMU.frame, 10 * MS, 0, 0, MS, World.imu, True),
    Sensor("/gnss/fix", mounting.GNSS.frame, 100 * MS, 20 * MS, 0, 45 * MS, World.fix, True),
    Sensor("/vehicle/speed", mounting.VEHICLE, 20 * MS, 5 * MS, 0, 2 * MS, World.wheels),
    Sensor("/ground_truth/objects", mounting.VEHICLE, 50 * MS, 0, 0, 0, World.truth, True),
    Sensor("/ground_truth/odometry", mounting.VEHICLE, 50 * MS, 0, 0, 0, World.ego, True),
)  # fmt: skip


def readings(world: World, topics: Container[str] | None = None) -> Iterator[Reading]:
    """Yield what the sensors of these topics read (all, when None), in a recorder's order.

    What a sensor reads does not depend on which others do.
    """
    end_ns = round(world.seconds * NS_PER_S)
    yield from heapq.merge(
        *(
            _readings(world, index, sensor, end_ns)
            for index, sensor in enumerate(SENSORS)
            if topics is None or sensor.topic in topics
        ),
        key=lambda reading: (reading.log_ns, reading.topic),
    )


def expected(scene: Scene, seconds: float) -> dict[str, int]:
    """Return how many readings of each topic a world of this scene gives in so many seconds."""
    end_ns = round(seconds * NS_PER_S)
    return {
        sensor.topic: sum(1 for _ in _times(scene, index, sensor, end_ns))
        for index, sensor in enumerate(SENSORS)
    }


def _readings(world: World, index: int, sensor: Sensor, end_ns: int) -> Iterator[Reading]:
    """Yield the readings of one sensor."""
    for log_ns, at_ns in _times(world.scene, index, sensor, end_ns):
        yield Reading(log_ns, sensor.topic, sensor.frame, at_ns, sensor.read(world, at_ns))


def _times(scene: Scene, index: int, sensor: Sensor, end_ns: int) -> Iterator[tuple[int, int]]:
    """Yield when a sensor's readings are recorded and stamped.

    The delay is more regular than the period is long.
    """
    rng = np.random.default_rng((scene.seed, 50 + index))
    for at_ns in range(sensor.phase_ns, end_ns - sensor.span_ns, sensor.period_ns):
        late_ns = 0 if sensor.is_steady else int(rng.integers(JITTER_NS))
        log_ns = at_ns + sensor.span_ns + sensor.delay_ns + late_ns
        if log_ns >= end_ns:
            return
        yield log_ns, at_ns
