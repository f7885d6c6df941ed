import contextlib
import os
import shutil
import sqlite3

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from avrt.drivers.prefetch import prefetched
from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.decode import decode
from avrt.logs.ros.message import header, imu_message
from avrt.logs.ros.types import IMU
from avrt.logs.writer import LogWriter
from avrt.payload import Imu

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
COUNT = 20
STORE = get_typestore(Stores.ROS2_JAZZY)
LISTED = "rosbag2_bagfile_information:\n  relative_file_paths: {}\n"


def reading(index):
    return Imu(np.array([0.0, 0.0, 9.8]), np.array([0.0, 0.0, index / 10]))


def encoded(index, first=0):
    head = header(START_NS + (first + index) * 10 * MS, "imu")
    return STORE.serialize_cdr(imu_message(head, reading(first + index)), IMU)


def write_bag(path, plugin=StoragePlugin.SQLITE3, mode=None):
    writer = Writer(path, version=9, storage_plugin=plugin)
    if mode is not None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection("/imu", IMU, typestore=STORE)
        for k in range(COUNT):
            writer.write(connection, START_NS + k * 10 * MS, bytes(encoded(k)))
    return path


def write_database(path, indices, mode="delete"):
    """Write a .db3 as rosbag2 of ROS 2 Foxy did, without definitions; return it, still open."""
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA journal_mode={mode}")
    database.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
        " serialization_format TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
        " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        f"INSERT INTO topics VALUES(1, '/imu', '{IMU}', 'cdr');"
    )
    rows = [(1, START_NS + k * 10 * MS, bytes(encoded(k))) for k in indices]
    database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)", rows)
    database.commit()
    return database


def turns(path):
    """Return the index that each reading's angular rate holds."""
    with open_log(path) as log:
        return [round(decode(m, "imu").payload.angular_rate[2] * 10) for m in log.messages()]


@pytest.mark.parametrize("plugin", StoragePlugin)
@pytest.mark.parametrize("mode", [None, CompressionMode.MESSAGE, CompressionMode.FILE])
def test_a_folder_reads_whatever_its_storage_and_compression(tmp_path, plugin, mode):
    if plugin is StoragePlugin.MCAP and mode is CompressionMode.MESSAGE:
        mode = CompressionMode.STORAGE
    path = write_bag(tmp_path / "bag", plugin, mode)
    with open_log(path) as log:
        info = log.topics()["/imu"]
        assert (info.type, info.messages, info.encoding) == (IMU, COUNT, "cdr")
        assert "angular_velocity" in info.schema
    assert turns(path) == list(range(COUNT))


@pytest.mark.parametrize("plugin", StoragePlugin)
def test_a_bag_may_be_read_ahead_on_another_thread(tmp_path, plugin):
    with open_log(write_bag(tmp_path / "bag", plugin)) as log:
        begun = log.messages()
        times = [next(begun).log_ns, *(m.log_ns for m in prefetched(begun))]
    assert times == [START_NS + k * 10 * MS for k in range(COUNT)]


def test_a_lone_file_of_a_bag_reads(tmp_path):
    (file,) = write_bag(tmp_path / "bag").glob("*.db3")
    assert turns(file) == list(range(COUNT))


@pytest.mark.parametrize("ending", ["db3", "mcap"])
@pytest.mark.parametrize("with_metadata", [True, False])
def test_parts_are_one_log_by_time(tmp_path, ending, with_metadata):
    names = [f"drive_{k}.{ending}" for k in (2, 10, 1)]
    for first, name in enumerate(names):
        if ending == "db3":
            write_database(tmp_path / name, range(first, 30, 3)).close()
            continue
        with LogWriter(tmp_path / name) as log:
            for k in range(first, 30, 3):
                log.add_imu("/imu", "imu", START_NS + k * 10 * MS, reading(k))
    if with_metadata:
        listed = "".join(f"    - {name}\n" for name in names)
        text = f"rosbag2_bagfile_information:\n  relative_file_paths:\n{listed}"
        (tmp_path / "metadata.yaml").write_text(text)
    with open_log(tmp_path) as log:
        assert log.topics()["/imu"].messages == 30
    assert turns(tmp_path) == list(range(30))


def test_equal_times_follow_the_number_of_the_part(tmp_path):
    for part in (10, 9, 2):
        with LogWriter(tmp_path / f"drive_{part}.mcap") as log:
            log.add_imu("/imu", "imu", START_NS, reading(part))
    assert turns(tmp_path) == [2, 9, 10]


def test_a_part_that_is_missing_is_told_after_the_others(tmp_path):
    write_database(tmp_path / "a_0.db3", range(5)).close()
    (tmp_path / "metadata.yaml").write_text(LISTED.format("[a_0.db3, a_1.db3]"))
    with open_log(tmp_path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=r"expected the part a_1.db3") as caught:
            messages.extend(log.messages())
    assert caught.value.good_messages == len(messages) == 5


def test_a_damaged_part_costs_its_own_messages_only(tmp_path):
    write_database(tmp_path / "a_0.db3", range(5)).close()
    (tmp_path / "a_1.db3").write_bytes(b"SQLite format 3\0" + bytes(500))
    with open_log(tmp_path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=r"a_1\.db3"):
            messages.extend(log.messages())
        assert [a.kind for a in log.anomalies] == ["damaged"]
    assert len(messages) == 5


def test_rows_in_a_write_ahead_log_are_read_and_nothing_is_written_beside(tmp_path):
    database = write_database(tmp_path / "live.db3", range(7), mode="wal")
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in tmp_path.glob("live.db3*"):
        shutil.copy(file, folder / file.name)
    database.close()
    (folder / "live.db3-shm").unlink()
    assert (folder / "live.db3-wal").stat().st_size > 0
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert turns(folder / "live.db3") == list(range(7))
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_reads(tmp_path):
    write_database(tmp_path / "a.db3", range(3), mode="wal").close()
    tmp_path.chmod(0o500)
    try:
        assert turns(tmp_path / "a.db3") == [0, 1, 2]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("size", [40, 3000, 20_000])
@pytest.mark.parametrize("part", [0.31, 0.5, 0.77, 0.9])
def test_a_file_that_was_cut_gives_the_rows_it_has_and_says_so(tmp_path, part, size):
    path = tmp_path / "a.db3"
    database = write_database(path, [])
    count = 60_000 // size + 40
    rows = [(1, START_NS + k, bytes([1 + k % 255]) * size) for k in range(count)]
    database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)", rows)
    database.commit()
    database.close()
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with open_log(path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match="expected a whole file, found one that lacks"):
            messages.extend(log.messages())
        lost = sum(a.count for a in log.anomalies if a.kind == "lost")
        assert len(messages) + lost == log.topics()["/imu"].messages
    assert [(1, m.log_ns, m.data) for m in messages] == rows[: len(messages)]
    assert count * part * 0.5 < len(messages) < count * part


PAGE = 4096


@pytest.fixture(scope="module")
def paged(tmp_path_factory):
    """Write files of 300 messages, with an index by time and without; return (path, rows)."""
    folder = tmp_path_factory.mktemp("paged")
    found = {}
    for name in ("indexed", "plain"):
        database = write_database(folder / f"{name}.db3", [])
        if name == "indexed":
            database.execute("CREATE INDEX timestamp_idx ON messages (timestamp ASC)")
        rows = [(1, START_NS + k * MS, bytes([k % 251]) * 400) for k in range(300)]
        database.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES(?,?,?)", rows)
        database.commit()
        database.close()
        found[name] = folder / f"{name}.db3", rows
    return found


@pytest.mark.parametrize("name", ["indexed", "plain"])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.8, 1.0])
def test_a_damaged_page_costs_its_own_rows_only(paged, tmp_path, name, place):
    source, rows = paged[name]
    content = bytearray(source.read_bytes())
    page = min(int(len(content) * place) // PAGE, len(content) // PAGE - 1)
    content[page * PAGE : page * PAGE + 16] = b"\xff" * 16
    path = tmp_path / "a.db3"
    path.write_bytes(content)
    messages = []
    with open_log(path) as log:
        with pytest.raises(DamagedInputError) as caught:
            messages.extend(log.messages())
        before = [(a.kind, a.topic, a.count) for a in log.anomalies]
        with pytest.raises(DamagedInputError):
            list(log.messages())
        assert [(a.kind, a.topic, a.count) for a in log.anomalies] == before
    assert caught.value.good_messages == len(messages) >= 300 - PAGE // 400
    assert [(1, m.log_ns, m.data) for m in messages] == [
        row for row in rows if row[1] in {m.log_ns for m in messages}
    ]
    pages = [a.count for a in log.anomalies if a.kind == "unreadable"]
    if len(messages) < 300:
        assert pages == [1 if place == 1.0 else 300 - len(messages)]


def test_a_damaged_page_of_a_folder_costs_what_its_metadata_promised(paged, tmp_path):
    source, _ = paged["plain"]
    content = bytearray(source.read_bytes())
    content[PAGE * 12 : PAGE * 12 + 16] = b"\xff" * 16
    (tmp_path / "a.db3").write_bytes(content)
    count = (
        "  topics_with_message_count:\n    - {topic_metadata: {name: /imu}, message_count: 300}\n"
    )
    (tmp_path / "metadata.yaml").write_text(LISTED.format("[a.db3]") + count)
    with open_log(tmp_path) as log:
        with pytest.raises(DamagedInputError) as caught:
            list(log.messages())
        lost = sum(a.count for a in log.anomalies if a.kind == "lost")
        assert log.topics()["/imu"].messages == caught.value.good_messages + lost == 300
        assert lost > 0


def test_a_text_in_a_file_that_was_cut_is_told(tmp_path):
    database = write_database(tmp_path / "a.db3", range(60))
    database.execute("UPDATE messages SET data = 'text' WHERE id = 3")
    database.commit()
    database.close()
    content = (tmp_path / "a.db3").read_bytes()
    (tmp_path / "a.db3").write_bytes(content[: len(content) // 2])
    with open_log(tmp_path / "a.db3") as log:
        with pytest.raises(DamagedInputError):
            list(log.messages())
        assert {a.kind for a in log.anomalies} == {"damaged", "lost"}


def test_a_packed_part_that_holds_no_bag_is_told_by_its_own_name(tmp_path):
    path = tmp_path / "a.db3.zstd"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"no bag"))
    with pytest.raises(InputError, match=r"a\.db3\.zstd: unpacked: expected an MCAP or SQLite"):
        open_log(path)


def test_a_bag_whose_definitions_are_damaged_reads_what_it_knows(tmp_path):
    database = write_database(tmp_path / "a.db3", range(3))
    database.execute("CREATE TABLE message_definitions(topic_type, encoding, other)")
    database.commit()
    database.close()
    with open_log(tmp_path / "a.db3") as log:
        messages = []
        with pytest.raises(DamagedInputError, match="the definitions of its types") as caught:
            messages.extend(log.messages())
    assert len(messages) == 3
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damaged", [b"CREATE\nTABL( topics", b"CREATE \xf9ABLE topics("])
def test_a_damaged_schema_is_told_in_one_line(tmp_path, damaged):
    """The words of SQLite quote it, and then they are not even text."""
    path = tmp_path / "a.db3"
    write_database(path, range(3)).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE topics(", damaged))
    with pytest.raises(InputError, match="the tables of a rosbag2") as caught:
        open_log(tmp_path / "a.db3")
    assert "\n" not in str(caught.value)


def test_a_definition_that_is_no_text_is_no_bug(tmp_path):
    database = write_database(tmp_path / "a.db3", range(3))
    database.execute(
        "CREATE TABLE message_definitions(topic_type, encoding, encoded_message_definition)"
    )
    database.execute(f"INSERT INTO message_definitions VALUES('{IMU}', 'ros2msg', x'81ff')")
    database.commit()
    database.close()
    assert turns(tmp_path / "a.db3") == [0, 1, 2]


@settings(max_examples=40)
@given(st.data())
def test_no_flipped_byte_gives_a_foreign_exception(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flip") / "a.db3"
    write_database(path, range(30)).close()
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with contextlib.suppress(InputError), open_log(path) as log:
        list(log.messages())


def test_rows_that_are_no_messages_are_told(tmp_path):
    database = write_database(tmp_path / "a.db3", range(3))
    database.execute("INSERT INTO messages VALUES(90, 1, 'noon', x'00')")
    database.execute("INSERT INTO messages VALUES(91, 5, 7, x'00')")
    database.commit()
    database.close()
    with open_log(tmp_path / "a.db3") as log:
        messages = []
        with pytest.raises(DamagedInputError, match="found"):
            messages.extend(log.messages())
        assert [(a.kind, a.count) for a in log.anomalies if a.kind == "damaged"] == [("damaged", 2)]
    assert len(messages) == 3


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["a.db3", "a.mcap"], "found both .db3 and .mcap"),
        (["readme.txt"], "expected an MCAP file, a ROS 1 bag, a comma2k19 segment"),
        (["a.db3"], "found an empty file"),
    ],
)
def test_a_folder_that_is_no_log_is_refused(tmp_path, names, what):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=what) as caught:
        open_log(tmp_path)
    assert caught.value.exit_code == 4


NO_PARTS = ["{", "a: 1", "rosbag2_bagfile_information: []", "- 1", "[" * 1200, "\x00", "a: 'x"]
NO_LISTS = ["[]", "a.db3", "[[a.db3]]", "[null]", '["."]']


@pytest.mark.parametrize("text", [*NO_PARTS, *(LISTED.format(names) for names in NO_LISTS)])
def test_metadata_that_lists_no_parts_is_told_and_the_parts_are_read(tmp_path, text):
    write_database(tmp_path / "a.db3", range(3)).close()
    (tmp_path / "metadata.yaml").write_text(text)
    with open_log(tmp_path) as log:
        messages = []
        with pytest.raises(DamagedInputError, match="expected a list of the bag's parts") as caught:
            messages.extend(log.messages())
    assert len(messages) == 3
    assert "\n" not in str(caught.value)


def test_metadata_that_lists_no_parts_is_refused_where_there_are_none(tmp_path):
    (tmp_path / "metadata.yaml").write_text("{")
    with pytest.raises(InputError, match="expected a list of the bag's parts"):
        open_log(tmp_path)


def test_a_part_that_is_listed_twice_is_read_once(tmp_path):
    write_database(tmp_path / "a.db3", range(3)).close()
    (tmp_path / "metadata.yaml").write_text(LISTED.format("[a.db3, a.db3]"))
    assert turns(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("there", [True, False])
def test_the_messages_of_a_part_that_cannot_be_read_count_as_lost(tmp_path, there):
    write_database(tmp_path / "a_0.db3", range(5)).close()
    if there:
        (tmp_path / "a_1.db3").write_bytes(b"SQLite format 3\0" + bytes(500))
    counts = "".join(
        f"    - {{topic_metadata: {{name: {topic}}}, message_count: {count}}}\n"
        for topic, count in (("/imu", 12), ("/other", 3), ("/none", "many"))
    )
    text = LISTED.format("[a_0.db3, a_1.db3]") + "  topics_with_message_count:\n" + counts
    (tmp_path / "metadata.yaml").write_text(text)
    with open_log(tmp_path) as log:
        assert {t: info.messages for t, info in log.topics().items()} == {"/imu": 12}
        for _ in range(2):  # what is lost is told once, however often the log is read
            with pytest.raises(DamagedInputError, match=r"a_1\.db3"):
                list(log.messages(["/imu"]))
        assert [a.count for a in log.anomalies if a.kind == "lost"] == [7]


def test_a_packed_part_that_is_damaged_gives_its_beginning(tmp_path):
    """Only what follows the damage is lost, as for a part that is not packed."""
    path = tmp_path / "a.mcap"
    with LogWriter(path, compression=CompressionType.NONE, chunk_bytes=100_000) as log:
        for k in range(2000):
            log.add_imu("/imu", "imu", START_NS + k, reading(k))
    packed = zstandard.ZstdCompressor(level=1).compress(path.read_bytes())
    middle = len(packed) // 2
    (tmp_path / "a.mcap.zstd").write_bytes(packed[:middle] + bytes(40) + packed[middle + 40 :])
    with open_log(tmp_path / "a.mcap.zstd") as log:
        messages = []
        with pytest.raises(DamagedInputError, match="the part cannot be unpacked"):
            messages.extend(log.messages())
    assert 0 < len(messages) < 2000


def test_an_sqlite_file_that_is_no_bag_is_refused(tmp_path):
    database = sqlite3.connect(tmp_path / "a.db3")
    database.execute("CREATE TABLE other(id)")
    database.commit()
    database.close()
    with pytest.raises(InputError, match="expected the tables of a rosbag2"):
        open_log(tmp_path / "a.db3")
