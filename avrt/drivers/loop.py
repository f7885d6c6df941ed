"""The loop around one kernel: what a driver does with every call, whatever its clock.

Everything that belongs to an instant is handed to the kernel at once, and what the kernel commands
is done before time moves on. When the next instant is, and how a job's end becomes known, is the
business of the two loops made from this one: `virtual` and `wall`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from avrt.metrics.distribution import Distribution
from avrt.model.commands import (
    Abort,
    Command,
    Discard,
    Dispatch,
    EnterMode,
    Preempt,
    Publish,
    Reclaim,
    Record,
    Resume,
    Vote,
)
from avrt.model.events import (
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Event,
    Failed,
    Hung,
    ModeRequested,
    StreamLost,
    Voted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.kernel import Kernel
    from avrt.safety.supervisor import Supervisor

LOSSES = frozenset((DeviceLost, DeviceBack, StreamLost, Hung))
UNHEEDED = frozenset((Record, Publish, Reclaim, Discard, EnterMode))  # they start and stop no work


class Worker(Protocol):
    """What does, or only pretends to do, the work of dispatched jobs.

    Attributes:
        heeds: whether it wants to be told of commands that start and stop no work.
    """

    @property
    def heeds(self) -> bool: ...

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        """Tell how a job whose execution is over ended."""

    def vote(self, command: Vote, at_ns: int) -> Voted:
        """Answer a question about the outputs of an activation."""

    def obey(self, command: Command, at_ns: int) -> Sequence[Event]:
        """Do any other command but a record; return what follows from it at the same instant."""


class Notes(Protocol):
    """What is told of every call of the kernel: a journal, or less."""

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> object: ...


class KernelLoop(ABC):
    """Drives one kernel through one feed.

    Args:
        feed: `(at_ns, event)` in time order; it may be read lazily.
        worker: what the jobs do.
        journal: is told of every call of the kernel.
        supervisor: asks for other levels of the ladder, if there is one; its ticks are planned
            instants like any other, until releases cease.

    Attributes:
        late_ns: how long after each planned instant the driver was there, pipeline ns; virtual time
            is never late.
    """

    def __init__(
        self,
        kernel: Kernel,
        feed: Iterator[tuple[int, Event]],
        worker: Worker,
        journal: Notes,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._kernel = kernel
        self._supervisor = supervisor
        self._feed = feed
        self._worker = worker
        self._journal = journal
        self._ignored = frozenset((Record,)) if worker.heeds else UNHEEDED
        self._next = next(feed, None)
        self.late_ns = Distribution()
        self._now_ns = kernel.now_ns
        self._drained = False
        self._collected: tuple[int, list[Event]] | None = None

    def stop(self) -> None:
        """End an interrupted run here and now: what is open is aborted, nothing more is done."""
        at_ns, events = self._collected or (self._kernel.now_ns, [])
        events = [*events, Drain(at_once=True)]
        self._journal.note(at_ns, events, self._kernel.handle(at_ns, events))

    def _planned_ns(self) -> int | None:
        """Return when the feed or the kernel next wants a call, never before the kernel's now."""
        planned_ns, coming = self._kernel.next_wakeup_ns, self._next
        if coming is not None and (planned_ns is None or coming[0] < planned_ns):
            planned_ns = coming[0]
        if self._supervisor is not None and not self._drained:
            tick_ns = self._supervisor.next_ns
            planned_ns = tick_ns if planned_ns is None else min(planned_ns, tick_ns)
        if planned_ns is None or planned_ns >= self._now_ns:
            return planned_ns
        return self._now_ns

    def _instant(self, at_ns: int, events: list[Event]) -> None:
        """Hand over an instant: these events and everything that the feed has by then."""
        if self._supervisor is not None and not self._drained:
            events += self._supervise(self._supervisor, at_ns)
        if self._next is not None and self._next[0] <= at_ns:
            self._collected = (at_ns, events)
            while self._next is not None and self._next[0] <= at_ns:
                events.append(self._next[1])
                self._next = next(self._feed, None)
            self._collected = None
        if events or self._supervisor is None or self._is_awaited(at_ns):
            self._step(at_ns, events)

    def _is_awaited(self, at_ns: int) -> bool:
        """Whether the kernel wants a call by then."""
        wakeup_ns = self._kernel.next_wakeup_ns
        return wakeup_ns is not None and wakeup_ns <= at_ns

    def _supervise(self, supervisor: Supervisor, at_ns: int) -> list[ModeRequested]:
        """Let the supervisor look at the run as often as it wanted to by now."""
        requests: list[ModeRequested] = []
        while supervisor.next_ns <= at_ns:
            request = supervisor.step()
            requests += [] if request is None else [request]
        return requests

    def _step(self, at_ns: int, events: list[Event]) -> None:
        """Hand the events of an instant to the kernel, and what follows from its commands."""
        self._now_ns = at_ns
        while True:
            commands = self._kernel.handle(at_ns, events)
            self._journal.note(at_ns, events, commands)
            if self._supervisor is not None:
                self._supervisor.heard(at_ns, events, commands)
            if events and not LOSSES.isdisjoint(map(type, events)):
                self._keep_only(self._kernel.working_jobs)
            events = self._obey(commands, at_ns)
            if not events:
                return

    def _obey(self, commands: Sequence[Command], at_ns: int) -> list[Event]:
        """Do what the kernel commands; return what follows from it at the same instant.

        Told by their exact classes, which have no subclasses: `match` takes twice the time.
        """
        following: list[Event] = []
        for command in commands:
            if type(command) in self._ignored:
                continue
            if type(command) is Dispatch:
                self._dispatch(command, at_ns)
            elif type(command) is Preempt or type(command) is Resume or type(command) is Abort:
                self._interfere(command, at_ns)
            elif type(command) is Vote:
                following.append(self._worker.vote(command, at_ns))
            else:
                following += self._worker.obey(command, at_ns)
        return following

    @abstractmethod
    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        """Begin a job."""

    @abstractmethod
    def _interfere(self, command: Preempt | Resume | Abort, at_ns: int) -> None:
        """Take a running job off its slot, put it back, or stop it."""

    @abstractmethod
    def _keep_only(self, jobs: tuple[int, ...]) -> None:
        """Forget every job that is not among these: its stream or its device is lost."""
