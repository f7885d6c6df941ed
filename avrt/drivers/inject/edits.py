"""Object lists and plans that say something else, though every one of their numbers is sound.

What a copy of a tracker or a planner may come to by itself: a thing that is not there, one that it
does not see, another way that can be driven as well. No range and no check sum tells of these; what
does is a copy that says otherwise. A payload that has nothing to change is returned itself.

Shape letters: S instants of a plan.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import Box, Plan, Track, Tracks

if TYPE_CHECKING:
    from avrt.model.campaign import Injection

EDITS = frozenset(("ghost", "miss", "swerve"))
"""Faults that hit only what they change: not every output is a list of objects, or a plan."""
REACH_MIN = 5.0  # metres: a plan that stands, or nearly so, has no other way
STANDARD_DEVIATIONS = (0.3, 0.3, 0.5, 0.5, 0.1)  # of x, y, vx, vy, yaw; SI units
NO_POINTS = np.zeros((0, 3), np.float32)


def edited(fault: Injection, payload: object) -> object:
    """Return what a fault makes of an output."""
    match fault.kind:
        case "ghost":
            return with_ghost(payload, fault.by, fault.aside)
        case "miss":
            return without_nearest(payload, fault.by, fault.aside)
        case "swerve":
            return swerved(payload, fault.by)
        case _:
            return payload


def with_ghost(payload: object, ahead: float, aside: float) -> object:
    """Return an object list with a car more, which stands so many metres ahead and to the left."""
    if not isinstance(payload, Tracks):
        return payload
    box = Box(ahead, aside, 0.75, 4.5, 1.8, 1.5, 0.0)
    ghost = Track(
        id=max((track.id for track in payload.objects), default=0) + 1,
        label="car",
        box=box,
        vx=0.0,
        vy=0.0,
        closing_speed=payload.ego_speed,
        covariance=np.diag(np.square(STANDARD_DEVIATIONS)),
        existence=1.0,
        hits=100,
        misses=0,
        confirmed=True,
        sensors=tuple(one.name for one in payload.inputs),
        nearest_x=ahead - box.length / 2,
        points=NO_POINTS,
    )
    return replace(payload, objects=(*payload.objects, ghost))


def without_nearest(payload: object, ahead: float, aside: float) -> object:
    """Return an object list without the object whose centre is nearest to a place."""
    if not isinstance(payload, Tracks) or not payload.objects:
        return payload

    def away(place: int) -> float:
        box = payload.objects[place].box
        return math.hypot(box.x - ahead, box.y - aside)

    missed = min(range(len(payload.objects)), key=away)
    kept = payload.objects[:missed] + payload.objects[missed + 1 :]
    return replace(payload, objects=kept)


def swerved(payload: object, aside: float) -> object:
    """Return a plan that ends so many metres further to the left, at the same speeds.

    The way aside is the planner's own: a quintic over the way ahead, x = w * reach, with neither
    slope nor curvature at both ends (Werling et al., ICRA 2010).
    """
    if not isinstance(payload, Plan) or not aside:
        return payload
    x = payload.xy[:, 0]
    reach = float(x[-1] - x[0])
    if not reach >= REACH_MIN:
        return payload
    w = (x - x[0]) / reach
    way = aside * (10 * w**3 - 15 * w**4 + 6 * w**5)
    slope = aside / reach * (30 * w**2 - 60 * w**3 + 30 * w**4)
    bend = aside / reach**2 * (60 * w - 180 * w**2 + 120 * w**3)
    return replace(
        payload,
        xy=payload.xy + np.stack([np.zeros_like(way), way], axis=1),
        yaw=payload.yaw + np.arctan(slope),
        curvature=payload.curvature + bend / (1 + slope**2) ** 1.5,
    )
