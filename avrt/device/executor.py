"""The executor: the rules of `base` once, over whatever device it is given.

    executor = Executor(CpuDevice())            Executor(CudaDevice(0)), Executor(SimulatedDevice())
    camera, copies = executor.stream("camera"), executor.stream("copies")
    image = executor.allocate(size_bytes, camera)
    executor.launch(camera, network, image.view(shape), reads=(image,), name="network")
    executor.wait(copies, executor.record(camera))

One thread of the host calls it. A rejected call changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVarTuple

from avrt.device.base import (
    FOREVER_NS,
    BufferMisused,
    Event,
    Operation,
    Stream,
    StreamClosed,
)
from avrt.device.lifetimes import BYTES_MAX, Pool
from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from avrt.device.base import Buffer, Caps, Device, Kind, Mark
    from avrt.device.order import OrderChecker
    from avrt.device.timeline import HostActivity, Timeline

Ts = TypeVarTuple("Ts")

STREAMS_MAX = 1024
CLOSE_TIMEOUT_NS = 10 * 10**9


class Executor:
    """Streams, events, memory and copies on one device.

    Attributes:
        device: what does the work.
        pool: its buffers.
        checker: finds accesses that nothing orders, when given.
        timeline: records what ran when, when given.
    """

    def __init__(
        self,
        device: Device,
        *,
        bytes_max: int = BYTES_MAX,
        debug: bool = False,
        checker: OrderChecker | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.device = device
        self.kind: Kind = device.kind
        self.caps: Caps = device.caps
        self.checker = checker
        self.timeline = timeline
        self.pool = Pool(_PoolSteps(self), bytes_max=bytes_max, debug=debug)
        self._streams: dict[str, Stream] = {}
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stream(self, name: str, *, priority: int = 0, cpu: int | None = None) -> Stream:
        """Make a stream; `cpu` binds it to a core where the device has threads."""
        if name in self._streams:
            raise SpecError(f"there is a stream {name!r} already on {self.device.name}")
        if len(self._streams) == STREAMS_MAX:
            raise SpecError(f"more than {STREAMS_MAX} streams on {self.device.name}")
        if self._closed:
            raise StreamClosed(name)
        stream = self.device.stream(name, priority, cpu)
        self._streams[name] = stream
        return stream

    def event(self) -> Event:
        """Make an event that is complete until it is recorded."""
        return Event()

    def allocate(self, size_bytes: int, stream: Stream, *, pinned: bool = False) -> Buffer:
        """Return memory that `stream` may use from here on; its content is undefined."""
        self._check(stream)
        return self.pool.allocate(size_bytes, stream, pinned=pinned)

    def deallocate(self, buffer: Buffer, stream: Stream) -> None:
        """Free a buffer at this point of `stream`; the host does not wait."""
        self._check(stream)
        self.pool.deallocate(buffer, stream)

    def launch(
        self,
        stream: Stream,
        kernel: Callable[[*Ts], object],
        *args: *Ts,
        reads: tuple[Buffer, ...] = (),
        writes: tuple[Buffer, ...] = (),
        cost_ns: int = 0,
        name: str = "",
    ) -> None:
        """Queue a call of `kernel`; the buffers that it uses are named so that they stay alive."""
        self._check(stream, reads, writes)
        call = partial(kernel, *args) if args else kernel
        self._submit(stream, Operation(call, name, "compute", cost_ns), reads, writes)

    def copy(
        self, target: Buffer, source: Buffer, stream: Stream, *, size_bytes: int | None = None
    ) -> None:
        """Queue a copy of the first bytes of `source`, all that both hold by default."""
        self._check(stream, (source,), (target,))
        held_bytes = min(target.size_bytes, source.size_bytes)
        count = held_bytes if size_bytes is None else size_bytes
        if not 0 <= count <= held_bytes:
            raise BufferMisused(f"a copy of {count} bytes between buffers that hold {held_bytes}")
        call = partial(_copy, target.storage[:count], source.storage[:count])
        self._submit(stream, Operation(call, "copy", "copy", 0, count), (source,), (target,))

    def delay(self, stream: Stream, duration_ns: int, name: str = "delay") -> None:
        """Queue something that takes at least so long and does nothing."""
        self._check(stream)
        operation = self.device.delay(duration_ns)
        operation.name = name
        self._submit(stream, operation, (), ())

    def record(self, stream: Stream, event: Event | None = None, *, timing: bool = True) -> Event:
        """Record an event, a new one by default; it is complete when the stream comes here.

        Without `timing` it is cheaper on some devices, and `elapsed_ns` refuses it.
        """
        self._check(stream)
        event = event or Event()
        self._current(event)
        event.mark = self.mark(stream, timing=timing)
        event.owner = self
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Let what is queued from here on start after the current recording of the event."""
        self._check(stream)
        mark = self._current(event)
        if mark is not None:
            self.wait_for(stream, mark)

    def reset(self, stream: Stream) -> None:
        """Drop the error of a stream at this point of it; what was queued before stays skipped."""
        self._check(stream)
        self.device.reset(stream)

    def synchronize(self, what: Stream | Event, timeout_ns: int = FOREVER_NS) -> None:
        """Let the host wait, then raise what the stream failed with."""
        if isinstance(what, Stream):
            self._check(what)
            mark: Mark | None = self.mark(what, timing=False)
        else:
            mark = self._current(what)
        if mark is None:
            return
        self.await_mark(mark, timeout_ns)
        if mark.error is not None:
            raise mark.error

    def query(self, event: Event) -> bool:
        """Return whether an event is complete; orders nothing in the eyes of the checker."""
        mark = self._current(event)
        return mark is None or self.device.passed(mark)

    def elapsed_ns(self, start: Event, end: Event) -> int:
        """Return the time between two complete recordings."""
        first, last = self._current(start), self._current(end)
        if first is None or last is None:
            raise SpecError("elapsed_ns needs two events that were recorded")
        if not (self.device.passed(first) and self.device.passed(last)):
            raise SpecError("elapsed_ns needs two events that are complete")
        return self.device.elapsed_ns(first, last)

    def now_ns(self) -> int:
        """Return the host's time on the clock of this device, ns from an arbitrary zero point."""
        return self.device.now_ns()

    def report(self) -> dict[str, str]:
        """Return what the device and each stream got, for the conditions of a run."""
        return self.device.report()

    def close(self, timeout_ns: int = CLOSE_TIMEOUT_NS, *, drain: bool = True) -> list[str]:
        """End all streams after what is queued, or with `drain=False` after what is running.

        Work that is not run leaves its recordings complete, with StreamClosed. Returns the names of
        streams whose work did not end in time; they are left behind.
        """
        if self._closed:
            return []
        self._closed = True
        return self.device.close(timeout_ns, drain=drain)

    @contextmanager
    def preparing(self, name: str = "preparing") -> Iterator[None]:
        """Note on the timeline that the host prepares something."""
        with self._noting(name, "preparing"):
            yield

    def mark(self, stream: Stream, *, timing: bool = False) -> Mark:
        """Record without an event."""
        mark = self.device.record(stream, timing=timing)
        if self.checker is not None:
            self.checker.record(stream, mark)
        return mark

    def wait_for(self, stream: Stream, mark: Mark) -> None:
        """Wait for a recording that is current or not."""
        if self.checker is not None:
            self.checker.wait(stream, mark)
        if self.timeline is None or mark.stream == stream.name:
            self.device.wait(stream, mark)
            return
        start = self.device.record(stream, timing=True)
        self.device.wait(stream, mark)
        self.timeline.add(stream.name, mark.stream, "wait", start, self._timed_mark(stream))

    def await_mark(self, mark: Mark, timeout_ns: int = FOREVER_NS) -> None:
        """Let the host wait for a recording, whatever it carries."""
        with self._noting("waiting", "waiting"):
            self.device.await_mark(mark, timeout_ns)
        if self.checker is not None:
            self.checker.host_waited(mark)

    def _current(self, event: Event) -> Mark | None:
        """Return the current recording of an event, which is this executor's or nobody's."""
        if event.owner not in (None, self):
            raise SpecError("the event belongs to another executor; copies cross by `transfer`")
        return event.mark

    def _timed_mark(self, stream: Stream) -> Mark:
        return self.device.record(stream, timing=True)

    def _submit(
        self,
        stream: Stream,
        operation: Operation,
        reads: tuple[Buffer, ...],
        writes: tuple[Buffer, ...],
    ) -> None:
        for buffer in reads:
            buffer.users[stream.name] = stream
        for buffer in writes:
            buffer.users[stream.name] = stream
        if self.checker is not None:
            self.checker.launch(stream, operation.name, reads, writes)
        if self.timeline is None or self.timeline.is_full():
            self.device.submit(stream, operation)
            return
        with self._noting(operation.name, "launching"):
            start, end = self.device.submit_timed(stream, operation)
        self.timeline.add(stream.name, operation.name, operation.kind, start, end)

    @contextmanager
    def _noting(self, name: str, activity: HostActivity) -> Iterator[None]:
        if self.timeline is None:
            yield
            return
        start_ns = self.now_ns()
        try:
            yield
        finally:
            self.timeline.add_host(name, activity, start_ns, self.now_ns())

    def _check(
        self, stream: Stream, reads: tuple[Buffer, ...] = (), writes: tuple[Buffer, ...] = ()
    ) -> None:
        if self._closed:
            raise StreamClosed(stream.name)
        if self._streams.get(stream.name) is not stream:
            raise SpecError(f"stream {stream.name!r} belongs to another executor")
        for buffer in reads:
            self.pool.check(buffer)
        for buffer in writes:
            self.pool.check(buffer)


class _PoolSteps:
    """What the pool may ask of its executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def mark(self, stream: Stream) -> Mark:
        mark = self._executor.mark(stream)
        mark.tells = False
        return mark

    def wait_for(self, stream: Stream, mark: Mark) -> None:
        self._executor.wait_for(stream, mark)

    def await_all(self, marks: list[Mark]) -> None:
        for mark in marks:
            self._executor.await_mark(mark)

    def new_storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor:
        return self._executor.device.storage(size_bytes, pinned=pinned)

    def fill(self, stream: Stream, storage: torch.Tensor, value: int) -> None:
        self._executor.device.submit(stream, Operation(partial(storage.fill_, value), "poison"))

    def given_back(self, storage: torch.Tensor) -> None:
        if self._executor.checker is not None:
            self._executor.checker.forget(id(storage))


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    target.copy_(source, non_blocking=True)
