"""From payloads to ROS 2 messages, as a driver of the sensor would publish them.

What becomes of the bytes is the business of subclasses: `avrt.logs.writer` writes a log of them.
Stamps are ns; log time equals the stamp unless it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import SpecError
from avrt.logs.ros.message import (
    cloud_message,
    cloud_rows,
    fix_message,
    header,
    imu_message,
    target_rows,
    twist,
)
from avrt.logs.ros.types import (
    CAMERA_INFO,
    CLOUD,
    COMPRESSED_IMAGE,
    FIX,
    IMAGE,
    IMU,
    ODOMETRY,
    TRANSFORMS,
    TRUE_OBJECTS,
    TWIST,
    known_types,
)
from avrt.logs.truth import truth_message
from avrt.payload import CameraInfo, Fix, Image, Imu, Lens, PointCloud, Speed, Targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.payload import Truth
    from avrt.payload.cloud import Coordinates

    Pose = tuple[float, float, float, float, float, float, float]


class Encoder(ABC):
    """Makes a message of each payload."""

    def __init__(self) -> None:
        self._store = known_types()

    def add(self, topic: str, frame: str, stamp_ns: int, payload: object, log_ns: int) -> None:
        """Add what a sensor measured: one of `avrt.payload`, of a kind that some source has.

        Raises:
            SpecError: it is none of them.
        """
        match payload:
            case PointCloud() as cloud:
                self._add_sweep(topic, header(stamp_ns, frame), cloud, log_ns)
            case Image() as image:
                self.add_image(topic, frame, stamp_ns, image, log_ns=log_ns)
            case CameraInfo() as info:
                self.add_camera_info(topic, frame, stamp_ns, info, log_ns=log_ns)
            case Targets() as targets:
                self.add_targets(topic, frame, stamp_ns, targets, log_ns=log_ns)
            case Imu() as imu:
                self.add_imu(topic, frame, stamp_ns, imu, log_ns=log_ns)
            case Fix() as fix:
                self.add_fix(topic, frame, stamp_ns, fix, log_ns=log_ns)
            case Speed() as speed:
                self.add_speed(topic, frame, stamp_ns, speed, log_ns=log_ns)
            case other:
                what = f"a source gives a payload of its type, found {type(other).__name__}"
                raise SpecError(what)

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
        cloud = PointCloud(xyz, intensity, seconds)
        at_ns = stamp_ns if log_ns is None else log_ns
        self._add_sweep(topic, header(stamp_ns, frame), cloud, at_ns)

    def add_jpeg(
        self, topic: str, frame: str, stamp_ns: int, jpeg: bytes, *, log_ns: int | None = None
    ) -> None:
        """Add an image that is already compressed."""
        data = np.frombuffer(jpeg, np.uint8)
        message = ros.sensor_msgs__msg__CompressedImage(header(stamp_ns, frame), "jpeg", data)
        self._add(topic, COMPRESSED_IMAGE, message, stamp_ns if log_ns is None else log_ns)

    def add_image(
        self, topic: str, frame: str, stamp_ns: int, image: Image, *, log_ns: int | None = None
    ) -> None:
        """Add an image as its camera gave it, raw or compressed."""
        at_ns = stamp_ns if log_ns is None else log_ns
        if not image.width_px:
            message = ros.sensor_msgs__msg__CompressedImage(
                header(stamp_ns, frame), image.encoding, image.data
            )
            self._add(topic, COMPRESSED_IMAGE, message, at_ns)
            return
        raw = ros.sensor_msgs__msg__Image(
            header(stamp_ns, frame),
            image.height_px,
            image.width_px,
            image.encoding,
            0,
            image.row_bytes,
            image.data,
        )
        self._add(topic, IMAGE, raw, at_ns)

    def add_camera_info(
        self, topic: str, frame: str, stamp_ns: int, info: CameraInfo, *, log_ns: int | None = None
    ) -> None:
        """Add the model of a camera."""
        lens = info.lens
        if lens is None:
            lens = Lens("plumb_bob", np.zeros(5), info.projection[:, :3], np.eye(3))
        message = ros.sensor_msgs__msg__CameraInfo(
            header=header(stamp_ns, frame),
            height=info.height_px,
            width=info.width_px,
            distortion_model=lens.model,
            d=lens.coefficients,
            k=lens.matrix.ravel(),
            r=lens.rectification.ravel(),
            p=info.projection.ravel(),
            binning_x=0,
            binning_y=0,
            roi=ros.sensor_msgs__msg__RegionOfInterest(0, 0, 0, 0, do_rectify=False),
        )
        self._add(topic, CAMERA_INFO, message, stamp_ns if log_ns is None else log_ns)

    def add_imu(
        self, topic: str, frame: str, stamp_ns: int, imu: Imu, *, log_ns: int | None = None
    ) -> None:
        """Add a reading of an inertial unit."""
        message = imu_message(header(stamp_ns, frame), imu)
        self._add(topic, IMU, message, stamp_ns if log_ns is None else log_ns)

    def add_fix(
        self, topic: str, frame: str, stamp_ns: int, fix: Fix, *, log_ns: int | None = None
    ) -> None:
        """Add a position of a satellite receiver."""
        message = fix_message(header(stamp_ns, frame), fix)
        self._add(topic, FIX, message, stamp_ns if log_ns is None else log_ns)

    def add_speed(
        self, topic: str, frame: str, stamp_ns: int, speed: Speed, *, log_ns: int | None = None
    ) -> None:
        """Add the vehicle's own speed."""
        moving = twist(speed.speed, speed.yaw_rate)
        message = ros.geometry_msgs__msg__TwistStamped(header(stamp_ns, frame), moving)
        self._add(topic, TWIST, message, stamp_ns if log_ns is None else log_ns)

    def add_targets(
        self, topic: str, frame: str, stamp_ns: int, targets: Targets, *, log_ns: int | None = None
    ) -> None:
        """Add a radar's cycle as a cloud of targets."""
        message = cloud_message(header(stamp_ns, frame), target_rows(targets))
        self._add(topic, CLOUD, message, stamp_ns if log_ns is None else log_ns)

    def add_transforms(
        self, topic: str, stamp_ns: int, transforms: Sequence[tuple[str, str, Pose]]
    ) -> None:
        """Add mountings: parent, child, and the child's x, y, z (m) and quaternion x, y, z, w."""
        stamped = [
            ros.geometry_msgs__msg__TransformStamped(
                header(stamp_ns, parent),
                child,
                ros.geometry_msgs__msg__Transform(
                    ros.geometry_msgs__msg__Vector3(*at[:3]),
                    ros.geometry_msgs__msg__Quaternion(*at[3:]),
                ),
            )
            for parent, child, at in transforms
        ]
        self._add(topic, TRANSFORMS, ros.tf2_msgs__msg__TFMessage(stamped), stamp_ns)

    def add_odometry(
        self, topic: str, frames: tuple[str, str], stamp_ns: int, pose: Pose, speed: Speed
    ) -> None:
        """Add where the second of two frames is in the first one, and how it moves along itself.

        `pose` is x, y, z (m) and the quaternion x, y, z, w.
        """
        geometry = ros.geometry_msgs__msg__Point, ros.geometry_msgs__msg__Quaternion
        place, turn = geometry[0](*pose[:3]), geometry[1](*pose[3:])
        message = ros.nav_msgs__msg__Odometry(
            header(stamp_ns, frames[0]),
            frames[1],
            ros.geometry_msgs__msg__PoseWithCovariance(
                ros.geometry_msgs__msg__Pose(place, turn), np.zeros(36)
            ),
            ros.geometry_msgs__msg__TwistWithCovariance(
                twist(speed.speed, speed.yaw_rate), np.zeros(36)
            ),
        )
        self._add(topic, ODOMETRY, message, stamp_ns)

    def add_truth(self, topic: str, frame: str, stamp_ns: int, truth: Truth) -> None:
        """Add what is really there."""
        self._add(topic, TRUE_OBJECTS, truth_message(stamp_ns, frame, truth), stamp_ns)

    @abstractmethod
    def add_raw(
        self, topic: str, type_name: str, log_ns: int, data: bytes, *, encoding: str = "cdr"
    ) -> None:
        """Take bytes as they are, under a type of ROS 2 that `rosbags` knows."""

    def _add_sweep(
        self, topic: str, head: ros.std_msgs__msg__Header, cloud: PointCloud, log_ns: int
    ) -> None:
        self._add(topic, CLOUD, cloud_message(head, cloud_rows(cloud), cloud.rows), log_ns)

    def _add(self, topic: str, type_name: str, message: object, log_ns: int) -> None:
        data = self._store.serialize_cdr(message, type_name)
        self.add_raw(topic, type_name, log_ns, bytes(data))
