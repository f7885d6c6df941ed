"""The one way to read a recorded log, whatever its format.

A reader yields raw messages in (log time, file position) order and holds no more of the log than
the parts that overlap in time. A damaged log is read to its end: every complete message is
delivered first, then `DamagedInputError` is raised, and `anomalies` tells what was lost. A strict
reader raises it in the place of the first message that may be lost. Log times are ns of the
recorder's own clock, as the file has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from avrt.errors import InputError, did_you_mean
from avrt.logs.extents import File
from avrt.logs.formats import accepted, find_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from avrt.logs.raw import Anomaly, RawMessage, TopicInfo

ENDINGS = {".mcap", ".db3", ".bag", ".zstd"}
MAGIC_BYTES = 16  # shown of a file of no known format


class LogReader(Protocol):
    """An open log; a context manager that closes its file."""

    @property
    def anomalies(self) -> list[Anomaly]:
        """What was odd so far; log times are the recorder's."""

    def topics(self) -> dict[str, TopicInfo]:
        """Return what each topic holds, in the order of the file."""

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        """Yield the messages of these topics (of all, when None) by log time, then file position.

        Of a file that holds several runs over the same times (`runs`) one run after the other.

        Raises:
            DamagedInputError: after the last good message of a damaged log; when the log is read
                strictly, before the first one that may not follow what was delivered.
            InputError: the log is damaged and nothing in it is good.
        """

    def close(self) -> None:
        """Close the file; harmless when repeated."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


class LogFile(LogReader, Protocol):
    """A log that lies in a file or folder."""

    @property
    def format(self) -> str:
        """What kind of log it is, for a person."""

    def log_times(self) -> dict[str, NDArray[np.int64]] | None:
        """Return the log times (ns) of each topic's messages, in any order, by the log's index.

        None where the log has no index, or one that is damaged: then only `messages` tells them.
        """


def open_log(path: str | Path, *, strict: bool = False) -> LogFile:
    """Open a recorded log by its content; a strict one stops where it is damaged.

    Raises:
        InputError: it is missing, empty, or of no known format.
        SpecError: a log format of an installed package cannot be loaded.
    """
    path = Path(path)
    found = find_format(path)
    if found is not None:
        return found.open(path, strict=strict)
    raise InputError(_what_it_is(path), str(path))


def _what_it_is(path: Path) -> str:
    """Say why a path is no log."""
    if not path.exists():
        names = sorted(p.name for p in path.parent.glob("*") if p.suffix in ENDINGS)
        remedy = f"; {did_you_mean(path.name, names)}" if names else ""
        return f"no such log{remedy}"
    if path.is_dir():
        return f"expected {accepted()}, found a folder of none of them"
    file = File(path)
    magic = file.read_at(0, MAGIC_BYTES)
    file.close()
    return f"expected {accepted()}, found {repr(magic) if magic else 'an empty file'}"
