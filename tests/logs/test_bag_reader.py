import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Reader, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.stores import ros1_noetic as ros1
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import DamagedInputError, InputError, SpecError
from avrt.logs import open_log
from avrt.logs.decode import decode
from avrt.logs.merge import MergedLog
from avrt.logs.ros.types import IMU, known_types, types_of
from avrt.model.spec import SourceSpec

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
CUSTOM = "my_msgs/msg/Reading"
COUNT = 30


def make_store():
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg("Header header\nfloat64[] values\nstring unit", CUSTOM))
    return store


STORE = make_store()


def head(index):
    stamp = ros.builtin_interfaces__msg__Time(*divmod(START_NS + index * 10 * MS, 10**9))
    return ros1.std_msgs__msg__Header(index, stamp, "/imu")


def imu(index):
    vector = ros.geometry_msgs__msg__Vector3
    turn = ros.geometry_msgs__msg__Quaternion(0.0, 0.0, 0.0, 1.0)
    nine = np.zeros(9)
    return ros1.sensor_msgs__msg__Imu(
        head(index), turn, nine, vector(0.0, 0.0, index / 10), nine, vector(1.0, 0.0, 9.8), nine
    )


def write_bag(path, count=COUNT, compression=None, chunk=2000):
    """Write a bag of an IMU and a custom type, logged 3 ms after their stamps."""
    writer = Writer(path)
    writer.chunk_threshold = chunk
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        first = writer.add_connection("/imu", IMU, typestore=STORE)
        second = writer.add_connection("/custom", CUSTOM, typestore=STORE)
        custom = STORE.types[CUSTOM]
        for k in range(count):
            log_ns = START_NS + k * 10 * MS + 3 * MS
            writer.write(first, log_ns, STORE.serialize_ros1(imu(k), IMU))
            reading = custom(head(k), np.arange(k, dtype=float), "m")
            writer.write(second, log_ns, STORE.serialize_ros1(reading, CUSTOM))
    return path


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp("bag") / "drive.bag")


@pytest.mark.parametrize("compression", [None, *Writer.CompressionFormat])
def test_every_compression_gives_ros_2_messages_in_order(tmp_path, compression):
    with open_log(write_bag(tmp_path / "a.bag", compression=compression)) as log:
        infos = log.topics()
        messages = list(log.messages())
    assert {t: (i.type, i.messages, i.encoding) for t, i in infos.items()} == {
        "/imu": (IMU, COUNT, "cdr"),
        "/custom": (CUSTOM, COUNT, "cdr"),
    }
    assert [m.topic for m in messages] == ["/imu", "/custom"] * COUNT
    stamps = [START_NS + k * 10 * MS for k in range(COUNT)]
    assert [m.log_ns - 3 * MS for m in messages[::2]] == stamps
    read = [decode(m, "imu") for m in messages[::2]]
    assert [d.header_ns for d in read] == stamps
    assert {d.frame for d in read} == {"imu"}
    assert [d.payload.angular_rate[2] for d in read] == [k / 10 for k in range(COUNT)]


def test_a_custom_type_is_read_by_the_definition_in_the_bag(bag):
    with open_log(bag) as log:
        *_, last = log.messages(["/custom"])
    reading = types_of(last.channel).deserialize_cdr(last.data, CUSTOM)
    assert reading.values.tolist() == list(range(COUNT - 1))
    assert reading.unit == "m"
    assert not hasattr(reading.header, "seq")
    assert CUSTOM not in known_types().fielddefs


def test_a_selection_reads_only_its_topics(bag):
    with open_log(bag) as log:
        assert {m.topic for m in log.messages(["/imu"])} == {"/imu"}
        assert len(list(log.messages(["/none"]))) == 0


def test_a_bag_that_was_converted_to_mcap_reads_the_same(bag, tmp_path):
    path = tmp_path / "a.mcap"
    with Reader(bag) as reader, path.open("wb") as file:
        writer = McapWriter(file)
        writer.start(profile="ros1", library="test")
        channels = {}
        for connection in reader.connections:
            name = connection.msgtype.replace("/msg/", "/")
            text = connection.msgdef.data.encode()
            schema = writer.register_schema(name, "ros1msg", text)
            channels[connection.id] = writer.register_channel(connection.topic, "ros1", schema)
        for connection, log_ns, data in reader.messages():
            writer.add_message(channels[connection.id], log_ns, data, log_ns)
        writer.finish()

    def contents(log):
        return [
            (m.topic, m.type, m.log_ns, bytes(m.data), m.channel.schema) for m in log.messages()
        ]

    with open_log(bag) as one, open_log(path) as other:
        assert contents(other) == contents(one)
        assert {i.encoding for i in other.topics().values()} == {"cdr"}


def test_a_bag_without_messages_delivers_none(tmp_path):
    with Writer(tmp_path / "a.bag") as writer:
        writer.add_connection("/imu", IMU, typestore=STORE)
    with open_log(tmp_path / "a.bag") as log:
        assert list(log.messages()) == []
        merged = MergedLog(log, [SourceSpec(name="imu", type="imu", topic="/imu")])
        assert list(merged) == []
        assert not merged.anomalies
        assert merged.topics()["/imu"].messages == 0


def test_a_bag_without_topics_is_said_to_be_empty(tmp_path):
    with Writer(tmp_path / "a.bag"):
        pass
    with open_log(tmp_path / "a.bag") as log, pytest.raises(SpecError, match="it is empty"):
        MergedLog(log, [SourceSpec(name="imu", type="imu", topic="/imu")])


def test_a_type_that_the_bag_does_not_define_is_refused_to_a_source(tmp_path):
    with Writer(tmp_path / "a.bag") as writer:
        connection = writer.add_connection("/imu", IMU, msgdef=" ", md5sum="*")
        writer.write(connection, START_NS, b"ros1")
    with open_log(tmp_path / "a.bag") as log, pytest.raises(SpecError, match="does not define"):
        MergedLog(log, [SourceSpec(name="imu", type="imu", topic="/imu")])


def good_messages(path):
    """Return (messages, error) of a bag that may be damaged."""
    messages, caught = [], None
    with open_log(path) as log:
        try:
            messages.extend((m.topic, m.log_ns, bytes(m.data)) for m in log.messages())
        except InputError as error:
            caught = error
    return messages, caught


@settings(max_examples=40)
@given(st.data())
def test_a_bag_that_ends_anywhere_gives_its_beginning_and_says_so(bag, tmp_path_factory, data):
    whole, none = good_messages(bag)
    assert none is None
    content = bag.read_bytes()
    size = data.draw(st.integers(13, len(content) - 1))
    path = tmp_path_factory.mktemp("cut") / "cut.bag"
    path.write_bytes(content[:size])
    messages, caught = good_messages(path)
    assert messages == whole[: len(messages)]
    assert type(caught) is (DamagedInputError if messages else InputError)
    assert caught.good_messages == len(messages)
    assert caught.place.startswith(str(path))


def test_a_bag_of_a_killed_recorder_is_read_whole(bag, tmp_path):
    with Reader(bag) as reader:
        end = max(chunk.pos for chunk in reader.chunk_infos)
    content = bytearray(bag.read_bytes())
    place = content.index(b"index_pos=") + len(b"index_pos=")
    content[place : place + 8] = bytes(8)
    path = tmp_path / "active.bag"
    path.write_bytes(content)
    messages, caught = good_messages(path)
    assert len(messages) == 2 * COUNT
    assert "the recorder did not finish the bag" in str(caught)
    path.write_bytes(content[:end])
    messages, caught = good_messages(path)
    assert 0 < len(messages) < 2 * COUNT
    assert isinstance(caught, DamagedInputError)


@settings(max_examples=40)
@given(st.data())
def test_no_flipped_byte_gives_a_foreign_exception(bag, tmp_path_factory, data):
    content = bytearray(bag.read_bytes())
    offset = data.draw(st.integers(13, len(content) - 1))
    content[offset] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flip") / "flip.bag"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        good_messages(path)


@pytest.mark.parametrize("compression", [f for f in Writer.CompressionFormat if f.name != "NONE"])
def test_a_damaged_chunk_costs_its_own_messages_only(tmp_path, compression):
    path = write_bag(tmp_path / "a.bag", compression=compression)
    with open_log(path) as log:
        first = log.extents()[1]
    content = bytearray(path.read_bytes())
    middle = first.offset + first.length // 2
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(content)
    with open_log(path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=f"byte {first.offset}"):
            messages.extend(log.messages())
        lost = {a.topic: a.count for a in log.anomalies if a.kind == "lost"}
    assert len(messages) + sum(lost.values()) == 2 * COUNT
    assert set(lost) == {"/imu", "/custom"}


def test_a_damaged_record_costs_the_messages_up_to_the_next_chunk(bag, tmp_path):
    with open_log(bag) as log:
        second = log.extents()[1]
        whole = list(log.messages())
    content = bytearray(bag.read_bytes())
    content[second.offset : second.offset + 4] = b"\xff\xff\xff\xff"
    path = tmp_path / "a.bag"
    path.write_bytes(content)
    with open_log(path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=f"byte {second.offset}: expected a record"):
            messages.extend(log.messages())
        lost = sum(a.count for a in log.anomalies if a.kind == "lost")
    assert lost > 0
    assert len(messages) + lost == len(whole)
    assert messages[-1].log_ns == whole[-1].log_ns


@pytest.mark.parametrize("compression", [None, *Writer.CompressionFormat])
@pytest.mark.parametrize("moved", [-50, 50])
def test_a_bag_whose_places_have_moved_is_read_on_at_the_next_chunk(tmp_path, compression, moved):
    path = write_bag(tmp_path / "a.bag", compression=compression)
    with open_log(path) as log:
        third = log.extents()[2]
        whole = [(m.topic, m.log_ns) for m in log.messages()]
    content = path.read_bytes()
    middle = third.offset + third.length // 2
    spliced = (
        content[:middle] + (bytes(moved) if moved > 0 else b"") + content[middle - min(0, moved) :]
    )
    path.write_bytes(spliced)
    messages, caught = good_messages(path)
    assert isinstance(caught, DamagedInputError)
    assert {(topic, at_ns) for topic, at_ns, _ in messages} <= set(whole)
    assert [m[:2] for m in messages][-10:] == whole[-10:]
    assert len(whole) > len(messages) > len(whole) * 0.7


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"chunk_count=", b"encryptor=xx", "the bag is encrypted"),
        (b"compression=none", b"compression=zstd", "expected compression none, bz2 or lz4"),
        (b"op=\x03", b"op=\x09", "found one of kind 9"),
        (b"index_pos=", b"index_poz=", "no field index_pos"),
        (b"chunk_count=", b"chunk_counz=", "no field chunk_count"),
    ],
)
def test_what_a_bag_must_not_hold_is_told(bag, tmp_path, old, new, what):
    path = tmp_path / "a.bag"
    path.write_bytes(bag.read_bytes().replace(old, new))
    with open_log(path) as log:
        with pytest.raises(InputError):
            list(log.messages())
        assert any(what in a.detail for a in log.anomalies)


def test_a_type_without_a_definition_is_listed_and_stays_as_it_is(tmp_path):
    with Writer(tmp_path / "a.bag") as writer:
        connection = writer.add_connection(
            "/imu", IMU, msgdef=" ", md5sum="6a62c6daae103f4ff57a132d6f95cec2"
        )
        writer.write(connection, START_NS, b"ros1")
    with open_log(tmp_path / "a.bag") as log:
        (message,) = log.messages()
        assert (log.topics()["/imu"].encoding, message.data) == ("ros1", b"ros1")
        with pytest.raises(InputError, match="found sensor_msgs/msg/Imu in ros1 encoding"):
            decode(message, "imu")


def test_a_message_that_is_not_of_its_type_is_told_and_the_rest_goes_on(tmp_path):
    with Writer(tmp_path / "a.bag") as writer:
        connection = writer.add_connection("/imu", IMU, typestore=STORE)
        writer.write(connection, START_NS, b"junk")
        writer.write(connection, START_NS + 1, STORE.serialize_ros1(imu(1), IMU))
    with open_log(tmp_path / "a.bag") as log:
        bad, good = log.messages()
        assert [(a.kind, a.topic, a.count) for a in log.anomalies] == [("unconvertible", "/imu", 1)]
    with pytest.raises(InputError):
        decode(bad, "imu")
    assert decode(good, "imu").payload.angular_rate[2] == 0.1
