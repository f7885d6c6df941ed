"""Satellite fixes in the frame of the filter: how its axes lie on the earth is found by driving.

The filter's frame begins where the vehicle began, along its heading then, which nobody knows on the
earth. So fixes are only differences at first: how far the vehicle has come tells its speed. Once it
has come far enough for the direction to mean something, that direction is taken for the heading
half way, and the frame is anchored: from then on fixes are positions in it. The vehicle is taken to
drive forwards unless its speed is known to be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.stages.ego import readings
from avrt.stages.ego.vehicle import (
    SPEED,
    YAW,
    YAW_RATE,
    Reading,
    Vehicle,
    X,
    Y,
    moved,
    with_variance,
)
from avrt.stages.geometry import wrapped

if TYPE_CHECKING:
    from avrt.stages.ego.geodesy import LocalPlane

MOVED_MIN = 2.0  # metres
MOVED_SIGMAS = 6.0  # a shorter way has no direction worth knowing
BASE_SECONDS_MAX = 2.0  # a way that takes longer is measured from a new base
SPEED_MAX = 100.0  # m/s: faster is no driving, the receiver jumped
SPEED_CHANGE = 1.0  # m/s^2: how much the speed may have changed along a way, for each second
REVERSE = -0.5  # m/s


@dataclass(frozen=True, slots=True)
class Place:
    """A fix in the plane: when, metres east and north, and its standard deviation in metres."""

    capture_ns: int
    east: float
    north: float
    sigma: float


@dataclass(frozen=True, slots=True)
class Base:
    """The fix that ways are measured from, and the vehicle's yaw there."""

    place: Place
    yaw: float


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where a point of the plane lies in the filter's frame, and the angle between the two."""

    east: float
    north: float
    x: float
    y: float
    angle: float

    def position(self, place: Place) -> Reading:
        """Return what a fix says about the vehicle's position."""
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        de, dn = place.east - self.east, place.north - self.north
        x, y = self.x + de * cos - dn * sin, self.y + de * sin + dn * cos
        return readings.position(x, y, place.sigma)


@dataclass(frozen=True, slots=True)
class Satellites:
    """What is known of the receiver: the plane of its first fix, and its base or its anchor."""

    plane: LocalPlane | None = None
    base: Base | None = None
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How the vehicle came from the base to another fix.

    Attributes:
        speed: what it says about the speed.
        direction: of its end, from east towards north, turned by half if the vehicle backed.
        sigma: of the direction, radians; infinite where the way is too short to have one.
        seconds: how long it took.
        place_sigma: of its end, metres.
    """

    speed: Reading
    direction: float
    sigma: float
    seconds: float
    place_sigma: float


def base_at(place: Place, vehicle: Vehicle, age: float) -> Base:
    """Return a base at a fix that is `age` seconds older than the state."""
    return Base(place, float(moved(vehicle.mean, -age)[0][YAW]))


def way_from(base: Base, place: Place, vehicle: Vehicle) -> Way | None:
    """Return the way from the base to a fix, or None if no vehicle drives like that.

    Noise makes ways longer: its share of the square of the distance is taken off.
    """
    de, dn = place.east - base.place.east, place.north - base.place.north
    seconds = (place.capture_ns - base.place.capture_ns) / 1e9
    sigma = math.hypot(base.place.sigma, place.sigma)
    metres = math.sqrt(max(0.0, de * de + dn * dn - 2 * sigma * sigma))
    if seconds <= 0 or metres > SPEED_MAX * seconds:
        return None
    sign = -1.0 if vehicle.mean[SPEED] < REVERSE else 1.0
    along = readings.speed(sign * metres / seconds, sigma / seconds + SPEED_CHANGE * seconds / 2)
    has_direction = metres > max(MOVED_MIN, MOVED_SIGMAS * place.sigma)
    spread = sigma / metres if has_direction else math.inf
    return Way(along, math.atan2(sign * dn, sign * de), spread, seconds, place.sigma)


def anchored(base: Base, way: Way, place: Place, vehicle: Vehicle, age: float) -> Anchor:
    """Return the anchor at the end of a way with a direction; the state knows its speed already."""
    pose, _ = moved(vehicle.mean, -age)
    half_way = base.yaw + wrapped(float(pose[YAW]) - base.yaw) / 2
    angle = wrapped(half_way - way.direction)
    return Anchor(place.east, place.north, float(pose[X]), float(pose[Y]), angle)


def anchored_vehicle(vehicle: Vehicle, way: Way) -> Vehicle:
    """Return the state at the end of a way that its frame is anchored by.

    In the anchored frame the place is wrong by the fix's noise only, and the heading by the noise
    of the way's direction and by how the vehicle may have turned on the way.
    """
    turned = float(vehicle.covariance[YAW_RATE, YAW_RATE]) * (way.seconds / 2) ** 2
    place = way.place_sigma**2
    return with_variance(vehicle, {X: place, Y: place, YAW: way.sigma**2 + turned})
