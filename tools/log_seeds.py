"""The small logs that `fuzz_logs` damages: each format with and without what tells of damage."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from mcap.writer import CompressionType, IndexType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

from avrt.logs import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Key = tuple[str, int, str]
"""Topic, log time in ns, SHA-256 of the payload."""

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 10_000_000
COUNT = 24
CHUNK_BYTES = 600
PAGE_BYTES = 512
KIND = "std_msgs/msg/String"
TOPICS = ("/a", "/b")
STORE = get_typestore(Stores.ROS1_NOETIC)


@dataclass(frozen=True, slots=True)
class Seed:
    """An undamaged log.

    Attributes:
        checked: it is an MCAP file whose messages are in chunks with CRCs.
        counted: the file says in two places how many messages it has.
    """

    name: str
    data: bytes
    messages: Counter[Key]
    checked: bool = False
    counted: bool = True

    @property
    def ending(self) -> str:
        return f".{self.name.rpartition('.')[2]}"

    def has_summary_of(self, path: Path) -> bool:
        """Whether both end with the same CRC of a summary."""
        crc = self.data[-12:-8]
        return self.checked and any(crc) and path.read_bytes()[-12:-8] == crc


def key_of(topic: str, log_ns: int, payload: bytes | memoryview) -> Key:
    return topic, log_ns, hashlib.sha256(payload).hexdigest()


def make_seeds(folder: Path) -> list[Seed]:
    """Return all of them; the folder is for the files that they are written to."""
    return [*_mcap_seeds(folder), *_sqlite_seeds(folder), *_bag_seeds(folder)]


def _messages() -> Iterator[tuple[str, int, bytes]]:
    """Yield topic, log time and payload, of 4 to 100 bytes that differ from message to message."""
    for index in range(COUNT):
        text = np.random.default_rng(index).bytes(4 * index).hex()[: 4 * index]
        yield TOPICS[index % 3 == 1], START_NS + index * PERIOD_NS, f"{index:4}{text}".encode()


def _mcap_seeds(folder: Path) -> Iterator[Seed]:
    bare: dict[str, object] = {
        "index_types": IndexType.NONE,
        "use_statistics": False,
        "use_summary_offsets": False,
        "repeat_channels": False,
        "repeat_schemas": False,
    }
    for how in CompressionType:
        yield _mcap(folder / f"{how.name.lower()}.mcap", {"compression": how})
    plain: dict[str, object] = {"compression": CompressionType.NONE}
    yield _mcap(folder / "indexed.mcap", plain | {"use_statistics": False})
    yield _mcap(folder / "bare.mcap", bare, counted=False)
    yield _mcap(folder / "unchecked.mcap", plain | {"enable_crcs": False})
    yield _mcap(folder / "runs.mcap", plain, runs=2)
    yield _mcap(folder / "unchunked.mcap", {"use_chunking": False})
    yield _mcap(folder / "unchunked_bare.mcap", bare | {"use_chunking": False}, counted=False)


def _mcap(
    path: Path, options: Mapping[str, object], *, counted: bool = True, runs: int = 1
) -> Seed:
    with path.open("wb") as file:
        writer = McapWriter(file, chunk_size=CHUNK_BYTES, **options)  # type: ignore[arg-type]
        writer.start()
        schema = writer.register_schema(KIND, "ros2msg", b"string data")
        channels = {topic: writer.register_channel(topic, "cdr", schema) for topic in TOPICS}
        for _ in range(runs):
            writer.add_metadata("session", {})
            for sequence, (topic, at_ns, payload) in enumerate(_messages()):
                writer.add_message(channels[topic], at_ns, payload, at_ns, sequence)
        writer.finish()  # type: ignore[no-untyped-call]
    found = Counter(key_of(*message) for message in _messages() for _ in range(runs))
    checked = bool(options.get("enable_crcs", True) and options.get("use_chunking", True))
    return Seed(path.name, path.read_bytes(), found, checked, counted)


def _sqlite_seeds(folder: Path) -> Iterator[Seed]:
    yield _sqlite(folder / "indexed.db3", "CREATE INDEX timestamp_idx ON messages (timestamp ASC);")
    yield _sqlite(folder / "bare.db3", "", counted=False)


def _sqlite(path: Path, index: str, *, counted: bool = True) -> Seed:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            f"PRAGMA page_size={PAGE_BYTES};"
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
            " serialization_format TEXT NOT NULL);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
            " timestamp INTEGER NOT NULL, data BLOB NOT NULL);" + index
        )
        for number, topic in enumerate(TOPICS, 1):
            row = (number, topic, KIND, "cdr")
            database.execute("INSERT INTO topics VALUES(?, ?, ?, ?)", row)
        rows = [(TOPICS.index(topic) + 1, at_ns, data) for topic, at_ns, data in _messages()]
        rows = [(*row[:2], row[2] * (1 + 11 * (row[1] % 3 == 0))) for row in rows]
        database.executemany(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)", rows
        )
        database.commit()
    return Seed(path.name, path.read_bytes(), _read(path), counted=counted)


def _bag_seeds(folder: Path) -> Iterator[Seed]:
    for how in (None, *BagWriter.CompressionFormat):
        path = folder / f"{'none' if how is None else how.name.lower()}.bag"
        writer = BagWriter(path)
        writer.chunk_threshold = CHUNK_BYTES
        if how is not None:
            writer.set_compression(how)
        with writer:
            connections = {t: writer.add_connection(t, KIND, typestore=STORE) for t in TOPICS}
            for topic, at_ns, text in _messages():
                payload = struct.pack("<I", len(text)) + text
                writer.write(connections[topic], at_ns, payload)
        yield Seed(path.name, path.read_bytes(), _read(path))


def _read(path: Path) -> Counter[Key]:
    """Return what avrt reads of an undamaged file, of which tests say that it is right."""
    with open_log(path) as log:
        return Counter(key_of(m.topic, m.log_ns, m.data) for m in log.messages())
