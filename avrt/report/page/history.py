"""What happened when: jobs, messages and marks of a run, read once from its journal.

A job is kept with the pieces in which it ran and the explanation of its miss. Of jobs that were
met and of those that were not, so many are kept on a page (`MET_MAX`, `MISSED_MAX`), evenly spread;
besides them the `AROUND` jobs before and after each miss, `NEAR_MAX` in all, and the longest
response of every stage. `Density` counts all jobs.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_record import EXECUTION, SENSORS
from avrt.metrics.streams import gap_before
from avrt.model.codec import decode, from_json
from avrt.model.commands import Dispatch, Preempt, Record, Resume
from avrt.model.events import Arrived, Completed, Failed, Hung, SegmentEnded
from avrt.model.guard import SensorRecord
from avrt.model.records import ChainBroken, ChainRecord, JobRecord, MissRecord
from avrt.report.page.density import Density
from avrt.report.page.marks import Mark, mark_of, sensor_mark
from avrt.report.page.messages import Messages
from avrt.report.page.sieve import Sieve
from avrt.report.summary import UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from avrt.logs.record.journal import Entry
    from avrt.logs.record.run_file import RunFile
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec

MET_MAX = 5_000
NEAR_MAX = 3_000
AROUND = 60
MISSED_MAX = 4_000
MARKS_MAX = 1_000
OUTPUTS_MAX = 2_000


class Piece(NamedTuple):
    """One stretch in which a job ran, on one device; pipeline ns, the end exclusive."""

    start_ns: int
    end_ns: int
    device: str


class Outage(NamedTuple):
    """One stretch in which a sensor was out of use, or its lens blocked; pipeline ns.

    `end_ns` is None where the run ended before it did.
    """

    start_ns: int
    end_ns: int | None
    state: str


@dataclass(slots=True)
class JobRow:
    """One job that ended.

    Attributes:
        pieces: where it ran, in order; the last ends with the job.
        busy_until_ns: when its work ended, where that went on after the job's own end.
        host_ns: what the computation took on the host, where it computed.
        gap_ns: what the gap before its work was, in the parts of `avrt.metrics.streams`; None where
            its device has no clock, and of the first work of its stream.
    """

    record: JobRecord
    miss: MissRecord | None
    pieces: list[Piece]
    busy_until_ns: int | None = None
    host_ns: int | None = None
    gap_ns: list[int] | None = None


@dataclass(slots=True)
class _Open:
    """A job that runs: since when, on which device, in which pieces so far."""

    device: str
    since_ns: int | None
    pieces: list[Piece] = field(default_factory=list)

    def pause(self, at_ns: int) -> None:
        if self.since_ns is not None:
            self.pieces.append(Piece(self.since_ns, at_ns, self.device))
        self.since_ns = None


class History:
    """One run by time.

    Args:
        spec: its pipeline.
        end_ns: when it ended, pipeline ns.
        longest: `(task, index)` of jobs to keep whatever their outcome.
        runs: how many runs share the page.
        begin_ns: when what is known of it began, pipeline ns.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        end_ns: int,
        longest: Collection[tuple[str, int]] = (),
        runs: int = 1,
        begin_ns: int = 0,
    ) -> None:
        self.density = Density(spec, end_ns, begin_ns)
        self.met: Sieve[JobRow] = Sieve(MET_MAX // runs)
        self.missed: Sieve[JobRow] = Sieve(MISSED_MAX // runs)
        self.chains: dict[str, Sieve[ChainRecord]] = {
            c.name: Sieve(OUTPUTS_MAX) for c in spec.chains
        }
        self.broken: Sieve[ChainBroken] = Sieve(MARKS_MAX)
        self.marks: Sieve[Mark] = Sieve(MARKS_MAX)
        self.messages = {source.name: Messages(source.period_ns) for source in spec.sources}
        self.outages: dict[str, list[Outage]] = {source.name: [] for source in spec.sources}
        self.near_left_out = 0
        self._near_max = NEAR_MAX // runs
        self._near: list[JobRow] = []
        self._recent: deque[JobRow] = deque(maxlen=AROUND)
        self._following = 0
        self._longest = set(longest)
        self._always: list[JobRow] = []
        self._open: dict[int, _Open] = {}
        self._misses: dict[int, MissRecord] = {}
        self._working: dict[int, JobRow] = {}
        self._host_ns: dict[tuple[str, int], int] = {}
        self._worked: dict[str, tuple[int, int]] = {}

    @property
    def jobs(self) -> list[JobRow]:
        """Every job that is kept, by the time of its release."""
        kept = (*self.met.items, *self.missed.items, *self._near, *self._always)
        found = {row.record.job: row for row in kept}
        return sorted(found.values(), key=lambda row: (row.record.release_ns, row.record.job))

    def read(self, run: RunFile) -> None:
        """Take in the journal of a record; what of it cannot be read, the summary tells."""
        self._read_host_times(run)
        self._read_sensors(run)
        for line in run.journal():
            if line.damaged:
                continue
            try:
                entry = parse_entry(line.text)
            except UNUSABLE:
                return
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Take in one call of the kernel."""
        self._events(entry.at_ns, entry.events)
        self._commands(entry.at_ns, entry.commands)

    def _events(self, at_ns: int, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case Arrived():
                    self.messages[event.source].arrived(at_ns, event.capture_ns)
                case SegmentEnded() if event.job in self._open:
                    self._open[event.job].pause(at_ns)
                case Completed() | Failed() | Hung() if event.job in self._working:
                    self._working.pop(event.job).busy_until_ns = at_ns
                case _:
                    pass

    def _commands(self, at_ns: int, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Dispatch():
                    known = self._open.setdefault(command.job, _Open(command.device, None))
                    known.device, known.since_ns = command.device, at_ns
                case Preempt() if command.job in self._open:
                    self._open[command.job].pause(at_ns)
                case Resume() if command.job in self._open:
                    self._open[command.job].since_ns = at_ns
                case Record(record=JobRecord() as job):
                    self._ended(job)
                case Record(record=MissRecord() as miss):
                    self._misses[miss.job] = miss
                case Record(record=ChainRecord() as output):
                    self.chains[output.chain].add(output)
                case Record(record=ChainBroken() as promise):
                    self.broken.add(promise)
                case Record() if (mark := mark_of(command.record)) is not None:
                    self.marks.add(mark)
                case _:
                    pass

    def _ended(self, record: JobRecord) -> None:
        self.density.job(record)
        open_ = self._open.pop(record.job, None)
        works_on = open_ is not None and open_.since_ns is not None and record.outcome == "aborted"
        if open_ is not None:
            open_.pause(record.end_ns)
        pieces = [] if open_ is None else [p for p in open_.pieces if p.end_ns > p.start_ns]
        row = JobRow(record, self._misses.pop(record.job, None), pieces)
        row.host_ns = self._host_ns.pop((record.task, record.index), None)
        row.gap_ns = self._gap(record)
        if works_on:
            self._working[record.job] = row
        if record.outcome == "met":
            self.met.add(row)
            self._beside(row)
        else:
            self.missed.add(row)
            self._around()
        if (record.task, record.index) in self._longest:
            self._always.append(row)

    def _gap(self, record: JobRecord) -> list[int] | None:
        """Return what was between a job's work and the one before on its stream."""
        began_ns, done_ns = record.device_start_ns, record.device_ns
        if began_ns is None or done_ns is None:
            return None
        before = self._worked.get(record.task)
        self._worked[record.task] = done_ns, record.end_ns
        return None if before is None else gap_before(record, began_ns, *before)

    def _around(self) -> None:
        """Keep what ended shortly before a miss, and what will shortly after."""
        while self._recent:
            self._keep_near(self._recent.popleft())
        self._following = AROUND

    def _beside(self, row: JobRow) -> None:
        """Keep a job that was met if a miss was shortly before; else it may be before the next."""
        if self._following:
            self._following -= 1
            self._keep_near(row)
        else:
            self._recent.append(row)

    def _keep_near(self, row: JobRow) -> None:
        if len(self._near) < self._near_max:
            self._near.append(row)
        else:
            self.near_left_out += 1

    def _read_host_times(self, run: RunFile) -> None:
        """Note what jobs took here; entries that cannot be used, the summary tells."""
        for line in run.lines(EXECUTION):
            try:
                item = json.loads(line.text)
                self._host_ns[str(item["task"]), int(item["index"])] = int(item["host_ns"])
            except UNUSABLE:
                continue

    def _read_sensors(self, run: RunFile) -> None:
        """Take in the states of sensors; notes that cannot be used, the summary tells."""
        for line in run.lines(SENSORS):
            try:
                self._sensor(decode(SensorRecord, from_json(line.text)))
            except UNUSABLE:
                continue

    def _sensor(self, record: SensorRecord) -> None:
        if record.state == record.was:
            return
        self.marks.add(sensor_mark(record))
        outages = self.outages[record.source]
        if outages and outages[-1].end_ns is None:
            outages[-1] = outages[-1]._replace(end_ns=record.at_ns)
        if record.state != "ok" and len(outages) < MARKS_MAX:
            outages.append(Outage(record.at_ns, None, record.state))
