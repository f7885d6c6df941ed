"""One hop, three ways, in this process: avrt live, two eventfds, two queues.

A hop is what a message takes from a source's thread, through one that decides, to the thread that
computes. Each contender delivers `count` messages at a rate from a thread of its own and returns
how long each took from just before its delivery until the last thread had it. The bare ones hand a
reference over twice and do nothing between. Their threads ask the host for exactly what the threads
of a live run do.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

import avrt
import avrt.drivers.live as live_driver
from avrt.drivers.host_watch import HostWatch
from avrt.drivers.live import LiveOptions, live
from avrt.drivers.mailbox import Mailbox
from avrt.drivers.wall import WallClock
from avrt.logs.merge import SourceMessage
from avrt.logs.raw import Channel, RawMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.drivers.result import RunResult

STAGE = "enter"
SOURCE = "sensor"
MS = 1_000_000
NO_BYTES = RawMessage(Channel(0, "/sensor", "", ""), 0, 0, 0, b"")


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is sent in one block.

    Attributes:
        warm_up: how many messages go before those that count.
    """

    name: str
    size_bytes: int
    rate_hz: int
    count: int
    warm_up: int

    @property
    def total(self) -> int:
        return self.warm_up + self.count

    def payload(self) -> np.ndarray:
        return np.zeros(self.size_bytes, np.uint8)


class Pace:
    """Instants of a rate, counted from the first call of `wait`."""

    def __init__(self, rate_hz: float) -> None:
        self._period_ns = round(1e9 / rate_hz)
        self._next_ns = 0

    def wait(self) -> int:
        """Sleep until the next instant; return it."""
        self._next_ns = (self._next_ns or time.perf_counter_ns()) + self._period_ns
        left_ns = self._next_ns - time.perf_counter_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)
        return self._next_ns


class Feed:
    """Delivers the same payload again and again, at the calls of `wait`."""

    name = "bench"
    aside = None
    damage = None

    def __init__(self, payload: object, count: int, wait: Callable[[], object]) -> None:
        self._payload = payload
        self._count = count
        self._wait = wait
        self.sent_ns: list[int] = []

    def open(self, set_up: object) -> None:
        pass

    def run(
        self,
        deliver: Callable[[SourceMessage], None],
        wall: WallClock,
        stopped: threading.Event,
    ) -> None:
        for sequence in range(self._count):
            self._wait()
            if stopped.is_set():
                return
            at_ns = wall.now_ns()
            item = SourceMessage(SOURCE, sequence, at_ns, at_ns, at_ns, "", self._payload, NO_BYTES)
            self.sent_ns.append(time.perf_counter_ns())
            deliver(item)

    def close(self) -> None:
        pass


def pipeline(process: Callable[..., object]) -> avrt.Pipeline:
    """Return one source and one stage, which calls `process` with its messages."""
    made = avrt.Pipeline("hop")
    made.source(SOURCE, type="camera", topic="/sensor", rate="500 Hz")
    made.add(process, name=STAGE, inputs={"frame": SOURCE}, wcet="1 ms", deadline="100 ms")
    return made


def run_live(made: avrt.Pipeline, feed: Feed, *, realtime: bool) -> RunResult:
    options = LiveOptions(is_realtime=realtime)
    return live(made.spec, made.build(), [feed], WallClock(), options)


def avrt_hop(traffic: Traffic, *, realtime: bool, whole: bool = False) -> list[int]:
    """Return the latencies of a live run of one source and one stage.

    They begin when the message goes into its mailbox, as the references of the others go into
    their queues; `whole` counts what stamps and seals it before as well.
    """
    put_ns: list[int] = []

    class TimedMailbox(Mailbox):
        def put(self, letter: tuple[avrt.Message[object], SourceMessage]) -> None:
            put_ns.append(time.perf_counter_ns())
            super().put(letter)

    entered_ns: dict[int, int] = {}

    def enter(frame: avrt.Message[object]) -> int:
        entered_ns[frame.stamp.sequence] = time.perf_counter_ns()
        return frame.stamp.sequence

    feed = Feed(traffic.payload(), traffic.total, Pace(traffic.rate_hz).wait)
    with patch.object(live_driver, "Mailbox", TimedMailbox):
        run_live(pipeline(enter), feed, realtime=realtime)
    sent = list(enumerate(feed.sent_ns if whole else put_ns))[traffic.warm_up :]
    return [entered_ns[sequence] - at_ns for sequence, at_ns in sent if sequence in entered_ns]


class Eventfd:
    """A hand-over of references with an eventfd and a deque."""

    def __init__(self) -> None:
        self._items: deque[object] = deque()
        self._fd = os.eventfd(0, os.EFD_SEMAPHORE)

    def put(self, item: object) -> None:
        self._items.append(item)
        os.eventfd_write(self._fd, 1)

    def get(self) -> object:
        os.eventfd_read(self._fd)
        return self._items.popleft()

    def close(self) -> None:
        os.close(self._fd)


class Queue:
    """A hand-over of references with a SimpleQueue."""

    def __init__(self) -> None:
        self._items: SimpleQueue[object] = SimpleQueue()
        self.put, self.get = self._items.put, self._items.get

    def close(self) -> None:
        pass


def bare_hop(kind: type[Eventfd | Queue], traffic: Traffic, *, realtime: bool) -> list[int]:
    """Return the latencies of two hand-overs between three threads."""
    host = HostWatch(pipeline(lambda frame: frame).spec, is_realtime=realtime)
    first, second = kind(), kind()
    payload = traffic.payload()
    latencies: list[int] = []

    def deliver() -> None:
        host.feed(SOURCE)
        pace = Pace(traffic.rate_hz)
        for _ in range(traffic.total):
            pace.wait()
            first.put((time.perf_counter_ns(), payload))

    def pass_on() -> None:
        host.driver()
        for _ in range(traffic.total):
            second.put(first.get())

    def enter() -> None:
        host.stream(STAGE)
        for _ in range(traffic.total):
            sent_ns, _ = second.get()
            latencies.append(time.perf_counter_ns() - sent_ns)

    with host:
        threads = [threading.Thread(target=target) for target in (enter, pass_on, deliver)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    first.close()
    second.close()
    return latencies[traffic.warm_up :]
