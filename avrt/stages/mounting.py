"""A sensor on a moving vehicle: how it moves itself, and where things are once it has moved on.

The vehicle turns about its reference point (speed v along x, yaw rate w), so a sensor at (x, y)
in the vehicle's frame moves with

    (v - w y,  w x)        in the vehicle's axes.

What stands still comes nearer along the line of sight by that velocity's component, which is what
a Doppler radar measures of it: range rate = -(vx cos a + vy sin a), azimuth a in sensor axes.

Only the plane is looked at; a sensor is level. Speed and yaw rate are taken as constant for the
fraction of a second that is asked about.

Shape letters: N points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import SpecError
from avrt.model.frames import Frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload import EgoMotion

TILT_MAX = math.radians(15)
SPEED_SIGMA_MAX = 2.0  # m/s: a motion less certain than this would do more harm than good


def is_known(ego: EgoMotion) -> bool:
    """Tell whether a motion is known well enough to move things by it.

    An estimator that has just begun tells a speed of zero, and how little that means.
    """
    return float(ego.covariance[0, 0]) <= SPEED_SIGMA_MAX**2


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a sensor is in the vehicle's frame: metres, and radians to the left of its x axis."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    @classmethod
    def of(cls, matrix: Matrix) -> Mount:
        """Take a transform from the sensor's frame to the vehicle's.

        Raises:
            SpecError: the sensor is not level.
        """
        if matrix[10] < math.cos(TILT_MAX):
            tilt = math.degrees(math.acos(max(-1.0, min(1.0, matrix[10]))))
            raise SpecError(f"expected a level sensor, found one that is tilted by {tilt:.0f} deg")
        return cls(matrix[3], matrix[7], math.atan2(matrix[4], matrix[0]))

    def placed(self, xy: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return points of the sensor's frame, (N, 2) metres, in the vehicle's."""
        x, y = _turned(xy[:, 0].astype(np.float64), xy[:, 1].astype(np.float64), self.yaw)
        return np.stack([x + self.x, y + self.y], axis=1)

    def taken(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points of the vehicle's frame, (N, 2) metres, in the sensor's."""
        x, y = _turned(xy[:, 0] - self.x, xy[:, 1] - self.y, -self.yaw)
        return np.stack([x, y], axis=1)

    def velocity(self, ego: EgoMotion) -> tuple[float, float]:
        """Return the sensor's velocity over ground along its own axes, m/s."""
        vx, vy = ego.speed - ego.yaw_rate * self.y, ego.yaw_rate * self.x
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return vx * cos + vy * sin, vy * cos - vx * sin

    def still_range_rate(self, xy: NDArray[np.float32], ego: EgoMotion) -> NDArray[np.float64]:
        """Return the range rate of what stands still: (N,) float64, m/s, positive away.

        Args:
            xy: (N, 2) float32, metres, sensor frame.
            ego: how the vehicle moves.
        """
        azimuth = np.arctan2(xy[:, 1], xy[:, 0], dtype=np.float64)
        vx, vy = self.velocity(ego)
        return np.asarray(-(vx * np.cos(azimuth) + vy * np.sin(azimuth)))

    def moved_on(
        self, xy: NDArray[np.float64], seconds: NDArray[np.float64], ego: EgoMotion
    ) -> NDArray[np.float64]:
        """Return where points that stand still are in the sensor's frame after `seconds`.

        Args:
            xy: (N, 2) float64, metres, sensor frame at the time of each point.
            seconds: (N,) float64, how long after that time each is asked for.
            ego: how the vehicle moves.
        """
        x, y = _turned(xy[:, 0], xy[:, 1], self.yaw)
        turn = ego.yaw_rate * seconds
        chord = ego.speed * seconds * np.sinc(turn / (2 * np.pi))
        x = x + self.x - chord * np.cos(turn / 2)
        y = y + self.y - chord * np.sin(turn / 2)
        x, y = _turned(x, y, -turn)
        x, y = _turned(x - self.x, y - self.y, -self.yaw)
        return np.stack([x, y], axis=1)


class Mounts:
    """Where sensors are, by frame; at the vehicle's reference point unless a vehicle frame is set.

    Args:
        vehicle_frame: the frame that ego motion is about; empty if sensors count as being there.
    """

    def __init__(self, vehicle_frame: str) -> None:
        self.vehicle_frame = vehicle_frame
        self._frames = Frames()
        self._known: dict[str, Mount] = {}

    def calibrate(self, frames: Frames) -> None:
        self._frames = frames
        self._known = {}

    def of(self, frame: str) -> Mount:
        """Return where the sensor of a frame is.

        Raises:
            DataFault: no transform leads from it to the vehicle's frame.
            SpecError: the sensor is not level.
        """
        if not self.vehicle_frame:
            return Mount()
        if frame not in self._known:
            self._known[frame] = Mount.of(self._frames.between(frame, self.vehicle_frame))
        return self._known[frame]


def _turned(
    x: NDArray[np.float64], y: NDArray[np.float64], angle: float | NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.asarray(x * cos - y * sin), np.asarray(x * sin + y * cos)
