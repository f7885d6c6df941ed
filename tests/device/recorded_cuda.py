"""A stand-in for `torch.cuda` that notes each call and lets the test say what is complete.

What kernels do is done at once, on the CPU. Tests with it show the order of calls and what the host
decides; they prove nothing about timing or about memory of a device.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import torch

LOWEST, HIGHEST = 0, -5
STREAMS_PER_PRIORITY = 32
TICK_MS = 0.5


class RecordedCuda:
    """`torch.cuda`.

    Attributes:
        calls: (what, of which) in order.
        pending: numbers of events that are not complete.
        failure: what every call about events raises, or None.
    """

    def __init__(self):
        self.calls = []
        self.pending = set()
        self.failure = None
        self.devices = 1
        self.streams = 0
        self.events = 0
        self.ticks = 0
        self.current = None
        cuda = self

        class Stream:
            def __init__(self, device=None, priority=0):
                self.device = device
                self.priority = priority
                self.number = cuda.streams
                self.cuda_stream = cuda.streams % STREAMS_PER_PRIORITY
                cuda.streams += 1

            @staticmethod
            def priority_range():
                return LOWEST, HIGHEST

            def wait_event(self, event):
                cuda.note("wait_event", self.number, event.number)

        class Event:
            def __init__(self, *, enable_timing=False, blocking=False):
                assert isinstance(blocking, bool)
                self.timing = enable_timing
                self.number = cuda.events
                self.tick = None
                cuda.events += 1

            def record(self, stream=None):
                assert self.tick is None, "recorded twice"
                cuda.ticks += 1
                self.tick = cuda.ticks
                stream = stream or cuda.current
                cuda.note("record", stream.number, self.number)

            def query(self):
                cuda.note("query", self.number)
                return self.number not in cuda.pending

            def synchronize(self):
                cuda.note("synchronize", self.number)
                cuda.pending.discard(self.number)

            def elapsed_time(self, end):
                assert self.timing
                assert end.timing
                return TICK_MS * (end.tick - self.tick)

        self.Stream, self.Event = Stream, Event

    def note(self, *call):
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    def named(self, *names):
        return [call for call in self.calls if call[0] in names]

    def is_available(self):
        return self.devices > 0

    def device_count(self):
        return self.devices

    def get_device_properties(self, index):
        return SimpleNamespace(name=f"fake {index}", total_memory=1 << 30)

    def memory_reserved(self):
        return 0

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        self.calls.append(("enter", stream.number))
        try:
            yield
        finally:
            self.current = before

    def _sleep(self, cycles):
        self.note("sleep", self.current.number, cycles)


def torch_with(cuda):
    """Return what `avrt.device.cuda` needs of torch, with this for `torch.cuda`."""

    def empty(size_bytes, *, dtype, device=None, pin_memory=False):
        where = "pinned" if pin_memory else f"{device} on {cuda.current.number}"
        cuda.note("empty", size_bytes, where)
        return torch.empty(size_bytes, dtype=dtype)

    return SimpleNamespace(
        cuda=cuda,
        empty=empty,
        device=lambda kind, index: f"{kind}:{index}",
        uint8=torch.uint8,
        inference_mode=torch.inference_mode,
        version=SimpleNamespace(cuda="13.0"),
        __version__="fake",
        OutOfMemoryError=torch.OutOfMemoryError,
        AcceleratorError=torch.AcceleratorError,
    )
