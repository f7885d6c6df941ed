"""What a LiDAR sweep says about the tracks: boxes, at most one a track.

Detections are assigned to tracks globally (Kuhn-Munkres on Mahalanobis distance within a chi-square
gate, so the order of detections does not matter), assigned tracks are corrected, others lose
existence, what is left starts tracks.

Shape letters: K tracks, D detections.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from avrt.model.frames import IDENTITY
from avrt.payload import Box
from avrt.payload.footprint import contains
from avrt.stages.fusion import tracking
from avrt.stages.fusion.hypothesis import born, corrected, noise
from avrt.stages.fusion.looks import Outcome, Seen
from avrt.stages.fusion.planar import heading
from avrt.stages.geometry import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload import Detection, Detections
    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Hypothesis
    from avrt.stages.fusion.looks import Rules

SENSOR = "lidar"
COARSE_GATE = 8.0  # metres, plus what the position's uncertainty adds
LABEL_COST, SIZE_COST = 2.0, 2.0  # added to a squared Mahalanobis distance, see _unlike
ALONE_COST = 6.0  # added to the gate: what a track pays for having no detection
RATE_NEAR, RATE_FAR, RATE_HIDDEN = 0.9, 0.6, 0.3  # chance that a sweep shows an object
RATE_FAR_FROM = 50.0  # metres
CLUTTER = 0.002  # false detections for each square metre
DETECTIONS_MAX = 512
SIZE_MIN, SIZE_MAX = 0.01, 100.0  # metres
FAR = 1000.0  # metres: nothing is seen from further away


@dataclass(frozen=True, slots=True)
class Assigned:
    """A track's detection: its index, how far it is, metres, and its density, 1/m^2."""

    index: int
    apart: float
    density: float


@dataclass(frozen=True, slots=True)
class LidarLook:
    """One sweep's detections in the tracker's frame, in an order of their own."""

    found: tuple[Detection, ...]
    dropped: int = 0

    @classmethod
    def of(cls, detections: Detections, to_frame: Matrix) -> LidarLook:
        """Take what can be used; of too many the nearest."""
        usable = [one for one in detections.objects if _is_usable(one.box)]
        if to_frame != IDENTITY:
            usable = [_moved(one, to_frame) for one in usable]
        if len(usable) > DETECTIONS_MAX:
            usable.sort(key=lambda one: (math.hypot(one.box.x, one.box.y), _order(one)))
        found = tuple(sorted(usable[:DETECTIONS_MAX], key=_order))
        return cls(found, len(detections.objects) - len(found))

    def seen(self, key: Key, known: Sequence[Hypothesis], ego_speed: float, rules: Rules) -> Seen:
        """Return the tracks after this sweep."""
        assigned = _assigned(known, self.found, rules)
        after = [self._judged(one, assigned[i], key[0], rules) for i, one in enumerate(known)]
        started = self._started(key, after, assigned, ego_speed)
        apart = [one.apart for one in assigned if one is not None]
        outcome = Outcome(
            capture_ns=key[0],
            measurements=len(self.found),
            matched=len(apart),
            dropped=self.dropped,
            residual=float(np.median(apart)) if apart else None,
        )
        return Seen(after, started, outcome)

    def _judged(
        self, one: Hypothesis, assigned: Assigned | None, at_ns: int, rules: Rules
    ) -> Hypothesis:
        if assigned is None:
            rate = min(_rate(one), RATE_HIDDEN) if _hidden(one, self.found) else _rate(one)
            return one.missed(SENSOR, at_ns, rate)
        seen = one.shown(SENSOR, at_ns, _rate(one), assigned.density / CLUTTER)
        return rules.judged(corrected(seen, self.found[assigned.index]))

    def _started(
        self,
        key: Key,
        known: Sequence[Hypothesis],
        assigned: Sequence[Assigned | None],
        ego_speed: float,
    ) -> list[Hypothesis]:
        """Start a track for each detection left over, unless it is a part of a tracked thing."""
        taken = {one.index for one in assigned if one is not None}
        whole = [one.box for one in known if one.confirmed and one.misses == 0]
        started: list[Hypothesis] = []
        for j, detection in enumerate(self.found):
            x, y = detection.box.x, detection.box.y
            if j not in taken and not any(contains(box, x, y, 0.0) for box in whole):
                started.append(born((*key, j), detection, SENSOR, ego_speed))
        return started


def _is_usable(box: Box) -> bool:
    numbers = (box.x, box.y, box.z, box.length, box.width, box.height, box.yaw)
    return (
        all(map(math.isfinite, numbers))
        and min(box.length, box.width, box.height) >= SIZE_MIN
        and max(box.length, box.width, box.height) <= SIZE_MAX
        and math.hypot(box.x, box.y, box.z) < FAR
    )


def _moved(one: Detection, to_frame: Matrix) -> Detection:
    """Return a detection in another frame; boxes stay upright, so a tilt moves only centres."""
    matrix = np.array(to_frame).reshape(3, 4)
    box = one.box
    x, y, z = (matrix[:, :3] @ (box.x, box.y, box.z) + matrix[:, 3]).tolist()
    points = one.points @ matrix[:, :3].T.astype(np.float32) + matrix[:, 3].astype(np.float32)
    moved = Box(x, y, z, box.length, box.width, box.height, wrapped(box.yaw + heading(to_frame)))
    near = float(matrix[0, 3] + matrix[0, 0] * one.nearest_x + matrix[0, 1:3] @ (box.y, box.z))
    return replace(one, box=moved, points=points, nearest_x=near)


def _assigned(
    known: Sequence[Hypothesis], found: Sequence[Detection], rules: Rules
) -> list[Assigned | None]:
    """Return for each track its detection, or None."""
    if not known or not found:
        return [None] * len(known)
    apart, squared, log_determinant = _distances(known, found)
    gated = squared <= rules.gate_squared
    cost = squared + log_determinant
    for i, j in np.argwhere(gated).tolist():
        cost[i, j] += _unlike(known[i], found[j])
    never = float(np.abs(cost[gated]).sum()) + 1e6
    alone = np.full((len(known), len(known)), rules.gate_squared + ALONE_COST)
    rows, columns = linear_sum_assignment(np.hstack([np.where(gated, cost, never), alone]))
    result: list[Assigned | None] = [None] * len(known)
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if j < len(found) and gated[i, j]:
            density = math.exp(-(squared[i, j] + log_determinant[i, j]) / 2) / (2 * math.pi)
            result[i] = Assigned(j, float(apart[i, j]), density)
    return result


def _distances(
    known: Sequence[Hypothesis], found: Sequence[Detection]
) -> tuple[NDArray[np.float64], ...]:
    """Return distance, its square in sigmas and its log determinant, (K, D) each.

    The square is infinite beyond the coarse gate.
    """
    mean = np.array([one.mean for one in known])
    covariance = np.array([one.covariance for one in known])
    size = np.array([(one.length, one.width) for one in known])
    boxes = np.array([(b.x, b.y, b.length, b.width, b.yaw) for b in (one.box for one in found)])
    sigma = np.array([noise(one)[0] for one in found])
    xy = _centres(mean, size, boxes)
    squared, log_determinant = tracking.distances(mean, covariance, xy, sigma)
    away = np.hypot(boxes[:, 0] - mean[:, :1], boxes[:, 1] - mean[:, 1:2])
    squared[away >= COARSE_GATE + 3 * np.array([[one.sigma] for one in known])] = np.inf
    apart = np.hypot(xy[..., 0] - mean[:, :1], xy[..., 1] - mean[:, 1:2])
    return apart, squared, log_determinant


def _centres(
    mean: NDArray[np.float64], size: NDArray[np.float64], boxes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the centres of boxes fitted to tracks as `hypothesis.fitted` does, (K, D, 2) metres.

    Args:
        mean: (K, 5) float64, of the tracks.
        size: (K, 2) float64, metres: length and width of the tracks.
        boxes: (D, 5) float64: x, y, length, width, yaw.
    """
    x, y, length, width, yaw = boxes.T
    turned = np.remainder(yaw - mean[:, 4:] + math.pi / 2, math.pi) - math.pi / 2
    across = np.abs(turned) > math.pi / 4
    yaw = np.where(across, yaw + math.pi / 2, yaw)
    long, wide = np.where(across, width, length), np.where(across, length, width)
    cos, sin = np.cos(yaw), np.sin(yaw)
    along = _anchored(x * cos + y * sin, long / 2, size[:, :1] / 2)
    aside = _anchored(y * cos - x * sin, wide / 2, size[:, 1:] / 2)
    return np.stack([along * cos - aside * sin, along * sin + aside * cos], axis=-1)


def _anchored(
    middle: NDArray[np.float64], half: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the middles of extents of another half-length whose near ends stay, (K, D) metres.

    It is `geometry.anchored` for many.
    """
    near = np.sign(middle) * np.maximum(np.abs(middle) - half, 0.0)
    return np.where(near == 0, middle, near + np.sign(middle) * wanted)


def _order(one: Detection) -> tuple[float, float, float, float, float, int, str]:
    box = one.box
    return (box.x, box.y, box.yaw, box.length, box.width, one.point_count, one.label)


def _unlike(one: Hypothesis, detection: Detection) -> float:
    """Return what it costs to take the detection for the track: other class, other size."""
    if detection.label == one.label:
        return 0.0
    seen = detection.box.length * detection.box.width
    return LABEL_COST + SIZE_COST * abs(math.log(seen / (one.length * one.width)))


def _rate(one: Hypothesis) -> float:
    """Return the probability that a sweep shows the object if it is there and in sight."""
    share = min(1.0, math.hypot(one.mean[0], one.mean[1]) / RATE_FAR_FROM)
    return RATE_NEAR + (RATE_FAR - RATE_NEAR) * share


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
