"""ROS 2 messages (CDR bytes) to payloads; arrays are views of the message wherever possible.

The CDR itself is read by `rosbags`; what this adds is the check that sizes, fields and bytes of a
message agree, and the step to a payload. What a message becomes depends on the kind of source that
reads it: the points of a PointCloud2 are a sweep to a LiDAR and targets to a radar. A payload holds
what the sensor sent: NaN points stay, images stay compressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from rosbags.serde import SerdeError

from avrt.logs.decode.image import read_camera_info, read_compressed_image, read_image
from avrt.logs.decode.motion import read_fix, read_imu, read_odometry, read_twist
from avrt.logs.decode.points import has_lost_times, read_cloud, read_scan
from avrt.logs.decode.radar import (
    read_radar_cloud,
    read_radar_scan,
    read_radar_tracks,
    read_sick_radar,
)
from avrt.logs.ros.ros1 import ROS1
from avrt.logs.ros.types import (
    CAMERA_INFO,
    CLOUD,
    COMPRESSED_IMAGE,
    FIX,
    IMAGE,
    IMU,
    ODOMETRY,
    PACKETS,
    RADAR_SCAN,
    RADAR_TRACKS,
    SCAN,
    SICK_RADAR,
    SICK_RADAR_XD,
    TWIST,
    TWIST_COVARIANCE,
    types_of,
)
from avrt.payload import CameraInfo, Fix, Image, Imu, PointCloud, Speed, Targets
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rosbags.typesys.stores import ros2_jazzy as ros

    from avrt.logs.raw import RawMessage, TopicInfo

Payload = PointCloud | Image | CameraInfo | Targets | Imu | Fix | Speed
INFO = "camera_info"
READERS: Mapping[str, Mapping[str, Callable[[RawMessage, object], Payload]]] = {
    "camera": {COMPRESSED_IMAGE: read_compressed_image, IMAGE: read_image},
    INFO: {CAMERA_INFO: read_camera_info},
    "lidar": {CLOUD: read_cloud, SCAN: read_scan},
    "radar": {
        CLOUD: read_radar_cloud,
        RADAR_SCAN: read_radar_scan,
        RADAR_TRACKS: read_radar_tracks,
        SICK_RADAR: read_sick_radar,
        SICK_RADAR_XD: read_sick_radar,
        COMPRESSED_IMAGE: read_compressed_image,
        IMAGE: read_image,
    },
    "imu": {IMU: read_imu},
    "gnss": {FIX: read_fix},
    "can": {TWIST: read_twist, TWIST_COVARIANCE: read_twist, ODOMETRY: read_odometry},
}
DEFINED_BY_LOGS = frozenset({SICK_RADAR, SICK_RADAR_XD})


class Stamped(Protocol):
    """Any message that has a header."""

    header: ros.std_msgs__msg__Header


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decoded message.

    Attributes:
        header_ns: the sensor's own stamp, sensor's clock, as it was sent.
        stamp_valid: the stamp is later than zero and has nanoseconds below one second.
        frame: of the payload, without the slash that ROS 1 put before it.
        lost_times: the points have times, and they are none of the sweep.
    """

    header_ns: int
    stamp_valid: bool
    frame: str
    payload: Payload
    lost_times: bool = False


def decode(raw: RawMessage, kind: str) -> Decoded:
    """Decode one message for a source of a kind ("lidar", ...) of `READERS`.

    Raises:
        InputError: such a source does not read its type, or its bytes do not hold what it promises.
    """
    read = READERS[kind].get(raw.type)
    if raw.channel.encoding != "cdr" or read is None:
        found = f"{raw.type or 'no type'} in {raw.channel.encoding or 'no'} encoding"
        raise raw.error(f"a CDR message of {' or '.join(READERS[kind])}", found)
    message = parse(raw)
    try:
        with np.errstate(all="ignore"):  # what a payload cannot hold becomes infinite or NaN
            payload = read(raw, message)
        header = cast("Stamped", message).header
        stamp, frame = header.stamp, header.frame_id
    except (AttributeError, TypeError, ValueError) as error:
        if raw.type not in DEFINED_BY_LOGS:
            raise
        raise raw.error(f"a {raw.type} as its driver defines it", f"another: {error}") from None
    if raw.type == ODOMETRY:
        frame = cast("ros.nav_msgs__msg__Odometry", message).child_frame_id
    header_ns = stamp.sec * NS_PER_S + stamp.nanosec
    valid = is_stamp(stamp.sec, stamp.nanosec)
    lost = isinstance(payload, PointCloud) and has_lost_times(message, payload)
    return Decoded(header_ns, valid, frame.removeprefix("/"), payload, lost)


def is_stamp(sec: int, nanosec: int) -> bool:
    """Whether a stamp can be a time: later than zero, with nanoseconds below one second."""
    return sec >= 0 and nanosec < NS_PER_S and (sec, nanosec) != (0, 0)


def why_unreadable(info: TopicInfo, kind: str) -> str:
    """Return why a source of a kind cannot read a topic; empty when it can."""
    if info.type.rpartition("/")[2] in PACKETS:
        return (
            f"{info.type} holds the raw packets of a sensor, which only its driver can read; "
            f"record the driver's output ({' or '.join(READERS[kind])}) instead"
        )
    if info.type not in READERS[kind]:
        return f"expected a topic of {' or '.join(READERS[kind])}, found {info.type or 'no type'}"
    if info.encoding == ROS1:
        return f"the log does not define {info.type}, so its messages cannot be read"
    if info.encoding != "cdr":
        return f"expected messages in CDR, found encoding {info.encoding!r}"
    return ""


def parse(raw: RawMessage) -> object:
    """Return the ROS 2 message that the bytes hold.

    Raises:
        InputError: they hold none, or its type is not defined.
    """
    store = types_of(raw.channel)
    try:
        return store.deserialize_cdr(raw.data, raw.type)
    except (SerdeError, IndexError, OverflowError, MemoryError) as error:
        found = f"{len(raw.data)} bytes, which are not one: {error}"
        raise raw.error(f"a {raw.type}", found) from None
