"""Copies between host and device, on a stream of their own, through pinned memory.

A slot of the staging ring is used again when the recording behind its last copy is complete and
whoever borrowed its content gave it back; reference counts play no part, because a copy that is
under way holds none (pytorch#130785). What comes to the host is an `Arrival`: its data can only be
had through a completed recording, so a result is never read before its copy has ended
(pytorch#86264). Small copies are packed, so that many cost one. Between two devices data goes
through the host. What a copy waited for may have failed: its event says so to whoever waits for it,
and the copies after it are none the worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from avrt.device.base import FOREVER_NS, BufferMisused, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.device.base import Buffer, Event
    from avrt.device.executor import Executor

ALIGNMENT_BYTES = 256
SLOTS = 8
SLOT_BYTES = 8 << 20


class Part(NamedTuple):
    """Some of a buffer, as a tensor."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32


@dataclass(slots=True)
class Slot:
    """A place of the ring: pinned memory and the event behind its last copy."""

    buffer: Buffer
    event: Event
    held: bool = False


class StagingRing:
    """Slots of pinned memory that are used in turn.

    Attributes:
        waits: how often the host had to wait for a slot's last copy.
    """

    def __init__(self, executor: Executor, slots: list[Slot]) -> None:
        self.waits = 0
        self._executor = executor
        self._slots = slots
        self._next = 0

    def take(self, timeout_ns: int = FOREVER_NS) -> Slot:
        """Return the next slot that nobody holds, after its last copy."""
        for _ in self._slots:
            slot = self._slots[self._next]
            self._next = (self._next + 1) % len(self._slots)
            if not slot.held:
                self._await(slot, timeout_ns)
                return slot
        raise WaitTimeout(f"all {len(self._slots)} staging slots are borrowed; release arrivals")

    def _await(self, slot: Slot, timeout_ns: int) -> None:
        mark = slot.event.mark
        if mark is None:
            return
        self.waits += not self._executor.query(slot.event)
        self._executor.await_mark(mark, timeout_ns)


class Arrival:
    """Data on its way to the host.

    Attributes:
        event: complete when the data is there.
    """

    def __init__(self, executor: Executor, slot: Slot, layout: list[tuple[int, Part]]) -> None:
        self.event = slot.event
        self._executor = executor
        self._slot = slot
        self._layout = layout

    def is_there(self) -> bool:
        """Return whether `wait` would return at once."""
        return self._executor.query(self.event)

    def wait(self, timeout_ns: int = FOREVER_NS) -> list[torch.Tensor]:
        """Return the data as tensors of their own; the slot is free then."""
        views = self.borrow(timeout_ns)
        taken = [view.clone() for view in views]
        self.release()
        return taken

    def borrow(self, timeout_ns: int = FOREVER_NS) -> list[torch.Tensor]:
        """Return the data in the slot, without a copy, until `release`."""
        if not self._slot.held:
            raise BufferMisused("the arrival was released")
        self._executor.synchronize(self.event, timeout_ns)
        return [
            self._slot.buffer.view(part.shape, part.dtype, offset) for offset, part in self._layout
        ]

    def release(self) -> None:
        """Give the slot back, whether or not the data was taken."""
        self._slot.held = False


class Transfers:
    """The copies of one executor.

    Attributes:
        stream: the stream of the copies.
        ring: the pinned memory that they go through.
        copies: how many copies across the link were queued.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        name: str = "transfers",
        slots: int = SLOTS,
        slot_bytes: int = SLOT_BYTES,
        priority: int = 0,
    ) -> None:
        self.executor = executor
        self.stream = executor.stream(name, priority=priority)
        self.copies = 0
        made = [
            Slot(executor.allocate(slot_bytes, self.stream, pinned=True), executor.event())
            for _ in range(slots)
        ]
        self.ring = StagingRing(executor, made)
        self._slot_bytes = slot_bytes

    def to_device(
        self, source: torch.Tensor, target: Buffer, *, after: Event | None = None
    ) -> Event:
        """Copy host memory, which may change afterwards, to `target` once `after` is complete.

        `after` is a recording behind the allocation of the target and its last use elsewhere.
        """
        size_bytes = source.numel() * source.element_size()
        self._check(size_bytes)
        if size_bytes > target.size_bytes:
            raise BufferMisused(f"{size_bytes} bytes into a buffer of {target.size_bytes}")
        slot = self.ring.take()
        slot.buffer.view(tuple(source.shape), source.dtype).copy_(source)
        return self._copy_in(slot, target, size_bytes, after)

    def send(self, sources: Sequence[torch.Tensor]) -> tuple[Buffer, list[torch.Tensor], Event]:
        """Copy several small tensors in one copy.

        Returns the device's buffer, which is the caller's to free, a view of it for each tensor,
        and the event behind which they may be used.
        """
        layout, size_bytes = _packed([(tuple(s.shape), s.dtype) for s in sources])
        self._check(size_bytes)
        slot = self.ring.take()
        for source, (offset, shape, dtype) in zip(sources, layout, strict=True):
            slot.buffer.view(shape, dtype, offset).copy_(source)
        target = self.executor.allocate(size_bytes, self.stream)
        event = self._copy_in(slot, target, size_bytes, None)
        views = [target.view(shape, dtype, offset) for offset, shape, dtype in layout]
        return target, views, event

    def to_host(self, *parts: Part, after: Event | None = None) -> Arrival:
        """Copy parts of buffers to the host in one copy, once `after` is complete."""
        layout, size_bytes = _packed([(part.shape, part.dtype) for part in parts])
        self._check(size_bytes)
        for part in parts:
            self.executor.pool.check(part.buffer)
        slot = self.ring.take()
        slot.held = True
        if after is not None:
            self.executor.wait(self.stream, after)
        offsets = [offset for offset, _, _ in layout]
        source = self._gathered(parts, offsets, size_bytes)
        self.executor.copy(slot.buffer, source, self.stream, size_bytes=size_bytes)
        if len(parts) > 1:
            self.executor.deallocate(source, self.stream)
        self._end(slot)
        return Arrival(self.executor, slot, list(zip(offsets, parts, strict=True)))

    def _gathered(self, parts: Sequence[Part], offsets: list[int], size_bytes: int) -> Buffer:
        """Return a buffer of the device that holds all parts."""
        if len(parts) == 1:
            return parts[0].buffer
        gathered = self.executor.allocate(size_bytes, self.stream)
        pairs = [
            (
                gathered.view(part.shape, part.dtype, offset),
                part.buffer.view(part.shape, part.dtype),
            )
            for offset, part in zip(offsets, parts, strict=True)
        ]
        reads = tuple(part.buffer for part in parts)
        self.executor.launch(
            self.stream, partial(_copy_all, pairs), reads=reads, writes=(gathered,), name="gather"
        )
        return gathered

    def _copy_in(self, slot: Slot, target: Buffer, size_bytes: int, after: Event | None) -> Event:
        if after is not None:
            self.executor.wait(self.stream, after)
        self.executor.copy(target, slot.buffer, self.stream, size_bytes=size_bytes)
        self._end(slot)
        return slot.event

    def _end(self, slot: Slot) -> None:
        """Record the end of a copy; an error before it ends with it."""
        self.copies += 1
        slot.event = self.executor.record(self.stream)
        self.executor.reset(self.stream)

    def _check(self, size_bytes: int) -> None:
        if not 0 < size_bytes <= self._slot_bytes:
            raise BufferMisused(f"a copy of {size_bytes} bytes; slots hold {self._slot_bytes}")


def copy_between(
    part: Part,
    source: Transfers,
    target: Buffer,
    onto: Transfers,
    *,
    after: Event | None = None,
    timeout_ns: int = FOREVER_NS,
) -> Event:
    """Copy from one device to another through the host, which waits for the first half."""
    arrival = source.to_host(part, after=after)
    try:
        return onto.to_device(arrival.borrow(timeout_ns)[0], target)
    finally:
        arrival.release()


def _packed(
    wanted: Sequence[tuple[tuple[int, ...], torch.dtype]],
) -> tuple[list[tuple[int, tuple[int, ...], torch.dtype]], int]:
    """Return where each tensor lies when they are put one behind the other, and the size."""
    layout = []
    offset = end = 0
    for shape, dtype in wanted:
        layout.append((offset, shape, dtype))
        end = offset + torch.Size(shape).numel() * dtype.itemsize
        offset = -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return layout, end


def _copy_all(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for target, source in pairs:
        target.copy_(source, non_blocking=True)
