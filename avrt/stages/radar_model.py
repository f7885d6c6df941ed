"""What a radar cycle says about the tracks: where things reflect, and how fast along the sight.

A vehicle reflects at several places, anywhere within its outline (extended object; Granstrom, Baum
and Reuter, "Extended Object Tracking", J. of Advances in Information Fusion 12(2), 2017), so a
target is gated against the outline and not the centre, and several targets may belong to one track.
They are not independent of each other, so all of them together count as one measurement: their
mean place, and the median of their range rates. It is compared with the middle of the side that
faces the radar: along that side it may be anywhere, and at a depth t behind the side it may come
from within, and says less: sigma t / 2.

The range rate is that of the object relative to the moving sensor along the line of sight u:
u . (v_object - v_sensor), where v_sensor = v_ego + yaw rate x lever arm. It measures the velocity
at once, which a position does only over time.

A target that belongs to no track starts one only if it moves over ground: standing things (kerbs,
walls, signs) reflect everywhere, and without a range rate they cannot be told from road users.

Shape letters: N targets, K tracks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages import tracking
from avrt.stages.hypothesis import LABELS, Hypothesis, headed
from avrt.stages.looks import Outcome, Seen
from avrt.stages.planar import heading
from avrt.stages.sizes import CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload import Targets
    from avrt.stages.history import Key
    from avrt.stages.looks import Rules
    from avrt.stages.planar import Twist

SENSOR = "radar"
TARGETS_MAX = 1024
FAR = 1000.0  # metres
SIGMA_MIN = 0.1  # metres: no radar places a reflection better on a vehicle
SURFACE = 0.3  # metres: how well an outline tells where a vehicle reflects
RANGE_RATE_SIGMA = 0.3  # m/s: wheels and turning bodies move otherwise than the centre
VELOCITY_SIGMA = 1.0  # m/s: a tracking radar's own, smoothed and late
GATE_RATE = 4.0  # m/s: half-width of clutter in range rate, for its density
GATE_SQUARED = 9.21  # 99 % of chi-square in two dimensions: clutter is dense
RATE = 0.5  # chance that a cycle shows a vehicle in view
CLUTTER, CLUTTER_REACH = 0.003, 8.0  # false targets for each square metre at least; see _clutter
MOVING = 2.0  # m/s over ground: what is slower starts no track
TOGETHER = (4.0, 2.0)  # metres, m/s: targets nearer than this start one track
CLEAR = 2.0  # metres: a target nearer to the outline of a track starts none
BIRTHS_MAX = 16  # in one cycle
EXISTENCE = 0.3  # of a track that one cycle of radar started
SIDE_SIGMA = 2.5  # m/s: what is not known of a velocity across the line of sight
STRAIGHT = 1e-9
SQRT_12 = 12**0.5  # a width over this is the standard deviation of a uniform distribution
NO_POINTS = np.zeros((0, 3), np.float32)


@dataclass(frozen=True, slots=True)
class RadarView:
    """Where the radar sees: up to `distance` metres, within `half_angle` radians of its x axis."""

    distance: float
    half_angle: float


@dataclass(frozen=True, slots=True)
class RadarLook:
    """One cycle's targets in the tracker's frame.

    Attributes:
        xy: (N, 2) float64, metres.
        noise: (N, 2, 2) float64, m^2, covariance of xy.
        range_rate: (N,) float64, m/s; NaN where unknown.
        velocity: (N, 2) float64, m/s relative to the sensor; NaN where unknown.
        origin: x, y, z of the radar, metres.
        yaw: direction it looks in, radians.
    """

    xy: NDArray[np.float64]
    noise: NDArray[np.float64]
    range_rate: NDArray[np.float64]
    velocity: NDArray[np.float64]
    origin: tuple[float, float, float]
    yaw: float
    view: RadarView
    dropped: int = 0

    @classmethod
    def of(cls, targets: Targets, to_frame: Matrix, view: RadarView) -> RadarLook:
        """Take what can be used; of too many the nearest."""
        matrix = np.array(to_frame).reshape(3, 4)
        place = np.asarray(targets.xy, np.float64).reshape(-1, 2)
        sigma = np.asarray(targets.sigma, np.float64).reshape(-1, 2)
        away = np.hypot(place[:, 0], place[:, 1])
        usable = np.isfinite(place).all(axis=1) & np.isfinite(sigma).all(axis=1) & (away < FAR)
        order = np.lexsort((place[:, 1], place[:, 0], away))
        rows = order[usable[order]][:TARGETS_MAX]
        place, sigma = place[rows], np.maximum(sigma[rows], SIGMA_MIN)
        turn = matrix[:2, :2]
        sight = np.arctan2(place[:, 1], place[:, 0])
        cos, sin = np.cos(sight), np.sin(sight)
        axes = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
        axes = turn @ axes
        velocity = np.asarray(targets.velocity, np.float64).reshape(-1, 2)[rows]
        return cls(
            xy=place @ turn.T + matrix[:2, 3],
            noise=(axes * sigma[:, None, :] ** 2) @ axes.transpose(0, 2, 1),
            range_rate=np.asarray(targets.range_rate, np.float64).reshape(-1)[rows],
            velocity=velocity @ turn.T,
            origin=(to_frame[3], to_frame[7], to_frame[11]),
            yaw=heading(to_frame),
            view=view,
            dropped=len(usable) - len(rows),
        )

    def seen(self, key: Key, known: Sequence[Hypothesis], twist: Twist, rules: Rules) -> Seen:
        """Return the tracks after this cycle."""
        own = np.array(twist.at(*self.origin[:2]))
        sight = self.xy - self.origin[:2]
        sight /= np.maximum(np.linalg.norm(sight, axis=1, keepdims=True), 1e-6)
        owner, ratio, clear = self._owners(known, own, sight)
        after: list[Hypothesis] = []
        residual: list[float] = []
        for i, one in enumerate(known):
            mine = np.nonzero(owner == i)[0]
            if len(mine):
                seen = one.shown(SENSOR, key[0], RATE, float(ratio[mine].max())).ranged(SENSOR)
                moved, apart = self._corrected(seen, mine, own, sight)
                residual.append(apart)
                after.append(rules.judged(moved))
            else:
                after.append(one.missed(SENSOR, key[0], RATE) if self._covers(one.mean) else one)
        started = self._started(key, np.nonzero((owner < 0) & clear)[0], own, sight)
        outcome = Outcome(
            capture_ns=key[0],
            measurements=len(self.xy),
            matched=int((owner >= 0).sum()),
            dropped=self.dropped,
            residual=float(np.median(residual)) if residual else None,
        )
        return Seen(after, started, outcome)

    def _covers(self, place: NDArray[np.float64]) -> bool:
        dx, dy = float(place[0]) - self.origin[0], float(place[1]) - self.origin[1]
        aside = math.remainder(math.atan2(dy, dx) - self.yaw, 2 * math.pi)
        return math.hypot(dx, dy) < self.view.distance and abs(aside) < self.view.half_angle

    def _owners(
        self,
        known: Sequence[Hypothesis],
        own: NDArray[np.float64],
        sight: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return for each target its track (-1 for none), its evidence, and if it is clear of all.

        The evidence is its density if it is the track's, over that of clutter.
        """
        count = len(self.xy)
        owner, ratio = np.full(count, -1), np.zeros(count)
        least, clear = np.full(count, np.inf), np.ones(count, bool)
        measured = np.isfinite(self.range_rate)
        for i, one in enumerate(known):
            apart = self.xy - _within(one, self.xy)
            spread = one.covariance[:2, :2] + self.noise
            squared = np.einsum("ni,nij,nj->n", apart, np.linalg.inv(spread), apart)
            area = 2 * np.pi * np.sqrt(np.linalg.det(spread)) + one.length * one.width
            density = np.exp(-squared / 2) / area
            rate_var = np.einsum("ni,ij,nj->n", sight, one.covariance[2:4, 2:4], sight)
            rate_var += RANGE_RATE_SIGMA**2
            surprise = self.range_rate - sight @ (one.mean[2:4] - own)
            surprise = np.where(measured, surprise**2 / rate_var, 0.0)
            density *= np.where(
                measured,
                np.exp(-surprise / 2) / np.sqrt(2 * np.pi * rate_var) * 2 * GATE_RATE,
                1.0,
            )
            gated = (squared <= GATE_SQUARED) & (surprise <= GATE_SQUARED)
            cost = squared + surprise + np.log(area)
            better = gated & (cost < least)
            ratio[better] = density[better] / self._clutter(one, int(gated.sum()))
            owner[better], least[better] = i, cost[better]
            clear &= np.hypot(apart[:, 0], apart[:, 1]) > CLEAR
        return owner, ratio, clear

    def _clutter(self, one: Hypothesis, own: int) -> float:
        """Return the density of targets around a track that are not its own, 1/m^2.

        Along walls and fences something reflects everywhere, and a target there says little.
        """
        apart = self.xy - one.mean[:2]
        near = int((np.hypot(apart[:, 0], apart[:, 1]) < CLUTTER_REACH).sum())
        return max(CLUTTER, (near - own) / (math.pi * CLUTTER_REACH**2))

    def _corrected(
        self,
        one: Hypothesis,
        mine: NDArray[np.int64],
        own: NDArray[np.float64],
        sight: NDArray[np.float64],
    ) -> tuple[Hypothesis, float]:
        """Return the track after its targets, and how far they were from where it was expected."""
        place, noise = self.xy[mine].mean(axis=0), self.noise[mine].mean(axis=0)
        along = place - self.origin[:2]
        along /= max(float(np.linalg.norm(along)), 1e-6)
        innovation, spread = _against(one, place, along)
        noise = noise + SURFACE**2 * np.eye(2) + spread
        observe = np.zeros((2, tracking.STATES))
        observe[:, :2] = np.eye(2)
        mean, covariance = tracking.corrected(one.mean, one.covariance, observe, innovation, noise)
        rates = mine[np.isfinite(self.range_rate[mine])]
        if len(rates):
            observe = np.zeros((1, tracking.STATES))
            observe[0, 2:4] = sight[rates].mean(axis=0)
            rate = np.median(self.range_rate[rates])
            surprise = np.array([rate - observe[0, 2:4] @ (mean[2:4] - own)])
            mean, covariance = tracking.corrected(
                mean, covariance, observe, surprise, np.array([[RANGE_RATE_SIGMA**2]])
            )
        speeds = mine[np.isfinite(self.velocity[mine]).all(axis=1)]
        if len(speeds):
            observe = np.zeros((2, tracking.STATES))
            observe[:, 2:4] = np.eye(2)
            surprise = np.median(self.velocity[speeds], axis=0) + own - mean[2:4]
            mean, covariance = tracking.corrected(
                mean, covariance, observe, surprise, VELOCITY_SIGMA**2 * np.eye(2)
            )
        near = one.nearest_x + float(mean[0] - one.mean[0])
        moved = replace(one, mean=headed(mean), covariance=covariance, nearest_x=near)
        return moved, math.hypot(*innovation.tolist())

    def _started(
        self,
        key: Key,
        free: NDArray[np.int64],
        own: NDArray[np.float64],
        sight: NDArray[np.float64],
    ) -> list[Hypothesis]:
        """Start a track for each moving thing among the free targets, the nearest first."""
        started: list[Hypothesis] = []
        places: list[tuple[float, float, float]] = []
        for n in free.tolist():
            velocity = self._over_ground(n, own, sight[n])
            if velocity is None or not self._covers(self.xy[n]) or len(started) == BIRTHS_MAX:
                continue
            x, y = self.xy[n].tolist()
            speed = float(velocity @ sight[n])
            if any(
                math.hypot(x - a, y - b) < TOGETHER[0] and abs(speed - c) < TOGETHER[1]
                for a, b, c in places
            ):
                continue
            places.append((x, y, speed))
            started.append(self._born((*key, n), velocity, sight[n]))
        return started

    def _over_ground(
        self, n: int, own: NDArray[np.float64], sight: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return the velocity of a target as far as it is known, (2,) m/s; None if it stands."""
        if np.isfinite(self.velocity[n]).all():
            velocity = np.asarray(self.velocity[n] + own)
        elif math.isfinite(self.range_rate[n]):
            velocity = sight * (self.range_rate[n] + sight @ own)
        else:
            return None
        return velocity if math.hypot(*velocity) > MOVING else None

    def _born(
        self,
        birth: tuple[int, int, int, int],
        velocity: NDArray[np.float64],
        sight: NDArray[np.float64],
    ) -> Hypothesis:
        """Return a new track of a car's size behind the target of `birth`, as it faces the radar.

        It heads along x, or against it: most roads run along the vehicle.
        """
        size = CLASSES[0]
        centre = self.xy[birth[3]] + sight * size.length / 2
        axes = np.array([[sight[0], -sight[1]], [sight[1], sight[0]]])
        spread = axes @ np.diag([RANGE_RATE_SIGMA**2, SIDE_SIGMA**2]) @ axes.T
        covariance = np.zeros((tracking.STATES, tracking.STATES))
        covariance[:2, :2] = self.noise[birth[3]] + SURFACE**2 * np.eye(2)
        covariance[2:4, 2:4] = spread
        covariance[4, 4] = 0.25
        return Hypothesis(
            birth=birth,
            mean=headed(np.array([*centre, *velocity, 0.0])),
            covariance=covariance,
            length=size.length,
            width=size.width,
            height=size.height,
            z=self.origin[2],
            votes=(0.0,) * len(LABELS[:-1]) + (0.01,),
            existence=EXISTENCE,
            hits=1,
            misses=0,
            confirmed=False,
            turned=0,
            support=((SENSOR, birth[0]),),
            shown_by=SENSOR,
            nearest_x=math.nan,
            points=NO_POINTS,
        )


def _axes(one: Hypothesis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes of a track's box, (2, 2) in columns, and its half extents, (2,)."""
    cos, sin = math.cos(one.mean[4]), math.sin(one.mean[4])
    return np.array([[cos, -sin], [sin, cos]]), np.array([one.length / 2, one.width / 2])


def _within(one: Hypothesis, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place within the outline of a track nearest to each of these, (N, 2) metres."""
    axes, half = _axes(one)
    local = np.clip((xy - one.mean[:2]) @ axes, -half, half)
    return np.asarray(local @ axes.T + one.mean[:2])


def _against(
    one: Hypothesis, place: NDArray[np.float64], along: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far a reflection is from where a track is expected to reflect, and its spread.

    It is expected in the middle of the side that the line of sight enters by. Returns (2,) metres
    and (2, 2) m^2: along the side it may be anywhere, behind it by less than half of its depth.
    """
    axes, half = _axes(one)
    local, back = (place - one.mean[:2]) @ axes, -along @ axes
    inside = np.clip(local, -half, half)
    face = np.copysign(half, back)
    way = (
        (face - inside) / np.where(np.abs(back) < STRAIGHT, STRAIGHT, np.abs(back)) * np.sign(back)
    )
    way[np.abs(back) < STRAIGHT] = np.inf
    side = int(np.argmin(way))
    expected, sigma = np.zeros(2), 2 * half / SQRT_12
    expected[side] = face[side]
    sigma[side] = abs(face[side] - inside[side]) / 2
    return axes @ (local - expected), (axes * sigma**2) @ axes.T
