"""Who is on the road and how they move, in steps of 20 ms.

Along the road a driver follows the Intelligent Driver Model (Treiber, Hennecke and Helbing,
"Congested traffic states in empirical observations and microscopic simulations", Physical Review E
62, 1805, 2000):

    a = a_max (1 - (gap_wanted / gap)^2),   gap_wanted = s0 + v T + v dv / (2 sqrt(a_max b))

towards whoever is next in its corridor, and at most what brings it to the speed it wishes. Aside
it does what its manoeuvres say: a lane change along the quintic of least jerk, a walk at constant
speed. A corridor counts who is in it and who will be within a second, or who walks into it within
two and a half, so a driver sees a car that cuts in and yields to walkers; for one whom its own
front has passed it does not stop. The vehicle itself is the first of the users: it is driven like
the others, or by a `Control` (kinematic bicycle), to which the others react just as well.

Nothing is random here, and no time but the steps counts. Shape letters: T steps, U users, K
instants that are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.world.bodies import Colour
    from avrt.world.road import Road

    Array = NDArray[np.float64]

STEP_S = 0.02
EGO = 0  # the vehicle itself is the first of the users
SLACK = 1e-6  # steps: what rounding adds to a time
SPEEDING_UP, COMFORTABLE, HARDEST = 1.5, 2.0, 8.0  # m/s^2
TIME_GAP, STANDSTILL_GAP = 1.3, 2.5  # seconds, metres
EAGERNESS = 0.4  # seconds in which a driver makes up for a wrong speed
SIDE_MARGIN = 0.35  # metres
FORESIGHT, WALKERS_FORESIGHT = 1.0, 2.5  # seconds
SEES = 120.0  # metres


class ChangeLane(NamedTuple):
    """Move to another `d`, metres, from a time on, within some seconds."""

    at: float
    seconds: float
    d: float


class Walk(NamedTuple):
    """Walk aside to another `d`, metres, from a time on, m/s."""

    at: float
    speed: float
    d: float


class ChangeSpeed(NamedTuple):
    """Wish another speed, m/s, from a time on; come to it by `rate`, m/s^2."""

    at: float
    speed: float
    rate: float


@dataclass(frozen=True, slots=True)
class RoadUser:
    """Somebody on the road.

    Attributes:
        id: 1, 2, ...; 0 is the vehicle itself.
        s, d: where the middle is at the start, metres along and aside.
        speed: at the start, m/s, which is also what it wishes.
        direction: 1 along the road, -1 against it, 0 for who walks across.
        size: length, width, height, metres.
        manoeuvres: what it does beside following; one of a kind begins when the one before ended.
    """

    id: int
    label: str
    s: float
    d: float
    speed: float
    direction: int
    size: tuple[float, float, float]
    colour: Colour
    manoeuvres: tuple[ChangeLane | ChangeSpeed | Walk, ...] = ()


class EgoState(NamedTuple):
    """How the vehicle moves now: world frame, metres, radians, m/s.

    Attributes:
        at: seconds since the start.
        offset: to the left of the lane that it began in.
        heading: from that of the road, left positive.
        bend: curvature of the road, 1/m, left positive.
    """

    at: float
    x: float
    y: float
    yaw: float
    speed: float
    offset: float
    heading: float
    bend: float


class Control(Protocol):
    """Who drives the vehicle."""

    def __call__(self, state: EgoState) -> tuple[float, float]:
        """Return the acceleration, m/s^2, and the curvature of the path, 1/m, for one step."""


class Motion(NamedTuple):
    """All users at K instants, (K, U) each.

    Attributes:
        x, y: middle, world frame, metres.
        yaw: where they face, radians.
        vx, vy: velocity, world frame, m/s.
        speed: along where they face, m/s.
        acceleration: along the road, m/s^2, negative while they brake.
        s: where they are along the road, metres.
    """

    x: Array
    y: Array
    yaw: Array
    vx: Array
    vy: Array
    speed: Array
    acceleration: Array
    s: Array


class Traffic:
    """All users of a road, from the start to as far as `advance` has come."""

    def __init__(self, road: Road, users: Sequence[RoadUser], seconds: float) -> None:
        """Place the users; `seconds` is how far the drive may go at most."""
        self.road = road
        self.users = tuple(users)
        self._direction = np.array([float(user.direction) for user in users])
        self._facing = np.array([_facing(user) for user in users])
        self._length = np.array([user.size[0] for user in users])
        self._width = np.array([user.size[1] for user in users])
        times = np.arange(math.ceil(seconds / STEP_S) + 2, dtype=np.float64) * STEP_S
        self._d = np.stack([_aside(user, times) for user in users], axis=1)
        self._wish = np.stack([_wished(user, times) for user in users], axis=1)
        self._steps = 0
        self._s = np.array([user.s for user in users])
        self._v = np.array([user.speed for user in users])
        self._ego: EgoState | None = None
        self._rows = np.zeros((len(times), len(Motion._fields), len(users)))
        self._rows[0] = self._row(np.zeros(len(users)))

    def advance(self, until: float, control: Control | None = None) -> None:
        """Go on until a time, seconds since the start; `control` drives the vehicle.

        Raises:
            SpecError: somebody drove the vehicle and lets go of it, or drives by what is no number.
        """
        if control is None and self._ego is not None:
            raise SpecError("the vehicle was driven by a control; give one to the end")
        last = min(math.ceil(until / STEP_S - 1e-9), len(self._rows) - 1)
        while self._steps < last:
            driven = None if control is None else self._driven(control)
            acceleration = self._accelerations()
            self._steps += 1
            before = self._v.copy()
            self._v = np.maximum(0.0, before + acceleration * STEP_S)
            self._s = self._s + self._direction * (before + self._v) / 2 * STEP_S
            if driven is not None:
                self._place(*driven)
            acceleration = (self._v - before) / STEP_S
            self._rows[self._steps] = self._row(acceleration)

    def at(self, seconds: Array) -> Motion:
        """Return all users at times that `advance` has passed, (K,) seconds since the start.

        Before the start everybody moved as in the first step.

        Raises:
            SpecError: somebody asks for later.
        """
        position = np.asarray(seconds) / STEP_S
        if position.max() > self._steps + SLACK:
            come, wanted = self._steps * STEP_S, float(np.max(seconds))
            what = f"the world has come to {come:g} s and cannot be read at {wanted:g} s"
            raise SpecError(f"{what}; advance it first")
        index = np.clip(position.astype(np.int64), 0, max(0, self._steps - 1))
        share = (position - index)[:, None, None]
        following = np.minimum(index + 1, self._steps)
        mixed = self._rows[index] * (1 - share) + self._rows[following] * share
        return Motion(*np.moveaxis(mixed, 1, 0))

    def _row(self, acceleration: Array) -> Array:
        """Return what `Motion` holds, for now: (8, U)."""
        d, aside = self._sideways()
        x, y, heading = self.road.place(self._s, d)
        along = self._direction * self._v
        slip = self._direction * np.arctan2(aside, np.maximum(self._v, 0.5))
        vx = along * np.cos(heading) - aside * np.sin(heading)
        vy = along * np.sin(heading) + aside * np.cos(heading)
        yaw = heading + self._facing + slip
        row = np.stack([x, y, yaw, vx, vy, np.hypot(vx, vy), acceleration, self._s])
        if self._ego is not None:
            ego = self._ego
            cos, sin = math.cos(ego.yaw), math.sin(ego.yaw)
            row[:6, EGO] = ego.x, ego.y, ego.yaw, ego.speed * cos, ego.speed * sin, ego.speed
        return row

    def _sideways(self) -> tuple[Array, Array]:
        """Return how far aside the users are, metres, and how fast they go there, m/s."""
        k = self._steps
        return self._d[k], (self._d[k] - self._d[max(0, k - 1)]) / STEP_S

    def _accelerations(self) -> Array:
        """Return what each driver does in the next step, (U,) m/s^2."""
        wish, following = self._wish[self._steps], self._wish[self._steps + 1]
        free = (wish - self._v) / EAGERNESS + (following - wish) / STEP_S
        gap, closing = self._ahead()
        wanted = STANDSTILL_GAP + np.maximum(
            0.0, self._v * TIME_GAP + self._v * closing / (2 * math.sqrt(SPEEDING_UP * COMFORTABLE))
        )
        follow = SPEEDING_UP * (1 - (wanted / np.maximum(gap, 0.1)) ** 2)
        return np.asarray(np.clip(np.minimum(free, follow), -HARDEST, SPEEDING_UP))

    def _ahead(self) -> tuple[Array, Array]:
        """Return gap and closing speed to who is next in each driver's corridor, (U,)."""
        d, aside = self._sideways()
        way = self._direction[:, None]
        ahead = way * (self._s[None] - self._s[:, None])
        later = d + aside * np.where(self._direction == 0, WALKERS_FORESIGHT, FORESIGHT)
        low, high = np.minimum(d, later), np.maximum(d, later)
        half = self._width / 2
        near = SIDE_MARGIN + half[:, None] + half[None]
        beside = (low[None] - near < d[:, None]) & (d[:, None] < high[None] + near)
        passed = np.where(self._direction == 0, self._length[:, None] / 2, 0.0)
        is_next = beside & (ahead > passed) & (ahead < SEES)
        distance = np.where(is_next, ahead, np.inf)
        nearest = distance.argmin(axis=1)
        reach = (self._length + self._length[nearest]) / 2
        gap = distance[np.arange(len(nearest)), nearest] - reach
        theirs = self._direction[nearest] * self._direction * self._v[nearest]
        return gap, np.where(np.isfinite(gap), self._v - theirs, 0.0)

    def _driven(self, control: Control) -> tuple[float, float, float, float]:
        """Return x, y, yaw and speed of the vehicle one step on, by its control."""
        ego = self._ego
        if ego is None:
            x, y, yaw = self._rows[self._steps, :3, EGO].tolist()
            ego = self._state((x, y, yaw), float(self._v[EGO]))[0]
        acceleration, curvature = control(ego)
        if not (math.isfinite(acceleration) and math.isfinite(curvature)):
            what = f"an acceleration of {acceleration} and a curvature of {curvature}"
            raise SpecError(f"the control of the vehicle wants {what} at {ego.at:g} s")
        after = max(0.0, ego.speed + acceleration * STEP_S)
        way = (ego.speed + after) / 2 * STEP_S
        middle = ego.yaw + curvature * way / 2
        x, y = ego.x + way * math.cos(middle), ego.y + way * math.sin(middle)
        return x, y, ego.yaw + curvature * way, after

    def _place(self, x: float, y: float, yaw: float, speed: float) -> None:
        """Let the vehicle be at a pose, also for the others."""
        self._ego, s, d = self._state((x, y, yaw), speed)
        self._s[EGO], self._d[self._steps, EGO], self._v[EGO] = s, d, speed

    def _state(
        self, pose: tuple[float, float, float], speed: float
    ) -> tuple[EgoState, float, float]:
        """Return the state of the vehicle at a pose now, and where that is along and aside."""
        x, y, yaw = pose
        s, d = self.road.project(x, y, float(self._s[EGO]))
        heading = yaw - float(self.road.place(np.array([s]), np.zeros(1))[2][0])
        bend = float(self.road.curvature(np.array([s]))[0])
        offset = d - self.users[EGO].d
        state = EgoState(self._steps * STEP_S, x, y, yaw, speed, offset, heading, bend)
        return state, s, d


def _facing(user: RoadUser) -> float:
    """Return the angle from the road's heading to where a user faces, radians."""
    if user.direction:
        return 0.0 if user.direction > 0 else math.pi
    walk = next((one for one in user.manoeuvres if isinstance(one, Walk)), None)
    return math.copysign(math.pi / 2, 1.0 if walk is None else walk.d - user.d)


def _aside(user: RoadUser, times: Array) -> Array:
    """Return how far aside a user is at each time, (T,) metres."""
    d = np.full(len(times), user.d)
    for one in user.manoeuvres:
        if isinstance(one, ChangeSpeed):
            continue
        start = float(d[-1])
        seconds = one.seconds if isinstance(one, ChangeLane) else abs(one.d - start) / one.speed
        u = np.clip((times - one.at) / seconds, 0.0, 1.0)
        if isinstance(one, ChangeLane):
            u = u**3 * (10 - 15 * u + 6 * u**2)
        d = np.where(times >= one.at, start + (one.d - start) * u, d)
    return d


def _wished(user: RoadUser, times: Array) -> Array:
    """Return the speed that a user wishes at each time, (T,) m/s."""
    wish = np.full(len(times), user.speed)
    for one in user.manoeuvres:
        begun = times >= one.at
        if isinstance(one, ChangeSpeed) and begun.any():
            start = float(wish[begun.argmax()])
            change = np.minimum((times[begun] - one.at) * one.rate, abs(one.speed - start))
            wish[begun] = start + math.copysign(1.0, one.speed - start) * change
    return wish
