"""How long a job takes in virtual time.

* modelled: the declared wcet, or drawn from the stage's profile;
* recorded: what it took in another run, by task and job index;
* measured: what it takes here; stages then run one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from avrt.drivers.draws import Draws
from avrt.drivers.variants import VariantCosts
from avrt.errors import InputError, SpecError
from avrt.logs.record.journal import Entry, parse_entry
from avrt.logs.record.recorded import read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Abort, Dispatch, Preempt, Resume
from avrt.model.events import Completed, DeviceLost, Failed, Hung, SegmentEnded, Started, StreamLost
from avrt.model.execution import Sampled
from avrt.model.segments import spinning
from avrt.model.spec import placed_supplies
from avrt.model.supply import given_ns

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from pathlib import Path

    from avrt.logs.record.run_file import Line
    from avrt.model.commands import Command
    from avrt.model.spec import PipelineSpec
    from avrt.model.supply import Supply

TimingLabel = Literal["modelled", "recorded", "measured"]


class Timing(Protocol):
    """Execution times of jobs, ns.

    Attributes:
        source: the run that they come from, "" if from none.
    """

    label: TimingLabel
    source: str

    def cost_ns(self, task: str, index: int, variant: str = "") -> int | None:
        """Return what a job takes as a variant of its stage, or None if only running it tells."""


class ModelTiming:
    """A job takes the wcet of its stage, or one of the times of its profile if it has one.

    Which of them depends on the task and the job's index alone.
    """

    label: TimingLabel = "modelled"
    source = ""

    def __init__(self, spec: PipelineSpec) -> None:
        self.wcet_ns = {task: stage.wcet_ns for stage in spec.stages for task in stage.task_names}
        self._profiles = {
            task: Sampled(stage.profile_ns)
            for stage in spec.stages
            if stage.profile_ns
            for task in stage.task_names
        }
        self._draws = Draws(0)
        self._variants = VariantCosts(spec)

    def cost_ns(self, task: str, index: int, variant: str = "") -> int:
        profile, cost_ns = self._profiles.get(task), self.wcet_ns[task]
        if profile is not None:
            cost_ns = profile.cost_ns(self._draws.uniform(task, index), index)
        return self._variants.scaled_ns(cost_ns, task, variant)


class MeasuredTiming:
    """Every job takes what it takes here."""

    label: TimingLabel = "measured"
    source = ""

    def cost_ns(self, task: str, index: int, variant: str = "") -> int | None:
        del task, index, variant
        return None


class RecordedTiming:
    """Every job takes what it took in a recorded run; one that did not run there takes its wcet."""

    label: TimingLabel = "recorded"

    def __init__(self, spec: PipelineSpec, path: str | Path) -> None:
        """Read the run.

        Raises:
            InputError: it is no run record, or its journal is damaged.
            SpecError: no stage of this pipeline ran there.
        """
        self._fallback = ModelTiming(spec)
        self._variants = VariantCosts(spec)
        wcet_ns = self._fallback.wcet_ns
        self._cost_ns = {
            (work.task, work.index): (_cost_ns(work, wcet_ns[work.task]), work.dispatch.variant)
            for work in _read_works(path)
            if work.task in wcet_ns
        }
        if not self._cost_ns:
            raise SpecError(f"no stage of this pipeline ran in {path}; give a run of it")
        self.source = f"{path}, {len(self._cost_ns)} jobs"

    def cost_ns(self, task: str, index: int, variant: str = "") -> int:
        known = self._cost_ns.get((task, index))
        if known is None:
            return self._fallback.cost_ns(task, index, variant)
        return self._variants.scaled_ns(known[0], task, variant, known[1])


def _read_works(path: str | Path) -> Iterator[Work]:
    """Yield the work of every dispatched job of a run."""
    with RunFile(path) as run:
        yield from read_works(read_entries(run, path), read_pipeline(run, path))


def _cost_ns(work: Work, wcet_ns: int) -> int:
    """Return what work took; what was stopped takes longer than it had."""
    return work.cost_ns if work.end is not None else max(work.cost_ns, wcet_ns)


def read_works(entries: Iterable[Entry], spec: PipelineSpec) -> Iterator[Work]:
    """Yield the work of every dispatched job of a journal; work without an end comes last.

    `spec` is the pipeline of that journal. A job's work is timed from its dispatch to the report of
    its end, whatever its outcome: a job aborted at its deadline goes on where nothing can stop it,
    until its stream or device is lost.
    """
    works: dict[int, Work] = {}
    supplies = placed_supplies(spec.devices)
    spins = {
        (task, place)
        for stage in spec.stages
        for place, _, _ in spinning(stage)
        for task in stage.task_names
    }
    ends = 0
    for entry in entries:
        for event in entry.events:
            match event:
                case Started() if event.job in works:
                    works[event.job].began_ns = event.device_ns
                case SegmentEnded() if event.job in works:
                    works[event.job].part_ended(entry.at_ns, ends)
                    ends += 1
                case Completed() | Failed() | Hung() if event.job in works:
                    work = works.pop(event.job)
                    work.part_ended(entry.at_ns, ends)
                    ends += 1
                    work.end, work.end_ns = event, entry.at_ns
                    yield work
                case StreamLost() | DeviceLost():
                    for work in works.values():
                        if work.is_lost_with(event):
                            work.stop(entry.at_ns)
                case _:
                    pass
        for command in entry.commands:
            _obey(works, command, entry.at_ns, spins, supplies)
    yield from works.values()


def _obey(
    works: dict[int, Work],
    command: Command,
    at_ns: int,
    spins: Container[tuple[str, int]],
    supplies: Mapping[str, Supply],
) -> None:
    """Begin work, or take it off its slot and put it back."""
    match command:
        case Dispatch() if command.segment > 0 and command.job in works:
            works[command.job].go_on(command, at_ns, (command.task, command.segment) in spins)
        case Dispatch():
            works[command.job] = Work(command, at_ns, supplies)
        case Resume() if command.job in works:
            works[command.job].since_ns = at_ns
        case Preempt() | Abort() if command.job in works:
            works[command.job].stop(at_ns, goes_on=isinstance(command, Abort))
        case _:
            pass


def read_entries(run: RunFile, path: str | Path) -> Iterator[Entry]:
    """Yield the entries of a journal.

    Raises:
        InputError: one is damaged.
    """
    for line in run.journal():
        yield _read_entry(path, line)


def _read_entry(path: str | Path, line: Line) -> Entry:
    place = f"{path}, journal entry {line.index}"
    try:
        entry = parse_entry(line.text)
    except ValueError as error:
        raise InputError(str(error), place, line.index) from None
    if line.damaged:
        raise InputError("expected an undamaged entry, found a wrong CRC", place, line.index)
    return entry


@dataclass(slots=True)
class Part:
    """The execution that one segment of a job received, or a whole job without segments.

    Attributes:
        place: the number of its end among all ends; None if that was never reported.
    """

    received_ns: int = 0
    place: int | None = None


@dataclass(slots=True)
class Work:
    """The execution that a dispatched job received.

    Attributes:
        dispatch: of the present segment.
        since_ns: when it last got a slot; None while it is on none.
        supplies: of the devices that are not always there.
        parts: by segment, as far as they were begun.
        kept: the device whose slot it keeps meanwhile, if any.
        began_ns: when the device began by its own clock, None if it did not say.
        end: how it ended, None if that was never reported.
        end_ns: when that was reported.
    """

    dispatch: Dispatch
    since_ns: int | None
    supplies: Mapping[str, Supply] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=lambda: [Part()])
    kept: str | None = None
    began_ns: int | None = None
    end: Completed | Failed | Hung | None = None
    end_ns: int = 0

    @property
    def task(self) -> str:
        return self.dispatch.task

    @property
    def index(self) -> int:
        return self.dispatch.index

    @property
    def received_ns(self) -> int:
        return sum(part.received_ns for part in self.parts)

    @property
    def cost_ns(self) -> int:
        """What it took; of work that was stopped, the least that is more than it had."""
        return self.received_ns + 1 if self.end is None else max(1, self.received_ns)

    def is_lost_with(self, loss: StreamLost | DeviceLost) -> bool:
        """Whether the loss of a stream or a device takes this work with it."""
        if isinstance(loss, StreamLost):
            return self.dispatch.stream == loss.stream
        return loss.device in {self.dispatch.device, self.kept}

    def go_on(self, command: Dispatch, at_ns: int, spins: bool) -> None:  # noqa: FBT001
        """Begin the next segment, which may keep the slot of the one before."""
        if not spins:
            self.kept = None
        elif self.kept is None:
            self.kept = self.dispatch.device
        self.dispatch, self.since_ns = command, at_ns
        self.parts.append(Part())

    def part_ended(self, at_ns: int, place: int) -> None:
        """Note the reported end of the present segment."""
        self.stop(at_ns)
        self.parts[-1].place = place

    def stop(self, at_ns: int, *, goes_on: bool = False) -> None:
        """Count what it received until now; aborted work may go on."""
        if self.since_ns is not None:
            supply = self.supplies.get(self.dispatch.device)
            self.parts[-1].received_ns += given_ns(supply, self.since_ns, at_ns)
            self.since_ns = at_ns if goes_on else None
