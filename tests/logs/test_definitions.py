import struct

import numpy as np
import pytest
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_typestore

from avrt.errors import InputError
from avrt.logs import open_log
from avrt.logs.decode import READERS, decode
from avrt.logs.raw import Channel, RawMessage
from avrt.logs.ros.definitions import is_other_layout, parse_definition
from avrt.logs.ros.message import header, imu_message
from avrt.logs.ros.ros1 import BASIC
from avrt.logs.ros.types import IMU, SICK_RADAR, TRANSFORMS, known_types, schema_text
from avrt.logs.transforms import read_transforms
from avrt.logs.writer import LogWriter
from avrt.payload import Imu

START_NS = 1_700_000_000_000_000_000
LINE = "\n" + "=" * 80 + "\n"
HEAD = "std_msgs/Header header\n"
MUTUAL = LINE.join(["my/A a", "MSG: my/A\nmy/B b", "MSG: my/B\nmy/A[] a"])
DOUBLING = LINE.join(
    ["my/T0 a"] + [f"MSG: my/T{k}\nmy/T{k + 1} a\nmy/T{k + 1} b" for k in range(25)]
    + ["MSG: my/T25\nint8 a"]
)  # fmt: skip
KNOWN = known_types().fielddefs


def message(type_name, schema, data=b"\0\1\0\0" + bytes(400)):
    return RawMessage(Channel(1, "/t", type_name, "cdr", "ros2msg", schema), 0, 0, 0, data)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("my/Missing a", "my/msg/Missing is not defined"),
        ("float65 a", "is not defined"),
        ("sick_scan/RadarScan[] a", "contains itself"),
        (MUTUAL, "contains itself"),
        ("int8 a\nint8 a", "present|given|twice|fields|Type"),
        ("((", "parse"),
    ],
)
def test_a_definition_that_no_message_can_have_is_refused(text, what):
    with pytest.raises(InputError, match=f"found one that cannot be used: .*({what})"):
        decode(message(SICK_RADAR, text.encode()), "radar")


def test_a_type_that_is_used_often_is_checked_once():
    assert len(parse_definition(DOUBLING, SICK_RADAR, KNOWN)) == 27


@pytest.mark.parametrize("text", [HEAD, "int8 a", HEAD + "float64 targets\nint8[] objects"])
def test_a_radar_that_defines_its_scan_differently_is_told(text):
    with pytest.raises(InputError, match="expected a sick_scan/msg/RadarScan"):
        decode(message(SICK_RADAR, text.encode()), "radar")


def test_no_release_of_ros_lays_a_type_out_that_avrt_reads_in_another_way():
    read = {name for types in READERS.values() for name in types} | {TRANSFORMS}
    compared = 0
    for release in Stores:
        types = get_typestore(release).fielddefs
        types.update({name: KNOWN[name] for name in BASIC})
        for name in read & types.keys():
            assert not is_other_layout(types, KNOWN, name)
            compared += 1
    assert compared > 50


def test_fields_in_another_order_are_another_layout_and_other_names_are_not():
    text = schema_text(known_types(), IMU).decode()
    renamed = text.replace("orientation_covariance", "turn_covariance")
    swapped = (
        text.replace("angular_velocity", "#")
        .replace("linear_acceleration", "angular_velocity")
        .replace("#", "linear_acceleration")
    )
    wider = text.replace("float64 w", "float64 w\nfloat64 v")
    for changed, other in ((text, False), (renamed, False), (swapped, True), (wider, True)):
        assert is_other_layout(parse_definition(changed, IMU, KNOWN), KNOWN, IMU) == other


def imu_bytes():
    moving = Imu(np.array([0.0, 0.0, 9.8]), np.array([0.1, 0.2, 0.3]))
    return bytes(known_types().serialize_cdr(imu_message(header(START_NS, "imu"), moving), IMU))


def test_a_known_type_is_read_unless_the_log_lays_it_out_in_another_way():
    text = schema_text(known_types(), IMU)
    for schema in (text, b"", b"\xff(("):
        assert decode(message(IMU, schema, imu_bytes()), "imu").payload.angular_rate[2] == 0.3
    with pytest.raises(InputError, match="found one in the log that differs from ROS 2's"):
        decode(message(IMU, HEAD.encode() + b"float64 x", imu_bytes()), "imu")


@pytest.mark.parametrize("text", ["sensor_msgs/Imu[] a", HEAD + "float64[37] x", MUTUAL])
def test_a_bag_of_ros_1_that_defines_a_type_in_another_way_gives_no_wrong_reading(tmp_path, text):
    with Writer(tmp_path / "a.bag") as writer:
        connection = writer.add_connection("/imu", IMU, msgdef=text, md5sum="*")
        data = struct.pack("<IIII3s", 1, 1_700_000_000, 0, 3, b"imu") + bytes(8 * 37)
        writer.write(connection, START_NS, data)
    with open_log(tmp_path / "a.bag") as log:
        (raw,) = log.messages()
    with pytest.raises(InputError):
        decode(raw, "imu")


def test_transforms_that_cannot_be_read_are_told_and_the_others_kept(tmp_path):
    with LogWriter(tmp_path / "a.mcap") as log:
        for k, data in enumerate((b"", b"\0\1\0\0" + b"\xff" * 9)):
            log.add_raw("/tf", TRANSFORMS, START_NS + k, data)
        log.add_transforms("/tf", START_NS + 2, [("a", "b", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))])
    with open_log(tmp_path / "a.mcap") as reader:
        transforms, told = read_transforms(reader, ["/tf"])
    assert [(t.parent, t.child) for t in transforms] == [("a", "b")]
    assert [(a.kind, a.count) for a in told] == [("undecodable", 2)]
