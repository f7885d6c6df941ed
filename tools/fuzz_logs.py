"""Damaged logs by the thousand: whatever is done to a file, avrt reads it or says what is wrong.

    python tools/fuzz_logs.py [--count 20000] [--seed 0] [--keep FOLDER]

Small MCAP, SQLite and ROS 1 files are made here, with and without check sums, index and summary.
Each copy of one gets one to three edits: bits flipped, bytes or lengths overwritten, a part cut
off, cut out, repeated, or put in from another file. Copies that reach lines of `avrt.logs` which
none has reached become the source of further ones. For each of them it holds that

1. reading raises nothing but `InputError`, takes `CPU_S_MAX` and `MEGABYTES_MAX` at most;
2. what is lost is told: without an error or an anomaly, as many messages come out as went in;
3. what is altered is not delivered: topic, time and payload are those of a message that went in;
4. read strictly, the same begins to come out, and it ends with an error where it did before.

Rule 3 holds of what a check sum covers: whole chunks of MCAP files that have their CRC. No format
says which bytes of a message without a check sum are right: those of MCAP outside of chunks or in
the chunk that a file ends in, of SQLite, and of ROS 1 bags. Rule 2 holds where the file says in two
places how many messages there are: MCAP's statistics or message index, a bag's index, SQLite's
index of times; and for one edit of a file, unless its summary has a CRC: several may change both.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import numpy as np
from log_seeds import Key, Seed, key_of, make_seeds

import avrt.logs
from avrt.errors import InputError, raised_by
from avrt.logs import open_log
from avrt.logs.extents import File
from avrt.logs.mcap.file import CHUNK
from avrt.logs.mcap.layout import find_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

    Trace = Callable[[FrameType, str, object], "Trace | None"]

CPU_S_MAX = 5.0
MEGABYTES_MAX = 200
EDITS_MAX = 3
LENGTHS = (0, 1, 255, 1 << 16, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 64) - 1)
PACKAGE = str(Path(avrt.logs.__file__).parent)


class Hang(BaseException):
    """Reading a file took more than `CPU_S_MAX`."""


@dataclass(slots=True)
class Reading:
    """What came out of a file."""

    messages: list[Key] = field(default_factory=list)
    told: bool = False
    raised: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A copy that breaks a rule."""

    rule: str
    seed: str
    index: int
    data: bytes


class Lines:
    """The lines of `avrt.logs` that were reached; a function that is known runs untraced."""

    def __init__(self) -> None:
        self.reached: set[tuple[str, int]] = set()
        self._left: dict[CodeType, set[int]] = {}

    def more(self, call: Callable[[], None]) -> bool:
        """Call it and return whether it reached lines that nothing had reached."""
        before, tracer = len(self.reached), sys.gettrace()
        sys.settrace(self._on_call)
        try:
            call()
        finally:
            sys.settrace(tracer)
        return len(self.reached) > before

    def _on_call(self, frame: FrameType, _event: str, _given: object) -> Trace | None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return None
        if code not in self._left:
            self._left[code] = {line for _, _, line in code.co_lines() if line is not None}
        return self._on_line if self._left[code] else None

    def _on_line(self, frame: FrameType, event: str, _given: object) -> Trace:
        if event == "line":
            self._left[frame.f_code].discard(frame.f_lineno)
            self.reached.add((frame.f_code.co_filename, frame.f_lineno))
        return self._on_line


class Editor:
    """Makes damaged copies."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        changes = self._flip_bits, self._set_bytes, self._set_length
        self._edits = (*changes, self._cut_off, self._cut_out, self._repeat, self._put_in)

    def edited(self, data: bytes, other: bytes) -> tuple[bytes, int]:
        """Return a copy and how many edits it has; `other` is where parts may come from."""
        count = 1 + self._below(EDITS_MAX)
        for _ in range(count):
            edit = self._edits[self._below(len(self._edits))]
            data = bytes(edit(bytearray(data or b"\0"), other))
        return data, count

    def _below(self, end: int) -> int:
        return int(self._random.integers(max(1, end)))

    def _part(self, data: bytes | bytearray) -> tuple[int, int]:
        """Return a part of a file; short ones are as likely as long ones."""
        start = self._below(len(data))
        return start, start + 1 + self._below(2 ** (1 + self._below(len(data).bit_length())))

    def _flip_bits(self, data: bytearray, _: bytes) -> bytearray:
        for _again in range(2 ** self._below(4)):
            data[self._below(len(data))] ^= 1 << self._below(8)
        return data

    def _set_bytes(self, data: bytearray, _: bytes) -> bytearray:
        start, end = self._part(data)
        size = min(end, len(data)) - start
        fills = (bytes(size), b"\xff" * size, self._random.bytes(size))
        data[start : start + size] = fills[self._below(len(fills))]
        return data

    def _set_length(self, data: bytearray, _: bytes) -> bytearray:
        """Overwrite what may be a length, or change it by a little."""
        start, size = self._below(len(data)), (1, 2, 4, 8)[self._below(4)]
        order: Literal["little", "big"] = "little" if self._below(2) else "big"
        value = int.from_bytes(data[start : start + size], order)
        near = value + self._below(9) - 4
        value = near if self._below(2) else LENGTHS[self._below(len(LENGTHS))]
        data[start : start + size] = (value % (1 << 8 * size)).to_bytes(size, order)
        return data

    def _cut_off(self, data: bytearray, _: bytes) -> bytearray:
        return data[: self._below(len(data))]

    def _cut_out(self, data: bytearray, _: bytes) -> bytearray:
        start, end = self._part(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytearray, _: bytes) -> bytearray:
        start, end = self._part(data)
        return data[:end] + data[start:]

    def _put_in(self, data: bytearray, other: bytes) -> bytearray:
        start, end = self._part(other)
        place = self._below(len(data))
        return data[:place] + other[start:end] + data[place + self._below(2) * (end - start) :]


def read(path: Path, reading: Reading, *, strict: bool = False) -> None:
    """Read a file to its end, whatever becomes of it."""

    def read_all() -> None:
        with open_log(path, strict=strict) as log:
            try:
                for message in log.messages():
                    reading.messages.append(key_of(message.topic, message.log_ns, message.data))
            finally:
                log.topics()
                reading.told = bool(log.anomalies)

    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MAX)
    reading.raised = raised_by(read_all)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def broken_rule(seed: Seed, path: Path, edits: int, reading: Reading) -> str:
    """Return the rule that a copy breaks and how; empty when it breaks none."""
    raised = reading.raised
    if raised is not None and not isinstance(raised, InputError):
        frames = traceback.extract_tb(raised.__traceback__)
        places = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if PACKAGE in f.filename]
        return f"1: {type(raised).__name__} at {places[-1:]}: {raised}"
    told = reading.told or raised is not None
    found, expected = Counter(reading.messages), seed.messages
    altered = found.keys() - expected.keys()
    if altered and seed.checked and _all_vouched_for(path):
        return f"3: {len(altered)} altered messages, {told=}"
    if told or not seed.counted or not (edits == 1 or seed.has_summary_of(path)):
        return ""
    if found.total() != expected.total():
        return f"2: {found.total()} of {expected.total()} messages, and nothing told"
    return ""


def strict_rule(path: Path, tolerant: Reading) -> str:
    """Return how a file is read strictly, if not as it should be."""
    strict = Reading()
    read(path, strict, strict=True)
    count = len(strict.messages)
    if strict.messages != tolerant.messages[:count]:
        return f"4: the first {count} messages are others when read strictly"
    raised = [reading.raised is not None for reading in (tolerant, strict)]
    if len(set(raised)) > 1 or not isinstance(strict.raised, InputError | None):
        return f"4: raised {tolerant.raised!r}, and read strictly {strict.raised!r}"
    return ""


def _all_vouched_for(path: Path) -> bool:
    """Whether all messages of an MCAP file are in whole chunks with a CRC."""
    file = File(path)
    extents = find_layout(file).extents
    crcs = [file.read_at(e.offset + CHUNK.size - 8, 4) for e in extents if e.chunked and not e.cut]
    file.close()
    return len(crcs) == len(extents) and all(map(any, crcs))


def fuzz(count: int, seed: int, folder: Path, lines: Lines) -> Iterator[Finding]:
    """Yield what breaks a rule among so many copies; lines that are reached go into `lines`."""
    signal.signal(signal.SIGVTALRM, _give_up)
    random = np.random.default_rng(seed)
    editor = Editor(random)
    pool = [(each, each.data, 0) for each in make_seeds(folder)]
    for index in range(count):
        original, data, before = pool[int(random.integers(len(pool)))]
        others = [d for s, d, _ in pool if s.ending == original.ending]
        copy, edits = editor.edited(data, others[int(random.integers(len(others)))])
        path = folder / f"copy{original.ending}"
        path.write_bytes(copy)
        reading = Reading()
        _forget_peak()
        held = _megabytes("VmRSS")
        if lines.more(partial(read, path, reading)):
            pool.append((original, copy, before + edits))
        rule = broken_rule(original, path, before + edits, reading) or strict_rule(path, reading)
        if not rule and _megabytes("VmHWM") - held > MEGABYTES_MAX:
            rule = f"1: {_megabytes('VmHWM') - held:.0f} MB"
        if rule:
            yield Finding(rule, original.name, index, copy)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _megabytes(which: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(rf"{which}:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def _give_up(_signal: int, _frame: object) -> None:
    raise Hang(f"more than {CPU_S_MAX:g} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="damaged copies to read")
    parser.add_argument("--seed", type=int, default=0, help="of the random edits")
    parser.add_argument("--keep", type=Path, help="a folder for the copies that break a rule")
    options = parser.parse_args()
    told: Counter[str] = Counter()
    lines = Lines()
    with TemporaryDirectory(prefix="avrt-fuzz-") as name:
        for found in fuzz(options.count, options.seed, Path(name), lines):
            told[found.rule] += 1
            if told[found.rule] > 1:
                continue
            print(f"copy {found.index} of {found.seed}: rule {found.rule}", flush=True)
            if options.keep is not None:
                (options.keep / f"{found.index}-{found.seed}").write_bytes(found.data)
    reached = f"{len(lines.reached)} lines of avrt.logs reached"
    print(f"{options.count} copies, {told.total()} break a rule; {reached}")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
