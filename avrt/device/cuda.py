"""A CUDA device: the thin layer over `torch.cuda` that makes its streams and events follow `base`.

A kernel's function runs on the host at once and puts its work on the stream; what it raises there
is the stream's error. An error of CUDA itself loses the device for good: every stream fails with
it, and recovery is a new process. Three rules keep memory right without `Tensor.record_stream`,
whose reuse depends on timing and which holds memory during a capture (pytorch#158352):

- blocks come from torch's allocator on a stream of their own on which nothing ever runs, so no
  block arrives with somebody's work still on it;
- who may have a freed block again is decided by `lifetimes` alone;
- pinned memory too is given back after its last work, never by its reference count.

A tensor that a kernel allocates itself belongs to its stream: hand it to another by `copy`.
torch deals out 32 native streams a priority in turn; the 33rd is the first once more, and `report`
names streams that share one. `Stream.priority` counts upwards, CUDA's numbers downwards.
"""

from __future__ import annotations

from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

import torch

from avrt import clock
from avrt.device.base import (
    FOREVER_NS,
    Caps,
    Mark,
    Operation,
    OutOfMemory,
    Stream,
    StreamClosed,
    WaitTimeout,
)
from avrt.errors import HardwareFault, SpecError, raised_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.device.base import Kind

POLL_NS = 20_000
POLL_NS_MAX = 200_000
CALIBRATION_CYCLES = 20_000_000
DELAY_MARGIN = 1.25
"""A delay is so much longer than asked for: the clock may rise after the calibration."""


class CudaStream(Stream):
    """A stream of torch."""

    __slots__ = ("native",)

    def __init__(self, name: str, priority: int, native: torch.cuda.Stream) -> None:
        super().__init__(name, priority)
        self.native = native


class CudaMark(Mark):
    """A recording: one event of CUDA, never recorded again."""

    __slots__ = ("native", "timing")

    def __init__(self, stream: str, native: torch.cuda.Event, *, timing: bool) -> None:
        super().__init__(stream)
        self.native = native
        self.timing = timing


class CudaDevice:
    """Streams of one CUDA device.

    Attributes:
        lost: what CUDA failed with, or None; nothing runs afterwards.
    """

    kind: Kind = "cuda"

    def __init__(self, index: int = 0) -> None:
        if not torch.cuda.is_available():
            raise SpecError(f"no CUDA device: torch {torch.__version__} finds none; use cpu")
        count = torch.cuda.device_count()
        if not 0 <= index < count:
            raise SpecError(f"no CUDA device {index}: there are {count}, counted from 0")
        self.name = f"cuda:{index}"
        self.lost: BaseException | None = None
        self._where = torch.device("cuda", index)
        lowest, highest = torch.cuda.Stream.priority_range()  # type: ignore[call-arg]
        properties = torch.cuda.get_device_properties(index)
        self.caps = Caps(
            compute_engines=0,
            copy_engines=2,
            pinned=True,
            priorities=(0, lowest - highest),
            kernels_on_host=False,
            clock="host",
        )
        self._lowest = lowest
        self._description = f"{properties.name} {properties.total_memory >> 20} MiB"
        self._streams: list[CudaStream] = []
        self._memory = torch.cuda.Stream(device=self._where)
        self._ns_per_cycle = 0.0
        self.set_anchor()

    def stream(self, name: str, priority: int, cpu: int | None) -> CudaStream:
        """Make a stream; a priority beyond the device's range counts as the nearest."""
        del cpu
        low, high = self.caps.priorities
        native_priority = self._lowest - min(max(priority, low), high)
        native = torch.cuda.Stream(device=self._where, priority=native_priority)
        stream = CudaStream(name, priority, native)
        stream.error = self.lost
        self._streams.append(stream)
        return stream

    def storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor:
        """Return device memory, or pinned memory of the host; `(size_bytes,) uint8`."""
        made: list[torch.Tensor] = []
        error = raised_by(lambda: made.append(self._empty(size_bytes, pinned=pinned)))
        if error is not None:
            raise self._judge(error)
        return made[0]

    def delay(self, duration_ns: int) -> Operation:
        """Return an operation that keeps one block of the device busy."""
        if not self._ns_per_cycle:
            self._ns_per_cycle = self._calibrate()
        cycles = int(duration_ns * DELAY_MARGIN / self._ns_per_cycle)
        return Operation(partial(torch.cuda._sleep, cycles))  # noqa: SLF001 - there is no other

    def submit(self, stream: Stream, operation: Operation) -> None:
        """Call the function now, with its work put on the stream."""
        if stream.error is not None:
            return
        with torch.cuda.stream(_on_cuda(stream).native), torch.inference_mode():
            error = raised_by(operation.call)
        if error is not None:
            stream.fail(self._judge(error))

    def submit_timed(self, stream: Stream, operation: Operation) -> tuple[Mark, Mark]:
        """Call the function between two recordings."""
        start = self.record(stream, timing=True)
        self.submit(stream, operation)
        return start, self.record(stream, timing=True)

    def record(self, stream: Stream, *, timing: bool) -> Mark:
        """Record an event of CUDA."""
        native = torch.cuda.Event(enable_timing=timing, blocking=True)
        mark = CudaMark(stream.name, native, timing=timing)
        if self.lost is None:
            self._native_call(partial(native.record, _on_cuda(stream).native))
        mark.error = stream.error
        return mark

    def wait(self, stream: Stream, mark: Mark) -> None:
        """Let the stream wait on the device; the host goes on."""
        if self.lost is None:
            self._native_call(partial(_on_cuda(stream).native.wait_event, _native(mark)))
        stream.meet(mark)

    def reset(self, stream: Stream) -> None:
        """Drop an error of a kernel's function; a lost device stays lost."""
        stream.error = self.lost

    def passed(self, mark: Mark) -> bool:
        """Ask CUDA whether a recording is complete."""
        if not mark.done:
            passed: list[bool] = []
            if self.lost is None:
                self._native_call(lambda: passed.append(_native(mark).query()))
            self._settle(mark, done=self.lost is not None or passed == [True])
        return mark.done

    def await_mark(self, mark: Mark, timeout_ns: int) -> None:
        """Sleep until a recording is complete; ask in between when the time is limited."""
        if timeout_ns >= FOREVER_NS and not mark.done and self.lost is None:
            self._native_call(_native(mark).synchronize)
        until_ns = clock.now_ns() + timeout_ns
        pause_ns = POLL_NS
        while not self.passed(mark):
            if clock.now_ns() >= until_ns:
                raise WaitTimeout(f"stream {mark.stream} is not there after {timeout_ns} ns")
            clock.take(SimpleQueue[None](), pause_ns)
            pause_ns = min(2 * pause_ns, POLL_NS_MAX)

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        """Return the device's time between two recordings."""
        return _elapsed_ns(start, end)

    def at_ns(self, mark: Mark) -> int:
        """Return when a recording was passed, on the host's clock, through the anchor."""
        return self._anchor_ns + _elapsed_ns(self._anchor, mark)

    def set_anchor(self) -> None:
        """Tie the device's clock to the host's anew; 10 s away an instant is known to 1 us."""
        native = torch.cuda.Event(enable_timing=True)
        native.record(self._memory)
        native.synchronize()
        self._anchor = CudaMark("", native, timing=True)
        self._anchor_ns = clock.now_ns()

    def now_ns(self) -> int:
        """Return host time."""
        return clock.now_ns()

    def report(self) -> dict[str, str]:
        """Return what the device is, and the native priority of each stream."""
        about = {"device": self._description, "cuda": str(torch.version.cuda)}
        first: dict[int, str] = {}
        for stream in self._streams:
            handle = stream.native.cuda_stream
            shares = f" shares={first[handle]}" if handle in first else ""
            first.setdefault(handle, stream.name)
            about[f"stream.{stream.name}"] = f"priority={stream.native.priority}{shares}"
        return about

    def close(self, timeout_ns: int, *, drain: bool) -> list[str]:
        """Wait for what is queued on the device, which nothing can take back."""
        if not drain:
            for stream in self._streams:
                stream.fail(StreamClosed(stream.name))
        until_ns = clock.now_ns() + timeout_ns
        return [s.name for s in self._streams if not self._ends_by(s, until_ns)]

    def _ends_by(self, stream: CudaStream, until_ns: int) -> bool:
        mark = self.record(stream, timing=False)
        waited = raised_by(partial(self.await_mark, mark, max(0, until_ns - clock.now_ns())))
        return not isinstance(waited, WaitTimeout)

    def _empty(self, size_bytes: int, *, pinned: bool) -> torch.Tensor:
        if pinned:
            return torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
        with torch.cuda.stream(self._memory):
            return torch.empty(size_bytes, dtype=torch.uint8, device=self._where)

    def _calibrate(self) -> float:
        """Return ns a cycle of the device, measured once."""
        with torch.cuda.stream(torch.cuda.Stream(device=self._where)):
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
            for mark in marks:
                mark.record()
                torch.cuda._sleep(CALIBRATION_CYCLES)  # noqa: SLF001
        marks[2].synchronize()
        return float(marks[1].elapsed_time(marks[2])) * 1e6 / CALIBRATION_CYCLES

    def _settle(self, mark: Mark, *, done: bool) -> None:
        mark.done = done
        if done and mark.error is None:
            mark.error = self.lost

    def _native_call(self, call: Callable[[], object]) -> None:
        """Call CUDA; an error means that the device is lost."""
        error = raised_by(call)
        if isinstance(error, RuntimeError):
            self._lose(error)
        elif error is not None:
            raise error

    def _judge(self, error: BaseException) -> BaseException:
        """Return the error by whose fault it is; one of CUDA loses the device."""
        if isinstance(error, torch.OutOfMemoryError):
            return OutOfMemory(str(error).splitlines()[0])
        if isinstance(error, torch.AcceleratorError):
            return self._lose(error)
        return error

    def _lose(self, error: BaseException) -> BaseException:
        if self.lost is None:
            self.lost = HardwareFault("cuda", str(error).splitlines()[0])
            self.lost.__cause__ = error
        for stream in self._streams:
            stream.fail(self.lost)
        return self.lost


def _on_cuda(stream: Stream) -> CudaStream:
    assert isinstance(stream, CudaStream)
    return stream


def _native(mark: Mark) -> torch.cuda.Event:
    assert isinstance(mark, CudaMark)
    return mark.native


def _elapsed_ns(start: Mark, end: Mark) -> int:
    for mark in (start, end):
        if not (isinstance(mark, CudaMark) and mark.timing):
            raise SpecError("elapsed_ns needs events that were recorded with timing")
    return round(float(_native(start).elapsed_time(_native(end))) * 1e6)
