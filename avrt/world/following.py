"""A driver who does what the newest plan says: `PlanFollower`.

Along the road by the plan's acceleration and a part of the error in speed, both a little ahead of
the time: every plan begins without acceleration, so who always follows the first moments of a new
one would hardly brake. Aside it keeps to its
lane, as a lane-keeping assistant does, for a planner without a map does not know where that leads.
When there is no plan, or the newest has run out, the vehicle brakes gently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from avrt.payload import Plan
    from avrt.world.traffic import EgoState

PREVIEW = 0.25  # seconds
SPEED_GAIN = 1.5  # 1/s
OFFSET_GAIN, HEADING_GAIN = 0.02, 0.3  # 1/m^2, 1/m
CURVATURE_MAX = 0.1  # 1/m
WITHOUT_PLAN = -1.0  # m/s^2


class PlanFollower:
    """Drives a world's vehicle; a `Control`."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._from = 0.0

    def take(self, plan: Plan, at: float) -> None:
        """Follow this plan, which begins at a time, seconds since the world's start."""
        self._plan, self._from = plan, at

    def __call__(self, state: EgoState) -> tuple[float, float]:
        """Return acceleration, m/s^2, and curvature, 1/m."""
        back = OFFSET_GAIN * state.offset + HEADING_GAIN * state.heading
        curvature = max(-CURVATURE_MAX, min(CURVATURE_MAX, state.bend - back))
        plan, after = self._plan, state.at - self._from
        if plan is None or after > plan.t[-1]:
            return WITHOUT_PLAN, curvature
        wanted = float(np.interp(after + PREVIEW, plan.t, plan.speed))
        push = float(np.interp(after + PREVIEW, plan.t, plan.acceleration))
        return push + SPEED_GAIN * (wanted - state.speed), curvature
