"""A radar that looks ahead: points with Doppler of whatever reflects, and clutter that does not.

Road users and fixtures in view reflect from places on their near sides that nothing hides, the
more often and the stronger the larger they are and the nearer (radar equation: received power falls
with the fourth power of range). A return's range rate is the component of its velocity, relative to
the moving sensor, along the line of sight. Clutter stands still, or moves as nothing does; both are
in every real target list.

Hidden means: the line of sight on the ground crosses another body's outline (slabs, as in `lidar`).

Shape letters: B boxes, R reflections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.payload import Targets
from avrt.world.boxes import folded
from avrt.world.mounting import RADAR, ego_pose

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.boxes import Boxes, Places
    from avrt.world.mounting import Pose
    from avrt.world.road import Ground
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

PERIOD_S = 0.05
VIEW = np.deg2rad(60.0)  # to either side
RANGE_MIN, RANGE_MAX = 1.0, 150.0  # metres
RANGE_SIGMA, AZIMUTH_SIGMA, RATE_SIGMA = 0.15, np.deg2rad(0.5), 0.1  # metres, radians, m/s
CROSS_SECTION = 4.0  # m^2 of a surface of one m^2 that reflects all
NOISE_DBSM, WEAKEST_DB = 2.5, -60.0
CLUTTER, GHOSTS = 3.0, 0.4  # returns a cycle of things that stand still, and of nothing
GHOST_SPEED = 20.0  # m/s
TALLEST_M = 3.5  # what hangs above is out of the beam
GRID = 0.01  # metres and m/s that a target's numbers are whole multiples of


class Sensor(NamedTuple):
    """Where the radar is and how it moves, world frame: metres, radians, m/s."""

    place: Array
    yaw: float
    velocity: Array


def cycle(ground: Ground, boxes: Boxes, motion: Motion, rng: np.random.Generator) -> Targets:
    """Return the targets of one cycle, in the frame of the radar.

    Args:
        ground: that everything stands on.
        boxes: everything that stands there.
        motion: of all users one cycle ago and now, (2, U).
        rng: for what is left to chance.
    """
    pose = ego_pose(ground, motion)
    at = pose.point(RADAR.place)
    sensor = Sensor(at[1, :2], float(motion.yaw[1, 0]), (at[1, :2] - at[0, :2]) / PERIOD_S)
    places = boxes.places(motion, 1)
    found, velocity, power = _reflections(sensor, pose, boxes, places, rng)
    clutter = _clutter(sensor, rng)
    place = np.concatenate([found, clutter[0]])
    velocity = np.concatenate([velocity, clutter[1]])
    power = np.concatenate([power, clutter[2]])
    return _measured(sensor, place, velocity, power, rng)


def _reflections(
    sensor: Sensor, pose: Pose, boxes: Boxes, places: Places, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return place, velocity and power (dB) of what reflects, (R, 2), (R, 2) and (R,)."""
    offset = places.middle[:, :2] - sensor.place
    distance = np.hypot(*offset.T)
    azimuth = folded(np.arctan2(offset[:, 1], offset[:, 0]) - sensor.yaw)
    low = places.middle[:, 2] - boxes.half[:, 2] - pose.origin[1, 2]
    solid = (low < TALLEST_M) & (distance < RANGE_MAX + 10.0)
    seen = np.nonzero(solid & (np.abs(azimuth) < VIEW + 0.1))[0]
    surface = boxes.half[seen, 2] * np.hypot(boxes.half[seen, 0], boxes.half[seen, 1]) * 4
    section = 10 * np.log10(CROSS_SECTION * surface * boxes.reflectivity[seen])
    margin = section - 40 * np.log10(np.maximum(distance[seen], 1.0) / 40.0)
    count = rng.poisson(np.clip(0.35 + 0.06 * margin, 0.0, 2.5))
    index = np.repeat(seen, count)
    place = _near_sides(sensor, boxes, places, index, rng)
    hidden = _hidden(sensor, boxes, places, place, index, np.nonzero(solid)[0])
    power = np.repeat(section, count) + rng.normal(0, NOISE_DBSM, len(index))
    reach = np.hypot(*(place - sensor.place).T)
    power = power - 40 * np.log10(np.maximum(reach, 1.0))
    kept = ~hidden & (power > WEAKEST_DB)
    return place[kept], places.velocity[index[kept]], power[kept]


def _near_sides(
    sensor: Sensor,
    boxes: Boxes,
    places: Places,
    index: NDArray[np.int64],
    rng: np.random.Generator,
) -> Array:
    """Return a place on a side that faces the sensor for each of these boxes, (R, 2)."""
    cos, sin = np.cos(places.yaw[index]), np.sin(places.yaw[index])
    offset = sensor.place - places.middle[index, :2]
    towards = np.stack([cos * offset[:, 0] + sin * offset[:, 1],
                        cos * offset[:, 1] - sin * offset[:, 0]], axis=-1)  # fmt: skip
    half = boxes.half[index, :2]
    local = rng.uniform(-0.95, 0.95, half.shape) * half
    shown = np.abs(towards) > half
    weight = np.where(shown, np.abs(towards) * half[:, ::-1], 0.0) + 1e-9
    first = rng.random(len(index)) * weight.sum(axis=1) < weight[:, 0]
    axis = np.where(first, 0, 1)
    row = np.arange(len(index))
    local[row, axis] = np.sign(towards[row, axis]) * half[row, axis] * 0.98
    x = cos * local[:, 0] - sin * local[:, 1]
    y = sin * local[:, 0] + cos * local[:, 1]
    return np.stack([x, y], axis=-1) + places.middle[index, :2]


def _hidden(
    sensor: Sensor,
    boxes: Boxes,
    places: Places,
    place: Array,
    index: NDArray[np.int64],
    others: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Tell which places, (R, 2), another body hides from the sensor."""
    cos, sin = np.cos(places.yaw[others]), np.sin(places.yaw[others])

    def turned(offset: Array) -> Array:
        x, y = offset[..., 0], offset[..., 1]
        return np.stack([cos * x + sin * y, cos * y - sin * x], axis=-1)

    start = turned(sensor.place - places.middle[others, :2])[None]
    way = turned((place - sensor.place)[:, None])
    half = boxes.half[others, :2]
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (-half - start) / way, (half - start) / way
    enter = np.minimum(first, second).max(axis=-1)
    leave = np.maximum(first, second).min(axis=-1)
    crossed = (enter <= leave) & (enter > 0) & (enter < 0.99)
    owner = boxes.owner
    same = (owner[index][:, None] == owner[others][None]) & (owner[others] >= 0)[None]
    same |= index[:, None] == others[None]
    return np.asarray((crossed & ~same).any(axis=1))


def _clutter(sensor: Sensor, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return place, velocity and power of returns that no body made."""
    still, ghosts = int(rng.poisson(CLUTTER)), int(rng.poisson(GHOSTS))
    count = still + ghosts
    azimuth = sensor.yaw + rng.uniform(-VIEW, VIEW, count)
    range_ = rng.uniform(3.0, 80.0, count)
    towards = np.stack([np.cos(azimuth), np.sin(azimuth)], axis=-1)
    speed = np.where(np.arange(count) < still, 0.0, rng.uniform(-GHOST_SPEED, GHOST_SPEED, count))
    power = rng.uniform(WEAKEST_DB, WEAKEST_DB + 12.0, count)
    return sensor.place + towards * range_[:, None], towards * speed[:, None], power


def _measured(
    sensor: Sensor, place: Array, velocity: Array, power: Array, rng: np.random.Generator
) -> Targets:
    """Return what the sensor says of places and velocities in the world, nearest first."""
    offset = place - sensor.place
    range_ = np.hypot(*offset.T)
    line = offset / np.maximum(range_, 1e-6)[:, None]
    rate = ((velocity - sensor.velocity) * line).sum(axis=1)
    azimuth = folded(np.arctan2(offset[:, 1], offset[:, 0]) - sensor.yaw)
    range_ = range_ + rng.normal(0, RANGE_SIGMA, len(range_))
    azimuth = azimuth + rng.normal(0, AZIMUTH_SIGMA, len(range_))
    rate = rate + rng.normal(0, RATE_SIGMA, len(range_))
    kept = (range_ > RANGE_MIN) & (range_ < RANGE_MAX) & (np.abs(azimuth) < VIEW)
    order = np.nonzero(kept)[0][np.argsort(range_[kept], kind="stable")]
    xy = range_[order, None] * np.stack([np.cos(azimuth[order]), np.sin(azimuth[order])], axis=-1)
    sigma = np.stack([np.full(len(order), RANGE_SIGMA), range_[order] * AZIMUTH_SIGMA], axis=-1)
    return Targets(
        xy=_whole(xy),
        sigma=_whole(sigma),
        range_rate=_whole(rate[order]),
        velocity=np.full((len(order), 2), np.nan, np.float32),
        strength=_whole(power[order]),
        ids=np.full(len(order), -1, np.int64),
    )


def _whole(values: Array) -> NDArray[np.float32]:
    """Return values as whole multiples of the sensor's resolution."""
    return (np.rint(values / GRID) * GRID).astype(np.float32)
