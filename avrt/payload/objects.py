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
        box: estimated box at the message's capture time, relative to the sensor frame then.
        vx, vy: velocity over ground in the axes of the sensor frame, m/s.
        closing_speed: how fast its distance to the ego vehicle shrinks along x, m/s.
        covariance: (5, 5) float64 of (x, y, vx, vy, yaw), SI units.
        existence: probability that the object is real, 0 to 1.
        hits, misses: sweeps that showed it, and sweeps in a row that did not.
        confirmed: it has been seen often enough to plan for.
        sensors: names of the inputs that support it now.
        nearest_x: near face along x, metres, from the newest points (predicted if unseen).
        points: (P, 3) float32 of the newest detection.
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
class Tracks:
    """The scene at one instant; `ego_speed` is the vehicle's own speed that was used, m/s."""

    objects: tuple[Track, ...]
    ego_speed: float
