"""One SQLite file of a rosbag2: messages by log time, straight from its tables.

* The file is opened as immutable: nothing is ever written beside it, and read-only media work. That
  would miss what a recorder left in a write-ahead log or a rollback journal; where there is one,
  file and log are copied to a temporary folder and SQLite recovers the copy.
* SQLite opens no file that is shorter than it says. Such a file is copied and filled up; then the
  rows that lie before the first missing page are good. Pages are taken in the order of writing, so
  only rows just before the cut reach into what is missing: SQLite finds it, unless it is the last
  page of a row. So the first missing pages are filled with a mark that no good row holds.
* A file of old tools has no definitions of its types; those that avrt knows are added.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import ExitStack, closing, suppress
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
HEAD_BYTES = 32
MARK = bytes.fromhex("c4c3f2a99e0b6d55a1e2774f18d03b9c")
MARK_BYTES_MAX = 1 << 22
MESSAGES = "SELECT id, topic_id, timestamp, data FROM messages ORDER BY timestamp, id"
MESSAGE = "SELECT id, topic_id, timestamp, data FROM messages WHERE id = ?"
KEYS = "SELECT timestamp, id, topic_id FROM messages ORDER BY id"


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
        self._page_bytes, self._missing_bytes = self._measure()
        self._counts: dict[int, int] = {}
        self._good_ids: list[int] | None = None
        with ExitStack() as stack:
            self._file = self._open(stack)
            try:
                self._channels = self._read_channels()
            except sqlite3.Error as error:
                raise self._error("the tables of a rosbag2", error) from None
            if self._missing_bytes:
                self._good_ids = self._find_good()
            else:
                self._count()
            self._stack = stack.pop_all()

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
            for id_, topic_id, log_ns, data in self._rows():
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
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _rows(self) -> Iterator[tuple[object, int, object, object]]:
        """Yield the rows of messages by log time."""
        if self._good_ids is None:
            with closing(self._file.execute(MESSAGES)) as rows:
                yield from rows
        else:
            for id_ in self._good_ids:
                with suppress(sqlite3.Error):  # it reaches into a missing page, and counts as lost
                    row = self._file.execute(MESSAGE, (id_,)).fetchone()
                    if row is not None and MARK not in row[3]:
                        yield row

    def _measure(self) -> tuple[int, int]:
        """Return the size of a page, and how many bytes the file lacks of what its header says."""
        try:
            with self._path.open("rb") as file:
                head = file.read(HEAD_BYTES)
            size_bytes = self._path.stat().st_size
        except OSError as error:
            raise self._error("a file that can be read", error) from None
        page_bytes = int.from_bytes(head[16:18], "big")
        page_bytes = 1 << 16 if page_bytes == 1 else max(1, page_bytes)
        return page_bytes, max(0, page_bytes * int.from_bytes(head[28:32], "big") - size_bytes)

    def _fill_up(self, path: Path) -> None:
        """Give a copy the size that it says, with marks where its last whole page ends."""
        size_bytes = path.stat().st_size
        whole_bytes = size_bytes - size_bytes % self._page_bytes
        end = size_bytes + self._missing_bytes
        marks = min(MARK_BYTES_MAX, end - whole_bytes) // len(MARK)
        with path.open("r+b") as file:
            file.seek(whole_bytes)
            file.write(MARK * marks)
            file.truncate(end)

    def _open(self, stack: ExitStack) -> sqlite3.Connection:
        path, how = self._path, "mode=ro&immutable=1"
        logs = [log for end in LOGS if (log := Path(f"{path}{end}")).exists()]
        try:
            if self._missing_bytes or any(log.stat().st_size for log in logs):
                copy = Path(stack.enter_context(TemporaryDirectory(prefix="avrt-")))
                for source in (path, *logs):
                    shutil.copyfile(source, copy / source.name)
                path, how = copy / path.name, "mode=rw"
                if self._missing_bytes:
                    self._fill_up(path)
            name = f"file:{quote(str(path.absolute()))}?{how}"
            database = sqlite3.connect(name, uri=True, check_same_thread=False)  # one at a time
        except (OSError, sqlite3.Error) as error:
            raise self._error("an SQLite file", error) from None
        stack.callback(database.close)
        return database

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

    def _find_good(self) -> list[int]:
        """Return the ids of the rows before the first missing page, by log time; count them."""
        keys: list[tuple[int, int]] = []
        try:
            for log_ns, id_, topic_id in self._file.execute(KEYS):
                if not isinstance(log_ns, int):
                    break
                keys.append((log_ns, id_))
                self._counts[topic_id] = self._counts.get(topic_id, 0) + 1
        except sqlite3.Error:
            pass
        self._note("a whole file", f"one that lacks {self._missing_bytes} bytes")
        return [id_ for _, id_ in sorted(keys)]

    def _count(self) -> None:
        try:
            self._counts = dict(
                self._file.execute("SELECT topic_id, COUNT(*) FROM messages GROUP BY topic_id")
            )
        except sqlite3.Error as error:
            self._note("messages that can be counted", str(error))

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
