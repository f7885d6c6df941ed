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
from avrt.logs.bag.file import BAG_MAGIC
from avrt.logs.bag.reader import BagReader
from avrt.logs.comma.reader import FOLDER, CommaReader
from avrt.logs.extents import File
from avrt.logs.mcap.file import MAGIC
from avrt.logs.mcap.reader import McapReader
from avrt.logs.rosbag2.reader import ZSTD_MAGIC, Rosbag2Reader, open_bag
from avrt.logs.rosbag2.sqlite import SQLITE_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from avrt.logs.raw import Anomaly, RawMessage, TopicInfo

ACCEPTED = "an MCAP file, a rosbag2 folder or file, a ROS 1 bag or a comma2k19 segment"
ENDINGS = {".mcap", ".db3", ".bag", ".zstd"}


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
    """
    path = Path(path)
    if not path.exists():
        names = sorted(p.name for p in path.parent.glob("*") if p.suffix in ENDINGS)
        remedy = f"; {did_you_mean(path.name, names)}" if names else ""
        raise InputError(f"no such log{remedy}", str(path))
    if path.is_dir():
        return _open_folder(path, strict=strict)
    file = File(path)
    magic = file.read_at(0, len(SQLITE_MAGIC))
    if magic.startswith(MAGIC):
        return McapReader(file, strict=strict)
    if magic.startswith(BAG_MAGIC):
        return BagReader(file, strict=strict)
    file.close()
    if magic == SQLITE_MAGIC or magic.startswith(ZSTD_MAGIC):
        return Rosbag2Reader([path], path, strict=strict)
    found = repr(magic) if magic else "an empty file"
    raise InputError(f"expected {ACCEPTED}, found {found}", str(path))


def _open_folder(path: Path, *, strict: bool) -> LogFile:
    if (path / FOLDER).is_dir():
        return CommaReader(path, strict=strict)
    bag = open_bag(path, strict=strict)
    if bag is not None:
        return bag
    raise InputError(f"expected {ACCEPTED}, found a folder of none of them", str(path))
