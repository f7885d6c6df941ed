"""What two runs decided, whatever the times: which jobs there were, what each read, how it ended.

A run at the wall clock and its repetition in virtual time cannot have the same journal: messages
come some hundred microseconds later than their log time. What the scheduler chose can be the same,
and where it is not the first choice that differs tells why: a response that one of the runs just
made, or a message that came just before a job in one and just after it in the other.

A message is known by its producer and number, so buffers may be numbered as they like. The order of
dispatches counts on each device.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Dispatch, Publish, Record
from avrt.model.events import Arrived
from avrt.model.records import JobRecord
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from avrt.logs.record.journal import Entry

Job = tuple[str, int]
Message = tuple[str, int]


@dataclass(slots=True)
class Choice:
    """What was decided over one job.

    Attributes:
        task, index: the job.
        inputs: what it read, None for an input that was absent; empty if it never ran.
        place: how many jobs were dispatched on its device before it; None if it never ran.
        outcome: how it ended, with the reason.
        release_ns, start_ns, end_ns, due_ns: pipeline time.
    """

    task: str
    index: int
    device: str = ""
    inputs: tuple[Message | None, ...] = ()
    place: int | None = None
    outcome: str = "open"
    release_ns: int = 0
    start_ns: int | None = None
    end_ns: int = 0
    due_ns: int = 0

    def told(self) -> str:
        """Return it in words."""
        read = ", ".join("nothing" if i is None else f"{i[0]} {i[1]}" for i in self.inputs)
        parts = [self.outcome, f"read {read}" if self.inputs else "never ran"]
        if self.place is not None:
            parts.append(f"was dispatch {self.place} on {self.device}")
        response, limit = self.end_ns - self.release_ns, self.due_ns - self.release_ns
        when = f"released at {self.release_ns / 1e9:.6f} s, {format_ns(response)} of "
        return f"{', '.join(parts)}; {when}{format_ns(limit)}"

    @property
    def choice(self) -> tuple[object, ...]:
        return self.outcome, self.inputs, self.place, self.device


@dataclass(frozen=True, slots=True)
class Difference:
    """The first choice that is not the same in both; None where a run has no such job.

    Attributes:
        differing: jobs over which the runs decided differently.
        jobs: jobs of both runs together.
    """

    task: str
    index: int
    sides: tuple[Choice | None, Choice | None]
    differing: int
    jobs: int


@dataclass(slots=True)
class _Reader:
    """Follows one journal."""

    choices: dict[Job, Choice] = field(default_factory=dict)
    _messages: dict[int, Message] = field(default_factory=dict)
    _tasks: dict[int, str] = field(default_factory=dict)  # of activations
    _published: Counter[str] = field(default_factory=Counter)
    _dispatched: Counter[str] = field(default_factory=Counter)

    def take(self, entry: Entry) -> None:
        for event in entry.events:
            if isinstance(event, Arrived):
                self._messages[event.buffer] = (event.source, event.sequence)
        for command in entry.commands:
            match command:
                case Dispatch(segment=0):
                    self._dispatch(command, entry.at_ns)
                case Record(record=JobRecord() as record):
                    self._tasks[record.activation] = record.stage
                    self._end(record)
                case Publish():
                    stage = self._tasks.pop(command.activation)
                    self._messages[command.buffer] = (stage, self._published[stage])
                    self._published[stage] += 1
                case _:
                    pass

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        choice = self._choice(command.task, command.index)
        choice.inputs = tuple(
            None if handle is None else self._messages[handle] for handle in command.inputs
        )
        choice.device, choice.start_ns = command.device, at_ns
        choice.place = self._dispatched[command.device]
        self._dispatched[command.device] += 1

    def _end(self, record: JobRecord) -> None:
        choice = self._choice(record.task, record.index)
        choice.outcome = f"{record.outcome}: {record.reason}" if record.reason else record.outcome
        choice.release_ns, choice.due_ns = record.release_ns, record.due_ns
        choice.end_ns = record.end_ns

    def _choice(self, task: str, index: int) -> Choice:
        return self.choices.setdefault((task, index), Choice(task, index))


def first_difference(a: str | Path, b: str | Path) -> tuple[Difference | None, int]:
    """Return the first choice in which two recorded runs differ, and how many jobs they had.

    First by the time of dispatch, of release where it never ran, in the run that has the job.

    Raises:
        InputError: one of them is no run record.
    """
    first, second = (_read(path) for path in (a, b))
    jobs = dict.fromkeys((*first, *second))
    differing = [job for job in jobs if _of(first, job) != _of(second, job)]
    if not differing:
        return None, len(jobs)
    task, index = min(differing, key=lambda job: _when(first.get(job) or second[job]))
    sides = (first.get((task, index)), second.get((task, index)))
    return Difference(task, index, sides, len(differing), len(jobs)), len(jobs)


def _read(path: str | Path) -> dict[Job, Choice]:
    reader = _Reader()
    with RunFile(path) as run:
        for entry in _entries(run):
            reader.take(entry)
    return reader.choices


def _entries(run: RunFile) -> Iterator[Entry]:
    """Yield the entries up to the first one that cannot be used; damage is told elsewhere."""
    for line in run.journal():
        try:
            yield parse_entry(line.text)
        except ValueError:
            return


def _of(choices: dict[Job, Choice], job: Job) -> tuple[object, ...] | None:
    choice = choices.get(job)
    return None if choice is None else choice.choice


def _when(choice: Choice) -> tuple[int, str, int]:
    at_ns = choice.release_ns if choice.start_ns is None else choice.start_ns
    return at_ns, choice.task, choice.index
