"""Who writes to a topic, where a log tells several apart."""

from dataclasses import replace

import numpy as np
from mcap.writer import Writer
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from avrt.api.raw_messages import RawMessages
from avrt.drivers.inject.held import HeldLog
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.raw import Channel, TopicInfo, writers_told_apart
from avrt.model.spec import SourceSpec

ROS1 = get_typestore(Stores.ROS1_NOETIC)


def channel(id_, topic):
    return Channel(id_, topic, "t", "cdr")


def test_channels_that_share_a_topic_are_told_apart():
    channels = [channel(1, "/a"), channel(2, "/b"), channel(4, "/b"), channel(5, "/b")]
    found = writers_told_apart(channels, {1: "/one", 2: "/two"})
    assert [one.writer for one in found] == ["", "/two", "4", "5"]


def writers(path, topic="/a"):
    with open_log(path) as log:
        return [raw.channel.writer for raw in log.messages({topic})]


def test_an_mcap_file_has_a_channel_for_each(tmp_path):
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        made = Writer(file)
        made.start()
        ids = [
            made.register_channel("/a", "cdr", 0, metadata)
            for metadata in ({"callerid": "/front"}, {}, {"callerid": "/rear"})
        ]
        alone = made.register_channel("/b", "cdr", 0)
        for at_ns, id_ in enumerate([*ids, *ids, alone]):
            made.add_message(id_, at_ns, b"", at_ns)
        made.finish()
    assert writers(path) == ["/front", str(ids[1]), "/rear"] * 2
    assert writers(path, "/b") == [""]


def test_a_bag_names_the_nodes(tmp_path):
    path = tmp_path / "a.bag"
    kind = "std_msgs/msg/Float64"
    data = ROS1.serialize_ros1(ROS1.types[kind](1.0), kind)
    with BagWriter(path) as made:
        both = [
            made.add_connection("/a", kind, typestore=ROS1, callerid=node)
            for node in ("/front", "/rear")
        ]
        for at_ns in range(1, 5):
            made.write(both[at_ns % 2], at_ns, data)
    assert writers(path) == ["/rear", "/front"] * 2


def test_each_writer_has_its_own_clock():
    raws, step_ns = [], 100_000_000
    encoder = RawMessages(raws.append)
    for index in range(40):
        at_ns = (1000 + index) * step_ns
        for late_ns, ahead_ns in ((0, 0), (step_ns // 2, 3600 * 10**9)):
            log_ns = at_ns + late_ns
            encoder.add_cloud("/a", "a", log_ns + ahead_ns, np.ones((2, 3)), log_ns=log_ns)
    second = replace(raws[0].channel, writer="second")
    for raw in raws[1::2]:
        raw.channel = second
    info = TopicInfo(raws[0].type, len(raws), "cdr", "ros2msg", "")
    source = SourceSpec(name="a", type="lidar", topic="/a", period_ns=step_ns)
    merged = MergedLog(HeldLog({"/a": info}, raws), [source])
    found = list(merged)
    assert [item.capture_ns for item in found] == [item.log_ns for item in found]
    assert not any(item.jumped for item in found)
    assert [anomaly.kind for anomaly in merged.anomalies] == ["clock_offset"]
