"""Five situations that perception has to get right, each a little different with every seed.

All begin on the same kind of road: two lanes in the vehicle's direction, one against it, parked
cars, trees, houses. The vehicle starts in the outer lane. `SCENES` names what happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import SpecError, did_you_mean
from avrt.world import bodies
from avrt.world.road import (
    INNER_LANE,
    ONCOMING_LANE,
    OUTER_LANE,
    PARKING,
    ROAD_LEFT,
    ROAD_RIGHT,
    make_road,
)
from avrt.world.traffic import ChangeLane, ChangeSpeed, RoadUser, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.world.bodies import Colour, Part
    from avrt.world.road import Road

    Maker = Callable[["Cast"], None]

PAINTS: tuple[Colour, ...] = (
    (165, 40, 40), (40, 70, 140), (200, 200, 205), (30, 32, 38), (110, 115, 120),
    (225, 225, 225), (45, 95, 65), (190, 150, 60), (120, 60, 110), (60, 120, 160),
)  # fmt: skip
CLOTHES: tuple[Colour, ...] = (
    (180, 50, 60), (40, 60, 120), (220, 190, 60), (60, 130, 80), (90, 90, 95), (230, 120, 40),
)  # fmt: skip
WALLS: tuple[Colour, ...] = (
    (196, 178, 150), (178, 120, 98), (205, 200, 190), (150, 155, 160), (214, 196, 140),
)  # fmt: skip
GREENS: tuple[Colour, ...] = ((62, 98, 50), (80, 112, 58), (52, 84, 52))
EGO_SIZE = (4.5, 1.8, 1.55)
WALKING = 1.5  # m/s
SETTING_FROM, SETTING_TO = -70.0, 460.0  # metres along the road


class Fixture(NamedTuple):
    """A body that stands beside the road: metres along, aside; radians from the road's heading."""

    s: float
    d: float
    turn: float
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Scene:
    """Everything that a world begins with.

    Attributes:
        users: the vehicle itself is the first.
        key_user: id of the user that the scene is about.
        sun: direction of the light, unit vector to the sun, world frame.
        haze: metres after which colours have faded by 63 %.
    """

    name: str
    seed: int
    road: Road
    users: tuple[RoadUser, ...]
    fixtures: tuple[Fixture, ...]
    key_user: int
    sun: tuple[float, float, float]
    haze: float


class Cast:
    """Collects the users of a scene; draws what is left to chance."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.users: list[RoadUser] = []
        self.key_user = 0
        self.ego_speed = self.near(12.5)
        self.add("car", 0.0, OUTER_LANE, self.ego_speed, size=EGO_SIZE, colour=(230, 230, 230))

    def near(self, value: float, spread: float = 0.06) -> float:
        """Return a value near another."""
        return float(value * self.rng.uniform(1 - spread, 1 + spread))

    def pick(self, colours: tuple[Colour, ...]) -> Colour:
        return colours[int(self.rng.integers(len(colours)))]

    def add(  # noqa: PLR0913 - what a road user has
        self,
        label: str,
        s: float,
        d: float,
        speed: float,
        *manoeuvres: ChangeLane | ChangeSpeed | Walk,
        direction: int = 1,
        size: tuple[float, float, float] | None = None,
        colour: Colour | None = None,
    ) -> int:
        """Add a user and return its id."""
        length, width, height = SIZES[label] if size is None else size
        if size is None:
            size = self.near(length), self.near(width, 0.04), self.near(height)
        paints = CLOTHES if label in {"pedestrian", "cyclist"} else PAINTS
        colour = self.pick(paints) if colour is None else colour
        user = RoadUser(
            len(self.users), label, s, d, speed, direction, size, colour, tuple(manoeuvres)
        )
        self.users.append(user)
        return user.id

    def parked(self, start: float, end: float, share: float = 0.5) -> None:
        """Fill the parking strip between two places along the road."""
        s = start + float(self.rng.uniform(0, 4))
        while s < end:
            if self.rng.random() < share:
                self.add("car", s, PARKING + float(self.rng.uniform(-0.1, 0.1)), 0.0)
            s += self.near(7.0, 0.1)

    def oncoming(self, *places: float) -> None:
        """Let cars come towards the vehicle from places along the road."""
        for s in places:
            self.add("car", self.near(s), ONCOMING_LANE, self.near(11.0), direction=-1)


SIZES: Mapping[str, tuple[float, float, float]] = {
    "car": (4.3, 1.8, 1.5),
    "truck": (9.0, 2.45, 3.2),
    "cyclist": (1.75, 0.55, 1.75),
    "pedestrian": (0.45, 0.55, 1.75),
}


def _cut_in(cast: Cast) -> None:
    """A car overtakes on the inner lane and cuts in close ahead, then slows down."""
    v = cast.ego_speed
    cast.add("car", cast.near(75.0), OUTER_LANE, cast.near(v, 0.03))
    at = cast.near(8.0)
    faster = v + cast.near(4.0)
    start = cast.near(14.0) - (faster - v) * at  # that far ahead when it begins to cut in
    cast.key_user = cast.add(
        "car",
        start,
        INNER_LANE,
        faster,
        ChangeLane(at, cast.near(2.4), OUTER_LANE),
        ChangeSpeed(at, v - cast.near(3.0), 2.5),
    )
    cast.add("truck", cast.near(60.0), INNER_LANE, cast.near(v + 2.5, 0.02))
    cast.oncoming(70.0, 160.0, 300.0)
    cast.parked(25.0, 110.0)
    cast.add("cyclist", cast.near(150.0), OUTER_LANE - 1.9, cast.near(4.5))


def _hard_brake(cast: Cast) -> None:
    """The car ahead brakes as hard as it can, to a stop."""
    v = cast.ego_speed
    at = cast.near(7.0)
    cast.key_user = cast.add(
        "car", cast.near(30.0), OUTER_LANE, v, ChangeSpeed(at, 0.0, cast.near(6.5))
    )
    cast.add("car", cast.near(20.0), INNER_LANE, cast.near(v + 1.0, 0.03))
    cast.add("truck", cast.near(-25.0), INNER_LANE, cast.near(v, 0.03))
    cast.oncoming(90.0, 130.0, 270.0)
    cast.parked(20.0, 170.0, 0.4)


def _jaywalker(cast: Cast) -> None:
    """Somebody steps onto the road between parked cars."""
    v, at = cast.ego_speed, cast.near(7.0)
    place = v * at + cast.near(38.0)
    walk = Walk(at, cast.near(WALKING), ROAD_LEFT + 1.5)
    cast.key_user = cast.add("pedestrian", place, ROAD_RIGHT - 0.4, 0.0, walk, direction=0)
    cast.add("pedestrian", place + 14.0, ROAD_RIGHT - 1.3, 0.0, direction=0)
    cast.add("car", cast.near(-30.0), INNER_LANE, cast.near(v, 0.03))
    cast.parked(20.0, place - 3.5, 0.7)
    cast.parked(place + 5.0, place + 60.0, 0.7)
    cast.oncoming(place + 90.0, place + 150.0)


def _occlusion(cast: Cast) -> None:
    """A cyclist comes out from before a truck that stands at the roadside and hides it."""
    v, at = cast.ego_speed, cast.near(7.5)
    place = v * at + cast.near(30.0)
    half = SIZES["truck"][0] / 2
    cast.add("truck", place - half - 1.5, PARKING + 0.2, 0.0, size=(9.0, 2.5, 3.3))
    cast.key_user = cast.add(
        "cyclist",
        place + 1.6,
        PARKING + 0.3,
        0.0,
        ChangeLane(at, cast.near(2.2), OUTER_LANE + 0.3),
        ChangeSpeed(at - 0.5, cast.near(4.0), 2.0),
    )
    cast.add("car", cast.near(60.0), OUTER_LANE, cast.near(v + 3.0, 0.03))
    cast.parked(20.0, place - 16.0, 0.5)
    cast.parked(place + 50.0, place + 110.0, 0.5)
    cast.oncoming(100.0, 190.0, 280.0)


def _jam(cast: Cast) -> None:
    """The end of a traffic jam that moves on in fits and starts."""
    place = cast.near(105.0)
    for lane in (OUTER_LANE, INNER_LANE):
        s, lag = place + float(cast.rng.uniform(0, 5)), 0.0
        for _ in range(4):
            label = "truck" if cast.rng.random() < 0.2 else "car"
            length = SIZES[label][0]
            go, stop = cast.near(9.0, 0.1) - lag, cast.near(14.0, 0.1)
            user = cast.add(
                label,
                s + length / 2,
                lane,
                0.0,
                ChangeSpeed(max(0.5, go), cast.near(4.0), 1.0),
                ChangeSpeed(stop, 0.0, 1.5),
            )
            cast.key_user = cast.key_user or user
            s += length + cast.near(4.0, 0.2)
            lag += 1.0
    cast.add("car", cast.near(-18.0), INNER_LANE, cast.near(cast.ego_speed, 0.03))
    cast.oncoming(60.0, 110.0, 210.0, 290.0)
    cast.parked(15.0, 90.0, 0.4)


SCENES: Mapping[str, Maker] = {
    "cut_in": _cut_in,
    "hard_brake": _hard_brake,
    "jaywalker": _jaywalker,
    "occlusion": _occlusion,
    "traffic_jam": _jam,
}


def make_scene(name: str, seed: int = 0) -> Scene:
    """Return the scene of a name and a seed; the same two always give the same scene.

    Raises:
        SpecError: there is no scene of that name, or no such seed.
    """
    if name not in SCENES:
        raise SpecError(f"there is no scene {name!r}; {did_you_mean(name, SCENES)}")
    if seed < 0:
        raise SpecError(f"expected a seed of 0 or more, found {seed}")
    rng = np.random.default_rng((seed, list(SCENES).index(name)))
    road = make_road(rng)
    cast = Cast(rng)
    SCENES[name](cast)
    turn, up = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.5, 1.1))
    sun = (np.cos(turn) * np.cos(up), np.sin(turn) * np.cos(up), np.sin(up))
    return Scene(
        name=name,
        seed=seed,
        road=road,
        users=tuple(cast.users),
        fixtures=_setting(rng),
        key_user=cast.key_user,
        sun=(float(sun[0]), float(sun[1]), float(sun[2])),
        haze=float(rng.uniform(150.0, 500.0)),
    )


def _setting(rng: np.random.Generator) -> tuple[Fixture, ...]:
    """Return what stands beside the road."""
    found: list[Fixture] = []
    for side, edge in ((-1, ROAD_RIGHT), (1, ROAD_LEFT)):
        for s in np.arange(SETTING_FROM, SETTING_TO, 28.0):
            turn = np.pi if side > 0 else 0.0
            found.append(Fixture(float(s), edge + side * 0.8, turn, bodies.pole(6.0)))
        s = SETTING_FROM
        while s < SETTING_TO:
            s += float(rng.uniform(6.0, 18.0))
            crown, height = float(rng.uniform(2.2, 3.6)), float(rng.uniform(5.0, 8.0))
            green = GREENS[int(rng.integers(len(GREENS)))]
            d = edge + side * float(rng.uniform(2.6, 4.0))
            found.append(Fixture(s, d, 0.0, bodies.tree(height, crown, green)))
        s = SETTING_FROM
        while s < SETTING_TO:
            length, width = float(rng.uniform(8.0, 13.0)), float(rng.uniform(8.0, 11.0))
            height = float(rng.integers(2, 5)) * 3.0
            wall = WALLS[int(rng.integers(len(WALLS)))]
            d = edge + side * (float(rng.uniform(7.5, 11.0)) + width / 2)
            s += length / 2
            if rng.random() < 0.75:
                found.append(Fixture(s, d, 0.0, bodies.house(length, width, height, wall)))
            s += length / 2 + float(rng.uniform(1.0, 9.0))
    return tuple(found)
