"""From payloads to ROS 2 messages, as a driver of the sensor would publish them.

What is no payload is a message already: transforms and odometry are made here too, for logs that
tell where sensors are and how the vehicle moved.
"""

from __future__ import annotations

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
    TRUE_OBJECTS,
    TWIST,
)
from avrt.logs.truth import truth_message
from avrt.payload import CameraInfo, Fix, Image, Imu, Lens, PointCloud, Speed, Targets, Truth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Pose = tuple[float, float, float, float, float, float, float]
"""Where a frame is in another one: x, y, z (m) and the quaternion x, y, z, w."""


def message_of(  # noqa: PLR0911 - one for each payload
    payload: object, stamp_ns: int, frame: str
) -> tuple[str, object]:
    """Return the type and the message of what a sensor measured, or of what was really there.

    Args:
        payload: one of `avrt.payload` that some source has, or a `Truth`.
        stamp_ns: when it was measured, sensor's clock.
        frame: of the sensor.

    Raises:
        SpecError: it is none of them.
    """
    head = header(stamp_ns, frame)
    match payload:
        case PointCloud():
            return CLOUD, cloud_message(head, cloud_rows(payload), payload.rows)
        case Targets():
            return CLOUD, cloud_message(head, target_rows(payload))
        case Image():
            return image_message(head, payload)
        case CameraInfo():
            return CAMERA_INFO, camera_info_message(head, payload)
        case Imu():
            return IMU, imu_message(head, payload)
        case Fix():
            return FIX, fix_message(head, payload)
        case Speed():
            moving = twist(payload.speed, payload.yaw_rate)
            return TWIST, ros.geometry_msgs__msg__TwistStamped(head, moving)
        case Truth():
            return TRUE_OBJECTS, truth_message(stamp_ns, frame, payload)
        case _:
            what = f"a source gives a payload of its type, found {type(payload).__name__}"
            raise SpecError(what)


def image_message(head: ros.std_msgs__msg__Header, image: Image) -> tuple[str, object]:
    """Return an image as its camera gave it, raw or compressed, after its type."""
    if not image.width_px:
        return COMPRESSED_IMAGE, ros.sensor_msgs__msg__CompressedImage(
            head, image.encoding, image.data
        )
    width, height, data = image.width_px, image.height_px, image.data
    row = image.row_bytes
    return IMAGE, ros.sensor_msgs__msg__Image(head, height, width, image.encoding, 0, row, data)


def camera_info_message(head: ros.std_msgs__msg__Header, info: CameraInfo) -> object:
    """Return the model of a camera; of a rectified one where its lens is not told."""
    lens = info.lens
    if lens is None:
        lens = Lens("plumb_bob", np.zeros(5), info.projection[:, :3], np.eye(3))
    return ros.sensor_msgs__msg__CameraInfo(
        header=head,
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


def transforms_message(
    stamp_ns: int, transforms: Sequence[tuple[str, str, Pose]]
) -> ros.tf2_msgs__msg__TFMessage:
    """Return mountings: parent, child, and where the child is."""
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
    return ros.tf2_msgs__msg__TFMessage(stamped)


def odometry_message(
    stamp_ns: int, frames: tuple[str, str], pose: Pose, speed: Speed
) -> ros.nav_msgs__msg__Odometry:
    """Return where the second of two frames is in the first one, and how it moves along itself."""
    place = ros.geometry_msgs__msg__Point(*pose[:3])
    turn = ros.geometry_msgs__msg__Quaternion(*pose[3:])
    return ros.nav_msgs__msg__Odometry(
        header(stamp_ns, frames[0]),
        frames[1],
        ros.geometry_msgs__msg__PoseWithCovariance(
            ros.geometry_msgs__msg__Pose(place, turn), np.zeros(36)
        ),
        ros.geometry_msgs__msg__TwistWithCovariance(
            twist(speed.speed, speed.yaw_rate), np.zeros(36)
        ),
    )


def pose_of(matrix: NDArray[np.float64]) -> Pose:
    """Return the pose of a matrix (4, 4) or (3, 4), [R | t] from the child to the parent."""
    from scipy.spatial.transform import Rotation  # noqa: PLC0415 - 0.1 s, and few logs need it

    x, y, z = matrix[:3, 3].tolist()
    turn = Rotation.from_matrix(matrix[:3, :3]).as_quat().tolist()
    return x, y, z, turn[0], turn[1], turn[2], turn[3]
