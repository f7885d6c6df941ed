"""The wall clock: a log comes as it came, times the rate, and streams run side by side.

All specs are pipeline time; pipeline time runs `rate` times as fast as the host's clock, so a job
that takes 10 ms here takes 40 ms of pipeline time at rate 4.

A driver is never exactly on time. It takes in what was planned for instants that have passed
(messages of the log, and what the kernel asked to be woken for) instant by instant, each at the
time that it was planned for, and only then what it could not foresee (jobs that ended) at the time
it found them. So a late wake-up changes neither which message a release reads nor a logical
publication time: releases never move to when the driver woke, and decisions follow from the log
and from when jobs were reported ended. A job that ended in time and is reported after its due time
is late, and counted as reported late.

A driver that comes later than a WATCHES-th of the hang timeout did not run, nor did the stages, for
all it knows (the process was stopped, or its host): no job loses its patience in that time.

What other threads have to tell comes through one inbox, each piece as a call that makes the events
of the moment at which the driver finds it: a job that ended, a sensor's message, a device that
works again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeAlias

from avrt import clock
from avrt.drivers.lateness import Lateness
from avrt.drivers.loop import KernelLoop, Worker
from avrt.model.events import Arrived, DeviceBack, DeviceLost, Drain, Event, Ordered, StreamBack
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from avrt.drivers.loop import Notes
    from avrt.exec.runner import Result
    from avrt.kernel import Kernel
    from avrt.model.commands import Abort, Dispatch, Preempt, Resume
    from avrt.model.events import Hung
    from avrt.safety.supervisor import Supervisor


TOLD_LATE_NS = NS_PER_MS
LATE_KEPT = 10_000
WATCHES = 10
Finding: TypeAlias = Callable[[int], Sequence[Event]]
"""Makes the events of what happened, given the pipeline time at which the driver finds it."""
Inbox: TypeAlias = SimpleQueue[Finding]


class WallWorker(Worker, Protocol):
    """A worker whose jobs take as long as they take."""

    @property
    def interrupts(self) -> WaitPoint:
        """Where Ctrl-C may come through while the driver waits."""

    @property
    def hang_timeout_ns(self) -> int:
        """Host time after which a job that has not ended is given up."""

    def prepare(
        self, command: Dispatch, at_ns: int, told: Callable[[Result], object]
    ) -> Callable[[], None]:
        """Return what begins a job; `told` takes what came of it, on another thread."""

    def reported(self, job: int, result: Result, at_ns: int) -> Sequence[Event]:
        """Tell how a job ended, and what follows from that."""

    def hung(self, job: int, at_ns: int) -> Hung:
        """Give up a job that does not answer."""

    def forget(self, job: int) -> None:
        """Drop a job whose stream or device is lost: nobody will ask how it ended."""

    def idle(self) -> None:
        """Take in that no job is underway, as the driver begins to wait."""


class WaitPoint(Protocol):
    """Where Ctrl-C may come through."""

    def allowed(self) -> AbstractContextManager[None]: ...


class WallClock:
    """Pipeline time at a rate of the host's clock, from `start` on.

    Attributes:
        started: is set once it runs.
    """

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate
        self.started = threading.Event()
        self._zero_host_ns = 0

    def start(self) -> None:
        """Let pipeline time be zero now."""
        self._zero_host_ns = clock.now_ns()
        self.started.set()

    def now_ns(self) -> int:
        return self.at_ns(clock.now_ns())

    def at_ns(self, host_ns: int) -> int:
        """Return the pipeline time of a reading of the host's clock."""
        return int((host_ns - self._zero_host_ns) * self.rate)

    def take(self, inbox: Inbox, until_ns: int | None) -> Finding | None:
        """Wait for something to come, until a pipeline time at the latest; return it, or None."""
        if until_ns is None:
            return clock.take(inbox, None)
        return clock.take(inbox, max(0, self.host_left_ns(until_ns)))

    def host_ns(self, at_ns: int) -> int:
        """Return the reading of the host's clock at a pipeline time."""
        return self._zero_host_ns + int(at_ns / self.rate)

    def host_left_ns(self, at_ns: int) -> int:
        """Return how long it is to a pipeline time, host ns; not more than 0 when it has come."""
        return self.host_ns(at_ns) + 1 - clock.now_ns()


class WallLoop(KernelLoop):
    """Drives one kernel through one feed at the wall clock.

    Args:
        wall: pipeline time.
        inbox: what comes from other threads; with one of the caller's, the run ends with the
            `Drain` that comes through it.
        supervisor: of a pipeline with a ladder.

    Attributes:
        end_ns: the last pipeline time at which something is released, however late the driver is;
            None leaves the end to the feed or the inbox.
        late: when the driver was late by TOLD_LATE_NS or more, and by how much; the last ones.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a run is made of
        self,
        kernel: Kernel,
        feed: Iterator[tuple[int, Event]],
        worker: WallWorker,
        journal: Notes,
        wall: WallClock,
        inbox: Inbox | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        super().__init__(kernel, feed, worker, journal, supervisor)
        self._streams = worker
        self._wall = wall
        self._patience_ns = int(worker.hang_timeout_ns * wall.rate)
        self._watch_ns = max(1, self._patience_ns // WATCHES)
        self._is_fed_by_others = inbox is not None
        self._inbox: Inbox = SimpleQueue() if inbox is None else inbox
        self._since_ns: dict[int, int] = {}  # in order of dispatch, so the first is the oldest
        self._starts: list[Callable[[], None]] = []
        self.end_ns: int | None = None
        self.late = Lateness(LATE_KEPT)

    def run(self) -> None:
        """Go on until the feed is over and nothing is left to do."""
        self._wall.start()
        self._go_on()

    def is_over(self, now_ns: int) -> bool:
        """Whether what comes now comes too late: releases have ceased."""
        return self._drained or (self.end_ns is not None and now_ns > self.end_ns)

    def _go_on(self) -> None:
        while True:
            self._drain_at_the_end()
            planned_ns = self._planned_ns()
            until_ns = self._until_ns(planned_ns)
            if until_ns is None and not self._awaits_drain:
                return
            found = self._wait(until_ns)
            now_ns = max(self._wall.now_ns(), self._now_ns)
            self._excuse(until_ns, now_ns)
            events, is_over = self._happened(found, now_ns)
            if planned_ns is not None and planned_ns <= now_ns:
                self._catch_up(now_ns - bool(events))
            if events:
                self._instant(now_ns, events)
            if is_over and not self._drained:
                self._drain(now_ns)

    @property
    def _awaits_drain(self) -> bool:
        return self._is_fed_by_others and not self._drained

    def _planned_ns(self) -> int | None:
        planned_ns = super()._planned_ns()
        if self.end_ns is None or self._drained:
            return planned_ns
        return self.end_ns if planned_ns is None else min(planned_ns, self.end_ns)

    def _until_ns(self, planned_ns: int | None) -> int | None:
        """Return when to wake up whatever happens, or None when nothing is planned or underway."""
        if not self._since_ns:
            return planned_ns
        patience_end_ns = next(iter(self._since_ns.values())) + self._patience_ns
        look_ns = min(patience_end_ns, self._wall.now_ns() + self._watch_ns)
        return look_ns if planned_ns is None else min(planned_ns, look_ns)

    def _wait(self, until_ns: int | None) -> list[Finding]:
        """Return what has come, waiting for the first of it or until a time."""
        self._begin_jobs()
        if not self._since_ns:
            self._streams.idle()
        with self._streams.interrupts.allowed():
            first = self._wall.take(self._inbox, until_ns)
        if first is None:
            return []
        return [first, *(self._inbox.get() for _ in range(self._inbox.qsize()))]

    def _begin_jobs(self) -> None:
        """Begin what was dispatched, as the last thing before the next wait or the next instant.

        A stage's thread that wakes up needs the interpreter, and waits for it once more, for as
        long as waking up took, if the driver's thread still has it.
        """
        for start in self._starts:
            start()
        self._starts.clear()

    def _instant(self, at_ns: int, events: list[Event]) -> None:
        self._begin_jobs()
        super()._instant(at_ns, events)

    def _happened(self, found: list[Finding], now_ns: int) -> tuple[list[Event], bool]:
        """Return the events of this moment, in order, and whether releases are to cease with it."""
        events = [event for finding in found for event in finding(now_ns)]
        if self._is_overdue(now_ns):
            events += self._hung(now_ns)
        if len(events) == 1 and type(events[0]) is not Drain:
            return events, False
        is_over = Drain() in events
        return sorted((e for e in events if e != Drain()), key=_came_from_outside), is_over

    def _catch_up(self, until_ns: int) -> None:
        """Take in what was planned until then, inclusive, instant by instant."""
        while (planned_ns := self._planned_ns()) is not None and planned_ns <= until_ns:
            late_ns = until_ns - planned_ns
            self.late_ns.add(late_ns)
            if late_ns >= TOLD_LATE_NS:
                self.late.add(until_ns, late_ns)
            is_end = planned_ns == self.end_ns and not self._drained
            if not is_end or self._is_due(planned_ns):
                self._instant(planned_ns, [])
            if is_end:
                self._drain(planned_ns)
            self._drain_at_the_end()

    def _is_due(self, at_ns: int) -> bool:
        """Whether anything but the end is planned by then."""
        planned_ns = super()._planned_ns()
        return planned_ns is not None and planned_ns <= at_ns

    def _drain_at_the_end(self) -> None:
        """Let timer releases cease with the feed's last message."""
        if self._next is None and not self._drained and not self._is_fed_by_others:
            self._drain(self._kernel.now_ns)

    def _drain(self, at_ns: int) -> None:
        """Let releases cease, by a call of its own: as a what-if does it."""
        self._drained = True
        self._step(at_ns, [Drain()])

    def _ended(self, job: int, result: Result, now_ns: int) -> Sequence[Event]:
        """Report a job that ended, unless it was given up or lost before."""
        if self._since_ns.pop(job, None) is None:
            return ()
        return self._streams.reported(job, result, now_ns)

    def _is_overdue(self, now_ns: int) -> bool:
        """Whether the job that was dispatched first of those underway has hung."""
        for since_ns in self._since_ns.values():
            return now_ns - since_ns >= self._patience_ns
        return False

    def _excuse(self, until_ns: int | None, now_ns: int) -> None:
        """Give jobs back the time in which nothing ran, if the driver was to wake up long ago."""
        if until_ns is not None and now_ns - until_ns > self._watch_ns:
            for job in self._since_ns:
                self._since_ns[job] += now_ns - until_ns

    def _hung(self, now_ns: int) -> list[Event]:
        overdue = [
            job for job, since in self._since_ns.items() if now_ns - since >= self._patience_ns
        ]
        for job in overdue:
            del self._since_ns[job]
        return [self._streams.hung(job, now_ns) for job in overdue]

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        job = command.job

        def told(result: Result) -> None:
            self._inbox.put(partial(self._ended, job, result))

        self._starts.append(self._streams.prepare(command, at_ns, told))
        self._since_ns[job] = self._wall.now_ns()  # a late driver takes none of its patience

    def _interfere(self, command: Preempt | Resume | Abort, at_ns: int) -> None:
        """Let aborted work go on: nothing stops it, and the kernel knows."""

    def _keep_only(self, jobs: tuple[int, ...]) -> None:
        for job in [job for job in self._since_ns if job not in jobs]:
            del self._since_ns[job]
            self._streams.forget(job)


def _came_from_outside(event: Event) -> bool:
    """Put what the run's own work told before what came from elsewhere, as a what-if does."""
    return isinstance(event, Arrived | DeviceLost | DeviceBack | StreamBack | Ordered)
