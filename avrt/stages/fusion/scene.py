"""What is believed at one instant, and how one look changes it.

Tracks are predicted to the look's capture time in the axes of the frame where the vehicle is by
then, judged by the look's sensor model, and deleted when they are no longer believed or their place
is no longer known. A look of the vehicle's own motion judges nothing: from its time on it tells how
the frame moves. Between two of them the vehicle is taken to change its speed evenly, after the last
one to keep it, and before the first one to have moved like that all along: what was declared is
only for a vehicle that never tells.

All of it is immutable, and a function of the looks and their order only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload.footprint import contains
from avrt.stages.fusion.agreement import Agreement
from avrt.stages.fusion.camera_model import CameraLook
from avrt.stages.fusion.hypothesis import predicted
from avrt.stages.fusion.lidar_model import LidarLook
from avrt.stages.fusion.looks import Outcome, Rules
from avrt.stages.fusion.planar import Shift, Twist
from avrt.stages.fusion.radar_model import RadarLook
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Hypothesis

DELETE_EXISTENCE = 0.15
DELETE_MISSES = 8  # looks in a row
DELETE_MISSES_TENTATIVE = 2
DELETE_SIGMA = 4.0  # metres: a position less certain than this is not known
TRACKS_MAX = 256
SAME_MARGIN = 1.5  # metres: a radar track nearer to another one's outline is that one
RESIDUAL_KEPT = 0.8  # weight of the older residuals at each look
RANKS = ("ego", "lidar", "radar", "camera")
"""The order of equal stamps: motion first, then what places things best."""


@dataclass(frozen=True, slots=True)
class EgoLook:
    """One message of the vehicle's own motion: how the tracker's frame moves."""

    twist: Twist


@dataclass(frozen=True, slots=True)
class Unusable:
    """One message of any input that nothing can be made of: why, and how much was in it."""

    why: str
    dropped: int


Look = EgoLook | LidarLook | RadarLook | CameraLook | Unusable


@dataclass(frozen=True, slots=True)
class Scene:
    """What is believed.

    Attributes:
        hypotheses: as they were at `at_ns`, in the order of their births.
        at_ns: None before the first look.
        twist: how the frame moves from `moved_ns` on.
        moved: where it went from `at_ns` to `moved_ns`.
        has_ego: the motion was measured, not declared.
        outcomes: of the newest look of each sensor, residuals smoothed.
    """

    twist: Twist
    hypotheses: tuple[Hypothesis, ...] = ()
    at_ns: int | None = None
    moved: Shift = Shift()
    moved_ns: int = 0
    has_ego: bool = False
    outcomes: Mapping[str, Outcome] | None = None
    agreement: Agreement = Agreement()

    def outcome(self, sensor: str) -> Outcome | None:
        return None if self.outcomes is None else self.outcomes.get(sensor)

    def driven_by(self, twist: Twist) -> Scene:
        """Return the scene as it is when the vehicle moved like this all along."""
        known = tuple(_over_ground(one, self.twist, twist) for one in self.hypotheses)
        return replace(self, twist=twist, hypotheses=known)

    def predicted(self, at_ns: int) -> Scene:
        """Return the scene at a later time."""
        if self.at_ns is None or (at_ns == self.at_ns and self.moved == Shift()):
            return replace(self, at_ns=at_ns, moved=Shift(), moved_ns=at_ns)
        dt = (at_ns - self.at_ns) / NS_PER_S
        shift = self.moved.then(self.twist.during((at_ns - self.moved_ns) / NS_PER_S))
        moved = predicted(self.hypotheses, dt, shift)
        return replace(self, hypotheses=moved, at_ns=at_ns, moved=Shift(), moved_ns=at_ns)


@dataclass(frozen=True, slots=True)
class Steps:
    """How looks change scenes.

    Attributes:
        rules: of gates and confirmation.
        offset_max: radians; see `camera_model`.
    """

    rules: Rules
    offset_max: float

    def __call__(self, scene: Scene, key: Key, look: Look) -> Scene:
        """Return the scene after one look, captured at key[0]."""
        if isinstance(look, Unusable):
            outcome = Outcome(key[0], dropped=look.dropped, anomaly=look.why)
            return replace(scene, outcomes=_with(scene, RANKS[key[1]], outcome))
        if isinstance(look, EgoLook):
            return _driven(scene, key[0], look.twist)
        scene = scene.predicted(key[0])
        known, agreement = scene.hypotheses, scene.agreement
        match look:
            case LidarLook():
                seen = look.seen(key, known, scene.twist.speed, self.rules)
            case RadarLook():
                seen = look.seen(key, known, scene.twist, self.rules)
            case CameraLook():
                seen, agreement = look.seen(key, known, self.rules, agreement, self.offset_max)
        alive = _single([one for one in seen.known + seen.started if _alive(one)])
        return replace(
            scene,
            hypotheses=alive[:TRACKS_MAX],
            outcomes=_with(scene, RANKS[key[1]], seen.outcome),
            agreement=agreement,
        )


def _driven(scene: Scene, at_ns: int, twist: Twist) -> Scene:
    """Return the scene after the vehicle's motion was measured."""
    was = scene.twist
    residual = math.hypot(twist.x - was.x, twist.y - was.y) if scene.has_ego else None
    outcome = Outcome(at_ns, measurements=1, matched=1, residual=residual)
    driven = replace(scene, twist=twist, has_ego=True, outcomes=_with(scene, "ego", outcome))
    if scene.at_ns is None:
        return driven
    way = twist.mean(was).during((at_ns - scene.moved_ns) / NS_PER_S)
    return replace(driven, moved=scene.moved.then(way), moved_ns=at_ns)


def _over_ground(one: Hypothesis, declared: Twist, twist: Twist) -> Hypothesis:
    """Return a track whose velocity was told by a declared motion of the vehicle, put right.

    What was measured is the velocity relative to the vehicle, and that stays.
    """
    x, y = one.mean[:2].tolist()
    was, now = declared.at(x, y), twist.at(x, y)
    mean = one.mean + np.array([0.0, 0.0, now[0] - was[0], now[1] - was[1], 0.0])
    return replace(one, mean=mean)


def _with(scene: Scene, sensor: str, outcome: Outcome) -> dict[str, Outcome]:
    """Return the outcomes with a newer one of a sensor; its residual is smoothed but a camera's."""
    old = scene.outcome(sensor)
    if old is not None and old.residual is not None and sensor != "camera":
        new = old.residual if outcome.residual is None else outcome.residual
        residual = RESIDUAL_KEPT * old.residual + (1 - RESIDUAL_KEPT) * new
        outcome = replace(outcome, residual=residual)
    return {**(scene.outcomes or {}), sensor: outcome}


def _alive(one: Hypothesis) -> bool:
    return (
        one.existence >= DELETE_EXISTENCE
        and one.misses < (DELETE_MISSES if one.confirmed else DELETE_MISSES_TENTATIVE)
        and one.sigma <= DELETE_SIGMA
    )


def _single(tracks: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Return the tracks without those of radar alone that are a part of one that LiDAR showed."""
    if not any(math.isnan(one.nearest_x) for one in tracks):
        return tuple(tracks)
    whole = [one.box for one in tracks if not math.isnan(one.nearest_x)]
    return tuple(
        one
        for one in tracks
        if not math.isnan(one.nearest_x)
        or not any(contains(box, one.mean[0], one.mean[1], SAME_MARGIN) for box in whole)
    )
