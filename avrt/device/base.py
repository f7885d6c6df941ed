"""What runs work on a device: streams, events, memory, copies and time, in ten primitives.

The semantics are CUDA's, on every device:

- a stream is a FIFO; work of different streams is ordered by events only;
- an event that was never recorded is complete; `record` arms it anew; `wait` and `synchronize` mean
  the recording that is current when they are called, whatever is recorded later;
- memory is allocated and freed in stream order (`lifetimes`);
- the first error of a stream is kept: what follows on it is skipped, and its recordings carry the
  error to whoever waits for them, until `reset`, which is a step of the stream like any other.

`HardwareExecutor` is what others call. A device supplies the smaller `Device`, and
`executor.Executor` makes the one from the other, so that the rules above exist once. Whoever adds a
device writes a `Device` and runs `avrt.device.conformance` on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypeVarTuple

import torch

from avrt.errors import OUT_OF_MEMORY, SoftwareFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Ts = TypeVarTuple("Ts")

Kind = Literal["cpu", "cuda", "simulated"]
OperationKind = Literal["compute", "copy"]

NOTHING: Mapping[str, int] = MappingProxyType({})
FOREVER_NS = 3600 * 10**9
"""The longest wait there is: one hour."""


class StreamPoisoned(SoftwareFault):
    """A stream waited for a recording that carries an error; `__cause__` is that error."""

    def __init__(self, stream: str, cause: BaseException) -> None:
        super().__init__("stream_poisoned", f"stream {stream} waited for work that failed: {cause}")
        self.__cause__ = cause


class WaitTimeout(SoftwareFault):
    """The host waited in vain: the time was up, or nothing that could run was left."""

    def __init__(self, detail: str) -> None:
        super().__init__("wait_timeout", detail)


class StreamClosed(SoftwareFault):
    """The stream was closed before this work could run."""

    def __init__(self, stream: str) -> None:
        super().__init__("stream_closed", f"stream {stream} is closed")


class OutOfMemory(SoftwareFault):
    """The device, or the bound that it was given, has no room for a buffer."""

    def __init__(self, detail: str) -> None:
        super().__init__(OUT_OF_MEMORY, detail)


class BufferMisused(RuntimeError):  # noqa: N818 - a bug of the caller, told as what was done
    """A buffer was freed twice, used after it was freed, or used on another executor."""


class ForkedProcess(RuntimeError):  # noqa: N818 - a bug of the caller, told as what was done
    """A forked child called a device of its parent; threads and CUDA do not survive a fork."""


@dataclass(frozen=True, slots=True)
class Caps:
    """What a device can do.

    Attributes:
        compute_engines: how many kernels of different streams can run at once; 0 is unknown.
        copy_engines: how many copies can run beside them; 0 when copies take compute engines.
        pinned: whether `pinned` memory differs from other host memory.
        priorities: lowest and highest priority of a stream that make a difference.
        kernels_on_host: whether a kernel's function runs on a thread of this host, in stream order.
        clock: what `now_ns` and the times of recordings count.
    """

    compute_engines: int
    copy_engines: int
    pinned: bool
    priorities: tuple[int, int]
    kernels_on_host: bool
    clock: Literal["host", "virtual"]


class Stream:
    """A FIFO of work on a device.

    Attributes:
        name: its own among the streams of an executor.
        priority: higher goes first; 0 is the lowest.
        error: the first error since the last reset, or None; on a device with threads it may
            become known later, `synchronize` tells it in any case.
    """

    __slots__ = ("error", "name", "priority")

    def __init__(self, name: str, priority: int = 0) -> None:
        self.name = name
        self.priority = priority
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Keep the first error."""
        if self.error is None:
            self.error = error

    def meet(self, mark: Mark) -> None:
        """Take over the error of a recording that this stream waited for."""
        if mark.error is not None and mark.tells:
            self.fail(StreamPoisoned(self.name, mark.error))


class Mark:
    """One recording of an event, or of a freed block: a point in a stream.

    Attributes:
        stream: name of the stream.
        done: whether the device has passed it, as far as is known.
        at_ns: when it did, on the executor's clock; 0 before.
        error: what the stream had failed with by then.
        tells: whether a stream that waits takes the error over; False where only memory is handed
            on, which is as good as any.
        seen: work that is known to be over at this point (`order`).
    """

    __slots__ = ("at_ns", "done", "error", "seen", "stream", "tells")

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.done = False
        self.at_ns = 0
        self.error: BaseException | None = None
        self.tells = True
        self.seen: Mapping[str, int] = NOTHING


@dataclass(slots=True)
class Event:
    """Something to wait for: its latest recording, complete as long as there is none."""

    mark: Mark | None = None
    owner: object = None


class Buffer:
    """A handle on memory of a device.

    Make views before a kernel is launched: the handle is only the host's, and it may be freed
    before the kernel runs.
    """

    __slots__ = ("freed", "owner", "pinned", "size_bytes", "storage", "users")

    def __init__(
        self, storage: torch.Tensor, size_bytes: int, owner: object, *, pinned: bool = False
    ) -> None:
        """Take the memory: `storage: (S,) uint8`, S at least `size_bytes`."""
        self.storage = storage
        self.size_bytes = size_bytes
        self.owner = owner
        self.pinned = pinned
        self.freed = False
        self.users: dict[str, Stream] = {}

    def view(
        self, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, offset_bytes: int = 0
    ) -> torch.Tensor:
        """Return the memory from `offset_bytes` on as a tensor; it shares the memory."""
        size_bytes = torch.Size(shape).numel() * dtype.itemsize
        if offset_bytes + size_bytes > self.size_bytes:
            raise BufferMisused(
                f"a view of {offset_bytes + size_bytes} bytes of a buffer of {self.size_bytes}"
            )
        return self.storage[offset_bytes : offset_bytes + size_bytes].view(dtype).view(shape)


@dataclass(slots=True)
class Operation:
    """What a stream has to do: call `call`.

    Attributes:
        cost_ns: how long it takes on a device that only simulates time.
        size_bytes: of a copy, from which such a device may derive its cost.
    """

    call: Callable[[], object]
    name: str = ""
    kind: OperationKind = "compute"
    cost_ns: int = 0
    size_bytes: int = 0


class Device(Protocol):
    """What a device has to supply; only `Executor` calls it, from one thread at a time.

    `submit`, `submit_timed`, `record`, `wait` and `reset` are steps of a stream, in the order of
    the calls. `submit_timed` returns the start and the end of the operation. `await_mark` raises
    WaitTimeout. `close` returns the names of streams that did not end in time.
    """

    kind: Kind
    name: str
    caps: Caps

    def stream(self, name: str, priority: int, cpu: int | None) -> Stream: ...
    def storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor: ...
    def delay(self, duration_ns: int) -> Operation: ...
    def submit(self, stream: Stream, operation: Operation) -> None: ...
    def submit_timed(self, stream: Stream, operation: Operation) -> tuple[Mark, Mark]: ...
    def record(self, stream: Stream, *, timing: bool) -> Mark: ...
    def wait(self, stream: Stream, mark: Mark) -> None: ...
    def reset(self, stream: Stream) -> None: ...
    def passed(self, mark: Mark) -> bool: ...
    def await_mark(self, mark: Mark, timeout_ns: int) -> None: ...
    def elapsed_ns(self, start: Mark, end: Mark) -> int: ...
    def at_ns(self, mark: Mark) -> int: ...
    def now_ns(self) -> int: ...
    def report(self) -> dict[str, str]: ...
    def close(self, timeout_ns: int, *, drain: bool) -> list[str]: ...


class HardwareExecutor(Protocol):
    """Where work runs: the ten primitives, and the host's clock beside them."""

    kind: Kind
    caps: Caps

    def stream(self, name: str, *, priority: int = 0, cpu: int | None = None) -> Stream: ...
    def event(self) -> Event: ...
    def allocate(self, size_bytes: int, stream: Stream, *, pinned: bool = False) -> Buffer: ...
    def deallocate(self, buffer: Buffer, stream: Stream) -> None: ...
    def copy(
        self, target: Buffer, source: Buffer, stream: Stream, *, size_bytes: int | None = None
    ) -> None: ...
    def launch(
        self,
        stream: Stream,
        kernel: Callable[[*Ts], object],
        *args: *Ts,
        reads: tuple[Buffer, ...] = (),
        writes: tuple[Buffer, ...] = (),
        cost_ns: int = 0,
        name: str = "",
    ) -> None: ...
    def record(self, stream: Stream, event: Event | None = None) -> Event: ...
    def wait(self, stream: Stream, event: Event) -> None: ...
    def synchronize(self, what: Stream | Event, timeout_ns: int = FOREVER_NS) -> None: ...
    def query(self, event: Event) -> bool: ...
    def now_ns(self) -> int: ...
