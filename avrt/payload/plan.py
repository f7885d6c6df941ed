"""What the vehicle means to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PlanCause:
    """Why a plan brakes: the track, the sensors behind it and the points that showed it.

    Attributes:
        points: (P, 3) float32, metres, frame of the plan's input.
        impact_speed: how fast the plan meets the track, m/s; above 0 only where no braking avoids
            it, and then it is the lowest that the vehicle can reach.
    """

    track_id: int
    sensors: tuple[str, ...]
    points: NDArray[np.float32]
    distance: float
    closing_speed: float
    impact_speed: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A trajectory in the vehicle frame at the capture time of its input.

    Attributes:
        t: (S,) float64, seconds after that capture time.
        xy: (S, 2) float64, metres.
        yaw: (S,) float64, radians.
        speed: (S,) float64, m/s.
        acceleration: (S,) float64, m/s^2 along the path.
        curvature: (S,) float64, 1/m.
        kind: "follow" | "cruise" | "brake" | "stop".
        time_gap: seconds to the vehicle ahead at the plan's start, or None if the way is free.
        cause: what made it brake, or None.
    """

    t: NDArray[np.float64]
    xy: NDArray[np.float64]
    yaw: NDArray[np.float64]
    speed: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    curvature: NDArray[np.float64]
    kind: str
    time_gap: float | None
    cause: PlanCause | None
