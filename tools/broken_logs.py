"""What avrt reads of damaged MCAP files, beside what could be read of them.

    python tools/broken_logs.py FOLDER

FOLDER holds MCAP files, among them undamaged ones named `ok_*`, which the damaged ones were made
from. Each file is read in a process of its own, and has a row:

* exit: the code that a command ends with which reads it, 0 if nothing is wrong with it;
* delivered: the messages that came out;
* recoverable: those that no damage has reached. Of a file that was made from an `ok_*` file, these
  are the messages of its chunks and records of which every byte is there; of another one, what the
  reference reader (`mcap`) gives when it checks everything;
* altered: delivered messages that are in no undamaged file (topic, log time, hash of the payload);
* MB: memory at its highest above that of a process that has read nothing yet.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import NonSeekingReader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.msg import normalize_msgtype

from avrt.errors import InputError
from avrt.logs import open_log
from avrt.logs.extents import Extent, File
from avrt.logs.mcap.file import CHUNK, HEAD, MAGIC, MESSAGE, read_extent
from avrt.logs.ros.ros1 import ROS1

if TYPE_CHECKING:
    from collections.abc import Iterator

Key = tuple[str, int, str]
"""Topic, log time in ns, SHA-256 of the payload."""

CRC_OFFSET = CHUNK.size - 8
COLUMNS = "{:40} {:>4} {:>9} {:>11} {:>5} {:>7} {:>5}"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one file; see the module for the columns."""

    name: str
    exit: int
    delivered: int
    recoverable: int
    altered: int
    megabytes: float

    def text(self) -> str:
        equal = "yes" if self.delivered == self.recoverable else "NO"
        counts = (self.exit, self.delivered, self.recoverable, equal, self.altered)
        return COLUMNS.format(self.name, *counts, f"{self.megabytes:.1f}")


def table(folder: Path) -> list[Row]:
    """Return a row for each MCAP file of a folder, each read in a process of its own."""
    rows = []
    for path in sorted(folder.glob("*.mcap")):
        command = [sys.executable, __file__, str(folder), "--one", path.name]
        found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        rows.append(Row(**json.loads(found.stdout)))
    return rows


def row_of(path: Path) -> Row:
    """Read one file here, and judge it by the undamaged files beside it."""
    before = _peak_megabytes()
    delivered, code = read(path)
    megabytes = _peak_megabytes() - before
    good = recoverable(path)
    altered = (delivered - (good | _all_whole(path.parent))).total()
    return Row(path.stem, code, delivered.total(), good.total(), altered, megabytes)


def read(path: Path) -> tuple[Counter[Key], int]:
    """Return what avrt delivers of a log, and the exit code."""
    found: Counter[Key] = Counter()
    try:
        with open_log(path) as log:
            for message in log.messages():
                found[message.topic, message.log_ns, _hash(message.data)] += 1
    except InputError as error:
        return found, error.exit_code
    return found, 0


def recoverable(path: Path) -> Counter[Key]:
    """Return the messages of a file that no damage has reached."""
    data = path.read_bytes()
    for chunked in (True, False):  # a chunk's CRC decides over all of its messages
        found: Counter[Key] = Counter()
        for whole in sorted(path.parent.glob("ok_*.mcap")):
            pieces = [piece for piece in _pieces(whole) if piece.chunked == chunked]
            there = (piece.keys for piece in pieces if piece.data in data)
            found |= sum(there, Counter())
        if found:
            return found
    return _by_reference(path)


def _all_whole(folder: Path) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for path in folder.glob("ok_*.mcap"):
        found |= _by_reference(path)
    return found


class Piece(NamedTuple):
    """What must be whole for messages to be: a chunk from its CRC on, or a record outside them."""

    data: bytes
    keys: Counter[Key]
    chunked: bool


def _pieces(path: Path) -> Iterator[Piece]:
    data, topics = path.read_bytes(), _topics(path)
    file = File(path)
    offset = len(MAGIC)
    while offset + HEAD.size <= len(data):
        opcode, length = HEAD.unpack_from(data, offset)
        start, end = offset + HEAD.size, offset + HEAD.size + length
        if opcode == Opcode.CHUNK:
            content = read_extent(file, Extent(offset, HEAD.size + length, 0, 0))
            bodies = [
                content.data[a:b] for kind, a, b in content.records() if kind == Opcode.MESSAGE
            ]
            keys = Counter(_key(topics, body) for body in bodies)
            yield Piece(data[offset + CRC_OFFSET : end], keys, chunked=True)
        elif opcode == Opcode.MESSAGE:
            keys = Counter([_key(topics, memoryview(data)[start:end])])
            yield Piece(data[offset:end], keys, chunked=False)
        elif opcode == Opcode.DATA_END:
            break
        offset = end
    file.close()


def _topics(path: Path) -> dict[int, str]:
    with path.open("rb") as file:
        messages = NonSeekingReader(file).iter_messages(log_time_order=False)
        return {channel.id: channel.topic for _, channel, _ in messages}


def _key(topics: dict[int, str], body: memoryview) -> Key:
    channel, _, log_ns, _ = MESSAGE.unpack_from(body)
    return topics[channel], log_ns, _hash(body[MESSAGE.size :])


def _by_reference(path: Path) -> Counter[Key]:
    """Return what the reference reader gives of a file before it finds a fault.

    Messages of ROS 1 count as those of ROS 2 that avrt makes of them.
    """
    found: Counter[Key] = Counter()
    ros1 = get_typestore(Stores.ROS1_NOETIC)
    with path.open("rb") as file:
        try:
            reader = NonSeekingReader(file, validate_crcs=True)
            for schema, channel, message in reader.iter_messages(log_time_order=False):
                data: bytes | memoryview = message.data
                if schema is not None and channel.message_encoding == ROS1:
                    data = ros1.ros1_to_cdr(message.data, normalize_msgtype(schema.name))
                found[channel.topic, message.log_time, _hash(data)] += 1
        except (McapError, struct.error, OSError):  # it does not check every length
            pass
    return found


def _hash(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _peak_megabytes() -> float:
    """Return the most memory this program has held; `getrusage` would tell its parent's, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of MCAP files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(asdict(row_of(options.folder / options.one))))
        return
    print(COLUMNS.format("file", "exit", "delivered", "recoverable", "equal", "altered", "MB"))
    for row in table(options.folder):
        print(row.text())


if __name__ == "__main__":
    main()
