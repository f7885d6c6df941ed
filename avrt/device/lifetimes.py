"""Memory in stream order: who may have a freed block again, and after what.

A freed block carries, for each stream that used it, the recording behind which its last use lies.
It may be had again

- at once on a stream that alone used it: the stream itself orders old use and new;
- on any other only behind a wait for those recordings.

So a tensor that is freed while a side stream still copies it is never overwritten, whichever stream
frees it. Which block is taken never depends on how far a device has come: the same calls reuse the
same blocks on every device. Memory is held until its last work is over even when the bound is hit,
and a buffer whose handle was dropped is a leak that the statistics show, never memory reused early.

Debug mode fills freed memory with 0xA5, in stream order, so that a use that was missed shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from avrt.device.base import Buffer, BufferMisused, OutOfMemory

if TYPE_CHECKING:
    import torch

    from avrt.device.base import Mark, Stream

ALIGNMENT_BYTES = 256
POISON = 0xA5
BYTES_MAX = 1 << 40
WASTE_MAX = 2
"""A block is reused for a buffer at least this fraction of its size."""


class Steps(Protocol):
    """What the pool asks of the executor it belongs to."""

    def mark(self, stream: Stream) -> Mark: ...
    def wait_for(self, stream: Stream, mark: Mark) -> None: ...
    def await_all(self, marks: list[Mark]) -> None: ...
    def new_storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor: ...
    def fill(self, stream: Stream, storage: torch.Tensor, value: int) -> None: ...
    def given_back(self, storage: torch.Tensor) -> None: ...


@dataclass(slots=True)
class PoolStatistics:
    """What a pool did; `in_use` and `free` together are what it holds of the device."""

    bytes_in_use: int = 0
    bytes_in_use_max: int = 0
    bytes_free: int = 0
    buffers_in_use: int = 0
    allocations: int = 0
    reuses: int = 0
    reuse_waits: int = 0
    evictions: int = 0


@dataclass(slots=True)
class _Block:
    storage: torch.Tensor
    size_bytes: int
    pinned: bool
    marks: dict[str, Mark]


class Pool:
    """Buffers of one executor.

    Attributes:
        guarded: False makes the mutant that hands freed memory out at once; only for the tests that
            show that it is caught.
    """

    def __init__(self, steps: Steps, *, bytes_max: int = BYTES_MAX, debug: bool = False) -> None:
        self.statistics = PoolStatistics()
        self.guarded = True
        self._steps = steps
        self._bytes_max = bytes_max
        self._debug = debug
        self._free: list[_Block] = []
        self._live: dict[int, Buffer] = {}

    def allocate(self, size_bytes: int, stream: Stream, *, pinned: bool) -> Buffer:
        """Return a buffer of at least one byte that `stream` may use from here on."""
        if size_bytes < 1:
            raise BufferMisused(f"a buffer of {size_bytes} bytes")
        need_bytes = -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        block = self._take(need_bytes, stream, pinned=pinned)
        if block is None:
            block = self._make(need_bytes, pinned=pinned)
        elif self.guarded:
            self._wait_for(block, stream)
        buffer = Buffer(block.storage, size_bytes, self, pinned=pinned)
        buffer.users[stream.name] = stream
        self._live[id(buffer)] = buffer
        self._count_in_use(block.size_bytes, 1)
        return buffer

    def deallocate(self, buffer: Buffer, stream: Stream) -> None:
        """Take a buffer back; no use of it may be launched afterwards."""
        self.check(buffer)
        buffer.freed = True
        del self._live[id(buffer)]
        buffer.users[stream.name] = stream
        block = _Block(buffer.storage, buffer.storage.numel(), buffer.pinned, {})
        if self._debug:
            self._poison(block, buffer, stream)
        else:
            block.marks = {name: self._steps.mark(user) for name, user in buffer.users.items()}
        buffer.users = {}
        self._count_in_use(-block.size_bytes, -1)
        self.statistics.bytes_free += block.size_bytes
        self._free.append(block)

    def check(self, buffer: Buffer) -> None:
        """Raise for a buffer that may not be used; nothing has changed then."""
        if buffer.owner is not self:
            raise BufferMisused("the buffer belongs to another executor")
        if buffer.freed:
            raise BufferMisused("the buffer was freed")

    def trim(self) -> None:
        """Give all free memory back to the device; waits for its last work."""
        while self._free:
            self._evict()

    def _take(self, need_bytes: int, stream: Stream, *, pinned: bool) -> _Block | None:
        """Return the best free block: no wait rather than a wait, then the smallest, the oldest."""
        fitting = [
            (not block.marks.keys() <= {stream.name}, block.size_bytes, index)
            for index, block in enumerate(self._free)
            if block.pinned is pinned and need_bytes <= block.size_bytes <= WASTE_MAX * need_bytes
        ]
        if not fitting:
            return None
        block = self._free.pop(min(fitting)[2])
        self.statistics.bytes_free -= block.size_bytes
        self.statistics.reuses += 1
        return block

    def _wait_for(self, block: _Block, stream: Stream) -> None:
        for name, mark in block.marks.items():
            if name != stream.name:
                self.statistics.reuse_waits += 1
                self._steps.wait_for(stream, mark)

    def _make(self, size_bytes: int, *, pinned: bool) -> _Block:
        held = self.statistics
        if held.bytes_in_use + size_bytes > self._bytes_max:
            raise OutOfMemory(
                f"{size_bytes} bytes beside {held.bytes_in_use} in use, of {self._bytes_max}"
            )
        while held.bytes_in_use + held.bytes_free + size_bytes > self._bytes_max:
            self._evict()
        held.allocations += 1
        return _Block(self._steps.new_storage(size_bytes, pinned=pinned), size_bytes, pinned, {})

    def _evict(self) -> None:
        """Give the block that is free for longest back to the device, after its last work."""
        block = self._free.pop(0)
        self._steps.await_all(list(block.marks.values()))
        self.statistics.bytes_free -= block.size_bytes
        self.statistics.evictions += 1
        self._steps.given_back(block.storage)

    def _poison(self, block: _Block, buffer: Buffer, stream: Stream) -> None:
        for name, user in buffer.users.items():
            if name != stream.name:
                self._steps.wait_for(stream, self._steps.mark(user))
        self._steps.fill(stream, block.storage, POISON)
        block.marks = {stream.name: self._steps.mark(stream)}

    def _count_in_use(self, size_bytes: int, buffers: int) -> None:
        held = self.statistics
        held.bytes_in_use += size_bytes
        held.buffers_in_use += buffers
        held.bytes_in_use_max = max(held.bytes_in_use_max, held.bytes_in_use)
