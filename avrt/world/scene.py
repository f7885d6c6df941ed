"""A straight road and who is on it, as functions of time: no state, no steps.

The ego vehicle drives at a constant speed in its lane; a lead vehicle brakes gently; others pass,
come towards it or stand at the roadside. Everything seen is told in the LiDAR's frame at that
moment: x forward, y left, z up, origin at the sensor, metres. The road is a plane that rises by
`slope` along x. The same seed always gives the same scene; `at_ns` is ns since its start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avrt.payload import Box
from avrt.units import NS_PER_S

LANE_WIDTH = 3.5  # metres
POLE_SPACING = 25.0  # metres along the road
POLES_A_SIDE = 24
BRAKING_SPAN = (4.0, 7.0)  # seconds since the start
SPEEDING_UP_SPAN = (8.0, 11.0)
BRAKING = 1.0  # m/s^2


@dataclass(frozen=True, slots=True)
class Actor:
    """A road user that keeps to its lane.

    Attributes:
        id: 1, 2, ...; the same in every frame.
        x, y: centre at the start, relative to the ego vehicle, metres.
        speed: along x over ground at the start, m/s; negative when it comes towards the ego.
        braking: deceleration during `BRAKING_SPAN`, won back in `SPEEDING_UP_SPAN`, m/s^2.
    """

    id: int
    label: str
    x: float
    y: float
    length: float
    width: float
    height: float
    speed: float
    braking: float = 0.0

    def state(self, at_ns: int) -> tuple[float, float]:
        """Return the distance travelled since the start, metres, and the speed, m/s."""
        after = at_ns / NS_PER_S
        lost, behind = _ramp(after, *BRAKING_SPAN)
        won, ahead = _ramp(after, *SPEEDING_UP_SPAN)
        travelled = self.speed * after - self.braking * (behind - ahead)
        return travelled, self.speed - self.braking * (lost - won)

    def is_braking(self, at_ns: int) -> bool:
        start, end = BRAKING_SPAN
        return self.braking > 0 and start <= at_ns / NS_PER_S < end


@dataclass(frozen=True, slots=True)
class Pole:
    """A thin post beside the road; `x` as in `Actor`, it does not move."""

    x: float
    y: float
    side: float
    height: float


@dataclass(frozen=True, slots=True)
class Truth:
    """What is really there: one road user at one instant, in the LiDAR's frame.

    Attributes:
        vx, vy: velocity over ground, m/s.
        braking: it is slowing down, its brake lights are on.
    """

    id: int
    label: str
    box: Box
    vx: float
    vy: float
    braking: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """The whole world; `sensor_height` is the LiDAR's above the road under it, metres."""

    seed: int
    ego_speed: float
    slope: float
    sensor_height: float
    actors: tuple[Actor, ...]
    poles: tuple[Pole, ...]

    def truth(self, at_ns: int) -> tuple[Truth, ...]:
        """Return every road user at this time, nearest first along x."""
        found = [self._truth(actor, at_ns) for actor in self.actors]
        return tuple(sorted(found, key=lambda truth: (abs(truth.box.x), truth.id)))

    def pole_boxes(self, at_ns: int) -> tuple[Box, ...]:
        """Return the poles as boxes in the LiDAR's frame at this time."""
        ego = self.ego_x(at_ns)
        return tuple(
            self._box(pole.x - ego, pole.y, pole.side, pole.side, pole.height)
            for pole in self.poles
        )

    def ego_x(self, at_ns: int) -> float:
        """Return how far the ego vehicle has come, metres."""
        return self.ego_speed * at_ns / NS_PER_S

    def road_z(self, x: float) -> float:
        """Return the height of the road at this distance ahead, in the LiDAR's frame."""
        return self.slope * x - self.sensor_height

    def _truth(self, actor: Actor, at_ns: int) -> Truth:
        travelled, speed = actor.state(at_ns)
        x = actor.x + travelled - self.ego_x(at_ns)
        yaw = np.pi if speed < 0 else 0.0
        box = self._box(x, actor.y, actor.length, actor.width, actor.height, yaw)
        return Truth(actor.id, actor.label, box, speed, 0.0, actor.is_braking(at_ns))

    def _box(
        self, x: float, y: float, length: float, width: float, height: float, yaw: float = 0.0
    ) -> Box:
        return Box(x, y, self.road_z(x) + height / 2, length, width, height, yaw)


def make_scene(seed: int = 0) -> Scene:
    """Return the scene of this seed: the same road users, a little different in place and size."""
    rng = np.random.default_rng(seed)

    def near(value: float, spread: float = 0.03) -> float:
        return float(value * rng.uniform(1 - spread, 1 + spread))

    speed = near(12.0)
    actors = (
        Actor(1, "car", near(22.0), 0.0, near(4.2), near(1.8), near(1.5), speed, BRAKING),
        Actor(2, "truck", near(38.0), LANE_WIDTH, near(9.0), near(2.4), near(3.2), near(9.5)),
        Actor(3, "car", near(95.0), 2 * LANE_WIDTH, near(4.4), near(1.8), near(1.5), -near(11.0)),
        Actor(4, "car", near(55.0), -LANE_WIDTH, near(4.0), near(1.7), near(1.5), 0.0),
    )
    poles = tuple(
        Pole(POLE_SPACING * index + near(5.0), y, 0.25, near(4.0))
        for y in (-1.75 * LANE_WIDTH, 2.9 * LANE_WIDTH)
        for index in range(POLES_A_SIDE)
    )
    return Scene(
        seed=seed,
        ego_speed=speed,
        slope=0.01,
        sensor_height=1.7,
        actors=actors,
        poles=poles,
    )


def _ramp(after: float, start: float, end: float) -> tuple[float, float]:
    """Return speed and distance won by 1 m/s^2 between `start` and `end`, seconds."""
    pushed = min(max(after - start, 0.0), end - start)
    coasted = max(after - end, 0.0)
    return pushed, pushed * (pushed / 2 + coasted)
