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

What else reflects near a track tells how much a target there says: along walls and fences there is
always one, so all targets around it but one count as clutter, those in its gate too. And wherever a
track drives among them, something that stands reflects near by: there, targets without a range rate
say nothing of a track that moves, neither that it is there nor that it is not.
A target that belongs to no track may start one, see `radar_births`.

Shape letters: N targets, K tracks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.fusion import tracking
from avrt.stages.fusion.hypothesis import headed
from avrt.stages.fusion.looks import Outcome, Seen
from avrt.stages.fusion.planar import heading
from avrt.stages.fusion.radar_births import MOVING, Candidate, started_by
from avrt.stages.fusion.reflection import against, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload import Targets
    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Hypothesis
    from avrt.stages.fusion.looks import Rules
    from avrt.stages.fusion.planar import Twist

SENSOR = "radar"
TARGETS_MAX = 1024
FAR = 1000.0  # metres
SPEED_MAX = 150.0  # m/s: a faster one was not measured
SIGMA_MIN = 0.1  # metres: no radar places a reflection better on a vehicle
SURFACE = 0.3  # metres: how well an outline tells where a vehicle reflects
RANGE_RATE_SIGMA = 0.3  # m/s: wheels and turning bodies move otherwise than the centre
VELOCITY_SIGMA = 1.0  # m/s: a tracking radar's own, smoothed and late
CLUTTER_RATES = 8.0  # m/s: range rates of clutter spread over this much
GATE = 3.03  # root of the 99 % quantile of chi-square in two dimensions: clutter is dense
RATE = 0.5  # chance that a cycle shows a vehicle in view
CLUTTER, CLUTTER_REACH = 0.003, 8.0  # false targets, at least, 1/m^2; metres they are counted in
SURE = 10.0  # times: as much likelier a track's than clutter's is a target that needs no range rate
UNTOLD = 0.5  # metres: standard deviation of a radar that does not tell its own
UNTOLD_ANGLE = 0.005  # radians, likewise, across the line of sight
CLEAR = 2.0  # metres: a target nearer to the outline of a track starts none


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
        away = np.hypot(place[:, 0], place[:, 1])
        sigma = _told(np.asarray(targets.sigma, np.float64).reshape(-1, 2), away)
        usable = (sigma < FAR).all(axis=1) & (away < FAR)
        order = np.lexsort((place[:, 1], place[:, 0], away))
        rows = order[usable[order]][:TARGETS_MAX]
        place, sigma = place[rows], np.maximum(sigma[rows], SIGMA_MIN)
        turn = matrix[:2, :2]
        sight = np.arctan2(place[:, 1], place[:, 0])
        cos, sin = np.cos(sight), np.sin(sight)
        axes = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
        axes = turn @ axes
        velocity = _believed(np.asarray(targets.velocity, np.float64).reshape(-1, 2)[rows])
        return cls(
            xy=place @ turn.T + matrix[:2, 3],
            noise=(axes * sigma[:, None, :] ** 2) @ axes.transpose(0, 2, 1),
            range_rate=_believed(np.asarray(targets.range_rate, np.float64).reshape(-1)[rows]),
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
            evidence = float(ratio[mine].max(initial=0.0))
            if not len(mine):
                after.append(one.missed(SENSOR, key[0], RATE) if self._covers(one.mean) else one)
            elif evidence > SURE or one.speed < MOVING or self._tells_motion(mine):
                seen = one.shown(SENSOR, key[0], RATE, evidence)
                moved, apart = self._corrected(seen, mine, own, sight)
                residual.append(apart)
                after.append(rules.judged(moved))
            else:
                owner[mine] = -1
                after.append(one)
        free = np.nonzero((owner < 0) & clear)[0].tolist()
        candidates = [self._candidate(key, n, own, sight[n]) for n in free]
        started = started_by([one for one in candidates if one is not None], self.origin[2])
        outcome = Outcome(
            capture_ns=key[0],
            measurements=len(self.xy),
            matched=int((owner >= 0).sum()),
            dropped=self.dropped,
            residual=float(np.median(residual)) if residual else None,
        )
        return Seen(after, started, outcome)

    def _tells_motion(self, rows: NDArray[np.int64]) -> bool:
        """Tell whether any of these targets says how fast it is."""
        known = np.isfinite(self.range_rate[rows]) | np.isfinite(self.velocity[rows]).all(axis=1)
        return bool(known.any())

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
        wide = float(np.sqrt(self.noise.max(initial=0.0)))
        for i, one in enumerate(known):
            away = np.hypot(*(self.xy - one.mean[:2]).T)
            reach = math.hypot(one.length, one.width) / 2 + CLEAR + GATE * (one.sigma + wide)
            near = np.nonzero(away < reach)[0]
            if not len(near):
                continue
            apart = self.xy[near] - within(one, self.xy[near])
            clear[near] &= np.hypot(apart[:, 0], apart[:, 1]) > CLEAR
            cost, density, gated = self._fit(one, near, apart, own, sight)
            better = near[gated & (cost < least[near])]
            others = int((away < CLUTTER_REACH).sum()) - 1
            clutter = max(CLUTTER, others / (math.pi * CLUTTER_REACH**2))
            picked = np.isin(near, better)
            owner[better], least[better] = i, cost[picked]
            ratio[better] = density[picked] / clutter
        return owner, ratio, clear

    def _fit(
        self,
        one: Hypothesis,
        rows: NDArray[np.int64],
        apart: NDArray[np.float64],
        own: NDArray[np.float64],
        sight: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the cost of each of these targets for a track, its density, and if it may be its.

        The density is over place, 1/m^2, and where the range rate was measured over that, as a
        multiple of clutter's there.
        """
        spread = one.covariance[:2, :2] + self.noise[rows]
        squared = np.einsum("ni,nij,nj->n", apart, np.linalg.inv(spread), apart)
        area = 2 * np.pi * np.sqrt(np.linalg.det(spread)) + one.length * one.width
        rate = self.range_rate[rows]
        rate_var = np.einsum("ni,ij,nj->n", sight[rows], one.covariance[2:4, 2:4], sight[rows])
        rate_var += RANGE_RATE_SIGMA**2
        surprise = (rate - sight[rows] @ (one.mean[2:4] - own)) ** 2 / rate_var
        density = np.exp(-squared / 2) / area
        by_rate = np.exp(-surprise / 2) / np.sqrt(2 * np.pi * rate_var) * CLUTTER_RATES
        unknown = ~np.isfinite(rate)
        surprise[unknown], by_rate[unknown] = 0.0, 1.0
        gated = (squared <= GATE**2) & (surprise <= GATE**2)
        return squared + surprise + np.log(area), density * by_rate, gated

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
        innovation, spread = against(one, place, along)
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

    def _candidate(
        self, key: Key, n: int, own: NDArray[np.float64], sight: NDArray[np.float64]
    ) -> Candidate | None:
        """Return a target that may start a track: in view, and its speed over ground is known."""
        if not self._covers(self.xy[n]):
            return None
        if np.isfinite(self.velocity[n]).all():
            velocity = self.velocity[n] + own
        elif math.isfinite(self.range_rate[n]):
            velocity = sight * (self.range_rate[n] + sight @ own)
        else:
            return None
        return Candidate((*key, n), self.xy[n], self.noise[n], velocity, sight)


def _told(sigma: NDArray[np.float64], away: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviations, (N, 2) metres, with usual ones where they are not told."""
    usual = np.stack([np.full_like(away, UNTOLD), np.maximum(UNTOLD, UNTOLD_ANGLE * away)], axis=1)
    return np.where(np.isnan(sigma), usual, sigma)


def _believed(speed: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(speed) < SPEED_MAX, speed, np.nan)
