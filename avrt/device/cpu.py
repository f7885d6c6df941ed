"""The CPU as a device: a thread a stream, events that count host time, memory that is just memory.

A recording completes in the stream's thread and wakes whoever sleeps on it: each waiter brings a
lock of its own, so a recording that nobody waits for costs no lock at all. `pinned` memory is plain
memory. Priorities do nothing unless real-time ones are asked for (`realtime_priority`).
"""

from __future__ import annotations

import os
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

import torch

from avrt import clock
from avrt.device.base import Caps, Mark, Operation, Stream, WaitTimeout
from avrt.device.worker import THREADS_DEFAULT, CpuStream, WorkerSetup
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from avrt.device.base import Kind

TIMEOUT_NS_MAX = int(threading.TIMEOUT_MAX) * NS_PER_S


class CpuMark(Mark):
    """A recording that threads can sleep on."""

    __slots__ = ("_waiters", "owner")

    def __init__(self, stream: CpuStream) -> None:
        super().__init__(stream.name)
        self.owner = stream
        self._waiters: list[threading.Lock] = []

    def complete(self, at_ns: int, error: BaseException | None) -> None:
        """Wake all who sleep on this recording."""
        self.error = error
        self.at_ns = at_ns
        self.done = True
        while self._waiters:
            self._waiters.pop().release()

    def sleep(self, timeout_ns: int = -1) -> bool:
        """Sleep until it is complete; return whether it is."""
        if self.done:
            return True
        bell = threading.Lock()
        bell.acquire()
        self._waiters.append(bell)
        if self._is_done():  # in between, and the bell may have come too late to be rung
            return True
        return bell.acquire(
            timeout=-1 if timeout_ns < 0 else min(timeout_ns, TIMEOUT_NS_MAX) / NS_PER_S
        )

    def _is_done(self) -> bool:
        return self.done


class CpuDevice:
    """Streams on threads of this process.

    Attributes:
        realtime_priority: SCHED_FIFO priority of a stream of priority 0, to which a stream's own is
            added; None leaves threads with the ordinary scheduler.
    """

    kind: Kind = "cpu"
    name = "cpu"

    def __init__(
        self, *, threads: int = THREADS_DEFAULT, realtime_priority: int | None = None
    ) -> None:
        self.caps = Caps(
            compute_engines=len(os.sched_getaffinity(0)),
            copy_engines=0,
            pinned=False,
            priorities=(0, 0) if realtime_priority is None else (0, 99 - realtime_priority),
            kernels_on_host=True,
            clock="host",
        )
        self.realtime_priority = realtime_priority
        self._threads = threads
        self._streams: list[CpuStream] = []

    def stream(self, name: str, priority: int, cpu: int | None) -> CpuStream:
        """Start a stream's thread and wait until it has set itself up."""
        fifo = None
        if self.realtime_priority is not None:
            fifo = min(99, self.realtime_priority + priority)
        setup = WorkerSetup(threads=self._threads, cpu=cpu, priority=fifo)
        stream = CpuStream(name, setup, priority=priority)
        self._streams.append(stream)
        stream.ready()
        return stream

    def storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor:
        """Return memory, pinned or not; `(size_bytes,) uint8`."""
        del pinned
        return torch.empty(size_bytes, dtype=torch.uint8)

    def delay(self, duration_ns: int) -> Operation:
        """Return an operation that sleeps."""
        return Operation(partial(clock.take, SimpleQueue[None](), duration_ns))

    def submit(self, stream: Stream, operation: Operation) -> None:
        """Queue an operation."""
        _on_cpu(stream).submit(operation.call)

    def submit_timed(self, stream: Stream, operation: Operation) -> tuple[Mark, Mark]:
        """Queue an operation between two recordings."""
        start = self.record(stream, timing=True)
        self.submit(stream, operation)
        return start, self.record(stream, timing=True)

    def record(self, stream: Stream, *, timing: bool) -> Mark:
        """Queue the completion of a recording."""
        del timing
        worker = _on_cpu(stream)
        mark = CpuMark(worker)
        worker.submit_always(partial(_pass, mark))
        return mark

    def wait(self, stream: Stream, mark: Mark) -> None:
        """Queue a sleep of the stream's thread until the recording is complete."""
        _on_cpu(stream).submit_always(partial(_meet, stream, mark))

    def reset(self, stream: Stream) -> None:
        """Queue the end of the error."""
        _on_cpu(stream).reset()

    def passed(self, mark: Mark) -> bool:
        """Return whether a recording is complete."""
        return mark.done

    def await_mark(self, mark: Mark, timeout_ns: int) -> None:
        """Sleep until a recording is complete."""
        assert isinstance(mark, CpuMark)
        if not mark.done:
            mark.owner.check_process()
        if not mark.sleep(timeout_ns):
            raise WaitTimeout(f"stream {mark.stream} is not there after {timeout_ns} ns")

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        """Return the host time between two recordings."""
        return end.at_ns - start.at_ns

    def at_ns(self, mark: Mark) -> int:
        """Return the host time of a recording."""
        return mark.at_ns

    def now_ns(self) -> int:
        """Return host time."""
        return clock.now_ns()

    def report(self) -> dict[str, str]:
        """Return what each stream's thread got."""
        return {
            f"stream.{stream.name}": " ".join(f"{k}={v}" for k, v in stream.granted.items() if v)
            for stream in self._streams
        }

    def close(self, timeout_ns: int, *, drain: bool) -> list[str]:
        """End the threads; return the names of those that are still at work."""
        for stream in self._streams:
            if drain:
                stream.close()
            else:
                stream.give_up()
        until_ns = clock.now_ns() + timeout_ns
        left = [s for s in self._streams if not s.join(max(0, until_ns - clock.now_ns()))]
        for stream in left:
            stream.give_up()
        return [stream.name for stream in left]


def _on_cpu(stream: Stream) -> CpuStream:
    assert isinstance(stream, CpuStream)
    return stream


def _pass(mark: CpuMark) -> None:
    mark.complete(clock.now_ns(), mark.owner.error)


def _meet(stream: Stream, mark: Mark) -> None:
    assert isinstance(mark, CpuMark)
    mark.sleep()
    stream.meet(mark)
