"""A rosbag2: one or more parts, MCAP or SQLite, that are one log.

* The parts are those that `metadata.yaml` names, each once; where there is none or it is damaged,
  those that lie in the folder, by number. One that is named and missing is damage, and the others
  are read; the messages that it should hold count as lost.
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
from typing import TYPE_CHECKING, NamedTuple, Self

import zstandard

from avrt.errors import InputError
from avrt.logs.extents import File, times_by_topic
from avrt.logs.mcap.file import MAGIC
from avrt.logs.mcap.reader import McapReader
from avrt.logs.raw import Anomalies, Anomaly, RawMessage, TopicInfo, tell_damage
from avrt.logs.rosbag2.metadata import METADATA, Metadata, read_metadata
from avrt.logs.rosbag2.sqlite import SQLITE_MAGIC, SqliteReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

ENDINGS = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MESSAGE_BYTES_MAX = 1 << 32

Part = McapReader | SqliteReader


class _Broken(NamedTuple):
    """Where a part that is read strictly stops: after `log_ns` of a run."""

    run: int
    log_ns: int
    error: InputError


class Rosbag2Reader:
    """One open rosbag2."""

    def __init__(
        self,
        paths: Sequence[Path],
        place: Path,
        metadata: Metadata | None = None,
        damage: InputError | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """Open the parts of a bag.

        `metadata` may name parts that are not among them; `damage` is why there is none.

        Raises:
            InputError: no part can be read.
        """
        self._parts: list[Part] = []
        self._damage: dict[str, InputError] = {}
        self._anomalies = Anomalies()
        self._strict = strict
        self._unpacked = zstandard.ZstdDecompressor()
        self._promised: Mapping[str, int] = {}
        self._lost: set[str] = set()
        if damage is not None:
            self._note(damage)
        with ExitStack() as stack:
            there = {path.name for path in paths}
            for name in metadata.parts if metadata else ():
                if name not in there:
                    what = f"expected the part {name} that {METADATA} names, found none"
                    self._note(InputError(what, str(place / name)))
            for path in paths:
                try:
                    part = self._open_part(path, stack)
                    stack.callback(part.close)
                    self._parts.append(part)
                except InputError as error:
                    self._note(error)
            if not self._parts:
                raise next(iter(self._damage.values()))
            self._stack = stack.pop_all()
        if metadata is not None and any(a.kind == "damaged" for a in self.anomalies):
            self._promised = metadata.counts

    @property
    def format(self) -> str:
        kinds = " and ".join(sorted({part.format for part in self._parts}))
        parts = f", {len(self._parts)} parts" if len(self._parts) > 1 else ""
        return f"rosbag2 of {kinds}{parts}"

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
        for topic, count in self._promised.items():
            if topic in known:
                known[topic] = replace(known[topic], messages=max(count, known[topic].messages))
        return known

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        count = 0
        if self._strict:
            tell_damage(self._damage.values(), 0, strict=True)
        parts = (self._play(part, names) for part in self._parts)
        for message in merge(*parts, key=lambda message: (message.run, message.log_ns)):
            if isinstance(message, _Broken):
                tell_damage([message.error], count, strict=True)
                return
            count += 1
            yield message
        self._tell_lost(names)
        tell_damage(self._damage.values(), count, strict=self._strict)

    def log_times(self) -> dict[str, NDArray[np.int64]] | None:
        found = [times for part in self._parts if (times := part.log_times()) is not None]
        if len(found) < len(self._parts):
            return None
        return times_by_topic(entry for times in found for entry in times.items())

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _play(self, part: Part, names: set[str] | None) -> Iterator[RawMessage | _Broken]:
        run, reached_ns = 0, 0
        if isinstance(part, McapReader) and part.span_ns:
            reached_ns = part.span_ns[0]
        try:
            for message in part.messages(names):
                if message.data[:4] == ZSTD_MAGIC:
                    self._unpack(message)
                yield message
                run, reached_ns = message.run, message.log_ns
        except InputError as error:
            if self._strict:
                yield _Broken(run, reached_ns, error)
            self._damage.setdefault(error.place, error)  # the part's own anomalies tell it

    def _tell_lost(self, names: set[str] | None) -> None:
        """Tell how many messages are promised that no part that can be read tells of."""
        infos = [part.topics() for part in self._parts]
        for topic, count in self._promised.items():
            lost = count - sum(info[topic].messages for info in infos if topic in info)
            if lost > 0 and (names is None or topic in names) and topic not in self._lost:
                self._lost.add(topic)
                what = f"expected {lost} messages more than the parts that can be read tell of"
                self._anomalies.add("lost", topic, None, what, lost)

    def _unpack(self, message: RawMessage) -> None:
        try:
            message.data = self._unpacked.decompress(
                message.data, max_output_size=MESSAGE_BYTES_MAX
            )
        except (zstandard.ZstdError, MemoryError) as error:
            what = f"a message of {len(message.data)} bytes cannot be unpacked: {error}"
            if self._strict:
                raise message.error("a message that can be unpacked", str(error)) from None
            self._anomalies.add("undecodable", message.topic, message.log_ns, what)
            message.data = b""

    def _open_part(self, path: Path, stack: ExitStack) -> Part:
        file = File(path)
        magic = file.read_at(0, len(SQLITE_MAGIC))
        if magic.startswith(MAGIC):
            return McapReader(file, strict=self._strict)
        file.close()
        if magic == SQLITE_MAGIC:
            return SqliteReader(path, strict=self._strict)
        if magic.startswith(ZSTD_MAGIC):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="avrt-")))
            try:
                return self._open_part(self._unpack_part(path, folder), stack)
            except InputError as error:  # the user knows the part by its own name
                raise InputError(f"unpacked: {error.what}", str(path)) from None
        found = repr(magic) if magic else "an empty file"
        raise InputError(f"expected an MCAP or SQLite file, found {found}", str(path))

    def _unpack_part(self, path: Path, folder: Path) -> Path:
        """Unpack a part; of a damaged one, what precedes the damage."""
        unpacked = folder / path.name.removesuffix(".zstd")
        try:
            with path.open("rb") as source, unpacked.open("wb") as target:
                zstandard.ZstdDecompressor().copy_stream(source, target)
        except (OSError, zstandard.ZstdError) as error:
            self._note(InputError(f"the part cannot be unpacked: {error}", str(path)))
        return unpacked

    def _note(self, error: InputError) -> None:
        self._damage.setdefault(error.place, error)
        self._anomalies.add("damaged", None, None, str(error))


def is_bag(folder: Path) -> bool:
    """Whether a path is a folder with what a rosbag2 is made of."""
    if not folder.is_dir():
        return False
    return (folder / METADATA).exists() or any(p.name.endswith(ENDINGS) for p in folder.iterdir())


def open_bag(folder: Path, *, strict: bool = False) -> Rosbag2Reader:
    """Open a folder of a rosbag2.

    Raises:
        InputError: its parts are of two kinds, or none can be read.
    """
    found = sorted((p for p in folder.iterdir() if p.name.endswith(ENDINGS)), key=_numbers)
    damage = None
    try:
        metadata = read_metadata(folder)
    except InputError as error:
        metadata, damage = None, error
    if metadata is not None:
        paths = [path for name in metadata.parts if (path := folder / name).exists()]
        return Rosbag2Reader(paths, folder, metadata, strict=strict)
    if not found and damage is not None:
        raise damage
    if len({".db3" in path.name for path in found}) > 1:
        what = "expected parts of one kind, found both .db3 and .mcap; name the file to read"
        raise InputError(what, str(folder))
    return Rosbag2Reader(found, folder, damage=damage, strict=strict)


def _numbers(path: Path) -> list[tuple[int, str]]:
    """Return a key that puts part 10 after part 9."""
    return [(int(n), "") if n.isdigit() else (-1, n) for n in re.split(r"(\d+)", path.name)]
