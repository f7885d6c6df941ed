"""A recorded run as what a repetition needs: what came from outside, and what its work took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.drivers.execution import Work, read_entries, read_works
from avrt.errors import InputError
from avrt.logs.record.journal import Journal
from avrt.logs.record.recorded import WHAT_IF, check_whole, read_overheads, read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.metrics.changes import JobLog
from avrt.metrics.run import RunFigures
from avrt.model.events import (
    Arrived,
    Completed,
    Drain,
    Event,
    Failed,
    Hung,
    ModeRequested,
    SegmentEnded,
    Started,
    Voted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from avrt.logs.record.journal import Entry
    from avrt.model.spec import PipelineSpec

    Key = tuple[str, int]

WHOLE = "expected a run that came to its own end, found one"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What a run record tells about a run that can be repeated.

    Attributes:
        feed: what came from outside while there were releases, at the time of the kernel's call.
        after: what came from outside when they had ceased, likewise.
        works: the work of every dispatched job, by task and root.
        votes: the voter's answers over redundant stages, in order, by stage and root.
        until_ns: before when timer releases happened; None: until the feed was over.
        fresh_handle: the first of the handles that no message of the run had; None where an output
            has the number of its job, as in a simulation, and does so when the run is repeated.
        log: its jobs.
        digest: its decisions.
    """

    spec: PipelineSpec
    zero_ns: int
    feed: Sequence[tuple[int, Event]]
    works: Mapping[Key, Work]
    votes: Mapping[Key, Sequence[Voted]]
    until_ns: int | None
    fresh_handle: int | None
    log: JobLog
    figures: RunFigures
    digest: str
    conditions: Mapping[str, str]
    after: Sequence[tuple[int, Event]] = ()


def read_recorded(path: str | Path) -> RecordedRun:
    """Read a run that is to be repeated.

    Raises:
        InputError: it is no run record, is damaged, or did not come to its own end.
    """
    with RunFile(path) as run:
        check_whole(run, path)
        spec = read_pipeline(run, path)
        if not run.complete:
            raise InputError(f"{WHOLE} cut short", str(path))
        entries = list(read_entries(run, path))
        if run.damage:
            raise run.damage[0]
        return recorded_run(spec, entries, str(path), run.zero_ns, run.conditions)


def recorded_run(
    spec: PipelineSpec,
    entries: Sequence[Entry],
    path: str,
    zero_ns: int = 0,
    conditions: Mapping[str, str] | None = None,
) -> RecordedRun:
    """Return the run of a journal.

    Raises:
        InputError: an entry is not what was written, or the run did not come to its own end.
    """
    conditions = conditions or {}
    overheads = read_overheads(conditions, path)
    figures = RunFigures(spec, overheads, is_repeated=WHAT_IF in conditions)
    log = JobLog(spec)
    journal = Journal(watch=figures.watch)
    votes: dict[Key, list[Voted]] = defaultdict(list)
    for entry in entries:
        for event in entry.events:
            if isinstance(event, Voted):
                votes[log.lineage.origin(event.activation)].append(event)
        log.take(entry.commands)
        for command in entry.commands:
            figures.take(command)
        journal.note(entry.at_ns, entry.events, entry.commands)
        if entry.check != journal.check:
            what = f"expected the check {journal.check}, found {entry.check}"
            raise InputError(what, f"{path}, journal entry {entry.index}", entry.index)
    works = list(read_works(entries, spec))
    keys = [(work.task, log.lineage.root(work.task, work.index)) for work in works]
    drain = next((i for i, entry in enumerate(entries) if Drain() in entry.events), len(entries))
    return RecordedRun(
        spec,
        zero_ns,
        list(_outer(entries[: drain + 1], spec)),
        dict(zip(keys, works, strict=True)),
        votes,
        _until_ns(entries, spec, path),
        _fresh_handle([event for entry in entries for event in entry.events]),
        log,
        figures,
        journal.digest,
        conditions,
        list(_outer(entries[drain + 1 :], spec)),
    )


def _outer(entries: Sequence[Entry], spec: PipelineSpec) -> Iterator[tuple[int, Event]]:
    for entry in entries:
        yield from ((entry.at_ns, event) for event in entry.events if _is_outer(event, spec))


def _is_outer(event: Event, spec: PipelineSpec) -> bool:
    """Whether an event came from outside the run: not from its own work, nor from its ladder."""
    inner = Started | SegmentEnded | Completed | Failed | Hung | Voted | Drain
    if spec.ladder is not None:
        inner |= ModeRequested
    return not isinstance(event, inner)


def _fresh_handle(events: Sequence[Event]) -> int | None:
    """Return the first handle that no message had, None where outputs are numbered by job."""
    outputs = [(event.buffer, event.job) for event in events if isinstance(event, Completed)]
    voted = [e.buffer for e in events if isinstance(e, Voted) and e.buffer is not None]
    last = max((event.buffer for event in events if isinstance(event, Arrived)), default=-1)
    if last < 0 and all(buffer == job for buffer, job in outputs):
        return None
    return 1 + max([last, *voted, *(buffer for buffer, _ in outputs)])


def _until_ns(entries: Sequence[Entry], spec: PipelineSpec, path: str) -> int | None:
    """Return before when releases happened, None if they ceased right after the last outer event.

    A replay drains as soon as its feed is over, before what the kernel still plans for that same
    instant; a simulation after it.
    """
    if any(Drain(at_once=True) in entry.events for entry in entries):
        raise InputError(f"{WHOLE} interrupted", path)
    place = next((i for i, entry in enumerate(entries) if Drain() in entry.events), None)
    if place is None:
        raise InputError(f"{WHOLE} cut short", path)
    at_ns = entries[place].at_ns
    while place and entries[place - 1].events and _only_follows(entries[place - 1]):
        place -= 1
    if place == 0:
        return None if at_ns == 0 else at_ns + 1
    last = entries[place - 1]
    at_once = last.at_ns == at_ns and any(_is_outer(event, spec) for event in last.events)
    return None if at_once else at_ns + 1


def _only_follows(entry: Entry) -> bool:
    """Whether a call only answers commands of the one before."""
    return all(isinstance(event, Voted) for event in entry.events)
