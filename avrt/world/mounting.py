"""Where the vehicle and its sensors are in the world.

Vehicle frame `base_link` (REP 105): origin on the ground below the middle of the rear axle, x
forward, y left, z up; the vehicle lies on the ground as it slopes and banks there. LiDAR and radar
frames have the axes of the vehicle, a camera's optical frame looks along z, its x to the right.

Shape letters: K instants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.world.traffic import EGO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.road import Ground
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

VEHICLE = "base_link"
REAR_AXLE = 1.35  # metres from the vehicle's middle back to the origin of its frame


class Mounting(NamedTuple):
    """Where a sensor is in the vehicle's frame.

    Attributes:
        quaternion: x, y, z, w, from the sensor's axes to the vehicle's.
    """

    frame: str
    x: float
    y: float
    z: float
    quaternion: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)

    @property
    def place(self) -> tuple[float, float, float]:
        return self.x, self.y, self.z

    @property
    def axes(self) -> Array:
        """Return the sensor's axes in the vehicle's frame, (3, 3): columns are its x, y and z."""
        x, y, z, w = self.quaternion
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )


LIDAR = Mounting("lidar_roof", 1.0, 0.0, 1.85)
CAMERA = Mounting("camera_front", 1.6, 0.0, 1.35, (-0.5, 0.5, -0.5, 0.5))
RADAR = Mounting("radar_front", 3.55, 0.0, 0.5)
IMU = Mounting("imu", 0.0, 0.0, 0.4)
GNSS = Mounting("gnss", 0.0, 0.0, 1.55)
MOUNTINGS = (LIDAR, CAMERA, RADAR, IMU, GNSS)


class Pose(NamedTuple):
    """A frame in the world.

    Attributes:
        origin: (K, 3) metres.
        axes: (K, 3, 3): columns are the frame's x, y and z in the world.
    """

    origin: Array
    axes: Array

    def point(self, place: tuple[float, float, float]) -> Array:
        """Return where a place of the frame is in the world, (K, 3) metres."""
        return np.asarray(self.origin + self.axes @ np.array(place))

    def seen(self, points: Array) -> Array:
        """Return points of the world, (..., 3) metres, in this frame; for one instant."""
        assert len(self.origin) == 1
        return np.asarray((points - self.origin[0]) @ self.axes[0])

    def turned(self, vectors: Array) -> Array:
        """Return directions of the world, (..., 3), in this frame; for one instant."""
        assert len(self.origin) == 1
        return np.asarray(vectors @ self.axes[0])


def ego_pose(ground: Ground, motion: Motion) -> Pose:
    """Return the frame of the vehicle itself at the K instants of a motion."""
    return vehicle_pose(ground, motion.x[:, EGO], motion.y[:, EGO], motion.yaw[:, EGO])


def vehicle_pose(ground: Ground, x: Array, y: Array, yaw: Array) -> Pose:
    """Return the frame of a vehicle whose middle is at (x, y), (K,) each."""
    x = x - REAR_AXLE * np.cos(yaw)
    y = y - REAR_AXLE * np.sin(yaw)
    along_x, along_y = ground.gradient(x, y)
    forward = np.stack(
        [np.cos(yaw), np.sin(yaw), along_x * np.cos(yaw) + along_y * np.sin(yaw)], axis=-1
    )
    up = np.stack([-along_x, -along_y, np.ones_like(x)], axis=-1)
    forward /= np.linalg.norm(forward, axis=-1, keepdims=True)
    up /= np.linalg.norm(up, axis=-1, keepdims=True)
    left = np.cross(up, forward)
    origin = np.stack([x, y, ground.height(x, y)], axis=-1)
    return Pose(origin, np.stack([forward, left, up], axis=-1))
