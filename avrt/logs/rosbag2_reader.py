"""A rosbag2: one or more parts, MCAP or SQLite, that are one log.

* The parts are those that `metadata.yaml` names; without it, those that lie in the folder, by
  number. One that is named and missing is damage, and the others are read.
* Parts are merged by log time; equal times follow the order of the parts.
* rosbag2 may compress each message, or each part, with Zstandard. A compressed message is known by
  its first bytes, which no CDR message has; a compressed part is unpacked to a temporary folder.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from heapq import merge
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import yaml
import zstandard

from avrt.errors import DamagedInputError, InputError
from avrt.logs.extents import File
from avrt.logs.mcap_file import MAGIC
from avrt.logs.mcap_reader import McapReader
from avrt.logs.raw import Anomalies, Anomaly, RawMessage, TopicInfo
from avrt.logs.sqlite_reader import SQLITE_MAGIC, SqliteReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

METADATA = "metadata.yaml"
ENDINGS = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MESSAGE_BYTES_MAX = 1 << 32

Part = McapReader | SqliteReader


class Rosbag2Reader:
    """One open rosbag2."""

    def __init__(self, paths: Sequence[Path], place: Path, missing: Sequence[str] = ()) -> None:
        """Open the parts of a bag; `missing` names those that are not there.

        Raises:
            InputError: none of them can be read.
        """
        self._parts: list[Part] = []
        self._damage: dict[str, InputError] = {}
        self._anomalies = Anomalies()
        self._unpacked = zstandard.ZstdDecompressor()
        with ExitStack() as stack:
            for name in missing:
                what = f"expected the part {name} that {METADATA} names, found none"
                self._note(InputError(what, str(place / name)))
            for path in paths:
                try:
                    part = _open_part(path, stack)
                    stack.callback(part.close)
                    self._parts.append(part)
                except InputError as error:
                    self._note(error)
            if not self._parts:
                raise next(iter(self._damage.values()))
            self._stack = stack.pop_all()

    @property
    def anomalies(self) -> list[Anomaly]:
        found = Anomalies()
        for a in [*self._anomalies, *(a for part in self._parts for a in part.anomalies)]:
            found.add(a.kind, a.topic, a.at_ns, a.detail, a.count)
        return list(found)

    def topics(self) -> dict[str, TopicInfo]:
        known: dict[str, TopicInfo] = {}
        for part in self._parts:
            for topic, info in part.topics().items():
                first = known.get(topic, replace(info, messages=0))
                known[topic] = replace(first, messages=first.messages + info.messages)
        return known

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        count = 0
        parts = (self._play(part, names) for part in self._parts)
        for message in merge(*parts, key=lambda message: message.log_ns):
            count += 1
            yield message
        if self._damage:
            first, *others = self._damage.values()
            more = f"; and {len(others)} more" if others else ""
            kind = DamagedInputError if count else InputError
            raise kind(f"{first.what}{more}", first.place, count)

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _play(self, part: Part, names: set[str] | None) -> Iterator[RawMessage]:
        try:
            for message in part.messages(names):
                if message.data[:4] == ZSTD_MAGIC:
                    self._unpack(message)
                yield message
        except InputError as error:
            self._damage.setdefault(error.place, error)  # the part's own anomalies tell it

    def _unpack(self, message: RawMessage) -> None:
        try:
            message.data = self._unpacked.decompress(
                message.data, max_output_size=MESSAGE_BYTES_MAX
            )
        except (zstandard.ZstdError, MemoryError) as error:
            what = f"a message of {len(message.data)} bytes cannot be unpacked: {error}"
            self._anomalies.add("undecodable", message.topic, message.log_ns, what)
            message.data = b""

    def _note(self, error: InputError) -> None:
        self._damage.setdefault(error.place, error)
        self._anomalies.add("damaged", None, None, str(error))


def open_bag(folder: Path) -> Rosbag2Reader | None:
    """Open a folder as a rosbag2, or return None when it is none.

    Raises:
        InputError: its parts are of two kinds, or none can be read.
    """
    found = sorted((p for p in folder.iterdir() if p.name.endswith(ENDINGS)), key=_numbers)
    named = _named_parts(folder / METADATA)
    if named is not None:
        paths = [folder / name for name in named if (folder / name).exists()]
        return Rosbag2Reader(paths, folder, [n for n in named if not (folder / n).exists()])
    if not found:
        return None
    if len({".db3" in path.name for path in found}) > 1:
        what = "expected parts of one kind, found both .db3 and .mcap; name the file to read"
        raise InputError(what, str(folder))
    return Rosbag2Reader(found, folder)


def _named_parts(path: Path) -> list[str] | None:
    """Return the names of the parts that a metadata file lists; None when there is none.

    Raises:
        InputError: it cannot be understood.
    """
    if not path.exists():
        return None
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        listed = data["rosbag2_bagfile_information"]["relative_file_paths"]
        return [Path(str(name)).name for name in listed]
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError) as error:
        what = f"expected a list of the bag's parts: {error}; without the file, all are read"
        raise InputError(what, str(path)) from None


def _open_part(path: Path, stack: ExitStack) -> Part:
    file = File(path)
    magic = file.read_at(0, len(SQLITE_MAGIC))
    if magic.startswith(MAGIC):
        return McapReader(file)
    file.close()
    if magic == SQLITE_MAGIC:
        return SqliteReader(path)
    if magic.startswith(ZSTD_MAGIC):
        folder = stack.enter_context(TemporaryDirectory(prefix="avrt-"))
        return _open_part(_unpack_part(path, Path(folder)), stack)
    found = repr(magic) if magic else "an empty file"
    raise InputError(f"expected an MCAP or SQLite file, found {found}", str(path))


def _unpack_part(path: Path, folder: Path) -> Path:
    unpacked = folder / path.name.removesuffix(".zstd")
    try:
        with path.open("rb") as source, unpacked.open("wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
    except (OSError, zstandard.ZstdError) as error:
        raise InputError(f"the part cannot be unpacked: {error}", str(path)) from None
    return unpacked


def _numbers(path: Path) -> list[tuple[int, str]]:
    """Return a key that puts part 10 after part 9."""
    return [(int(n), "") if n.isdigit() else (-1, n) for n in re.split(r"(\d+)", path.name)]
