"""A log that is read strictly stops where it is damaged, and says what was good before."""

import re
import sqlite3

import pytest
from mcap.writer import CompressionType, Writer
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore
from small_sets import BARE

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.raw import OTHERS_MAX
from avrt.model.spec import SourceSpec

KIND = "std_msgs/msg/String"


def read(path, *, strict=True):
    """Return the log times of a log, and what ended it."""
    times = []
    try:
        with open_log(path, strict=strict) as log:
            times.extend(message.log_ns for message in log.messages())
    except InputError as error:
        return times, error
    return times, None


def write_mcap(path, times=range(40), **options):
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, chunk_size=300, **options)
        writer.start()
        channel = writer.register_channel("/topic", "json", 0)
        for sequence, at_ns in enumerate(times):
            writer.add_message(channel, at_ns, b"message %4d" % sequence, at_ns, sequence)
        writer.finish()
    return path


def alter(path, text):
    """Change one byte of what stands once in a file."""
    data = path.read_bytes()
    assert data.count(text) == 1
    path.write_bytes(data.replace(text, text[:-1] + b"!"))


@pytest.mark.parametrize("options", [{}, BARE], ids=["indexed", "bare"])
def test_what_lies_before_a_damaged_chunk_is_delivered_and_the_chunk_named(tmp_path, options):
    """With an index the chunk is found when it is due, without one when the log is opened."""
    path = write_mcap(tmp_path / "a.mcap", **options)
    alter(path, b"message   20")
    times, error = read(path)
    first = len(times)
    assert times == list(range(first))
    assert 10 < first <= 20
    assert (type(error), error.exit_code, error.good_messages) == (DamagedInputError, 3, first)
    told = rf"{path}, byte \d+: expected a chunk with CRC .*; there lie /topic from {first} to "
    assert re.match(told + rf"\d+ ns \({first} good messages were delivered\)", str(error))
    after, tolerant = read(path, strict=False)
    assert after[:first] == times
    assert after[first] > 20
    assert tolerant.what == error.what


def test_chunks_that_overlap_stop_at_the_first_time_that_may_be_lost(tmp_path):
    """One topic after the other: the second begins long before the damage in it."""
    path = write_mcap(tmp_path / "a.mcap", [*range(0, 40, 2), *range(1, 41, 2)])
    alter(path, b"message   30")
    times, error = read(path)
    assert times == list(range(len(times)))
    assert f"from {len(times)} to" in str(error)


def test_damage_between_chunks_stops_before_the_chunk_that_follows(tmp_path):
    path = write_mcap(tmp_path / "a.mcap", **BARE)
    with open_log(path) as log:
        chunk = log.extents()[2].offset
    data = path.read_bytes()
    path.write_bytes(data[:chunk] + bytes(12) + data[chunk:])
    times, error = read(path)
    assert times == list(range(len(times)))
    told = f"may be lost after {len(times) - 1} ns and before {len(times)} ns"
    assert told in str(error)
    assert read(path, strict=False)[0] == list(range(40))


def test_an_end_that_is_missing_is_told_at_the_end(tmp_path):
    path = write_mcap(tmp_path / "a.mcap")
    path.write_bytes(path.read_bytes()[:-8])
    times, error = read(path)
    assert times == list(range(40))
    assert "may be lost after 39 ns" in str(error)


def test_damage_before_the_first_message_is_damage_still(tmp_path):
    path = write_mcap(tmp_path / "a.mcap")
    alter(path, b"message    0")
    times, error = read(path)
    assert times == []
    assert (type(error), error.exit_code) == (DamagedInputError, 3)


def test_an_undamaged_log_is_read_as_ever(tmp_path):
    path = write_mcap(tmp_path / "a.mcap")
    assert read(path) == read(path, strict=False) == (list(range(40)), None)


def test_a_bag_stops_in_front_of_its_damaged_chunk(tmp_path):
    path = tmp_path / "a.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    writer = BagWriter(path)
    writer.chunk_threshold = 300
    writer.set_compression(BagWriter.CompressionFormat.BZ2)
    with writer:
        connection = writer.add_connection("/topic", KIND, typestore=store)
        for at_ns in range(40):
            writer.write(connection, at_ns, b"\4\0\0\0%4d" % at_ns)
    data = path.read_bytes()
    chunks = [match.start() for match in re.finditer(b"BZh9", data)]
    place = chunks[len(chunks) // 2] + 30
    path.write_bytes(data[:place] + b"\xff" * 8 + data[place + 8 :])
    times, error = read(path)
    assert times == list(range(len(times)))
    assert 5 < len(times) < 35
    assert f"there lie /topic from {len(times)} to" in str(error)


def write_database(path, first=0, count=60):
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA page_size=512;"
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
        " serialization_format TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
        " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        f"INSERT INTO topics VALUES(1, '/topic', '{KIND}', 'cdr');"
    )
    rows = [(k, b"message %4d" % k) for k in range(first, first + count)]
    database.executemany("INSERT INTO messages VALUES(NULL, 1, ?, ?)", rows)
    database.commit()
    return database


def test_a_database_stops_in_front_of_its_damaged_page(tmp_path):
    path = tmp_path / "a.db3"
    write_database(path).close()
    data = path.read_bytes()
    page = data.index(b"message   30") // 512 * 512
    path.write_bytes(data[:page] + b"\xff" * 512 + data[page + 512 :])
    times, error = read(path)
    assert times == list(range(len(times)))
    assert 5 < len(times) <= 30
    assert isinstance(error, DamagedInputError)
    with open_log(path, strict=True) as log:
        told = [a for a in log.anomalies if a.kind == "unreadable"]
    assert [(a.at_ns, a.topic) for a in told] == [(times[-1], None)]
    assert f"after {times[-1]} ns" in told[0].detail


def test_a_database_stops_at_a_row_that_is_no_message(tmp_path):
    path = tmp_path / "a.db3"
    database = write_database(path)
    database.execute("UPDATE messages SET data = 'text' WHERE timestamp = 30")
    database.commit()
    database.close()
    times, error = read(path)
    assert times == list(range(30))
    assert "in row 31" in str(error)


def test_a_split_bag_stops_in_its_damaged_part_and_after_the_others(tmp_path):
    for part, first in enumerate((0, 60, 120)):
        write_database(tmp_path / f"a_{part}.db3", first).close()
    path = tmp_path / "a_1.db3"
    data = path.read_bytes()
    page = data.index(b"message   90") // 512 * 512
    path.write_bytes(data[:page] + b"\xff" * 512 + data[page + 512 :])
    times, error = read(tmp_path)
    assert times == list(range(len(times)))
    assert 60 < len(times) <= 90
    assert error.place.startswith(str(path))
    assert error.good_messages == len(times)


def test_a_split_bag_that_lacks_a_part_is_not_begun(tmp_path):
    write_database(tmp_path / "a_0.db3").close()
    listed = "rosbag2_bagfile_information:\n  relative_file_paths: [a_0.db3, a_1.db3]\n"
    (tmp_path / "metadata.yaml").write_text(listed)
    times, error = read(tmp_path)
    assert times == []
    assert (type(error), error.exit_code) == (DamagedInputError, 3)
    assert "a_1.db3" in error.place


def test_a_message_that_cannot_be_decoded_ends_a_strict_stream(tmp_path):
    """The file is as it was written; what was written is no cloud."""
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("sensor_msgs/msg/Imu", "ros2msg", b"")
        channel = writer.register_channel("/imu", "cdr", schema)
        writer.add_message(channel, 5, b"\0\1\0\0cut", 5)
        writer.finish()
    source = SourceSpec(name="imu", type="imu", topic="/imu")
    with open_log(path, strict=True) as log, pytest.raises(DamagedInputError) as caught:
        MergedLog(log, [source], strict=path)
    assert str(caught.value).startswith(f"{path}, /imu at 5 ns: expected a sensor_msgs")
    with open_log(path) as log:
        merged = MergedLog(log, [source])
        assert list(merged) == []
        assert [a.kind for a in merged.anomalies] == ["undecodable"]


def test_each_place_of_damage_is_told(tmp_path):
    path = write_mcap(tmp_path / "a.mcap", range(400))
    for number in range(20, 400, 12):
        alter(path, b"message %4d" % number)
    times, error = read(path, strict=False)
    assert 0 < len(times) < 400
    first, *others = error.lines
    assert f"; and {32 - 1} more ({len(times)} good messages were delivered)" in first
    assert len(others) == OTHERS_MAX
    for line in others:
        assert re.fullmatch(
            rf"{path}, byte \d+: expected a chunk with CRC .*; there lie /topic from .* ns", line
        )
    with open_log(path, strict=True) as log, pytest.raises(DamagedInputError) as caught:
        list(log.messages())
    assert len(caught.value.lines) == 1
