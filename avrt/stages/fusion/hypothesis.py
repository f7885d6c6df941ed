"""One object that may exist: its filter, its size, its class and what supports it.

A hypothesis is never changed in place; each step returns a new one. The size is learnt from the
largest boxes seen, and every detection is fitted to it before it is used: the sides that face the
sensor are observed, the far ones are not, so a change of visible size must not look like motion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import Box
from avrt.stages.fusion import tracking
from avrt.stages.fusion.existence import DISPUTED, detected, missed, survived
from avrt.stages.geometry import resized, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.payload import Detection
    from avrt.stages.fusion.planar import Shift

LABELS = ("car", "truck", "cyclist", "pedestrian", "unknown")
VOTE_MEMORY = 0.9  # weight of the older votes for a class at each new one
VOTE_UNKNOWN = 0.05  # of a detection without a class: hardly evidence against one
SPEED_SIGMA = (6.0, 2.5)  # m/s along x and y, before it is measured
GROW, SHRINK = 0.3, 0.03  # how quickly the size follows a larger and a smaller box
TURNED_MAX = 5  # sweeps in a row that contradict the orientation until they are believed
REVERSING_SPEED_MAX = 3.0  # m/s: what is faster drives forwards
SUPPORT_MAX_NS = 500_000_000  # what a sensor showed longer ago does not support a track now

Birth = tuple[int, int, int, int]
"""The measurement that started a track: the key of its look (see `history`) and its place in it."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A track between two looks.

    Attributes:
        birth: what started it; no two tracks have the same.
        mean, covariance: (5,) and (5, 5) float64 of (x, y, vx, vy, yaw), as in `tracking`.
        length, width, height, z: of its box, metres.
        votes: weight of each class in LABELS.
        turned: detections in a row that lay across its orientation.
        support: the sensors whose newest look at its place showed it, and when they did, ns.
        shown_by: the ranging sensor that showed it last; its misses count towards the end.
        nearest_x: its near face where a sweep showed it, metres; NaN where none did.
        points: (P, 3) float32 of the newest detection.
    """

    birth: Birth
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    length: float
    width: float
    height: float
    z: float
    votes: tuple[float, ...]
    existence: float
    hits: int
    misses: int
    confirmed: bool
    turned: int
    support: tuple[tuple[str, int], ...]
    shown_by: str
    nearest_x: float
    points: NDArray[np.float32]

    @property
    def box(self) -> Box:
        x, y, _, _, yaw = self.mean.tolist()
        return Box(x, y, self.z, self.length, self.width, self.height, yaw)

    @property
    def label(self) -> str:
        return LABELS[max(range(len(LABELS)), key=lambda i: (self.votes[i], -i))]

    @property
    def sigma(self) -> float:
        """Standard deviation of the position along its worse axis, metres."""
        return math.sqrt(max(float(self.covariance[0, 0]), float(self.covariance[1, 1])))

    @property
    def speed(self) -> float:
        """Speed over ground, m/s."""
        return math.hypot(float(self.mean[2]), float(self.mean[3]))

    def sensors(self, at_ns: int) -> tuple[str, ...]:
        """Return the names of the sensors that support it at a time."""
        return tuple(name for name, seen_ns in self.support if at_ns - seen_ns <= SUPPORT_MAX_NS)

    def shown(
        self, sensor: str, at_ns: int, rate: float, ratio: float, *, ranging: bool = True
    ) -> Hypothesis:
        """Return the hypothesis after a look that showed it; see `existence.detected`.

        `ranging` tells that the sensor measures distance.
        """
        others = [one for one in self.support if one[0] != sensor]
        return replace(
            self,
            existence=detected(self.existence, rate, ratio),
            hits=self.hits + 1,
            misses=0 if ranging else self.misses,
            support=tuple(sorted([*others, (sensor, at_ns)])),
            shown_by=sensor if ranging else self.shown_by,
        )

    def missed(self, sensor: str, at_ns: int, rate: float) -> Hypothesis:
        """Return the hypothesis after a look at its place that did not show it."""
        others = tuple(one for one in self.support if one[0] != sensor)
        disputed = any(at_ns - seen_ns <= SUPPORT_MAX_NS for _, seen_ns in others)
        return replace(
            self,
            existence=missed(self.existence, rate * DISPUTED if disputed else rate),
            misses=self.misses + 1 if sensor == self.shown_by else self.misses,
            support=others,
        )


def predicted(known: Sequence[Hypothesis], dt: float, shift: Shift) -> tuple[Hypothesis, ...]:
    """Return the hypotheses `dt` seconds later, when the frame has gone along `shift`."""
    if not known:
        return ()
    means, covariances = tracking.predict(
        np.stack([one.mean for one in known]),
        np.stack([one.covariance for one in known]),
        dt,
        shift,
    )
    return tuple(
        replace(
            one,
            mean=mean,
            covariance=covariance,
            existence=survived(one.existence, dt),
            nearest_x=one.nearest_x + float(mean[0] - one.mean[0]),
        )
        for one, mean, covariance in zip(known, means, covariances, strict=True)
    )


def noise(detection: Detection) -> tuple[float, float]:
    """Return the standard deviations of position, metres, and of yaw, radians."""
    distance = math.hypot(detection.box.x, detection.box.y)
    if detection.label == "unknown":
        return 0.25 + 0.006 * distance, 1.0
    return 0.12 + 0.006 * distance, 0.15 + 0.01 * distance


def fitted(one: Hypothesis, box: Box) -> Box:
    """Return a detected box with the track's size, and its length along the track's length."""
    if abs(tracking.half_turn(box.yaw - float(one.mean[4]))) > math.pi / 4:
        yaw = wrapped(box.yaw + math.pi / 2)
        box = replace(box, yaw=yaw, length=box.width, width=box.length)
    return resized(box, one.length, one.width)


def corrected(one: Hypothesis, detection: Detection) -> Hypothesis:
    """Return the hypothesis corrected by its detection."""
    across = abs(tracking.half_turn(detection.box.yaw - float(one.mean[4]))) > math.pi / 4
    turned = one.turned + 1 if across and detection.label != "unknown" else 0
    if turned >= TURNED_MAX:
        mean = one.mean.copy()
        mean[4] = detection.box.yaw
        one = replace(one, mean=mean)
        across, turned = False, 0
    seen = detection.box
    if not across and detection.label == one.label:
        length, width = _followed(one.length, seen.length), _followed(one.width, seen.width)
        one = replace(one, length=length, width=width)
    box = fitted(one, seen)
    mean, covariance = tracking.update(
        one.mean, one.covariance, (box.x, box.y, box.yaw), noise(detection)
    )
    return replace(
        one,
        mean=headed(mean),
        covariance=covariance,
        height=one.height + 0.2 * (seen.height - one.height),
        z=one.z + 0.2 * (seen.z - one.z),
        votes=voted(one.votes, detection.label, detection.score),
        turned=turned,
        nearest_x=detection.nearest_x,
        points=detection.points,
    )


def born(birth: Birth, detection: Detection, sensor: str, ego_speed: float) -> Hypothesis:
    """Return a new hypothesis, about as likely real as not.

    It may stand still or drive along with the ego vehicle: its speed lies in the middle of both,
    and its uncertainty covers both.
    """
    box = detection.box
    along = ego_speed / 2
    speed = (max(SPEED_SIGMA[0], abs(along)) ** 2, SPEED_SIGMA[1] ** 2)
    position, yaw = noise(detection)
    return Hypothesis(
        birth=birth,
        mean=np.array([box.x, box.y, along, 0.0, box.yaw]),
        covariance=np.diag([position**2, position**2, *speed, yaw**2]),
        length=box.length,
        width=box.width,
        height=box.height,
        z=box.z,
        votes=voted((0.0,) * len(LABELS), detection.label, detection.score),
        existence=0.5 if detection.score is None else 0.5 + 0.3 * (detection.score - 0.5),
        hits=1,
        misses=0,
        confirmed=False,
        turned=0,
        support=((sensor, birth[0]),),
        shown_by=sensor,
        nearest_x=detection.nearest_x,
        points=detection.points,
    )


def _followed(size: float, seen: float) -> float:
    return size + (GROW if seen > size else SHRINK) * (seen - size)


def voted(votes: tuple[float, ...], label: str, score: float | None) -> tuple[float, ...]:
    """Return the votes after one for a class."""
    vote = VOTE_UNKNOWN if score is None else score
    return tuple(
        VOTE_MEMORY * old + (vote if name == label else 0.0)
        for name, old in zip(LABELS, votes, strict=True)
    )


def headed(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the state with its heading turned round if it would drive fast in reverse."""
    forward = mean[2] * math.cos(mean[4]) + mean[3] * math.sin(mean[4])
    if forward < -REVERSING_SPEED_MAX:
        mean = mean.copy()
        mean[4] = wrapped(float(mean[4]) + math.pi)
    return mean
