"""The message types that avrt reads, and where the definition of each comes from.

Types of ROS 2 come with `rosbags`. Those of `radar_msgs` stand here, as its repository has them
(https://github.com/ros-perception/radar_msgs, branch ros2), and those of `derived_object_msgs`, in
which simulators tell ground truth (https://github.com/astuff/astuff_sensor_msgs; the ROS bridge of
CARLA writes it), and `can_msgs` (https://github.com/ros-industrial/ros_canopen, branch melodic).
Any other type is read by the definition that its log carries.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from avrt.errors import InputError
from avrt.logs.ros.definitions import is_other_layout, parse_definition

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
TRUE_OBJECTS = "derived_object_msgs/msg/ObjectArray"
HEADER = "std_msgs/msg/Header"
CAN_FRAME = "can_msgs/msg/Frame"
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

OBJECT_DEFINITIONS: Mapping[str, str] = {
    "Object": """uint8 OBJECT_DETECTED=0
uint8 OBJECT_TRACKED=1
uint8 CLASSIFICATION_UNKNOWN=0
uint8 CLASSIFICATION_UNKNOWN_SMALL=1
uint8 CLASSIFICATION_UNKNOWN_MEDIUM=2
uint8 CLASSIFICATION_UNKNOWN_BIG=3
uint8 CLASSIFICATION_PEDESTRIAN=4
uint8 CLASSIFICATION_BIKE=5
uint8 CLASSIFICATION_CAR=6
uint8 CLASSIFICATION_TRUCK=7
uint8 CLASSIFICATION_MOTORCYCLE=8
uint8 CLASSIFICATION_OTHER_VEHICLE=9
uint8 CLASSIFICATION_BARRIER=10
uint8 CLASSIFICATION_SIGN=11
std_msgs/Header header
uint32 id
uint8 detection_level
bool object_classified
geometry_msgs/Pose pose
geometry_msgs/Twist twist
geometry_msgs/Accel accel
geometry_msgs/Polygon polygon
shape_msgs/SolidPrimitive shape
uint8 classification
uint8 classification_certainty
uint32 classification_age""",
    "ObjectArray": """std_msgs/Header header
derived_object_msgs/Object[] objects""",
}

CAN_DEFINITIONS: Mapping[str, str] = {
    "Frame": """std_msgs/Header header
uint32 id
bool is_rtr
bool is_extended
bool is_error
uint8 dlc
uint8[8] data"""
}

DEFINITIONS = {
    "radar_msgs": RADAR_DEFINITIONS,
    "derived_object_msgs": OBJECT_DEFINITIONS,
    "can_msgs": CAN_DEFINITIONS,
}


@cache
def known_types() -> Typestore:
    """Return the types that need no definition, once a process: each is compiled at first use."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for package, definitions in DEFINITIONS.items():
        for name, text in definitions.items():
            store.register(get_types_from_msg(text, f"{package}/msg/{name}"))
    return store


def types_of(channel: Channel) -> Typestore:
    """Return a store that has the type of a channel.

    A known type needs no definition; where the log has one that can be used, it has to agree.

    Raises:
        InputError: the type is not known and the log does not define it, or it is known and the
            log defines another.
    """
    schema = channel.schema if channel.schema_encoding == "ros2msg" else b""
    store, why = _find(channel.type, schema)
    if store is None:
        raise InputError(f"expected a definition of {channel.type}, found {why}", channel.topic)
    return store


@lru_cache(maxsize=256)
def _find(type_name: str, schema: bytes) -> tuple[Typestore | None, str]:
    """Return the store of a type, or why there is none."""
    store = known_types()
    is_known = type_name in store.fielddefs
    if not schema.strip():
        return (store, "") if is_known else (None, "none in the log")
    try:
        types = parse_definition(schema.decode(), type_name, store.fielddefs)
    except ValueError as error:
        return (store, "") if is_known else (None, f"one that cannot be used: {error}")
    if is_known:
        if is_other_layout(types, store.fielddefs, type_name):
            return None, "one in the log that differs from ROS 2's"
        return store, ""
    store = get_typestore(Stores.ROS2_JAZZY)
    try:
        store.register(types)
    except (TypesysError, ValueError) as error:
        return None, f"one that cannot be used: {error}"
    return store, ""


def schema_text(store: Typestore, type_name: str) -> bytes:
    """Return the whole definition of a type, those it is made of included, as ros2msg."""
    return store.generate_msgdef(type_name, ros_version=2)[0].encode()
