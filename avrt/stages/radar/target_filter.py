"""The targets worth following, of a radar that gives lists: the `TargetFilter` stage.

The number of targets is bounded, nearest first, and how many were left out is said.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from avrt.model.stage import Stage
from avrt.stages.mounting import Mounts, is_known
from avrt.stages.parameters import (
    check_below,
    check_not_negative,
    check_number,
    check_positive,
    check_whole,
)
from avrt.stages.radar.target_list import chosen, ground_speed, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.frames import Frames
    from avrt.model.message import Message
    from avrt.payload import EgoMotion, Targets


class TargetFilter(Stage):
    """Keep the targets worth following: in view, strong enough and, if asked for, moving.

    Positions that are no numbers are dropped and counted. Inside the vehicle's own way, a corridor
    along its x axis, nothing is dropped for being weak or standing still, and a burst of ghosts
    elsewhere cannot push it out: when there are too many, the corridor's come first, then the
    nearest. What a sensor does not tell (strength, range rate) is never a reason to drop a target.

    Args:
        range_min, range_max: distance that is looked at, metres.
        azimuth_max: largest angle from the sensor's x axis to either side, degrees.
        strength_min: weakest return, in the sensor's own measure; none is weak by default.
        moving_min: slowest speed over ground along the line of sight, m/s; needs `ego`, and 0 keeps
            what stands still.
        corridor_half_width: what lies nearer to the vehicle's x axis ahead is its own way, metres.
        targets_max: most targets that are given.
        vehicle_frame: the frame whose motion `ego` is; empty if the radar counts as being there.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        range_min: float = 0.5,
        range_max: float = 250.0,
        azimuth_max: float = 180.0,
        strength_min: float | None = None,
        moving_min: float = 0.0,
        corridor_half_width: float = 1.2,
        targets_max: int = 256,
        vehicle_frame: str = "",
    ) -> None:
        check_positive(range_max=range_max, azimuth_max=azimuth_max)
        check_not_negative(
            range_min=range_min, moving_min=moving_min, corridor_half_width=corridor_half_width
        )
        if strength_min is not None:
            check_number(strength_min=strength_min)
        check_whole(targets_max=(targets_max, 1))
        check_below(range_max, range_min=range_min)
        self.range_min = range_min
        self.range_max = range_max
        self.azimuth_max = math.radians(azimuth_max)
        self.strength_min = -math.inf if strength_min is None else strength_min
        self.moving_min = moving_min
        self.corridor_half_width = corridor_half_width
        self.targets_max = targets_max
        self.mounts = Mounts(vehicle_frame)

    def calibrate(self, frames: Frames) -> None:
        self.mounts.calibrate(frames)

    def process(self, targets: Message[Targets], ego: Message[EgoMotion] | None = None) -> Targets:
        """Return the targets that are kept, nearest first, in the frame of the input."""
        known = np.isfinite(targets.payload.xy).all(axis=1)
        found = chosen(targets.payload, np.nonzero(known)[0], int(np.count_nonzero(~known)))
        found = chosen(found, np.nonzero(self._in_view(found))[0])
        mount = self.mounts.of(targets.stamp.frame)
        x, y = mount.placed(found.xy).T
        own_way = (x > 0) & (np.abs(y) < self.corridor_half_width)
        dropped = found.strength < self.strength_min
        if ego is not None and is_known(ego.payload):
            dropped |= np.abs(ground_speed(found, ego.payload, mount)) < self.moving_min
        kept = own_way | ~dropped
        return nearest(chosen(found, np.nonzero(kept)[0]), self.targets_max, own_way[kept])

    def _in_view(self, found: Targets) -> NDArray[np.bool_]:
        x, y = found.xy.astype(np.float64).T
        distance = np.hypot(x, y)
        inside = (distance >= self.range_min) & (distance <= self.range_max)
        inside &= np.abs(np.arctan2(y, x)) <= self.azimuth_max
        return np.asarray(inside)
