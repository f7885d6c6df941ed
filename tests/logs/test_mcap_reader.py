import shutil
import struct
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, IndexType, Writer

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log

START_NS = 1_700_000_000_000_000_000


def read(path, topics=None):
    """Return (messages, error or None) of a log."""
    found = []
    try:
        with open_log(path) as log:
            found.extend(
                (m.topic, m.log_ns, m.sequence, bytes(m.data)) for m in log.messages(topics)
            )
    except InputError as error:
        return found, error
    return found, None


def bare(path):
    with path.open("rb") as file:
        return [
            (channel.topic, message.log_time, message.sequence, message.data)
            for _, channel, message in make_reader(file, validate_crcs=True).iter_messages()
        ]


def write_raw(path, times, **options):
    """Write messages of one byte at these log times."""
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        channel = writer.register_channel("/t", "json", 0)
        for sequence, at_ns in enumerate(times):
            writer.add_message(channel, at_ns, b"x", at_ns, sequence)
        writer.finish()
    return path


def test_messages_and_topics_are_those_of_the_mcap_library(log_path):
    messages, error = read(log_path)
    assert error is None
    assert messages == bare(log_path)
    with open_log(log_path) as log:
        topics = log.topics()
        assert {t: (i.type, i.messages, i.encoding) for t, i in topics.items()} == {
            "/lidar": ("sensor_msgs/msg/PointCloud2", 5, "cdr"),
            "/camera": ("sensor_msgs/msg/CompressedImage", 5, "cdr"),
            "/camera_info": ("sensor_msgs/msg/CameraInfo", 5, "cdr"),
        }
        assert topics["/lidar"].schema_encoding == "ros2msg"
        assert "uint32 point_step" in topics["/lidar"].schema
        assert not log.anomalies


@pytest.mark.parametrize("compression", list(CompressionType))
def test_every_compression_reads(tmp_path, compression, write_log):
    path = write_log(tmp_path / "log.mcap", compression=compression, chunk_bytes=1000)
    assert read(path) == (bare(path), None)


def test_only_the_topics_asked_for_are_delivered(log_path):
    messages, error = read(log_path, ["/camera"])
    assert error is None
    assert [m[0] for m in messages] == ["/camera"] * 5


def test_equal_log_times_keep_their_place_in_the_file(tmp_path):
    path = write_raw(tmp_path / "log.mcap", [5, 3, 5, 3, 4], chunk_size=1)
    assert [(m[1], m[2]) for m in read(path)[0]] == [(3, 1), (3, 3), (4, 4), (5, 0), (5, 2)]


@given(times=st.lists(st.integers(0, 20), max_size=40), chunk_size=st.integers(1, 400))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_interleaving_of_chunks_comes_out_by_time_then_position(tmp_path, times, chunk_size):
    path = write_raw(tmp_path / "log.mcap", times, chunk_size=chunk_size)
    expected = sorted(enumerate(times), key=lambda item: item[1])
    assert [(m[2], m[1]) for m in read(path)[0]] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"use_chunking": False},
        {"index_types": IndexType.NONE, "use_statistics": False},
        {"index_types": IndexType.MESSAGE, "repeat_channels": False, "repeat_schemas": False},
        {"enable_crcs": False},
        {"use_statistics": False, "use_summary_offsets": False},
    ],
)
def test_what_a_writer_may_leave_out_is_no_damage(tmp_path, options):
    path = write_raw(tmp_path / "log.mcap", [1, 2, 3], chunk_size=60, **options)
    messages, error = read(path)
    assert error is None
    assert [m[1] for m in messages] == [1, 2, 3]
    with open_log(path) as log:
        assert log.topics()["/t"].messages == 3


def test_a_log_without_messages_is_no_damage(tmp_path):
    assert read(write_raw(tmp_path / "log.mcap", [])) == ([], None)


def test_a_file_cut_off_delivers_its_complete_messages_then_tells(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", frames=20, chunk_bytes=3000)
    whole = bare(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    messages, error = read(path)
    assert 0 < len(messages) < len(whole)
    assert messages == whole[: len(messages)]
    assert isinstance(error, DamagedInputError)
    assert error.exit_code == 3
    assert error.good_messages == len(messages)


def test_complete_messages_of_an_uncompressed_chunk_that_is_cut_are_delivered(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", compression=CompressionType.NONE)
    whole = bare(path)
    path.write_bytes(path.read_bytes()[:4000])
    messages, error = read(path)
    assert 0 < len(messages) < len(whole)
    assert messages == whole[: len(messages)]
    assert isinstance(error, DamagedInputError)


def test_a_damaged_chunk_is_lost_and_the_rest_delivered(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", frames=20, chunk_bytes=3000)
    whole = bare(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    messages, error = read(path)
    assert isinstance(error, DamagedInputError)
    assert set(messages) < set(whole)
    with open_log(path) as log:
        with pytest.raises(DamagedInputError, match=r"byte \d+: "):
            list(log.messages())
        kinds = {a.kind: a for a in log.anomalies}
        lost = sum(a.count for a in log.anomalies if a.kind == "lost")
    assert kinds["damaged"].count == 1
    assert lost == len(whole) - len(messages)


@given(data=st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_flipped_byte_gives_a_wrong_message_or_a_foreign_exception(tmp_path, write_log, data):
    path = tmp_path / "log.mcap"
    if not path.exists():
        write_log(path, chunk_bytes=2000)
        shutil.copy(path, tmp_path / "good.mcap")
    good = (tmp_path / "good.mcap").read_bytes()
    offset = data.draw(st.integers(0, len(good) - 1))
    flip = data.draw(st.integers(1, 255))
    path.write_bytes(good[:offset] + bytes([good[offset] ^ flip]) + good[offset + 1 :])
    whole = bare(tmp_path / "good.mcap")
    messages, error = read(path)
    assert set(messages) <= set(whole)
    if len(messages) < len(whole):
        assert error is not None


def test_a_message_of_an_unknown_channel_is_told(tmp_path):
    path = write_raw(tmp_path / "log.mcap", [1, 2], compression=CompressionType.NONE)
    data = path.read_bytes()
    old, new = struct.pack("<HIQ", 1, 1, 2), struct.pack("<HIQ", 9, 1, 2)
    assert data.count(old) == 1
    data = data.replace(old, new)
    start = data.index(struct.pack("<QQ", 1, 2)) + 24
    path.write_bytes(data[:start] + bytes(4) + data[start + 4 :])
    messages, error = read(path)
    assert [m[1] for m in messages] == [1]
    assert "channel 9" in str(error)


def test_a_message_that_strays_to_another_channel_is_missed(tmp_path):
    """Nothing vouches for messages outside of chunks, but the summary has counted them."""
    path = tmp_path / "log.mcap"
    with path.open("wb") as file:
        writer = Writer(file, use_chunking=False)
        writer.start()
        channels = [writer.register_channel(topic, "json", 0) for topic in ("/a", "/b")]
        for sequence in range(6):
            writer.add_message(channels[sequence % 2], sequence, b"x", sequence, sequence)
        writer.finish()
    data = path.read_bytes()
    old, new = (struct.pack("<HIQ", channel, 2, 2) for channel in channels)
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    messages, error = read(path, ["/a"])
    assert len(messages) == 2
    assert "expected 3 messages on /a, found 2" in str(error)


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("moved", [-50, 50])
def test_a_file_whose_places_have_moved_is_read_on_at_the_next_chunk(
    tmp_path, write_log, compression, moved
):
    path = write_log(tmp_path / "log.mcap", frames=20, compression=compression, chunk_bytes=3000)
    whole = bare(path)
    content = path.read_bytes()
    middle = len(content) // 3
    added = bytes(max(0, moved))
    path.write_bytes(content[:middle] + added + content[middle - min(0, moved) :])
    messages, error = read(path)
    assert isinstance(error, DamagedInputError)
    assert set(messages) <= set(whole)
    assert messages[-10:] == whole[-10:]
    assert len(whole) > len(messages) > len(whole) * 0.7


@pytest.mark.parametrize("length", [0, 8, 1 << 62])
def test_a_chunk_index_of_an_impossible_length_is_not_followed(tmp_path, length):
    """A length of zero would lead back to the same place for ever."""
    path = write_raw(tmp_path / "log.mcap", [1, 2, 3], chunk_size=60, enable_crcs=False)
    with path.open("rb") as file:
        first = make_reader(file).get_summary().chunk_indexes[0]
    old = struct.pack("<QQ", first.chunk_start_offset, first.chunk_length)
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, struct.pack("<QQ", first.chunk_start_offset, length)))
    messages, error = read(path)
    assert [m[1] for m in messages] == [1, 2, 3]
    assert isinstance(error, DamagedInputError)


@pytest.mark.parametrize("content", [b"", b"\x89MCAP", b"#ROSBAG V1.2\n", b"hello"])
def test_what_is_no_log_is_unusable(tmp_path, content):
    path = tmp_path / "log.mcap"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected an MCAP file, a ROS 1 bag") as info:
        open_log(path)
    assert info.value.exit_code == 4


def test_a_missing_file_and_a_directory_are_unusable(tmp_path):
    with pytest.raises(InputError, match="no such log"):
        open_log(tmp_path / "none.mcap")
    with pytest.raises(InputError, match="found a folder"):
        open_log(tmp_path)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log(tmp_path, write_log):
    peaks = []
    for frames in (20, 400):
        path = write_log(tmp_path / "log.mcap", frames=frames, chunk_bytes=20_000)
        with open_log(path) as log:
            tracemalloc.start()
            count = sum(1 for _ in log.messages())
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert count == 3 * frames
    assert peaks[1] < 2 * peaks[0]


def test_the_span_is_that_of_the_messages(log_path):
    with open_log(log_path) as log:
        assert log.span_ns == (START_NS, START_NS + 400_000_010)


@pytest.mark.slow
def test_the_kitti_log_has_78_of_each_and_header_stamps_equal_to_log_times(shared):
    path = shared / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap"
    assert read(path) == (bare(path), None)
    with open_log(path) as log:
        assert sorted(info.messages for info in log.topics().values()) == [78, 78, 78]
