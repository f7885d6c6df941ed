"""Keep track of the things on the road over time: the `Tracker` stage.

Each sweep: every track is predicted to the sweep's capture time, detections are assigned to tracks
globally (Kuhn-Munkres on Mahalanobis distance within a chi-square gate, so the order of detections
does not matter), assigned tracks are corrected, others lose existence, what is left starts tracks.
A track is tentative, then confirmed (it may be planned for), then deleted; its id is never used
again.

Time comes from capture stamps only. A stamp that is not newer adds no time; one that is older by
more than CLOCK_STEP restarts the clock there; after a gap tracks are predicted, their covariance
grows, and they are deleted only when their position is no longer known. None of these wipes state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from avrt.errors import SpecError
from avrt.model.stage import Stage
from avrt.payload import Track, Tracks
from avrt.stages import tracking
from avrt.stages.geometry import contains
from avrt.stages.hypothesis import Hypothesis, born, corrected, fitted, noise
from avrt.stages.parameters import check_number, check_positive, check_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Detection, Detections

CLOCK_STEP_NS = 1_000_000_000
COARSE_GATE = 8.0  # metres, plus what the position's uncertainty adds
LABEL_COST, SIZE_COST = 2.0, 2.0  # added to a squared Mahalanobis distance, see _unlike
ALONE_COST = 6.0  # added to the gate: what a track pays for having no detection
DELETE_EXISTENCE = 0.15
DELETE_MISSES = 8  # sweeps in a row
DELETE_MISSES_TENTATIVE = 2
DELETE_SIGMA = 4.0  # metres: a position less certain than this is not known
TRACKS_MAX = 256


@dataclass(frozen=True, slots=True)
class TrackerState:
    """What a tracker knows between two sweeps; nothing in it is changed in place."""

    hypotheses: tuple[Hypothesis, ...] = ()
    id_next: int = 1
    capture_ns: int | None = None


class Tracker(Stage):
    """Turn detections into tracks with ids, velocities and probabilities of existence.

    Args:
        ego_speed: declared speed of the ego vehicle, m/s, driving straight. It only splits the
            relative motion, which is measured, into the object's share and the vehicle's: distances
            and closing speeds do not depend on it, velocities over ground are wrong by its error.
        gate: probability that a true detection falls within the gate.
        confirm_hits: fewest sweeps that showed a confirmed track.
        confirm_existence: its least probability of existence.
    """

    def __init__(
        self,
        *,
        ego_speed: float = 0.0,
        gate: float = 0.99,
        confirm_hits: int = 3,
        confirm_existence: float = 0.9,
    ) -> None:
        check_number(ego_speed=ego_speed)
        check_probability(gate=gate, confirm_existence=confirm_existence)
        check_positive(confirm_hits=confirm_hits)
        self.ego_speed = ego_speed
        self.gate_squared = -2 * math.log(1 - gate)  # chi-square quantile of two dimensions
        self.confirm_hits = confirm_hits
        self.confirm_existence = confirm_existence
        self.state = TrackerState()

    def process(self, lidar: Message[Detections]) -> Tracks:
        """Return the tracks at the sweep's capture time, oldest id first."""
        dt, capture_ns = self._elapsed(lidar.stamp.capture_ns)
        found = sorted(lidar.payload.objects, key=_order)
        known = [one.predicted(dt, self.ego_speed) for one in self.state.hypotheses]
        assigned = self._assigned(known, found)
        after = [self._judged(one, found, assigned[i]) for i, one in enumerate(known)]
        started = self._started(after, found, assigned)
        kept = tuple(one for one in after + started if _alive(one))[:TRACKS_MAX]
        self.state = TrackerState(kept, self.state.id_next + len(started), capture_ns)
        return Tracks(tuple(_track(one, self.ego_speed) for one in kept), self.ego_speed)

    def freeze(self) -> object:
        return self.state

    def thaw(self, state: object) -> None:
        if not isinstance(state, TrackerState):
            raise SpecError(f"expected the state of a Tracker, found {type(state).__name__}")
        self.state = state

    def _elapsed(self, capture_ns: int) -> tuple[float, int]:
        """Return seconds since the last sweep, never negative, and the tracker's new time."""
        last = self.state.capture_ns
        if last is None or last - capture_ns > CLOCK_STEP_NS:
            return 0.0, capture_ns
        return max(0, capture_ns - last) / 1e9, max(last, capture_ns)

    def _assigned(
        self, known: Sequence[Hypothesis], found: Sequence[Detection]
    ) -> list[tuple[int, float, float] | None]:
        """Return for each track its detection's index, squared distance and log determinant."""
        if not known or not found:
            return [None] * len(known)
        squared, log_determinant, penalty = self._costs(known, found)
        cost = squared + log_determinant + penalty
        gated = squared <= self.gate_squared
        never = float(np.abs(cost[gated]).sum()) + 1e6
        alone = np.full((len(known), len(known)), self.gate_squared + ALONE_COST)
        rows, columns = linear_sum_assignment(np.hstack([np.where(gated, cost, never), alone]))
        result: list[tuple[int, float, float] | None] = [None] * len(known)
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            if j < len(found) and gated[i, j]:
                result[i] = (j, float(squared[i, j]), float(log_determinant[i, j]))
        return result

    def _costs(
        self, known: Sequence[Hypothesis], found: Sequence[Detection]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return squared distance, log determinant and class penalty, (tracks, detections) each."""
        squared = np.full((len(known), len(found)), np.inf)
        log_determinant = np.zeros_like(squared)
        penalty = np.zeros_like(squared)
        centres = np.array([(one.box.x, one.box.y) for one in found])
        sigma = np.array([noise(one)[0] for one in found])
        for i, one in enumerate(known):
            reach = COARSE_GATE + 3 * one.sigma
            apart = np.hypot(centres[:, 0] - one.mean[0], centres[:, 1] - one.mean[1])
            near = np.nonzero(apart < reach)[0].tolist()
            if not near:
                continue
            boxes = [fitted(one, found[j].box) for j in near]
            xy = np.array([(box.x, box.y) for box in boxes])
            squared[i, near], log_determinant[i, near] = tracking.distances(
                one.mean, one.covariance, xy, sigma[near]
            )
            penalty[i, near] = [_unlike(one, found[j]) for j in near]
        return squared, log_determinant, penalty

    def _judged(
        self,
        one: Hypothesis,
        found: Sequence[Detection],
        assigned: tuple[int, float, float] | None,
    ) -> Hypothesis:
        if assigned is None:
            return one.missed(hidden=_hidden(one, found))
        j, squared, log_determinant = assigned
        existence = tracking.detected(one.existence, squared, log_determinant, one.rate)
        seen = replace(corrected(one, found[j], "lidar"), existence=existence)
        enough = seen.hits >= self.confirm_hits and existence >= self.confirm_existence
        return replace(seen, confirmed=one.confirmed or enough)

    def _started(
        self,
        known: Sequence[Hypothesis],
        found: Sequence[Detection],
        assigned: Sequence[tuple[int, float, float] | None],
    ) -> list[Hypothesis]:
        """Start a track for each detection left over, unless it is a part of a tracked thing."""
        taken = [False] * len(found)
        for one in assigned:
            if one is not None:
                taken[one[0]] = True
        whole = [one.box for one in known if one.confirmed and one.misses == 0]
        started: list[Hypothesis] = []
        for j, detection in enumerate(found):
            x, y = detection.box.x, detection.box.y
            if not taken[j] and not any(contains(box, x, y, 0.0) for box in whole):
                track_id = self.state.id_next + len(started)
                started.append(born(track_id, detection, "lidar", self.ego_speed))
        return started


def _order(one: Detection) -> tuple[float, float, float, float, float, int, str]:
    box = one.box
    return (box.x, box.y, box.yaw, box.length, box.width, one.point_count, one.label)


def _unlike(one: Hypothesis, detection: Detection) -> float:
    """Return what it costs to take the detection for the track: other class, other size."""
    if detection.label == one.label:
        return 0.0
    seen = detection.box.length * detection.box.width
    return LABEL_COST + SIZE_COST * abs(math.log(seen / (one.length * one.width)))


def _alive(one: Hypothesis) -> bool:
    return (
        one.existence >= DELETE_EXISTENCE
        and one.misses < (DELETE_MISSES if one.confirmed else DELETE_MISSES_TENTATIVE)
        and one.sigma <= DELETE_SIGMA
    )


def _hidden(one: Hypothesis, found: Sequence[Detection]) -> bool:
    """Tell whether a nearer detection stands in the line of sight to the track's centre."""
    distance = math.hypot(one.mean[0], one.mean[1])
    bearing = math.atan2(one.mean[1], one.mean[0])
    for other in found:
        nearer = math.hypot(other.box.x, other.box.y)
        if nearer + 1.0 < distance:
            apart = math.remainder(math.atan2(other.box.y, other.box.x) - bearing, 2 * math.pi)
            if abs(apart) * nearer < other.box.width / 2:
                return True
    return False


def _track(one: Hypothesis, ego_speed: float) -> Track:
    return Track(
        id=one.id,
        label=one.label,
        box=one.box,
        vx=float(one.mean[2]),
        vy=float(one.mean[3]),
        closing_speed=ego_speed - float(one.mean[2]),
        covariance=one.covariance,
        existence=one.existence,
        hits=one.hits,
        misses=one.misses,
        confirmed=one.confirmed,
        sensors=one.sensors,
        nearest_x=one.nearest_x,
        points=one.points,
    )
