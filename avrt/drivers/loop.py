"""The loop around one kernel: what a driver does with every call, whatever its clock.

Everything that belongs to an instant is handed to the kernel at once, and what the kernel commands
is done before time moves on. When the next instant is, and how a job's end becomes known, is the
business of the two loops made from this one: `virtual` and `wall`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from avrt.metrics.distribution import Distribution
from avrt.model.commands import Abort, Command, Dispatch, Preempt, Resume, Vote
from avrt.model.events import (
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Event,
    Failed,
    Hung,
    StreamLost,
    Voted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.kernel import Kernel
    from avrt.logs.record.journal import Journal

LOSSES = (DeviceLost, DeviceBack, StreamLost, Hung)


class Worker(Protocol):
    """What does, or only pretends to do, the work of dispatched jobs."""

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        """Tell how a job whose execution is over ended."""

    def vote(self, command: Vote) -> Voted:
        """Decide over the outputs of an activation."""

    def obey(self, command: Command, at_ns: int) -> list[Event]:
        """Do any other command; return what follows from it at the same instant."""


class KernelLoop(ABC):
    """Drives one kernel through one feed.

    Args:
        feed: `(at_ns, event)` in time order; it may be read lazily.
        worker: what the jobs do.
        journal: notes every call of the kernel.

    Attributes:
        late_ns: how long after each planned instant the driver was there, pipeline ns; virtual time
            is never late.
    """

    def __init__(
        self,
        kernel: Kernel,
        feed: Iterator[tuple[int, Event]],
        worker: Worker,
        journal: Journal,
    ) -> None:
        self._kernel = kernel
        self._feed = feed
        self._worker = worker
        self._journal = journal
        self._next = next(feed, None)
        self.late_ns = Distribution()
        self._drained = False
        self._collected: tuple[int, list[Event]] | None = None

    def stop(self) -> None:
        """End an interrupted run here and now: what is open is aborted, nothing more is done."""
        at_ns, events = self._collected or (self._kernel.now_ns, [])
        events = [*events, Drain(at_once=True)]
        self._journal.note(at_ns, events, self._kernel.handle(at_ns, events))

    def _planned_ns(self) -> int | None:
        """Return when the feed or the kernel next wants a call, never before the kernel's now."""
        times = [self._kernel.next_wakeup_ns]
        if self._next is not None:
            times.append(self._next[0])
        known = [time for time in times if time is not None]
        return max(min(known), self._kernel.now_ns) if known else None

    def _instant(self, at_ns: int, events: list[Event]) -> None:
        """Hand over an instant: these events and everything that the feed has by then."""
        self._collected = (at_ns, events)
        while self._next is not None and self._next[0] <= at_ns:
            events.append(self._next[1])
            self._next = next(self._feed, None)
        self._collected = None
        self._step(at_ns, events)

    def _step(self, at_ns: int, events: list[Event]) -> None:
        """Hand the events of an instant to the kernel, and what follows from its commands."""
        while True:
            commands = self._kernel.handle(at_ns, events)
            self._journal.note(at_ns, events, commands)
            if any(isinstance(event, LOSSES) for event in events):
                self._keep_only(self._kernel.working_jobs)
            events = [event for command in commands for event in self._obey(command, at_ns)]
            if not events:
                return

    def _obey(self, command: Command, at_ns: int) -> Sequence[Event]:
        match command:
            case Dispatch():
                self._dispatch(command, at_ns)
            case Preempt() | Resume() | Abort():
                self._interfere(command, at_ns)
            case Vote():
                return [self._worker.vote(command)]
            case _:
                return self._worker.obey(command, at_ns)
        return []

    @abstractmethod
    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        """Begin a job."""

    @abstractmethod
    def _interfere(self, command: Preempt | Resume | Abort, at_ns: int) -> None:
        """Take a running job off its slot, put it back, or stop it."""

    @abstractmethod
    def _keep_only(self, jobs: tuple[int, ...]) -> None:
        """Forget every job that is not among these: its stream or its device is lost."""
