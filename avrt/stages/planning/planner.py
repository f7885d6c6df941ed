"""Decide how to drive in the scene: the `Planner` stage.

Trajectories are sampled (module `trajectories`), those that would touch a predicted object are
dropped, and the cheapest of the rest is taken: it should be smooth, near the cruise speed, in the
middle, and keep a constant time gap behind what is ahead (Ioannou and Chien, "Autonomous
Intelligent Cruise Control", IEEE Trans. Vehicular Technology 42(4), 1993). Hard braking is a choice
only where nothing gentler avoids contact, so there is always something that caused it. If no sample
is left, the emergency stop is taken; it needs no sample and is always there.

All this happens along and aside the arc on which the vehicle is (module `reference`), so a bend of
the road puts nobody into its way who is not; others are predicted along it too.

Confirmed tracks are predicted at constant velocity. A tentative one makes nobody brake, but nobody
speeds up towards it either. Their outlines grow with the standard deviation
of the predicted position, up to GROWTH_MAX: what is not known for sure takes more room. A sideways
speed counts only where it is larger than twice its standard deviation.

Shape letters: J trajectories, S instants, B obstacles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.model.stage import Stage
from avrt.payload import Plan, PlanCause
from avrt.payload.footprint import half_extents
from avrt.stages.parameters import check_not_negative, check_number, check_positive
from avrt.stages.planning.reference import Arc
from avrt.stages.planning.trajectories import (
    INSTANTS,
    Limits,
    Trajectories,
    chosen,
    emergency_stop,
    sample,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Track, Tracks

HARD_BRAKING = 3.0  # m/s^2: beyond this the plan says what made it brake
CONTACT = 0.3  # metres: a smaller gap counts as touching
GROWTH_MAX = (1.5, 0.4)  # metres along and across that uncertainty may add to an outline
OBSTACLES_MAX = 64
STANDING = 0.05  # m/s


@dataclass(frozen=True, slots=True)
class Obstacles:
    """The tracks that matter, predicted at INSTANTS in the vehicle's frame at instant 0.

    Attributes:
        near, far: (B, S) float64, metres: extent along x.
        right, left: (B, S) float64, metres: extent along y.
    """

    tracks: tuple[Track, ...]
    near: NDArray[np.float64]
    far: NDArray[np.float64]
    right: NDArray[np.float64]
    left: NDArray[np.float64]


class Planner(Stage):
    """Turn a scene into a plan.

    Args:
        cruise_speed: on a free road, m/s.
        time_gap: to the vehicle ahead, seconds.
        standstill_gap: to the vehicle ahead at rest, metres.
        front_offset: from the origin of the scene's frame forward to the front bumper, metres.
        rear_offset: from there back to the rear bumper, metres.
        half_width: of the vehicle, metres.
        margin: kept to the side of any object, metres.
        acceleration_max, braking_max: m/s^2, both positive.
        jerk_max: m/s^3, of every plan but the emergency stop.
        curvature_max: 1/m.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        cruise_speed: float = 13.9,
        time_gap: float = 1.5,
        standstill_gap: float = 1.5,
        front_offset: float = 2.7,
        rear_offset: float = 1.9,
        half_width: float = 0.9,
        margin: float = 0.3,
        acceleration_max: float = 2.0,
        braking_max: float = 8.0,
        jerk_max: float = 12.0,
        curvature_max: float = 0.2,
    ) -> None:
        check_positive(
            cruise_speed=cruise_speed,
            time_gap=time_gap,
            half_width=half_width,
            acceleration_max=acceleration_max,
            braking_max=braking_max,
            jerk_max=jerk_max,
            curvature_max=curvature_max,
        )
        check_not_negative(standstill_gap=standstill_gap, margin=margin)
        check_number(front_offset=front_offset, rear_offset=rear_offset)
        self.cruise_speed = cruise_speed
        self.time_gap = time_gap
        self.standstill_gap = standstill_gap
        self.front_offset = front_offset
        self.rear_offset = rear_offset
        self.half_width = half_width
        self.margin = margin
        self.limits = Limits(acceleration_max, braking_max, jerk_max, 40.0, curvature_max)

    def process(self, scene: Message[Tracks]) -> Plan:
        """Return what to do from the scene's capture time on."""
        speed = max(0.0, scene.payload.ego_speed)
        arc = Arc.of(speed, scene.payload.yaw_rate)
        obstacles = self._predicted(scene.payload, arc, confirmed=True)
        made = sample(speed, self.cruise_speed, self.limits)
        gap = self._gaps(made, obstacles)
        safe = (_smallest(gap) > CONTACT) & self._clear(made, obstacles)
        doubtful = self._gaps(made, self._predicted(scene.payload, arc, confirmed=False))
        safe &= (made.last_speed <= speed) | (_smallest(doubtful) > CONTACT)
        gentle = made.acceleration.min(axis=1) >= -HARD_BRAKING
        ahead = self._ahead(obstacles, gap[0])
        for allowed in (safe & gentle, safe):
            if allowed.any():
                cost = np.where(allowed, self._cost(made, gap), math.inf)
                return self._plan(_one(made, int(np.argmin(cost))), arc, ahead, speed)
        return self._plan(_one(emergency_stop(speed, self.limits), 0), arc, ahead, speed)

    def _predicted(self, scene: Tracks, arc: Arc, *, confirmed: bool) -> Obstacles:
        tracks = [one for one in scene.objects if one.confirmed == confirmed and one.box.x > 0]
        tracks.sort(key=lambda one: (one.nearest_x, one.id))
        rows = [_extents(one, arc, self.margin) for one in tracks[:OBSTACLES_MAX]]
        shape = (len(rows), 4, len(INSTANTS))
        sides = np.array(rows).reshape(shape)
        return Obstacles(
            tuple(tracks[:OBSTACLES_MAX]), sides[:, 0], sides[:, 1], sides[:, 2], sides[:, 3]
        )

    def _gaps(self, made: Trajectories, obstacles: Obstacles) -> NDArray[np.float64]:
        """Return the distance from the front bumper to each object in the way, (J, B, S), metres.

        It is infinite where the object is not in the way: beside the trajectory, or behind it.
        """
        aside = made.aside[:, None, :]
        overlap = (aside - self.half_width < obstacles.left) & (
            aside + self.half_width > obstacles.right
        )
        started_ahead = obstacles.far[:, :1] > self.front_offset
        gap = obstacles.near - (made.along[:, None, :] + self.front_offset)
        return np.where(overlap & started_ahead, gap, math.inf)

    def _clear(self, made: Trajectories, obstacles: Obstacles) -> NDArray[np.bool_]:
        """Tell which trajectories never move sideways into an object beside the vehicle, (J,)."""
        aside = made.aside[:, None, :]
        beside = (obstacles.near < made.along[:, None, :] + self.front_offset) & (
            obstacles.far > made.along[:, None, :] - self.rear_offset
        )
        overlap = (aside - self.half_width < obstacles.left) & (
            aside + self.half_width > obstacles.right
        )
        moved = np.abs(aside) > 1e-6
        return np.asarray(~(beside & overlap & moved).any(axis=(1, 2)))

    def _cost(self, made: Trajectories, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost of each trajectory, (J,); the terms are means over time, of no unit."""
        wanted = self.standstill_gap + self.time_gap * made.speed
        nearest = gap.min(axis=1, initial=math.inf)
        short = np.maximum(wanted - nearest, 0.0) / np.maximum(wanted, 1.0)
        slow = (made.speed - self.cruise_speed) / self.cruise_speed
        return np.asarray(
            8.0 * (short**2).mean(axis=1)
            + 1.0 * (slow**2).mean(axis=1)
            + 0.05 * (made.acceleration**2).mean(axis=1)
            + 0.002 * made.jerk**2 / len(INSTANTS)
            + 0.3 * made.last_aside**2
        )

    def _ahead(self, obstacles: Obstacles, gap: NDArray[np.float64]) -> Track | None:
        """Return the object that keeping on would meet first: least gap, (B, S), over its time."""
        if gap.size == 0 or not np.isfinite(gap).any():
            return None
        return obstacles.tracks[int(np.argmin(gap.min(axis=1)))]

    def _plan(self, made: Trajectories, arc: Arc, ahead: Track | None, speed: float) -> Plan:
        """Return the plan that is the one trajectory of `made`, along an arc."""
        braking = -float(made.acceleration.min())
        gap = None
        if ahead is not None:
            gap = max(0.0, ahead.nearest_x - self.front_offset) / max(speed, STANDING)
        kind = "cruise" if ahead is None else "follow"
        if braking > HARD_BRAKING:
            kind = "brake"
        if made.speed[0, -1] < STANDING:
            kind = "stop"
        cause = None
        if ahead is not None and (braking > HARD_BRAKING or kind == "stop"):
            cause = PlanCause(
                track_id=ahead.id,
                sensors=ahead.sensors,
                points=ahead.points,
                distance=ahead.nearest_x - self.front_offset,
                closing_speed=ahead.closing_speed,
                impact_speed=self._impact_speed(made, arc, ahead),
            )
        xy, heading = arc.bent(made.along[0], made.aside[0])
        return Plan(
            t=INSTANTS.copy(),
            xy=xy,
            yaw=heading + made.yaw[0],
            speed=made.speed[0],
            acceleration=made.acceleration[0],
            curvature=arc.curvature + made.curvature[0],
            kind=kind,
            time_gap=gap,
            cause=cause,
        )

    def _impact_speed(self, made: Trajectories, arc: Arc, ahead: Track) -> float:
        """Return how fast the one trajectory of `made` meets a track, m/s; 0 if it does not.

        The track is where it was seen, without what uncertainty adds: it is a forecast, no margin.
        """
        near, _, heading = arc.along(ahead.nearest_x, ahead.box.y)
        forward = ahead.vx * math.cos(heading) + ahead.vy * math.sin(heading)
        gap = near + forward * INSTANTS - self.front_offset - made.along[0]
        closing = made.speed[0] - forward
        met = np.flatnonzero((gap <= 0) & (closing > 0))
        if not met.size:
            return 0.0
        after = int(met[0])
        if after == 0:
            return float(closing[0])
        share = gap[after - 1] / (gap[after - 1] - gap[after])
        return float(closing[after - 1] + share * (closing[after] - closing[after - 1]))


def _smallest(gap: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(gap.min(axis=(1, 2), initial=math.inf))


def _one(made: Trajectories, index: int) -> Trajectories:
    return chosen(made, np.array([index]))


def _extents(track: Track, arc: Arc, margin: float) -> NDArray[np.float64]:
    """Return near, far, right and left of a track along an arc at INSTANTS, (4, S), metres."""
    t = INSTANTS
    p = track.covariance
    grown_x = np.minimum(np.sqrt(p[0, 0] + 2 * t * p[0, 2] + t**2 * p[2, 2]), GROWTH_MAX[0])
    grown_y = np.minimum(np.sqrt(p[1, 1] + 2 * t * p[1, 3] + t**2 * p[3, 3]), GROWTH_MAX[1])
    middle, aside, heading = arc.along(track.box.x, track.box.y)
    along, across = half_extents(replace(track.box, yaw=track.box.yaw - heading))
    cos, sin = math.cos(heading), math.sin(heading)
    forward, sideways = track.vx * cos + track.vy * sin, track.vy * cos - track.vx * sin
    sideways = sideways if abs(sideways) > 2 * math.sqrt(p[3, 3]) else 0.0
    x, y = forward * t, aside + sideways * t
    near = arc.along(min(track.nearest_x, track.box.x), track.box.y)[0]
    return np.stack(
        [
            near + x - grown_x,
            middle + along + x + grown_x,
            y - across - grown_y - margin,
            y + across + grown_y + margin,
        ]
    )
