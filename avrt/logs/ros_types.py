"""The message types that avrt reads, and where the definition of each comes from.

Types of ROS 2 come with `rosbags`. Those of `radar_msgs` stand here, as its repository has them
(https://github.com/ros-perception/radar_msgs, branch ros2). Any other type is read by the
definition that its log carries.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from avrt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rosbags.typesys.store import Typestore

    from avrt.logs.raw import Channel

CLOUD = "sensor_msgs/msg/PointCloud2"
SCAN = "sensor_msgs/msg/LaserScan"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
IMU = "sensor_msgs/msg/Imu"
FIX = "sensor_msgs/msg/NavSatFix"
TWIST = "geometry_msgs/msg/TwistStamped"
TWIST_COVARIANCE = "geometry_msgs/msg/TwistWithCovarianceStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
RADAR_SCAN = "radar_msgs/msg/RadarScan"
RADAR_TRACKS = "radar_msgs/msg/RadarTracks"
SICK_RADAR = "sick_scan/msg/RadarScan"
SICK_RADAR_XD = "sick_scan_xd/msg/RadarScan"
TRANSFORMS = "tf2_msgs/msg/TFMessage"
PACKETS = frozenset(
    {"NebulaPackets", "VelodyneScan", "PandarScan", "PacketMsg", "RslidarScan", "AeriesPackets"}
)

RADAR_DEFINITIONS: Mapping[str, str] = {
    "RadarReturn": """float32 range
float32 azimuth
float32 elevation
float32 doppler_velocity
float32 amplitude""",
    "RadarScan": """std_msgs/Header header
radar_msgs/RadarReturn[] returns""",
    "RadarTrack": """unique_identifier_msgs/UUID uuid
geometry_msgs/Point position
geometry_msgs/Vector3 velocity
geometry_msgs/Vector3 acceleration
geometry_msgs/Vector3 size
uint16 classification
float32[6] position_covariance
float32[6] velocity_covariance
float32[6] acceleration_covariance
float32[6] size_covariance""",
    "RadarTracks": """std_msgs/Header header
radar_msgs/RadarTrack[] tracks""",
}


@cache
def known_types() -> Typestore:
    """Return the types that need no definition, once a process: each is compiled at first use."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in RADAR_DEFINITIONS.items():
        store.register(get_types_from_msg(text, f"radar_msgs/msg/{name}"))
    return store


def types_of(channel: Channel) -> Typestore:
    """Return a store that has the type of a channel.

    Raises:
        InputError: the type is not known and the log does not define it.
    """
    store = known_types()
    if channel.type in store.fielddefs:
        return store
    if channel.schema_encoding != "ros2msg" or not channel.schema.strip():
        what = f"expected a definition of {channel.type} in the log, found none"
        raise InputError(what, channel.topic)
    try:
        return _defined(channel.type, channel.schema)
    except (TypesysError, UnicodeDecodeError, ValueError) as error:
        what = f"expected a definition of {channel.type}, found one that cannot be used: {error}"
        raise InputError(what, channel.topic) from None


@lru_cache(maxsize=64)
def _defined(type_name: str, schema: bytes) -> Typestore:
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(schema.decode(), type_name))
    return store


def schema_text(store: Typestore, type_name: str) -> bytes:
    """Return the whole definition of a type, those it is made of included, as ros2msg."""
    return store.generate_msgdef(type_name, ros_version=2)[0].encode()
