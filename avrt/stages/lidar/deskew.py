"""Move the points of a sweep to where they would be had all been measured at once: `Deskew`.

A LiDAR that spins measures each direction at another time, and the vehicle moves meanwhile: at
14 m/s and 10 Hz by 1.4 m from the first point to the last. Knowing the vehicle's motion, every
point is driven back along the arc between its own time and the stamp. Its time comes from the log
where the log has it, else from its azimuth, if the pipeline says how the sensor spins. Without
motion or without times the cloud passes as it is, and its `compensated` says so.

Times outside the sweep are impossible and are taken for its nearer end; an unknown one (NaN) is
taken for the stamp. So no point moves further than the vehicle does within one sweep. Zeros stay
where they are: drivers leave them where nothing came back, and moved they would lie on the road.

The velodyne files of KITTI: those of the odometry benchmark are compensated, those of the raw
recordings are not (the readme files of the two development kits say so); a raw sweep runs
counterclockwise from behind and its stamp is the moment when it faces forward, its middle.

Shape letters: N points.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from avrt.errors import SpecError
from avrt.model.frames import Frames, inverted
from avrt.model.stage import Stage
from avrt.payload.projection import moved
from avrt.stages.mounting import is_known
from avrt.stages.parameters import check_number, check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import EgoMotion, PointCloud
    from avrt.payload.cloud import Coordinates

STAMPS = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Which share of the sweep is over at its stamp."""
Direction = Literal["unknown", "counterclockwise", "clockwise"]


class Deskew(Stage):
    """Turn a sweep and the vehicle's motion into a sweep measured at its stamp.

    Args:
        sweep: how long one turn takes, seconds.
        stamp_at: "start", "middle" or "end": which moment of the sweep its stamp tells.
        direction: "counterclockwise" or "clockwise", seen from above: which way the sensor spins.
            "unknown" leaves clouds without times of their points as they are.
        cut: azimuth at which a sweep begins, degrees from x towards y, in the sensor's frame.
        frame: the vehicle's frame, whose x points forward and z up; "" means that the sensor sits
            at the vehicle's origin and is aligned with it.
    """

    def __init__(
        self,
        *,
        sweep: float = 0.1,
        stamp_at: str = "start",
        direction: str = "unknown",
        cut: float = 180.0,
        frame: str = "",
    ) -> None:
        check_positive(sweep=sweep)
        check_number(cut=cut)
        if stamp_at not in STAMPS:
            what = f"expected one of {', '.join(STAMPS)}, found {stamp_at!r}"
            raise SpecError(what, ("stamp_at",))
        if direction not in get_args(Direction):
            what = f"expected one of {', '.join(get_args(Direction))}, found {direction!r}"
            raise SpecError(what, ("direction",))
        self.first = -STAMPS[stamp_at] * sweep
        self.sweep = sweep
        self.direction = direction
        self.cut = math.radians(cut)
        self.frame = frame
        self.frames = Frames()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def process(
        self, cloud: Message[PointCloud], ego: Message[EgoMotion] | None = None
    ) -> PointCloud:
        """Return the sweep with its points where they were at its stamp, in its own frame."""
        payload = cloud.payload
        if payload.compensated or ego is None or not is_known(ego.payload):
            return payload
        seconds = self._seconds(payload)
        if seconds is None:
            return payload
        xyz = payload.xyz
        seconds[_zeros(xyz)] = 0.0
        if self.frame and self.frame != cloud.stamp.frame:
            mounted = self.frames.between(cloud.stamp.frame, self.frame)
            xyz = _driven_back(moved(xyz, mounted), seconds, ego.payload)
            xyz = moved(xyz, inverted(mounted))
        else:
            xyz = _driven_back(xyz, seconds, ego.payload)
        return replace(payload, xyz=xyz, compensated=True)

    def _seconds(self, cloud: PointCloud) -> NDArray[np.float32] | None:
        """Return when each point was measured, seconds after the stamp: (N,) within the sweep."""
        if cloud.seconds is not None:
            told = np.nan_to_num(cloud.seconds, nan=0.0)
            return np.clip(told, np.float32(self.first), np.float32(self.first + self.sweep))
        if self.direction == "unknown":
            return None
        azimuth = np.arctan2(cloud.xyz[:, 1], cloud.xyz[:, 0])
        turned = azimuth - np.float32(self.cut)
        if self.direction == "clockwise":
            turned = -turned
        share = np.mod(turned, np.float32(2 * np.pi)) / np.float32(2 * np.pi)
        return np.asarray(share * self.sweep + self.first, np.float32)


def _zeros(xyz: Coordinates) -> NDArray[np.intp]:
    """Return which points lie in the sensor itself."""
    near = np.flatnonzero(xyz[:, 0] == 0.0)
    return np.asarray(near[(xyz[near] == 0.0).all(axis=1)])


def _driven_back(xyz: Coordinates, seconds: NDArray[np.float32], ego: EgoMotion) -> Coordinates:
    """Return points as the vehicle at the stamp sees them: (N, 3) of their type, vehicle frame.

    `seconds` after the stamp the vehicle has turned by a = yaw rate x seconds and has come along a
    chord of speed x seconds x sin(a/2) / (a/2) at half that angle (as in `vehicle`).
    """
    seconds = seconds.astype(xyz.dtype, copy=False)
    turned = seconds * xyz.dtype.type(ego.yaw_rate)
    chord = seconds * xyz.dtype.type(ego.speed) * np.sinc(turned / xyz.dtype.type(2 * np.pi))
    cos, sin = np.cos(turned), np.sin(turned)
    x, y = xyz[:, 0], xyz[:, 1]
    back = np.empty((len(xyz), 3), xyz.dtype)
    back[:, 0] = x * cos - y * sin + chord * np.cos(turned / 2)
    back[:, 1] = x * sin + y * cos + chord * np.sin(turned / 2)
    back[:, 2] = xyz[:, 2]
    return back
