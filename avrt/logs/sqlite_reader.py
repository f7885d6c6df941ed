"""One SQLite file of a rosbag2: messages by log time, straight from its tables.

The file is opened as immutable, so nothing is ever written beside it and read-only media work. That
would miss what a recorder left in a write-ahead log or a rollback journal; where there is one, file
and log are copied to a temporary folder and SQLite recovers the copy.

A file of old tools has no definitions of its types; those that avrt knows are added.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from avrt.errors import DamagedInputError, InputError
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo
from avrt.logs.ros_types import known_types, schema_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SQLITE_MAGIC = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")
MESSAGES = "SELECT id, topic_id, timestamp, data FROM messages ORDER BY timestamp, id"


class SqliteReader:
    """One open .db3 file."""

    def __init__(self, path: Path) -> None:
        """Open the file and read its topics.

        Raises:
            InputError: it is no bag, or damaged where the topics are.
        """
        self._path = path
        self._anomalies = Anomalies()
        self._damage: list[InputError] = []
        self._copy: TemporaryDirectory[str] | None = None
        self._file = self._open()
        try:
            self._channels = self._read_channels()
        except sqlite3.Error as error:
            self.close()
            raise self._error("the tables of a rosbag2", error) from None
        self._counts = self._count()

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    def topics(self) -> dict[str, TopicInfo]:
        return {
            c.topic: TopicInfo(
                c.type, self._counts.get(c.id, 0), c.encoding, c.schema_encoding, c.schema.decode()
            )
            for c in self._channels.values()
        }

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = {id_: c for id_, c in self._channels.items() if names is None or c.topic in names}
        seen = dict.fromkeys(wanted, 0)
        try:
            with closing(self._file.execute(MESSAGES)) as rows:
                for id_, topic_id, log_ns, data in rows:
                    if not isinstance(log_ns, int) or not isinstance(data, bytes):
                        self._note("a time and bytes", f"{log_ns!r} in row {id_}")
                    elif topic_id in wanted:
                        seen[topic_id] += 1
                        yield RawMessage(wanted[topic_id], log_ns, log_ns, 0, data)
                    elif topic_id not in self._channels:
                        self._note("a message of a known topic", f"topic {topic_id} in row {id_}")
        except sqlite3.Error as error:
            self._note("the rows of its messages", str(error))
        self._tell(seen)

    def close(self) -> None:
        self._file.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        path, how = self._path, "mode=ro&immutable=1"
        logs = [Path(f"{path}{end}") for end in LOGS]
        try:
            if any(log.exists() and log.stat().st_size for log in logs):
                self._copy = TemporaryDirectory(prefix="avrt-")
                for file in (path, *(log for log in logs if log.exists())):
                    shutil.copyfile(file, Path(self._copy.name) / file.name)
                path, how = Path(self._copy.name) / path.name, "mode=rw"
            return sqlite3.connect(f"file:{quote(str(path.absolute()))}?{how}", uri=True)
        except (OSError, sqlite3.Error) as error:
            raise self._error("an SQLite file", error) from None

    def _read_channels(self) -> dict[int, Channel]:
        tables = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master")}
        defined: Mapping[str, tuple[str, bytes]] = {}
        if "message_definitions" in tables:
            rows = self._file.execute(
                "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
            )
            defined = {str(kind): (str(how), str(text).encode()) for kind, how, text in rows}
        topics = self._file.execute("SELECT id, name, type, serialization_format FROM topics")
        channels: dict[int, Channel] = {}
        for id_, name, kind, encoding in topics:
            schema = defined.get(kind, ("", b""))
            if not schema[1] and kind in known_types().fielddefs:
                schema = "ros2msg", schema_text(known_types(), kind)
            channels[id_] = Channel(id_, str(name), str(kind), str(encoding or "cdr"), *schema)
        return channels

    def _count(self) -> dict[int, int]:
        try:
            return dict(
                self._file.execute("SELECT topic_id, COUNT(*) FROM messages GROUP BY topic_id")
            )
        except sqlite3.Error as error:
            self._note("messages that can be counted", str(error))
            return {}

    def _note(self, expected: str, found: str) -> None:
        error = self._error(expected, found)
        self._damage.append(error)
        self._anomalies.add("damaged", None, None, str(error))

    def _error(self, expected: str, found: object) -> InputError:
        return InputError(f"expected {expected}, found {found}", str(self._path))

    def _tell(self, seen: Mapping[int, int]) -> None:
        """Tell what is lost, once everything good was delivered."""
        for id_, found in seen.items():
            lost = self._counts.get(id_, 0) - found
            if lost > 0:
                what = f"expected {found + lost} messages, found {found}"
                self._anomalies.add("lost", self._channels[id_].topic, None, what, lost)
        if self._damage:
            count, first = sum(seen.values()), self._damage[0]
            kind = DamagedInputError if count else InputError
            raise kind(first.what, first.place, count)
