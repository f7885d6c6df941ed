"""What a conformance test works on: executors of a fresh device, and ways to slow a stream down.

A test that must look at a stream which has not finished holds it: by a gate where kernels run on a
thread of this host, else by a delay that is long beside what the test does meanwhile.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import torch

from avrt.device.base import FOREVER_NS, Buffer
from avrt.device.executor import Executor
from avrt.device.lifetimes import BYTES_MAX
from avrt.device.order import OrderChecker
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.device.base import Device, Stream

MS = 1_000_000
HOLD_NS = 100 * MS
SLOW_NS = 20 * MS


class NotRun(Exception):  # noqa: N818 - it is no error
    """A test does not apply to this device; the message says why."""


class Rig:
    """Executors for one test, all closed after it.

    Attributes:
        executor: the first of them, with a checker.
    """

    def __init__(self, make_device: Callable[[], Device]) -> None:
        self._make_device = make_device
        self._made: list[Executor] = []
        self._gates: list[threading.Event] = []
        self.executor = self.make()

    def make(self, *, bytes_max: int = BYTES_MAX, debug: bool = False) -> Executor:
        """Return one more executor, on a device of its own where there are several."""
        executor = Executor(
            self._make_device(), bytes_max=bytes_max, debug=debug, checker=OrderChecker()
        )
        self._made.append(executor)
        return executor

    def hold(self, stream: Stream, executor: Executor | None = None) -> Callable[[], None]:
        """Keep an idle stream busy until the returned function is called, or HOLD_NS at least."""
        executor = executor or self.executor
        if not executor.caps.kernels_on_host:
            executor.delay(stream, HOLD_NS)
            return _nothing
        gate, begun = threading.Event(), threading.Event()
        self._gates.append(gate)
        executor.launch(stream, begun.set)
        executor.launch(stream, partial(gate.wait, FOREVER_NS / NS_PER_S), name="hold")
        assert begun.wait(FOREVER_NS / NS_PER_S)
        return gate.set

    def need(self, condition: object, reason: str) -> None:
        """End the test as not run unless the device has what it is about."""
        if not condition:
            raise NotRun(reason)

    def close(self) -> None:
        """Let go of all streams and close the executors."""
        for gate in self._gates:
            gate.set()
        for executor in self._made:
            executor.close()


def races(executor: Executor) -> int:
    """Return how many accesses the checker found that nothing orders."""
    assert executor.checker is not None
    return executor.checker.race_count


def integers(executor: Executor, stream: Stream, count: int = 1) -> tuple[Buffer, torch.Tensor]:
    """Return a buffer of `count` integers, all zero from here on, and its view: (count,) int64."""
    buffer = executor.allocate(8 * count, stream)
    view = buffer.view((count,), torch.int64)
    executor.launch(stream, view.zero_, writes=(buffer,), name="zero")
    return buffer, view


def read(executor: Executor, stream: Stream, buffer: Buffer) -> list[int]:
    """Return a buffer's integers as they are at this point of the stream; the host waits."""
    landing = executor.allocate(buffer.size_bytes, stream, pinned=True)
    executor.copy(landing, buffer, stream)
    executor.synchronize(stream)
    values: list[int] = landing.view((buffer.size_bytes // 8,), torch.int64).tolist()
    executor.deallocate(landing, stream)
    return values


def _nothing() -> None:
    pass
