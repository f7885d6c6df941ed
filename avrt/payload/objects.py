"""Things on the road: what one sweep showed, and what is believed over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Box:
    """An oriented box in the frame of its message.

    Attributes:
        x, y, z: centre, metres.
        length, width, height: extent along heading, across it and up, metres.
        yaw: heading about z from x towards y, radians in (-pi, pi].
    """

    x: float
    y: float
    z: float
    length: float
    width: float
    height: float
    yaw: float


@dataclass(frozen=True, slots=True)
class Detection:
    """One object in one sweep.

    Attributes:
        label: class by its size: "car", "truck", "pedestrian", "cyclist" or "unknown".
        score: how well the points fit the class, 0 to 1; None where it is unknown.
        points: (P, 3) float32, metres: the points nearest to the sensor's side of the box.
        point_count: how many points the box holds in all.
        nearest_x: 5 % quantile of x over the object's points, metres: its near face.
    """

    box: Box
    label: str
    score: float | None
    points: NDArray[np.float32]
    point_count: int
    nearest_x: float


@dataclass(frozen=True, slots=True)
class Detections:
    """What one sweep showed; an empty tuple means that nothing was seen."""

    objects: tuple[Detection, ...] = ()


@dataclass(frozen=True, slots=True)
class Track:
    """One object believed to exist.

    Attributes:
        id: the same for as long as the object is tracked, never used again.
        box: estimated box at the message's capture time, relative to the frame of the tracks then.
        vx, vy: velocity over ground in the axes of that frame, m/s.
        closing_speed: how fast its distance to the ego vehicle shrinks along x, m/s.
        covariance: (5, 5) float64 of (x, y, vx, vy, yaw), SI units.
        existence: probability that the object is real, 0 to 1.
        hits: looks of any sensor that showed it.
        misses: looks in a row, of the ranging sensor that showed it last, that did not.
        confirmed: it has been seen often enough to plan for.
        sensors: names of the inputs that support it now: the newest look of each at its place
            showed it, and is not older than half a second.
        nearest_x: near face along x, metres, from the newest points (predicted if unseen).
        points: (P, 3) float32 of the newest detection; none where only radar showed it.
    """

    id: int
    label: str
    box: Box
    vx: float
    vy: float
    closing_speed: float
    covariance: NDArray[np.float64]
    existence: float
    hits: int
    misses: int
    confirmed: bool
    sensors: tuple[str, ...]
    nearest_x: float
    points: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SensorUse:
    """What was made of one input of the tracker, up to the capture time of the tracks.

    Attributes:
        name: of the input: "lidar", "radar", "camera" or "ego".
        age_ns: the tracks' capture time less that of its newest message in use; None if none is.
        measurements: boxes or targets in that message that could be used.
        matched: how many of them were taken for a track.
        dropped: how many could not be used: not finite, impossible, or more than there is room for.
        residual: how far what it shows lies from what the tracks expect: median over a look's
            matched pairs, smoothed over looks; metres for lidar and radar, pixels for a camera,
            m/s for ego. None before the first pair.
        late: messages since the start that were put in behind newer ones.
        lost: messages since the start that were left out: older than the history, or of a clock
            that runs ahead.
        anomaly: what is wrong with it now, or "".
    """

    name: str
    age_ns: int | None
    measurements: int = 0
    matched: int = 0
    dropped: int = 0
    residual: float | None = None
    late: int = 0
    lost: int = 0
    anomaly: str = ""


@dataclass(frozen=True, slots=True)
class Tracks:
    """The scene at one instant.

    Attributes:
        ego_speed: the vehicle's own speed that was used, m/s.
        yaw_rate: the vehicle's own that was used, rad/s, left positive.
        inputs: what was made of each input that ever sent something.
    """

    objects: tuple[Track, ...]
    ego_speed: float
    yaw_rate: float = 0.0
    inputs: tuple[SensorUse, ...] = ()

    @property
    def anomalies(self) -> tuple[str, ...]:
        """What is wrong with its inputs now, a line each: the input's name and its anomaly."""
        return tuple(f"{one.name}: {one.anomaly}" for one in self.inputs if one.anomaly)
