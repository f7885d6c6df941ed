"""Finds accesses to a buffer that nothing orders, from the calls of the host alone.

Every launch gets a number on its stream. A stream knows, for each other stream, the highest number
that is over before its own next work: a vector clock. `wait` joins what the recording knew, and a
wait of the host joins it into every stream, because whatever is launched afterwards comes later.
A read must know the last write, a write the last write and the reads since. Time plays no part, so
the verdict is the same on every device and in every run. This is the idea of PyTorch's CUDA
sanitizer (`torch/cuda/_sanitizer.py`), kept by block of memory, so that reuse of a block counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.device.base import Buffer, Mark, Stream

RACES_MAX = 1000
"""So many races are kept; the count goes on."""


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that nothing orders, as (stream, number of the launch on it)."""

    name: str
    access: tuple[str, int]
    earlier: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _History:
    """Who wrote a block last, and the latest read of each stream since."""

    writer: tuple[str, int] | None = None
    readers: dict[str, int] = field(default_factory=dict)


class OrderChecker:
    """Happens-before of all accesses of one executor.

    A history is kept with each block of memory and ends with it; clocks grow with streams only.
    """

    def __init__(self) -> None:
        self.races: list[Race] = []
        self.race_count = 0
        self._clocks: dict[str, dict[str, int]] = {}
        self._host: dict[str, int] = {}
        self._histories: dict[int, _History] = {}

    def launch(
        self, stream: Stream, name: str, reads: Iterable[Buffer], writes: Iterable[Buffer]
    ) -> None:
        """Note a launch and judge what it accesses."""
        clock = self._clock(stream.name)
        number = clock.get(stream.name, 0) + 1
        clock[stream.name] = number
        written = {id(buffer.storage) for buffer in writes}
        read = {id(buffer.storage) for buffer in reads} - written
        for block in sorted(read):
            self._read(block, name, stream.name, number)
        for block in sorted(written):
            self._write(block, name, stream.name, number)

    def record(self, stream: Stream, mark: Mark) -> None:
        """Let a recording know what is over at its place in the stream."""
        mark.seen = dict(self._clock(stream.name))

    def wait(self, stream: Stream, mark: Mark) -> None:
        """Let a stream know what a recording knew."""
        _join(self._clock(stream.name), mark.seen)

    def host_waited(self, mark: Mark) -> None:
        """Let all later work know what a recording knew."""
        _join(self._host, mark.seen)
        for clock in self._clocks.values():
            _join(clock, mark.seen)

    def forget(self, block: int) -> None:
        """Drop the history of memory that was given back; `block` is the id of its storage."""
        self._histories.pop(block, None)

    def _clock(self, stream: str) -> dict[str, int]:
        return self._clocks.setdefault(stream, dict(self._host))

    def _read(self, block: int, name: str, stream: str, number: int) -> None:
        history = self._histories.setdefault(block, _History())
        if history.writer is not None:
            self._judge(name, (stream, number), [history.writer])
        history.readers[stream] = number

    def _write(self, block: int, name: str, stream: str, number: int) -> None:
        history = self._histories.setdefault(block, _History())
        earlier = list(history.readers.items())
        if history.writer is not None:
            earlier.insert(0, history.writer)
        self._judge(name, (stream, number), earlier)
        history.writer = (stream, number)
        history.readers = {}

    def _judge(self, name: str, access: tuple[str, int], earlier: list[tuple[str, int]]) -> None:
        known = self._clocks[access[0]]
        unordered = tuple(one for one in earlier if known.get(one[0], 0) < one[1])
        if not unordered:
            return
        self.race_count += 1
        if len(self.races) < RACES_MAX:
            self.races.append(Race(name, access, unordered))


def _join(known: dict[str, int], more: Mapping[str, int]) -> None:
    for stream, number in more.items():
        if known.get(stream, 0) < number:
            known[stream] = number
