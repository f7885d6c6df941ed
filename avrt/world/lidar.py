"""A spinning LiDAR, ray by ray: the first thing each beam meets while the sensor turns and moves.

Every column of beams is cast at its own time, from where the vehicle is then at what is then around
it, so a raw sweep is as skewed as a real one. Points are given in the sensor's frame at their own
time; `seconds` says when that was. Road users move on a straight line within a sweep.

Method: slabs (Kay and Kajiya, "Ray Tracing Complex Scenes", SIGGRAPH 1986) in the axes of each box,
over only the columns that it can cover; the ground by Newton's method along the beam, which meets
it at a slope that changes slowly. A return is lost at random, and when its echo is too weak: its
strength is reflectivity times the cosine of incidence over the squared range.

Ranges are whole multiples of `RESOLUTION` and coordinates whole millimetres, as sensors give them;
so the bytes do not depend on the last bit of a sine.

Shape letters: A azimuth columns, E elevation channels, N returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.payload import PointCloud
from avrt.world.boxes import corners, folded
from avrt.world.mounting import LIDAR, ego_pose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.boxes import Boxes, Places
    from avrt.world.mounting import Pose
    from avrt.world.road import Ground
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

RESOLUTION = 0.004  # metres
GRID = 0.001  # metres
SOIL = 0.22  # reflectivity of road and field
NEWTON_STEPS = 4
BISECTIONS = 16
GRAZING = 0.1  # cosine of incidence where a beam only just meets the ground
MARGIN_COLUMNS = 2
ECHO_MIN = 2.0e-5  # of a surface of reflectivity 1 met squarely at 1 m


@dataclass(frozen=True)
class Beams:
    """The beam pattern of a sensor.

    Attributes:
        elevations: (E,) degrees.
        columns: in one turn, or in the part of it that is kept.
        start, end: azimuths of the first and last column, degrees from x to the left; a sensor that
            turns clockwise has `end` below `start`.
        period: of the columns that are kept, seconds.
        range_min, range_max: metres.
        noise: of a range, standard deviation, metres.
        lost: share of beams without a return at any range.
    """

    elevations: tuple[float, ...]
    columns: int
    start: float = 180.0
    end: float = -180.0
    period: float = 0.1
    range_min: float = 1.5
    range_max: float = 100.0
    noise: float = 0.02
    lost: float = 0.03

    @cached_property
    def azimuths(self) -> Array:
        """Azimuth of each column, (A,) radians."""
        share = (np.arange(self.columns) + 0.5) / self.columns
        return np.deg2rad(self.start + (self.end - self.start) * share)

    @cached_property
    def seconds(self) -> Array:
        """When each column is cast, (A,) seconds after the stamp."""
        return (np.arange(self.columns) + 0.5) / self.columns * self.period

    @cached_property
    def directions(self) -> Array:
        """Return unit vectors of all beams in the sensor's frame, (A, E, 3)."""
        azimuth, elevation = np.meshgrid(self.azimuths, np.deg2rad(self.elevations), indexing="ij")
        flat = np.cos(elevation)
        parts = [flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)]
        return np.stack(parts, axis=-1)


def even(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return evenly spaced elevations, degrees."""
    return tuple(np.linspace(low, high, count).tolist())


# 32 beams from -30.67 to 10.67 degrees (manual of Velodyne's HDL-32E), half a degree a column:
# a third of the columns that the sensor has, about as many points as its recordings in fog hold.
HDL_32E = Beams(even(-30.67, 10.67, 32), 720)
# 64 beams in two blocks (manual of Velodyne's HDL-64E S2), the front quarter that KITTI's cameras
# see, 0.17 degrees a column.
HDL_64E_FRONT = Beams(
    (*even(-24.8, -8.87, 32), *even(-8.53, 2.0, 32)),
    520,
    start=-45.0,
    end=45.0,
    period=0.025,
    range_max=120.0,
)


class Rays(NamedTuple):
    """Beams in the world.

    Attributes:
        origin: (A, 3) metres.
        direction: (A, E, 3), unit vectors.
        nearest: (A, E) metres to what was met so far; inf for nothing.
        echo: (A, E) reflectivity times the cosine of incidence there.
    """

    origin: Array
    direction: Array
    nearest: Array
    echo: Array


def sweep(
    beams: Beams,
    ground: Ground,
    boxes: Boxes,
    motion: Motion,
    rng: np.random.Generator,
) -> PointCloud:
    """Return one sweep.

    Args:
        beams: the sensor.
        ground: that it stands on.
        boxes: everything else.
        motion: of all users at the times of the columns, (A, U).
        rng: for noise and lost returns.
    """
    pose = ego_pose(ground, motion)
    local = beams.directions
    direction = np.einsum("aij,aej->aei", pose.axes, local)
    shape = direction.shape[:2]
    rays = Rays(pose.point(LIDAR.place), direction, np.full(shape, np.inf), np.zeros(shape))
    _meet_ground(rays, ground, beams.range_max)
    _meet_boxes(rays, beams, boxes, motion, pose)
    _surface(rays, ground)
    return _returned(rays, beams, local, rng)


def _meet_ground(rays: Rays, ground: Ground, range_max: float) -> None:
    """Let the beams that point down enough meet the ground."""
    columns, channels = np.nonzero(rays.direction[..., 2] < 0.06)
    origin, direction = rays.origin[columns], rays.direction[columns, channels]
    height = origin[:, 2] - ground.height(origin[:, 0], origin[:, 1])
    range_ = np.minimum(height / np.maximum(-direction[:, 2], 1e-3), range_max)
    for _ in range(NEWTON_STEPS):
        at = origin + range_[:, None] * direction
        above = at[:, 2] - ground.height(at[:, 0], at[:, 1])
        along_x, along_y = ground.gradient(at[:, 0], at[:, 1])
        fall = along_x * direction[:, 0] + along_y * direction[:, 1] - direction[:, 2]
        range_ = np.clip(range_ + above / np.where(fall > 1e-4, fall, np.inf), 0.0, 2 * range_max)
    at = origin + range_[:, None] * direction
    met = np.abs(at[:, 2] - ground.height(at[:, 0], at[:, 1])) < RESOLUTION
    met &= (fall > 1e-4) & (range_ > 0)
    rays.nearest[columns[met], channels[met]] = range_[met]
    rays.echo[columns[met], channels[met]] = SOIL * np.minimum(1.0, fall[met])


def _surface(rays: Rays, ground: Ground) -> None:
    """Let beams that reached a box below the ground meet the ground before it, by bisection."""

    def above(range_: Array) -> Array:
        at = origin + range_[:, None] * direction
        return np.asarray(at[:, 2] - ground.height(at[:, 0], at[:, 1]))

    columns, channels = np.nonzero(np.isfinite(rays.nearest))
    origin, direction = rays.origin[columns], rays.direction[columns, channels]
    buried = above(rays.nearest[columns, channels]) < -RESOLUTION
    columns, channels = columns[buried], channels[buried]
    origin, direction = origin[buried], direction[buried]
    low, high = np.zeros(len(columns)), rays.nearest[columns, channels]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_above = above(middle) > 0
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    rays.nearest[columns, channels] = low
    rays.echo[columns, channels] = SOIL * GRAZING


def _meet_boxes(rays: Rays, beams: Beams, boxes: Boxes, motion: Motion, pose: Pose) -> None:
    """Let the beams meet the boxes, one box after the other."""
    middle = len(beams.azimuths) // 2
    places = boxes.places(motion, middle)
    eye = pose.point(LIDAR.place)[middle]
    reach = np.linalg.norm(places.middle - eye, axis=1) - np.linalg.norm(boxes.half, axis=1)
    now = beams.seconds - beams.seconds[middle]
    heading = np.arctan2(pose.axes[middle, 1, 0], pose.axes[middle, 0, 0])
    for index in np.nonzero(reach < beams.range_max)[0].tolist():
        columns = _columns(beams, places, boxes.half, index, eye, float(heading))
        if len(columns):
            _meet_box(rays, boxes, places, index, columns, now[columns])


def _columns(
    beams: Beams, places: Places, half: Array, index: int, eye: Array, heading: float
) -> NDArray[np.int64]:
    """Return the columns that a box may cover while the sensor turns."""
    one = slice(index, index + 1)
    seen = corners(places.middle[one], places.yaw[one], half[one])[0, :, :2] - eye[:2]
    to_middle = places.middle[index, :2] - eye[:2]
    distance = float(np.hypot(*to_middle))
    if distance < np.hypot(*half[index, :2]) + 0.5:
        return np.arange(len(beams.azimuths))
    towards = np.arctan2(to_middle[1], to_middle[0])
    spread = folded(np.arctan2(seen[:, 1], seen[:, 0]) - towards)
    step = abs(float(np.deg2rad(beams.end - beams.start))) / beams.columns
    moved = 0.5 * beams.period * (30.0 + float(np.hypot(*places.velocity[index])))
    margin = MARGIN_COLUMNS * step + np.arctan2(moved, max(distance, 1.0))
    apart = folded(beams.azimuths + heading - towards)
    covered = (apart > spread.min() - margin) & (apart < spread.max() + margin)
    return np.nonzero(covered)[0]


def _meet_box(
    rays: Rays,
    boxes: Boxes,
    places: Places,
    index: int,
    columns: NDArray[np.int64],
    after: Array,
) -> None:
    """Shorten the beams of these columns where they meet a box first."""
    cos, sin = np.cos(places.yaw[index]), np.sin(places.yaw[index])
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    middle = np.repeat(places.middle[None, index], len(columns), axis=0)
    middle[:, :2] += after[:, None] * places.velocity[index]
    origin = (rays.origin[columns] - middle) @ turn
    direction = rays.direction[columns] @ turn
    half = boxes.half[index]
    with np.errstate(divide="ignore", invalid="ignore"):
        toward = 1.0 / np.moveaxis(direction, -1, 0)
        first = (-half - origin).T[:, :, None] * toward
        second = (half - origin).T[:, :, None] * toward
    low, high = np.minimum(first, second), np.maximum(first, second)
    enter = np.maximum(np.maximum(low[0], low[1]), low[2])
    leave = np.minimum(np.minimum(high[0], high[1]), high[2])
    met = (enter > 0) & (enter <= leave) & (enter < rays.nearest[columns])
    row, channel = np.nonzero(met)
    axis = low[:, row, channel].argmax(axis=0)
    incidence = np.abs(direction[row, channel, axis])
    at = columns[row]
    rays.nearest[at, channel] = enter[row, channel]
    rays.echo[at, channel] = boxes.reflectivity[index] * incidence


def _returned(rays: Rays, beams: Beams, local: Array, rng: np.random.Generator) -> PointCloud:
    """Return what comes back: strong enough, with noise, in the order of the columns."""
    chance, noise = rng.random(rays.nearest.shape), rng.normal(size=rays.nearest.shape)
    range_ = rays.nearest + beams.noise * noise
    with np.errstate(invalid="ignore"):
        strength = rays.echo / range_**2
    kept = (range_ > beams.range_min) & (range_ < beams.range_max)
    kept &= (strength > ECHO_MIN) & (chance >= beams.lost)
    column, channel = np.nonzero(kept)
    whole = np.rint(range_[kept] / RESOLUTION) * RESOLUTION
    xyz = np.rint(local[column, channel] * whole[:, None] / GRID) * GRID
    shade = np.rint(255 * np.clip(rays.echo[kept], 0, 1)) / 255
    seconds = np.rint(beams.seconds[column] * 1e6) / 1e6
    return PointCloud(xyz.astype(np.float32), shade.astype(np.float32), seconds.astype(np.float32))
