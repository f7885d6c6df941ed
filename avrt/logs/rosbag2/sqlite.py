"""One SQLite file of a rosbag2: messages by log time, straight from its tables.

* The file is opened as immutable: nothing is ever written beside it, and read-only media work. That
  would miss what a recorder left in a write-ahead log or a rollback journal; where there is one,
  file and log are copied to a temporary folder and SQLite recovers the copy.
* SQLite opens no file that is shorter than it says. Such a file is copied and filled up; then the
  rows that lie before the first missing page are good. Pages are taken in the order of writing, so
  only rows just before the cut reach into what is missing: SQLite finds it, unless it is the last
  page of a row. So the first missing pages are filled with a mark that no good row holds.
* SQLite gives up a query at the first damaged page. Then rows are looked up one by one, by id, and
  the ids that lie on a page that cannot be read are left out and told. An id is a row's number,
  which SQLite keeps whatever the table says.
* No value is longer than the file: a damaged length costs no memory.
* A file of old tools has no definitions of its types; those that avrt knows are added.
"""

from __future__ import annotations

import shutil
import sqlite3
from array import array
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import numpy as np

from avrt.errors import InputError
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo, tell_damage
from avrt.logs.ros.types import known_types, schema_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Row = tuple[int, int, object, object]

SQLITE_MAGIC = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")
HEAD_BYTES = 32
MARK = bytes.fromhex("c4c3f2a99e0b6d55a1e2774f18d03b9c")
MARK_BYTES_MAX = 1 << 22
ID_END = 1 << 63
VALUE_BYTES_MIN, VALUE_BYTES_MAX = 1 << 20, (1 << 31) - 1
UNREADABLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)  # its words quote what is damaged
MESSAGES = "SELECT rowid, topic_id, timestamp, data FROM messages ORDER BY timestamp, rowid"
MESSAGE = "SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid = ?"
KEYS = "SELECT timestamp, rowid, topic_id FROM messages WHERE rowid >= ? ORDER BY rowid"
TIMES = "SELECT topic_id, timestamp FROM messages ORDER BY timestamp"


class SqliteReader:
    """One open .db3 file."""

    format = "SQLite"

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """Open the file and read its topics; a strict reader stops at the first row that is lost.

        Raises:
            InputError: it is no bag, or damaged where the topics are.
        """
        self._path = path
        self._strict = strict
        self._first_bad = ID_END
        self._anomalies = Anomalies()
        self._damage: dict[str, InputError] = {}
        self._lost: set[int] = set()
        self._pages: set[int] = set()
        self._page_bytes, self._missing_bytes = self._measure()
        self._counts: dict[int, int] = {}
        self._good_ids: list[int] | None = None
        with ExitStack() as stack:
            self._file = self._open(stack)
            try:
                self._channels = self._read_channels()
            except UNREADABLE as error:
                raise self._error("the tables of a rosbag2", error) from None
            if self._missing_bytes:
                lacks = f"{self._missing_bytes} bytes from byte {path.stat().st_size} on"
                self._note("a whole file", f"one that lacks {lacks}")
            if self._missing_bytes or not self._count():
                self._good_ids = [id_ for _, id_ in self._find_good()]
            self._stack = stack.pop_all()

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    def topics(self) -> dict[str, TopicInfo]:
        return {
            c.topic: TopicInfo(
                c.type,
                self._counts.get(c.id, 0),
                c.encoding,
                c.schema_encoding,
                c.schema.decode(errors="replace"),
            )
            for c in self._channels.values()
        }

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = {id_: c for id_, c in self._channels.items() if names is None or c.topic in names}
        seen = dict.fromkeys(wanted, 0)
        for id_, topic_id, log_ns, data in self._rows():
            if not isinstance(log_ns, int) or not isinstance(data, bytes):
                self._note("a time and bytes", f"{log_ns!r} and {data!r:.20} in row {id_}")
            elif topic_id in wanted:
                seen[topic_id] += 1
                yield RawMessage(wanted[topic_id], log_ns, log_ns, 0, data)
                continue
            elif topic_id not in self._channels:
                self._note("a message of a known topic", f"topic {topic_id} in row {id_}")
            else:
                continue
            if self._strict:
                break
        self._tell(seen)

    def log_times(self) -> dict[str, NDArray[np.int64]] | None:
        found: dict[str, array[int]] = {}
        try:
            with closing(self._file.execute(TIMES)) as rows:
                for topic_id, log_ns in rows:
                    if topic_id in self._channels:
                        found.setdefault(self._channels[topic_id].topic, array("q")).append(log_ns)
        except (*UNREADABLE, TypeError):
            return None
        return {topic: np.array(times) for topic, times in found.items()}

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _rows(self) -> Iterator[Row]:
        """Yield the rows of messages by log time; one by one where they cannot be read at once."""
        if self._good_ids is not None:
            yield from self._rows_of(self._good_ids)
            return
        last = (-ID_END, 0)
        try:
            with closing(self._file.execute(MESSAGES)) as rows:
                for row in rows:
                    yield row
                    if isinstance(row[2], int):
                        last = row[2], row[0]
        except UNREADABLE as error:
            self._note("the rows of its messages", str(error))
            yield from self._rows_of([key[1] for key in self._find_good() if key > last])

    def _rows_of(self, ids: Sequence[int]) -> Iterator[Row]:
        for id_ in ids:
            row: Row | None = None
            with suppress(*UNREADABLE):  # it reaches into a damaged page, and counts as lost
                row = self._file.execute(MESSAGE, (id_,)).fetchone()
            is_good = row is not None and not (isinstance(row[3], bytes) and MARK in row[3])
            if self._strict and not (is_good and id_ < self._first_bad):
                return
            if row is not None and is_good:
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
        except (OSError, *UNREADABLE) as error:
            raise self._error("an SQLite file", error) from None
        stack.callback(database.close)
        longest = min(max(VALUE_BYTES_MIN, path.stat().st_size), VALUE_BYTES_MAX)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        return database

    def _read_channels(self) -> dict[int, Channel]:
        defined = self._read_definitions()
        topics = self._file.execute("SELECT id, name, type, serialization_format FROM topics")
        channels: dict[int, Channel] = {}
        for id_, name, kind, encoding in topics:
            schema = defined.get(kind, ("", b""))
            if not schema[1] and kind in known_types().fielddefs:
                schema = "ros2msg", schema_text(known_types(), kind)
            channels[id_] = Channel(id_, str(name), str(kind), str(encoding or "cdr"), *schema)
        return channels

    def _read_definitions(self) -> dict[str, tuple[str, bytes]]:
        """Return encoding and text by type; a file does without those of types that are known."""
        try:
            tables = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master")}
            if "message_definitions" not in tables:
                return {}
            rows = self._file.execute(
                "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
            )
            return {str(kind): (str(how), str(text).encode()) for kind, how, text in rows}
        except UNREADABLE as error:
            self._note("the definitions of its types", str(error))
            return {}

    def _find_good(self) -> list[tuple[int, int]]:
        """Return the keys (log time, id) of the rows that can be found, in order; count them."""
        keys: list[tuple[int, int]] = []
        counts: dict[int, int] = {}
        for log_ns, id_, topic_id in self._find_keys():
            if isinstance(log_ns, int):
                keys.append((log_ns, id_))
            counts[topic_id] = counts.get(topic_id, 0) + 1
        for topic_id, count in counts.items():
            self._counts[topic_id] = max(count, self._counts.get(topic_id, 0))
        return sorted(set(keys))

    def _find_keys(self) -> Iterator[tuple[object, int, int]]:
        """Yield log time, id and topic of every row by id, those behind a damaged page too."""
        first: int | None = 0
        log_ns: object = None
        while first is not None and first < ID_END:
            reached = first
            try:
                for key in self._file.execute(KEYS, (first,)):
                    yield key
                    log_ns, reached = key[0], max(reached, key[1] + 1)
                first = None
            except UNREADABLE:
                first = self._find_next(reached)
                self._note_page(reached, first, log_ns)

    def _find_next(self, bad: int) -> int | None:
        """Return the first id behind the page where the id `bad` should be; None at the end.

        The ids of a page are a range, so its end is found by doubling the step and then halving it.
        """
        step = 1
        while not self._can_find(bad + step):
            step *= 2
            if bad + step >= ID_END:
                return None
        low, high = bad + step // 2, bad + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can_find(middle) else (middle, high)
        return high

    def _can_find(self, id_: int) -> bool:
        """Whether the first row from an id on can be reached, or that there is none."""
        try:
            with closing(self._file.execute(KEYS, (id_,))) as rows:
                rows.fetchone()
        except UNREADABLE:
            return False
        return True

    def _count(self) -> bool:
        """Count the messages by topic; return whether that was possible."""
        try:
            self._counts = dict(
                self._file.execute("SELECT topic_id, COUNT(*) FROM messages GROUP BY topic_id")
            )
        except UNREADABLE as error:
            self._note("messages that can be counted", str(error))
            return False
        return True

    def _note_page(self, bad: int, following: int | None, before: object) -> None:
        """Tell of ids that cannot be read, and of the log time of the row before them.

        What a cut file lacks is told already.
        """
        self._first_bad = min(bad, self._first_bad)
        if not self._missing_bytes and bad not in self._pages:
            self._pages.add(bad)
            count = 1 if following is None else following - bad
            rows = f"from {bad} on" if following is None else f"{bad} to {following - 1}"
            at_ns = before if isinstance(before, int) else None
            since = "" if at_ns is None else f", after {at_ns} ns"
            what = f"rows {rows}{since}, are on a bad page"
            self._anomalies.add("unreadable", None, at_ns, what, count)

    def _note(self, expected: str, found: str) -> None:
        error = self._error(expected, found)
        if error.what not in self._damage:
            self._damage[error.what] = error
            self._anomalies.add("damaged", None, None, str(error))

    def _error(self, expected: str, found: object) -> InputError:
        what = " ".join(f"expected {expected}, found {found}".split())
        return InputError(what, str(self._path))

    def _tell(self, seen: Mapping[int, int]) -> None:
        """Tell what is lost, once everything good was delivered."""
        for id_, found in seen.items():
            lost = self._counts.get(id_, 0) - found
            if lost > 0 and id_ not in self._lost and not self._strict:
                self._lost.add(id_)
                what = f"expected {found + lost} messages, found {found}"
                self._anomalies.add("lost", self._channels[id_].topic, None, what, lost)
        tell_damage(self._damage.values(), sum(seen.values()), strict=self._strict)
