"""Whether two plans mean the same, and which of several is the most careful.

A plan is never averaged: of one that passes on the left and one on the right, the mean hits what
both avoid. Limits and tolerances are parameters with the defaults of `PlanLimits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import Plan
from avrt.safety.structure import is_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.safety.agreement import Problem

STEP_SECONDS = 0.1
NEAR_SECONDS = 2.0
SAME_SECONDS = 1e-6


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What a plan may be.

    Attributes:
        lateral_acceleration, acceleration, braking: m/s^2, magnitudes.
        curvature: 1/m.
        start: metres between the vehicle and the plan's first point.
        start_yaw: radians.
        seconds: of its end.
        speed: m/s; 70 are 252 km/h.
    """

    lateral_acceleration: float = 4.0
    acceleration: float = 3.0
    braking: float = 9.0
    curvature: float = 1.0
    start: float = 0.5
    start_yaw: float = 0.2
    seconds: float = 60.0
    speed: float = 70.0


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Plans agree that lie close to each other at all times and are of one kind.

    Attributes:
        near, far: metres aside, for the first two seconds and after.
        along, along_share: metres along, and share of the way.
        speed: m/s.
        acceleration, heading, curvature: m/s^2, radians, 1/m.
    """

    near: float = 0.3
    far: float = 0.8
    along: float = 0.5
    along_share: float = 0.1
    speed: float = 0.5
    acceleration: float = 1.0
    heading: float = 0.1
    curvature: float = 0.02
    limits: PlanLimits = PlanLimits()

    def problem(self, payload: object) -> Problem:
        if not isinstance(payload, Plan) or not _is_whole(payload):
            return "schema"
        if not is_finite(_arrays(payload)):  # what is told of its cause moves nothing
            return "nonfinite"
        return "" if _is_drivable(payload, self.limits) else "range"

    def distance(self, a: object, b: object) -> float:
        assert isinstance(a, Plan)
        assert isinstance(b, Plan)
        end = min(a.t[-1], b.t[-1])
        if a.kind != b.kind or abs(a.t[-1] - b.t[-1]) > STEP_SECONDS:
            return float("inf")
        t = np.arange(0.0, end + SAME_SECONDS, STEP_SECONDS)
        one, other = _at(a, t), _at(b, t)
        heading = np.interp(t, a.t, a.yaw)
        apart = other[:, :2] - one[:, :2]
        along = apart[:, 0] * np.cos(heading) + apart[:, 1] * np.sin(heading)
        aside = apart[:, 1] * np.cos(heading) - apart[:, 0] * np.sin(heading)
        way = np.hypot(*(one[:, :2] - one[0, :2]).T)
        parts = (
            np.abs(aside) / np.where(t <= NEAR_SECONDS, self.near, self.far),
            np.abs(along) / (self.along + self.along_share * way),
            np.abs(other[:, 2] - one[:, 2]) / self.speed,
            np.abs(other[:, 3] - one[:, 3]) / self.acceleration,
            np.abs(other[:, 4] - one[:, 4]) / self.heading,
            np.abs(other[:, 5] - one[:, 5]) / self.curvature,
        )
        return float(max(part.max() for part in parts))

    def settle(self, payloads: Sequence[object]) -> Plan | None:
        """Return the plan that is the slowest over the next two seconds."""
        plans = [payload for payload in payloads if isinstance(payload, Plan)]
        t = np.arange(0.0, NEAR_SECONDS + SAME_SECONDS, STEP_SECONDS)
        return min(plans, key=lambda plan: float(_at(plan, t)[:, 2].mean()), default=None)

    def completed(self, selected: object, others: Sequence[object]) -> None:
        del selected, others


def _at(plan: Plan, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x, y, speed, acceleration, yaw and curvature at these times, `(S, 6) float64`."""
    xy = (plan.xy[:, 0], plan.xy[:, 1])
    columns = (*xy, plan.speed, plan.acceleration, plan.yaw, plan.curvature)
    return np.stack([np.interp(t, plan.t, column) for column in columns], axis=1)


def _arrays(plan: Plan) -> list[NDArray[np.float64]]:
    return [plan.xy, plan.t, plan.yaw, plan.speed, plan.acceleration, plan.curvature]


def _is_whole(plan: Plan) -> bool:
    count = len(plan.t)
    xy, *others = _arrays(plan)
    is_complete = xy.shape == (count, 2) and all(a.shape == (count,) for a in others)
    return count >= 2 and is_complete


def _is_drivable(plan: Plan, limits: PlanLimits) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):  # what has no square is too fast
        sideways = plan.speed**2 * np.abs(plan.curvature)
    return bool(
        (np.diff(plan.t) > 0).all()
        and plan.t[0] >= 0
        and plan.t[-1] <= limits.seconds
        and (plan.speed >= 0).all()
        and (plan.speed <= limits.speed).all()
        and (sideways <= limits.lateral_acceleration).all()
        and (plan.acceleration <= limits.acceleration).all()
        and (plan.acceleration >= -limits.braking).all()
        and (np.abs(plan.curvature) <= limits.curvature).all()
        and np.hypot(*plan.xy[0]) <= limits.start
        and abs(plan.yaw[0]) <= limits.start_yaw
    )
