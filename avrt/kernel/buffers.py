"""Which messages somebody may still read, so that the kernel can say when a buffer is free.

A hold is one reason to keep a buffer: a consumer's sampled slot, an open synchronised set, an
activation whose work may still read it, a decision not published yet, the recorder. When the last
hold goes, `Reclaim` is emitted. Handles, never objects: nothing is counted across processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.commands import Command, Reclaim

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True, eq=False)
class Buffer:
    """A live message as the kernel sees it.

    Attributes:
        producer: the source or stage that made it.
        capture_ns: mapped capture time.
        heads: by chain number, when the head of that chain captured what this message rests on
            along the chain's path.
        planned_ns: when consumers were to read it by plan, under policy "table".
    """

    handle: int
    producer: str
    capture_ns: int
    heads: Mapping[int, int]
    holds: int = 1
    planned_ns: int = 0


class Buffers:
    """All live buffers by handle."""

    def __init__(self, recorded: frozenset[str]) -> None:
        self.recorded = recorded
        self._live: dict[int, Buffer] = {}
        self._unread: set[int] = set()

    def is_live(self, handle: int) -> bool:
        return handle in self._live

    def is_unread(self, handle: int) -> bool:
        """Whether the reader outside the graph still holds this buffer."""
        return handle in self._unread

    def make(self, handle: int, producer: str, capture_ns: int, heads: Mapping[int, int]) -> Buffer:
        """Register a new message with one hold, which the caller drops when it is placed."""
        assert handle not in self._live
        buffer = Buffer(handle, producer, capture_ns, heads)
        self._live[handle] = buffer
        return buffer

    def show_to_reader(self, buffer: Buffer) -> None:
        """Add the outside reader's hold, if it reads this producer; `read` ends it."""
        if buffer.producer in self.recorded:
            buffer.holds += 1
            self._unread.add(buffer.handle)

    def read(self, handle: int, out: list[Command]) -> None:
        self._unread.discard(handle)
        self.drop(self._live[handle], out)

    def drop(self, buffer: Buffer, out: list[Command]) -> None:
        """End one hold."""
        buffer.holds -= 1
        assert buffer.holds >= 0
        if buffer.holds == 0:
            del self._live[buffer.handle]
            out.append(Reclaim(buffer.handle))
