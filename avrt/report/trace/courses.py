"""The courses of jobs, from a journal: where each ran when, and whose output it read.

A job runs in *pieces*: one for each time that it was on a slot, so a preempted job has several and
one of several segments has at least one for each. A piece ends when the work leaves the slot, not
when its result is given up: aborted work on a device that is not preemptive goes on to its end.

A damaged record lacks entries. Then a piece ends where the next one of its stream begins, at the
latest, and a job without a record of its end is `open`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from avrt.model.commands import Abort, Dispatch, Preempt, Record, Resume
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceLost,
    Failed,
    Hung,
    SegmentEnded,
    StreamLost,
)
from avrt.model.records import JobRecord

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.records import AnyRecord


class Call(Protocol):
    """One call of the kernel, as the journal has it."""

    @property
    def at_ns(self) -> int: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def commands(self) -> Sequence[Command]: ...


@dataclass(slots=True)
class Arrival:
    """A message that came; `reads` are the numbers of the arrows that begin here."""

    at_ns: int
    event: Arrived
    reads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Piece:
    """A time in which a job was on a slot of a device."""

    device: str
    segment: int
    start_ns: int
    end_ns: int | None = None


@dataclass(slots=True)
class Course:
    """One job: what the kernel said of it, where it ran, which arrows end and begin at it."""

    dispatch: Dispatch | None = None
    record: JobRecord | None = None
    pieces: list[Piece] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)

    def begin(self, piece: Piece) -> None:
        self.end(piece.start_ns)
        self.pieces.append(piece)

    def end(self, at_ns: int) -> None:
        """End its present piece, if it is on a slot."""
        if self.pieces and self.pieces[-1].end_ns is None:
            self.pieces[-1].end_ns = at_ns


class Courses:
    """What a journal tells, in the order in which it happened.

    Attributes:
        jobs: by the kernel's number, in the order of their first dispatch or their end.
        records: all but those of jobs.
        end_ns: the last time.
    """

    def __init__(self, calls: Iterable[Call], preemptive: Container[str] = ()) -> None:
        """Take in calls of the kernel; devices that are preemptive stop aborted work at once."""
        self.arrivals: list[Arrival] = []
        self.jobs: dict[int, Course] = {}
        self.records: list[AnyRecord] = []
        self.end_ns = 0
        self._preemptive = preemptive
        self._arrows = 0
        self._makers: dict[int, Arrival | Course] = {}
        self._streams: dict[str, Course] = {}
        for call in calls:
            self.end_ns = call.at_ns
            for event in call.events:
                self._event(event, call.at_ns)
            for command in call.commands:
                self._command(command, call.at_ns)
        for course in self.jobs.values():
            course.end(self.end_ns)

    def _event(self, event: Event, at_ns: int) -> None:
        match event:
            case Arrived():
                self.arrivals.append(Arrival(at_ns, event))
                self._makers[event.buffer] = self.arrivals[-1]
            case Completed(job=job, buffer=buffer):
                self._course(job).end(at_ns)
                self._makers[buffer] = self._course(job)
            case SegmentEnded(job=job) | Failed(job=job) | Hung(job=job):
                self._course(job).end(at_ns)
            case StreamLost(stream=stream) if stream in self._streams:
                self._streams[stream].end(at_ns)
            case DeviceLost(device=device):
                for course in self._streams.values():
                    if course.pieces[-1].device == device:
                        course.end(at_ns)
            case _:
                pass

    def _command(self, command: Command, at_ns: int) -> None:
        match command:
            case Dispatch():
                self._dispatch(command, at_ns)
            case Preempt(job=job):
                self._course(job).end(at_ns)
            case Abort(job=job) if self._stops_at_once(job):
                self._course(job).end(at_ns)
            case Resume(job=job) if self._course(job).pieces:
                last = self._course(job).pieces[-1]
                self._course(job).begin(Piece(last.device, last.segment, at_ns))
            case Record(record=JobRecord() as record):
                course = self._course(record.job)
                course.record = record
                if record.outcome in {"met", "late"}:
                    course.end(at_ns)
            case Record(record=record):
                self.records.append(record)
            case _:
                pass

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        course = self._course(command.job)
        before = self._streams.get(command.stream)
        if before is not None and before is not course:
            before.end(at_ns)
        self._streams[command.stream] = course
        course.begin(Piece(command.device, command.segment, at_ns))
        if course.dispatch is None:
            course.dispatch = command
            for buffer in command.inputs:
                maker = None if buffer is None else self._makers.get(buffer)
                if maker is not None:
                    self._arrows += 1
                    maker.reads.append(self._arrows)
                    course.read.append(self._arrows)

    def _stops_at_once(self, job: int) -> bool:
        pieces = self._course(job).pieces
        return bool(pieces) and pieces[-1].device in self._preemptive

    def _course(self, job: int) -> Course:
        return self.jobs.setdefault(job, Course())
