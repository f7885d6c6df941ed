"""Adds payloads to a log as ROS 2 messages.

What becomes of the bytes is the business of subclasses: `avrt.logs.writer` writes a log of them.
Stamps are ns; log time equals the stamp unless it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from avrt.logs.messages import message_of, odometry_message, transforms_message
from avrt.logs.ros.types import ODOMETRY, TRANSFORMS, known_types
from avrt.payload import Image, PointCloud

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.logs.messages import Pose
    from avrt.payload import CameraInfo, Fix, Imu, Speed, Targets, Truth
    from avrt.payload.cloud import Coordinates


class Encoder(ABC):
    """Makes a message of each payload."""

    def __init__(self) -> None:
        self._store = known_types()

    def add(
        self, topic: str, frame: str, stamp_ns: int, payload: object, log_ns: int | None = None
    ) -> None:
        """Add what a sensor measured: one of `avrt.payload`, of a kind that some source has.

        Raises:
            SpecError: it is none of them.
        """
        type_name, message = message_of(payload, stamp_ns, frame)
        self._add(topic, type_name, message, stamp_ns if log_ns is None else log_ns)

    def add_cloud(  # noqa: PLR0913 - what a sweep has
        self,
        topic: str,
        frame: str,
        stamp_ns: int,
        xyz: Coordinates,
        intensity: NDArray[np.float32] | None = None,
        *,
        seconds: NDArray[np.float32] | None = None,
        log_ns: int | None = None,
    ) -> None:
        """Add a sweep.

        Args:
            topic: of the message.
            frame: of the points.
            stamp_ns: when it begins.
            xyz: (N, 3) metres.
            intensity: (N,), or None.
            seconds: (N,) when each point was measured, after the stamp, or None.
            log_ns: when it was recorded.
        """
        self.add(topic, frame, stamp_ns, PointCloud(xyz, intensity, seconds), log_ns)

    def add_jpeg(
        self, topic: str, frame: str, stamp_ns: int, jpeg: bytes, *, log_ns: int | None = None
    ) -> None:
        """Add an image that is already compressed."""
        self.add(topic, frame, stamp_ns, Image("jpeg", np.frombuffer(jpeg, np.uint8)), log_ns)

    def add_image(
        self, topic: str, frame: str, stamp_ns: int, image: Image, *, log_ns: int | None = None
    ) -> None:
        """Add an image as its camera gave it, raw or compressed."""
        self.add(topic, frame, stamp_ns, image, log_ns)

    def add_camera_info(
        self, topic: str, frame: str, stamp_ns: int, info: CameraInfo, *, log_ns: int | None = None
    ) -> None:
        """Add the model of a camera."""
        self.add(topic, frame, stamp_ns, info, log_ns)

    def add_imu(
        self, topic: str, frame: str, stamp_ns: int, imu: Imu, *, log_ns: int | None = None
    ) -> None:
        """Add a reading of an inertial unit."""
        self.add(topic, frame, stamp_ns, imu, log_ns)

    def add_fix(
        self, topic: str, frame: str, stamp_ns: int, fix: Fix, *, log_ns: int | None = None
    ) -> None:
        """Add a position of a satellite receiver."""
        self.add(topic, frame, stamp_ns, fix, log_ns)

    def add_speed(
        self, topic: str, frame: str, stamp_ns: int, speed: Speed, *, log_ns: int | None = None
    ) -> None:
        """Add the vehicle's own speed."""
        self.add(topic, frame, stamp_ns, speed, log_ns)

    def add_targets(
        self, topic: str, frame: str, stamp_ns: int, targets: Targets, *, log_ns: int | None = None
    ) -> None:
        """Add a radar's cycle as a cloud of targets."""
        self.add(topic, frame, stamp_ns, targets, log_ns)

    def add_transforms(
        self, topic: str, stamp_ns: int, transforms: Sequence[tuple[str, str, Pose]]
    ) -> None:
        """Add mountings: parent, child, and the child's x, y, z (m) and quaternion x, y, z, w."""
        self._add(topic, TRANSFORMS, transforms_message(stamp_ns, transforms), stamp_ns)

    def add_odometry(
        self, topic: str, frames: tuple[str, str], stamp_ns: int, pose: Pose, speed: Speed
    ) -> None:
        """Add where the second of two frames is in the first one, and how it moves along itself.

        `pose` is x, y, z (m) and the quaternion x, y, z, w.
        """
        self._add(topic, ODOMETRY, odometry_message(stamp_ns, frames, pose, speed), stamp_ns)

    def add_truth(self, topic: str, frame: str, stamp_ns: int, truth: Truth) -> None:
        """Add what is really there."""
        self.add(topic, frame, stamp_ns, truth)

    @abstractmethod
    def add_raw(
        self, topic: str, type_name: str, log_ns: int, data: bytes, *, encoding: str = "cdr"
    ) -> None:
        """Take bytes as they are, under a type of ROS 2 that `rosbags` knows."""

    def _add(self, topic: str, type_name: str, message: object, log_ns: int) -> None:
        data = self._store.serialize_cdr(message, type_name)
        self.add_raw(topic, type_name, log_ns, bytes(data))
