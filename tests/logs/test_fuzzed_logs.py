"""What fuzzing of logs has found, each as the smallest file that shows it; and more fuzzing."""

import importlib.util
import sqlite3
from pathlib import Path

import pytest
from mcap.writer import CompressionType, Writer
from small_sets import BARE

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.mcap.file import CHUNK, MAGIC

TOOLS = Path(__file__).parents[2] / "tools"
COPIES, LINES_MIN = 300, 700
PAGE_BYTES = 512


def read(path):
    """Return (messages, error or None) of a log."""
    found = []
    try:
        with open_log(path) as log:
            found.extend((m.topic, m.log_ns, bytes(m.data)) for m in log.messages())
    except InputError as error:
        return found, error
    return found, None


def write_mcap(path, count=6, **options):
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        channel = writer.register_channel("/topic", "json", 0)
        for sequence in range(count):
            writer.add_message(channel, sequence, b"x%d" % sequence, sequence, sequence)
        writer.finish()
    return path


def write_database(path, count=6, first_id=1):
    database = sqlite3.connect(path)
    database.executescript(
        f"PRAGMA page_size={PAGE_BYTES};"
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
        " serialization_format TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
        " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        "INSERT INTO topics VALUES(1, '/topic', 'std_msgs/msg/String', 'cdr');"
    )
    rows = [(first_id + k, k, b"message %d" % k) for k in range(count)]
    database.executemany("INSERT INTO messages VALUES(?, 1, ?, ?)", rows)
    database.commit()
    database.close()
    return path


def test_a_chunk_whose_check_fails_names_no_topic(tmp_path):
    """One flipped bit in the only definition of a channel made it another topic."""
    path = write_mcap(tmp_path / "a.mcap", compression=CompressionType.NONE, chunk_size=80, **BARE)
    path.write_bytes(path.read_bytes().replace(b"/topic", b"/tonic", 1))
    messages, error = read(path)
    assert messages == []
    assert "expected a chunk with CRC" in str(error)


def test_the_head_of_a_chunk_right_at_the_end_of_a_file_is_none(tmp_path):
    """Whoever looks for a chunk behind damage read its length behind the end of the file."""
    path = tmp_path / "a.mcap"
    head = CHUNK.pack(6, 40, 0, 0, 0, 0, len(b"zstd"))
    path.write_bytes(MAGIC + bytes(20) + head + bytes(10))
    messages, error = read(path)
    assert messages == []
    assert "byte 8: expected a record" in str(error)


@pytest.mark.parametrize("row", [b"message 3", b"tabletopics"])
def test_a_row_that_says_to_be_huge_takes_no_memory(tmp_path, row):
    """SQLite believed the length of a row and found no memory for it, which ended the run."""
    path = write_database(tmp_path / "a.db3")
    data = path.read_bytes()
    place = data.index(row)
    errors = []
    for start in range(place - 16, place):
        path.write_bytes(data[:start] + b"\xff" * 9 + data[start + 9 :])
        errors.append(read(path)[1])
    assert any(error is not None for error in errors)


@pytest.mark.parametrize("lost", ["message 70", "message 149"])
def test_the_highest_ids_are_looked_for_no_further_than_there_are_numbers(tmp_path, lost):
    """Looking for more rows behind a damaged page went beyond what SQLite can count."""
    path = write_database(tmp_path / "a.db3", count=150, first_id=(1 << 63) - 150)
    data = path.read_bytes()
    page = data.index(lost.encode()) // PAGE_BYTES * PAGE_BYTES
    path.write_bytes(data[:page] + b"\xff" * PAGE_BYTES + data[page + PAGE_BYTES :])
    messages, error = read(path)
    assert 60 < len(messages) < 150
    assert isinstance(error, DamagedInputError)


def test_a_database_that_says_to_have_two_terabytes_is_read(tmp_path):
    path = write_database(tmp_path / "a.db3")
    data = path.read_bytes()
    path.write_bytes(data[:28] + b"\xff" * 4 + data[32:])
    messages, error = read(path)
    assert len(messages) == 6
    assert isinstance(error, DamagedInputError)


def test_a_table_whose_ids_are_none_is_read_by_its_rows(tmp_path):
    """Where `id` is not declared as the key, SQLite keeps nothing in it."""
    path = write_database(tmp_path / "a.db3")
    key = b"CREATE TABLE messages(id INTEGER PRIMARY KEY"
    path.write_bytes(path.read_bytes().replace(key, key.replace(b"PRIMARY", b"PRIMARX")))
    for strict in (False, True):
        with open_log(path, strict=strict) as log:
            assert [message.log_ns for message in log.messages()] == list(range(6))


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module("fuzz_logs")


@pytest.mark.slow
def test_no_damaged_copy_breaks_a_rule(tmp_path, tool):
    lines = tool.Lines()
    assert list(tool.fuzz(COPIES, 0, tmp_path, lines)) == []
    assert len(lines.reached) > LINES_MIN


def test_what_is_lost_or_altered_in_silence_is_found(tmp_path, tool):
    """The rules can be broken: a reader that swallows its errors and anomalies does."""
    (whole,) = [seed for seed in tool.make_seeds(tmp_path) if seed.name == "none.mcap"]
    path = tmp_path / "none.mcap"
    reading = tool.Reading()
    tool.read(path, reading)
    assert tool.broken_rule(whole, path, 1, reading) == ""
    message = reading.messages.pop()
    assert tool.broken_rule(whole, path, 1, reading).startswith("2: 23 of 24")
    reading.messages.append(("/other", *message[1:]))
    assert tool.broken_rule(whole, path, 1, reading).startswith("3: 1 altered")
    assert tool.broken_rule(whole, path, 1, tool.Reading(raised=KeyError())).startswith("1: KeyE")
