"""Who writes to a topic, where a log tells several apart."""

from mcap.writer import Writer
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from avrt.logs import open_log
from avrt.logs.raw import Channel, told_apart

ROS1 = get_typestore(Stores.ROS1_NOETIC)


def channel(id_, topic):
    return Channel(id_, topic, "t", "cdr")


def test_channels_that_share_a_topic_are_told_apart():
    channels = [channel(1, "/a"), channel(2, "/b"), channel(4, "/b"), channel(5, "/b")]
    found = told_apart(channels, {1: "/one", 2: "/two"})
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
