"""Start tracks from radar targets: one for each moving thing, never one for what stands.

Standing things (kerbs, walls, signs) reflect everywhere, and nothing but their motion over ground
tells road users from them. So a radar that measures no range rate starts no tracks; it supports
those that others started.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.stages.fusion import tracking
from avrt.stages.fusion.hypothesis import LABELS, Hypothesis, headed
from avrt.stages.lidar.sizes import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from avrt.stages.fusion.hypothesis import Birth

MOVING = 2.0  # m/s over ground: what is slower starts no track
TOGETHER = (4.0, 2.0)  # metres, m/s: targets nearer than this start one track
BIRTHS_MAX = 16  # in one cycle
EXISTENCE = 0.3  # of a track that one cycle of radar started
PLACE_SIGMA = 0.3  # metres: how well a near side tells where a vehicle is
ALONG_SIGMA, SIDE_SIGMA = 0.3, 2.5  # m/s along the line of sight, where it is measured, and across
YAW_SIGMA = 0.5  # radians: most roads run along the vehicle
VOTE = 0.01  # for "unknown": any class that another sensor sees outweighs it
NO_POINTS = np.zeros((0, 3), np.float32)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A target that belongs to no track.

    Attributes:
        place: (2,) float64, metres; noise: (2, 2) float64, m^2.
        velocity: (2,) float64, m/s over ground, as far as it was measured.
        sight: (2,) float64, unit vector from the radar.
    """

    birth: Birth
    place: NDArray[np.float64]
    noise: NDArray[np.float64]
    velocity: NDArray[np.float64]
    sight: NDArray[np.float64]


def started_by(candidates: Iterable[Candidate], z: float) -> list[Hypothesis]:
    """Return a track for each moving thing, at most BIRTHS_MAX; the first of several is taken.

    `z` is the height of the radar in the tracks' frame, metres: the middle of a car, about.
    """
    taken: list[Candidate] = []
    for one in candidates:
        moves = math.hypot(*one.velocity.tolist()) > MOVING
        if moves and len(taken) < BIRTHS_MAX and not any(_is_same(one, other) for other in taken):
            taken.append(one)
    return [_born(one, z) for one in taken]


def _is_same(one: Candidate, other: Candidate) -> bool:
    apart = math.hypot(*(one.place - other.place).tolist())
    faster = float((one.velocity - other.velocity) @ one.sight)
    return apart < TOGETHER[0] and abs(faster) < TOGETHER[1]


def _born(one: Candidate, z: float) -> Hypothesis:
    """Return a track of a car's size behind the target, along x or against it."""
    size = CLASSES[0]
    axes = np.array([[one.sight[0], -one.sight[1]], [one.sight[1], one.sight[0]]])
    covariance = np.zeros((tracking.STATES, tracking.STATES))
    covariance[:2, :2] = one.noise + PLACE_SIGMA**2 * np.eye(2)
    covariance[2:4, 2:4] = (axes * (ALONG_SIGMA**2, SIDE_SIGMA**2)) @ axes.T
    covariance[4, 4] = YAW_SIGMA**2
    centre = one.place + one.sight * size.length / 2
    return Hypothesis(
        birth=one.birth,
        mean=headed(np.array([*centre, *one.velocity, 0.0])),
        covariance=covariance,
        length=size.length,
        width=size.width,
        height=size.height,
        z=z,
        votes=tuple(VOTE if label == "unknown" else 0.0 for label in LABELS),
        existence=EXISTENCE,
        hits=1,
        misses=0,
        confirmed=False,
        turned=0,
        support=(("radar", one.birth[0]),),
        shown_by="radar",
        nearest_x=math.nan,
        points=NO_POINTS,
    )
