"""The formats of logs: what avrt reads by itself, and what installed packages add.

A format says whether a path is a log of its kind, by content rather than by name, and opens it. A
package adds one under the entry point group `avrt.log_formats` (docs/formats.md). Formats of avrt
are asked first, so that no package changes what they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from avrt.errors import SpecError, raised_by
from avrt.logs.bag.file import BAG_MAGIC
from avrt.logs.bag.reader import BagReader
from avrt.logs.comma import reader as comma
from avrt.logs.extents import File
from avrt.logs.kitti import frames as kitti_frames
from avrt.logs.kitti import raw as kitti_raw
from avrt.logs.kitti import tracking as kitti_tracking
from avrt.logs.mcap.file import MAGIC
from avrt.logs.mcap.reader import McapReader
from avrt.logs.nuscenes import scene as nuscenes
from avrt.logs.rosbag2.reader import ZSTD_MAGIC, Rosbag2Reader, is_bag, open_bag
from avrt.logs.rosbag2.sqlite import SQLITE_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from avrt.logs.reader import LogFile

GROUP = "avrt.log_formats"


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One kind of log.

    Attributes:
        name: what a path of it is, with its article: "a ROS 1 bag".
        recognises: whether a path is one; it may be of nothing that is there, and raises nothing.
        opened: returns an open log of such a path, which stops where it is damaged if the second
            argument says that it is read strictly; raises `InputError` when nothing can be used.
    """

    name: str
    recognises: Callable[[Path], bool]
    opened: Callable[[Path, bool], LogFile]

    def open(self, path: Path, *, strict: bool = False) -> LogFile:
        """Open a path that is one; a strict log stops where it is damaged.

        Raises:
            InputError: nothing in it can be used.
        """
        return self.opened(path, strict)


def find_format(path: Path) -> LogFormat | None:
    """Return the format of a path, or None where it is of none.

    Raises:
        SpecError: a package's format is asked and cannot be loaded.
    """
    return next((one for one in _all_formats() if one.recognises(path)), None)


def accepted() -> str:
    """Return what paths are logs, for an error: "an MCAP file, ... or a comma2k19 segment"."""
    *names, last = (one.name for one in _all_formats())
    return f"{', '.join(names)} or {last}"


def _all_formats() -> Iterator[LogFormat]:
    """Yield avrt's own formats, then those of packages by their name."""
    yield from BUILT_IN
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield _load(entry)


def _load(entry: EntryPoint) -> LogFormat:
    """Return the format of a package.

    Raises:
        SpecError: it cannot be imported, or is none.
    """
    found: list[object] = []
    error = raised_by(lambda: found.append(entry.load()))
    key = (GROUP, entry.name)
    if error is not None:
        what = f"the log format {entry.value} cannot be loaded: {type(error).__name__}: {error}"
        raise SpecError(what, key) from error
    match found:
        case [LogFormat() as one]:
            return one
        case _:
            what = f"expected {entry.value} to be an avrt.logs.LogFormat, found {found[0]!r}"
            raise SpecError(what, key)


def _begins_with(*magic: bytes) -> Callable[[Path], bool]:
    def recognises(path: Path) -> bool:
        try:
            if not path.is_file():
                return False
            with path.open("rb") as file:
                return file.read(max(map(len, magic))).startswith(magic)
        except OSError:
            return False

    return recognises


def _open_mcap(path: Path, strict: bool) -> McapReader:  # noqa: FBT001
    return McapReader(File(path), strict=strict)


def _open_bag(path: Path, strict: bool) -> BagReader:  # noqa: FBT001
    return BagReader(File(path), strict=strict)


def _open_rosbag2(path: Path, strict: bool) -> Rosbag2Reader:  # noqa: FBT001
    if path.is_dir():
        return open_bag(path, strict=strict)
    return Rosbag2Reader([path], path, strict=strict)


_is_part = _begins_with(SQLITE_MAGIC, ZSTD_MAGIC)
BUILT_IN = (
    LogFormat("an MCAP file", _begins_with(MAGIC), _open_mcap),
    LogFormat("a ROS 1 bag", _begins_with(BAG_MAGIC), _open_bag),
    LogFormat("a comma2k19 segment", comma.recognises, comma.open_segment),
    LogFormat("a KITTI raw drive", kitti_raw.recognises, kitti_raw.open_drive),
    LogFormat("a KITTI tracking sequence", kitti_tracking.recognises, kitti_tracking.open_sequence),
    LogFormat("a folder of KITTI object frames", kitti_frames.recognises, kitti_frames.open_frames),
    LogFormat("a nuScenes scene", nuscenes.recognises, nuscenes.open_scene),
    LogFormat(
        "a rosbag2 folder or file", lambda path: is_bag(path) or _is_part(path), _open_rosbag2
    ),
)
"""A bag may lie in any folder, so rosbag2 is asked last."""
