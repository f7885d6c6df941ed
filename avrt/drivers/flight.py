"""The flight recorder: always on, bounded, and on disk only around what went wrong.

It takes what a run record takes and keeps the last seconds of it in memory. When something goes
wrong (a miss, a fault, a device lost or back, another mode, a sensor out of use), these seconds
and those that follow are written as a record of their own. What goes wrong meanwhile prolongs it.
Everything is bounded: seconds and bytes kept, the length of a file, how many files a run may write;
incidents after that are counted. Files of earlier runs stay, and numbers go on behind theirs.

A flight record begins in the middle of a run, so it can be looked at and not verified.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from avrt.errors import AvrtError, FaultError
from avrt.exec.runner import guarded
from avrt.logs.record.run_record import NO_FORM, SENSORS, LeftOut
from avrt.metrics.incidents import INCIDENTS, told
from avrt.model.codec import decode
from avrt.model.commands import Record as RecordCommand
from avrt.model.guard import IN_USE, SensorRecord
from avrt.payload.size import size_bytes
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from avrt.logs.raw import RawMessage
    from avrt.logs.record.run_record import Record, RunRecord
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.message import Message

    Write: TypeAlias = Callable[[Record], object]

log = logging.getLogger("avrt.drivers")
NAME = re.compile(r"flight-([0-9]{1,9})-.*\.mcap")


@dataclass(frozen=True, slots=True)
class FlightLimits:
    """How much a flight recorder keeps and writes.

    Attributes:
        before_ns, after_ns: pipeline time around an incident.
        memory_bytes: of what is kept in memory, about.
        file_ns: pipeline time in one file at most.
        files: that one run writes at most.
    """

    before_ns: int = 5 * NS_PER_S
    after_ns: int = 5 * NS_PER_S
    memory_bytes: int = 256 << 20
    file_ns: int = 60 * NS_PER_S
    files: int = 20


class FlightRecorder:
    """Takes a run as a run record does, and writes only what is around incidents.

    Attributes:
        paths: the files written.
        unwritten: incidents that no file has, because the run had its share of files.
        failure: why a file could not be written, or "".
        left_out: by stage, outputs that could not be encoded, and why the first could not.
    """

    def __init__(
        self,
        folder: Path,
        zero_ns: int,
        create: Callable[[Path, str], RunRecord],
        limits: FlightLimits,
    ) -> None:
        """Write into a folder, which is made with the first file.

        `create` opens the record of an incident that is told in words; `zero_ns` is pipeline time
        zero in the clock of raw messages.
        """
        self._folder = folder
        self._zero_ns = zero_ns
        self._create = create
        self._limits = limits
        self._kept: deque[tuple[int, int, Write]] = deque()
        self._kept_bytes = 0
        self._file: RunRecord | None = None
        self._began_ns = 0
        self._until_ns = 0
        self._earlier = 0
        self.paths: list[Path] = []
        self.unwritten = 0
        self.failure = ""
        self.left_out = LeftOut()

    # What a run record takes

    def input(self, topic: str, raw: RawMessage) -> None:
        at_ns = raw.log_ns - self._zero_ns
        self._take(at_ns, len(raw.data), lambda record: record.input(topic, raw))

    def output(self, stage: str, message: Message[object]) -> bool:
        at_ns = message.stamp.publish_ns
        size = size_bytes(message.payload)
        self._take(at_ns, size, partial(self._output, stage, message))
        return True

    def journal(self, entry: str, at_ns: int) -> None:
        self._take(at_ns, len(entry), lambda record: record.journal(entry, at_ns))

    def note(self, topic: str, item: object, at_ns: int) -> None:
        self._take(at_ns, 0, lambda record: record.note(topic, item, at_ns))
        if topic == SENSORS:
            change = decode(SensorRecord, item)
            if change.state not in IN_USE:
                self._incident(at_ns, f"sensor {change.source} is {change.state}")

    # What goes wrong

    def watch(self, at_ns: int, _events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Look for an incident in a call of the kernel."""
        for command in commands:
            if isinstance(command, RecordCommand) and isinstance(command.record, INCIDENTS):
                self._incident(at_ns, told(command.record))
                return

    def close(self) -> None:
        """Finish the file that is being written."""
        if self._file is not None:
            self._attempt(self._file.close)
            self._file = None

    def _incident(self, at_ns: int, what: str) -> None:
        if self._file is None and not self._begin(at_ns, what):
            self.unwritten += 1
            return
        self._until_ns = min(at_ns + self._limits.after_ns, self._began_ns + self._limits.file_ns)

    def _begin(self, at_ns: int, what: str) -> bool:
        """Open a file with what is kept; return whether there is one."""
        if len(self.paths) >= self._limits.files or self.failure:
            return False
        if not self.paths:
            self._earlier = _next_number(self._folder)
        number = self._earlier + len(self.paths)
        path = self._folder / f"flight-{number:03}-{at_ns // 1_000_000}ms.mcap"
        log.warning("%s at %s: written to %s", what, format_ns(at_ns), path)
        self._attempt(partial(self._open, path, what))
        if self._file is None:
            return False
        self.paths.append(path)
        self._began_ns = self._kept[0][0] if self._kept else at_ns
        for _, _, write in self._kept:
            self._write(write)
        return self._file is not None

    def _open(self, path: Path, what: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = self._create(path, what)

    def _take(self, at_ns: int, size: int, write: Write) -> None:
        """Keep a piece, and write it if a file is open."""
        self._kept.append((at_ns, size, write))
        self._kept_bytes += size
        limits = self._limits
        while self._kept and (
            self._kept[0][0] < at_ns - limits.before_ns or self._kept_bytes > limits.memory_bytes
        ):
            self._kept_bytes -= self._kept.popleft()[1]
        if self._file is None:
            return
        if at_ns > self._until_ns:
            self.close()
        else:
            self._write(write)

    def _write(self, write: Write) -> None:
        if self._file is not None:
            self._attempt(partial(write, self._file))

    def _output(self, stage: str, message: Message[object], record: Record) -> None:
        """Write an output; one that cannot be encoded is counted, and the others go on."""
        done = guarded(lambda: record.output(stage, message), (OSError,))
        if done is not True:
            self.left_out.add(stage, done.detail if isinstance(done, FaultError) else NO_FORM)

    def _attempt(self, call: Callable[[], object]) -> None:
        """Write something; what cannot be written is told once, and nothing is after it."""
        try:
            call()
        except (OSError, AvrtError) as error:
            self.failure = str(error)
            log.error("the flight recorder gives up: %s", error)  # noqa: TRY400 - told, not traced
            self._file = None


def _next_number(folder: Path) -> int:
    """Return a number that no flight record in a folder has, nor any after it."""
    found = (NAME.fullmatch(path.name) for path in folder.glob("flight-*.mcap"))
    return 1 + max((int(name[1]) for name in found if name is not None), default=-1)
