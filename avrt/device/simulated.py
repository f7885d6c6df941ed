"""A device in virtual time: what it computes is right, how long that takes is given.

The host's clock goes forward by `launch_ns` for each call and by nothing else; when the host waits,
or asks, the device catches up. Each stream is a FIFO; its first step starts when the stream, the
host's call and a free engine are there. Among steps that could start at the same instant the
stream of the higher priority goes first, then the older stream. A kernel's function is called at
its virtual start, so results are right and what it raises is the stream's error.

`slow(name)` gives a factor on an operation's cost, `fault(name)` what it fails with; `HANG` never
ends. When the host waits for something that nothing left can bring about, that is told at once.
The same calls give the same log in every run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from avrt.device.base import Caps, Mark, Operation, Stream, StreamClosed, WaitTimeout
from avrt.errors import SoftwareFault, raised_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.device.base import Kind, OperationKind

LAUNCH_NS = 5_000
BYTES_PER_US = 12_000
LOG_MAX = 100_000


class Hang(SoftwareFault):
    """An operation that never ends."""


HANG = Hang("hang", "the operation never ends")


class Ran(NamedTuple):
    """An operation that was executed, in virtual time."""

    stream: str
    name: str
    start_ns: int
    end_ns: int


class _Step(NamedTuple):
    called_ns: int
    kind: Literal["operation", "record", "wait", "reset"]
    operation: Operation | None = None
    mark: Mark | None = None
    end: Mark | None = None


class SimulatedStream(Stream):
    """A FIFO of steps in virtual time."""

    __slots__ = ("at_ns", "hung", "steps")

    def __init__(self, name: str, priority: int) -> None:
        super().__init__(name, priority)
        self.steps: deque[_Step] = deque()
        self.at_ns = 0
        self.hung = False


@dataclass(frozen=True, slots=True)
class Costs:
    """How long things take.

    Attributes:
        launch_ns: of the host, for each call.
        bytes_per_us: how fast copies are.
        by_name: of operations by name, before what the launch said.
    """

    launch_ns: int = LAUNCH_NS
    bytes_per_us: int = BYTES_PER_US
    by_name: Mapping[str, int] | None = None


def no_fault(_name: str) -> BaseException | None:
    """Let every operation succeed."""
    return None


def usual_speed(_name: str) -> float:
    """Let every operation take what it costs."""
    return 1.0


class SimulatedDevice:
    """Streams in virtual time.

    Attributes:
        log: what was executed, in order; the first LOG_MAX.
        fault: from an operation's name to what it fails with, or None.
        slow: from an operation's name to a factor on its cost.
    """

    kind: Kind = "simulated"

    def __init__(
        self,
        *,
        engines: int = 2,
        copy_engines: int = 1,
        costs: Costs | None = None,
        name: str = "simulated",
    ) -> None:
        self.name = name
        self.caps = Caps(
            compute_engines=engines,
            copy_engines=copy_engines,
            pinned=False,
            priorities=(0, 99),
            kernels_on_host=False,
            clock="virtual",
        )
        self.log: list[Ran] = []
        self.fault: Callable[[str], BaseException | None] = no_fault
        self.slow: Callable[[str], float] = usual_speed
        self._costs = costs or Costs()
        self._host_ns = 0
        self._streams: list[SimulatedStream] = []
        compute = [0] * engines
        copies = [0] * copy_engines if copy_engines else compute
        self._engines: dict[OperationKind, list[int]] = {"compute": compute, "copy": copies}

    def stream(self, name: str, priority: int, cpu: int | None) -> SimulatedStream:
        """Make a stream; it has no core."""
        del cpu
        stream = SimulatedStream(name, priority)
        self._streams.append(stream)
        return stream

    def storage(self, size_bytes: int, *, pinned: bool) -> torch.Tensor:
        """Return memory of the host; `(size_bytes,) uint8`."""
        del pinned
        return torch.empty(size_bytes, dtype=torch.uint8)

    def delay(self, duration_ns: int) -> Operation:
        """Return an operation that only costs."""
        return Operation(_nothing, cost_ns=duration_ns)

    def submit(self, stream: Stream, operation: Operation) -> None:
        """Queue an operation."""
        self._queue(stream, _Step(self._call_ns(), "operation", operation))

    def submit_timed(self, stream: Stream, operation: Operation) -> tuple[Mark, Mark]:
        """Queue an operation and return its start and its end."""
        start, end = Mark(stream.name), Mark(stream.name)
        self._queue(stream, _Step(self._call_ns(), "operation", operation, start, end))
        return start, end

    def record(self, stream: Stream, *, timing: bool) -> Mark:
        """Queue the completion of a recording."""
        del timing
        mark = Mark(stream.name)
        self._queue(stream, _Step(self._call_ns(), "record", mark=mark))
        return mark

    def wait(self, stream: Stream, mark: Mark) -> None:
        """Queue a wait."""
        self._queue(stream, _Step(self._call_ns(), "wait", mark=mark))

    def reset(self, stream: Stream) -> None:
        """Queue the end of the error."""
        self._queue(stream, _Step(self._call_ns(), "reset"))

    def passed(self, mark: Mark) -> bool:
        """Return whether a recording is complete by the host's time; asking costs a call."""
        self._call_ns()
        while (start := self._next()) is not None and start[0] <= self._host_ns:
            self._run(start[1], start[0])
        return mark.done and mark.at_ns <= self._host_ns

    def await_mark(self, mark: Mark, timeout_ns: int) -> None:
        """Let virtual time pass until a recording is complete."""
        until_ns = self._host_ns + timeout_ns
        while not mark.done:
            start = self._next()
            if start is None:
                raise WaitTimeout(f"deadlock: nothing can run, {self._stuck()}")
            if start[0] > until_ns:
                break
            self._run(start[1], start[0])
        if not mark.done or mark.at_ns > until_ns:
            self._host_ns = until_ns
            raise WaitTimeout(f"stream {mark.stream} is not there after {timeout_ns} ns")
        self._host_ns = max(self._host_ns, mark.at_ns)

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        """Return the virtual time between two recordings."""
        return end.at_ns - start.at_ns

    def at_ns(self, mark: Mark) -> int:
        """Return the virtual time of a recording."""
        return mark.at_ns

    def now_ns(self) -> int:
        """Return the host's virtual time, ns since the device was made."""
        return self._host_ns

    def report(self) -> dict[str, str]:
        """Return what is simulated."""
        copies = self.caps.copy_engines
        return {"simulated": f"engines={self.caps.compute_engines} copy_engines={copies}"}

    def close(self, timeout_ns: int, *, drain: bool) -> list[str]:
        """Run what is queued, or skip it."""
        if not drain:
            for stream in self._streams:
                stream.fail(StreamClosed(stream.name))
        until_ns = self._host_ns + timeout_ns
        while (start := self._next()) is not None and start[0] <= until_ns:
            self._run(start[1], start[0])
        return [stream.name for stream in self._streams if stream.steps or stream.hung]

    def _call_ns(self) -> int:
        self._host_ns += self._costs.launch_ns
        return self._host_ns

    def _queue(self, stream: Stream, step: _Step) -> None:
        assert isinstance(stream, SimulatedStream)
        stream.steps.append(step)

    def _next(self) -> tuple[int, SimulatedStream] | None:
        """Return which step starts next, and when; None when none ever can."""
        ready = [
            (start_ns, -stream.priority, index)
            for index, stream in enumerate(self._streams)
            if (start_ns := self._start_ns(stream)) is not None
        ]
        if not ready:
            return None
        start_ns, _, index = min(ready)
        return start_ns, self._streams[index]

    def _start_ns(self, stream: SimulatedStream) -> int | None:
        if not stream.steps or stream.hung:
            return None
        step = stream.steps[0]
        start_ns = max(stream.at_ns, step.called_ns)
        if step.kind == "wait":
            assert step.mark is not None
            return max(start_ns, step.mark.at_ns) if step.mark.done else None
        if step.operation is None or stream.error is not None:
            return start_ns
        return max(start_ns, min(self._engines[step.operation.kind]))

    def _run(self, stream: SimulatedStream, at_ns: int) -> None:
        step = stream.steps.popleft()
        stream.at_ns = at_ns
        if step.kind == "record":
            _complete(step.mark, stream)
        elif step.kind == "wait":
            assert step.mark is not None
            stream.meet(step.mark)
        elif step.kind == "reset":
            stream.error = stream.error if isinstance(stream.error, StreamClosed) else None
        else:
            self._execute(stream, step, at_ns)

    def _execute(self, stream: SimulatedStream, step: _Step, at_ns: int) -> None:
        operation = step.operation
        assert operation is not None
        _complete(step.mark, stream)
        if stream.error is None:
            error = self.fault(operation.name) or _call(operation)
            stream.hung = error is HANG
            if error is not None:
                stream.fail(error)
            if stream.hung:
                return
            stream.at_ns += self._cost_ns(operation)
            engines = self._engines[operation.kind]
            engines[engines.index(min(engines))] = stream.at_ns
            if len(self.log) < LOG_MAX:
                self.log.append(Ran(stream.name, operation.name, at_ns, stream.at_ns))
        _complete(step.end, stream)

    def _cost_ns(self, operation: Operation) -> int:
        given = (self._costs.by_name or {}).get(operation.name)
        cost_ns = operation.cost_ns if given is None else given
        if operation.kind == "copy" and not cost_ns:
            cost_ns = operation.size_bytes * 1000 // self._costs.bytes_per_us
        return int(cost_ns * self.slow(operation.name))

    def _stuck(self) -> str:
        hung = [stream.name for stream in self._streams if stream.hung]
        waiting = [stream.name for stream in self._streams if stream.steps and not stream.hung]
        return f"hung: {', '.join(hung) or 'none'}; waiting: {', '.join(waiting) or 'none'}"


def _complete(mark: Mark | None, stream: SimulatedStream) -> None:
    if mark is not None:
        mark.at_ns, mark.error, mark.done = stream.at_ns, stream.error, True


def _call(operation: Operation) -> BaseException | None:
    with torch.inference_mode():
        return raised_by(operation.call)


def _nothing() -> None:
    pass
