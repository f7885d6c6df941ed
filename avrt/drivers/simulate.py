"""Simulation: the kernel in virtual time, nothing runs.

Completions come from an execution-time model, arrivals and faults from a feed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from avrt.drivers.execution import ModelTiming
from avrt.drivers.overheads import simulation_loop
from avrt.drivers.votes import Agreeing
from avrt.logs.record.journal import Journal
from avrt.model.commands import Command, Dispatch, Record, Vote
from avrt.model.events import Arrived, Completed, Event, Failed, Hung, Voted
from avrt.model.records import JobRecord
from avrt.model.scenario import NO_OVERHEADS, OverheadSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from avrt.model.records import AnyRecord
    from avrt.model.spec import PipelineSpec

    Execution = Callable[[str, int], int | None]


IN_STEP: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class Simulation:
    """What a simulation showed: records in order, and the digest of decisions."""

    records: list[AnyRecord] = field(default_factory=list)
    digest: str = ""

    @property
    def jobs(self) -> list[JobRecord]:
        """The records of all jobs, in the order in which they ended."""
        return [record for record in self.records if isinstance(record, JobRecord)]

    def jobs_of(self, task: str) -> list[JobRecord]:
        """The records of one task's jobs in release order."""
        return sorted((j for j in self.jobs if j.task == task), key=lambda job: job.index)


def simulate(  # noqa: PLR0913 - all after the pipeline is named
    spec: PipelineSpec,
    *,
    until_ns: int,
    execution: Execution | None = None,
    feed: Iterable[tuple[int, Event]] = (),
    write: Callable[[int, str], None] | None = None,
    watch: Callable[[int, Sequence[Event], Sequence[Command]], None] | None = None,
    digest: bool = True,
    overheads: Mapping[str, OverheadSpec] = NO_OVERHEADS,
) -> Simulation:
    """Run a pipeline in virtual time; releases stop at `until_ns` and what is open finishes.

    Args:
        spec: a checked pipeline.
        until_ns: pipeline time, exclusive.
        execution: `(task, job index)` to execution time in ns, None for a job that never ends;
            the wcet where it is not given.
        feed: arrivals and faults in time order; buffer handles in it are negative.
        write: takes each journal entry.
        watch: takes each call of the kernel.
        digest: whether decisions are noted; to write them takes longer than to make them.
        overheads: what scheduling costs, by device; nothing where it is not given.
    """
    notes = _Records()
    noted = digest or write is not None or watch is not None
    journal = Journal(write, notes.listen, watch) if noted else notes
    worker = Pretended(_takes(execution, ModelTiming(spec)), overheads)
    simulation_loop(spec, iter(feed), worker, journal, until_ns).run()
    return Simulation(notes.records, journal.digest)


def _takes(
    execution: Execution | None, timing: ModelTiming
) -> Callable[[Dispatch, int], int | None]:
    """Return what a job takes by how it is dispatched: as given, or as its variant is declared."""
    if execution is None:
        return lambda job, _at_ns: timing.cost_ns(job.task, job.index, job.variant)
    return lambda job, _at_ns: execution(job.task, job.index)


def periodic_arrivals(
    spec: PipelineSpec, until_ns: int, phases_ns: Mapping[str, int] = IN_STEP
) -> Iterator[tuple[int, Event]]:
    """Yield arrivals of every source that declares a rate, its latency after their captures.

    `phases_ns` says when each source begins to capture, 0 where it is not given.
    """
    arrivals = [
        (capture_ns + source.latency_ns, order, sequence, source)
        for order, source in enumerate(spec.sources)
        if source.period_ns is not None
        for sequence, capture_ns in enumerate(
            range(phases_ns.get(source.name, 0), until_ns - source.latency_ns, source.period_ns)
        )
    ]
    arrivals.sort(key=lambda arrival: arrival[:2])
    for handle, (at_ns, _, sequence, source) in enumerate(arrivals):
        capture_ns = at_ns - source.latency_ns
        yield at_ns, Arrived(source.name, sequence, capture_ns, at_ns, -1 - handle)


class _Records:
    """Keeps the records of each call of the kernel, and nothing else."""

    digest = ""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []

    def listen(self, at_ns: int, commands: Sequence[Command]) -> None:
        self.note(at_ns, (), commands)

    def note(self, _at_ns: int, _events: Sequence[Event], commands: Sequence[Command]) -> None:
        for command in commands:
            if type(command) is Record:
                self.records.append(command.record)


class Pretended:
    """A worker that takes time and makes nothing: a job's output is a handle of its own number.

    Args:
        execution: what a job takes by its dispatch and when that is, None for one without end.

    Attributes:
        overheads: what scheduling costs, by device.
    """

    heeds = False

    def __init__(
        self,
        execution: Callable[[Dispatch, int], int | None],
        overheads: Mapping[str, OverheadSpec] = NO_OVERHEADS,
    ) -> None:
        self._execution = execution
        self._voter = Agreeing()
        self.overheads = overheads

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        return self._execution(command, at_ns)

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        return Completed(job, job, at_ns)

    def vote(self, command: Vote, at_ns: int) -> Voted:
        del at_ns
        return self._voter.vote(command, command.jobs)

    def abandon(self, job: int, at_ns: int) -> None:
        pass

    def obey(self, command: Command, at_ns: int) -> Sequence[Event]:
        del command, at_ns
        return ()
