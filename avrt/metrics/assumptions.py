"""What the analyses take for granted, held against what a run really did.

A bound is a promise only as long as the declared figures are true. This listens to every call of
the kernel and keeps the first thing that was not as declared:

* execution: a job, or a segment of one, executed longer than its wcet, without what overheads
  were charged to it, or shorter than its bcet;
* rate: a message came closer to the one before than period and jitter allow;
* delay: it came later after its capture than latency and jitter, or sooner than the latency;
* gap: the next message was captured later than a period after the one before;
* phase: under a table, message k of a source that releases a stage did not arrive at k periods
  from time 0, up to the jitter later;
* lost: a device or a stream was lost, and its work went elsewhere or nowhere;
* told_late: the kernel learned of a release after its nominal time (the wall clock's driver);
* level: another level of the ladder was entered, at which other figures count;
* unseen: part of the record is damaged, so nobody knows;
* supply: the operating system gave a device its budget, and nobody saw whether it did;
* failure, skipped: a job gave no result, for a fault or for an input, so nothing was handed on.

Gap, failure and skipped matter only to chains along the source or stage, or along a stage that it
triggers, and so does delay, unless a stage counts its deadline from the capture or matches
captures. Under a table they matter to responses too: those of sources that release a stage, and all
that leaves a stage without a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.metrics.broken import Broken, earliest
from avrt.metrics.executions import Work
from avrt.metrics.messages import Messages
from avrt.model.commands import Abort, Command, Dispatch, EnterMode, Preempt, Record, Resume
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceLost,
    Drain,
    Event,
    Failed,
    Hung,
    SegmentEnded,
    StreamLost,
)
from avrt.model.levels import first_level
from avrt.model.records import JobRecord
from avrt.model.scenario import NO_OVERHEADS, OverheadSpec
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from avrt.model.spec import PipelineSpec

FREE = OverheadSpec()
MOVES = frozenset((Dispatch, Preempt, Resume, Abort))


class Assumptions:
    """The first assumption that a run broke: of those behind responses, and of all."""

    def __init__(
        self, spec: PipelineSpec, overheads: Mapping[str, OverheadSpec] = NO_OVERHEADS
    ) -> None:
        self._overheads = overheads
        begun = (*spec.stages, *first_level(spec).stages)
        self._stages = {task: stage for stage in begun for task in stage.task_names}
        self._preemptive = {device.name for device in spec.devices if device.preemptive}
        self._supplies = {device.name: device.supply for device in spec.devices}
        self._sources = {source.name: Messages(spec, source) for source in spec.sources}
        self._triggers = {
            stage.name: stage.trigger_input.source
            for stage in spec.stages
            if stage.trigger_input is not None
        }
        self._has_table = spec.table is not None
        self._work: dict[int, Work] = {}
        self._now_ns = 0
        self._drained_ns = NEVER_NS
        self._of_responses: Broken | None = None
        self._of_chains: dict[str, Broken] = {}
        for name, supply in self._supplies.items():
            if supply is not None and not supply.is_placed:
                self._tell(Broken("supply", name, None, 0))

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one call of the kernel."""
        self._now_ns = at_ns
        for event in events:
            self._event(event, at_ns)
        for command in commands:
            if type(command) is Record:
                record = command.record
                if type(record) is JobRecord:
                    self._ended(record)
            elif type(command) is EnterMode:
                self._tell(Broken("level", command.mode, None, at_ns))
            elif type(command) in MOVES:
                self._moved(command, at_ns)

    def unseen(self) -> None:
        """Note that what happened next is not known."""
        self._tell(Broken("unseen", "journal", None, self._now_ns))

    @property
    def first_of_responses(self) -> Broken | None:
        """The first broken assumption on which the bounds of responses rest."""
        until_ns = self._until_ns
        absent = [source.absence(until_ns) for source in self._sources.values()]
        return earliest([self._of_responses, *self._overrunning(), *absent])

    @property
    def first(self) -> Broken | None:
        """The first broken assumption of all."""
        return self.first_along((*self._sources, *(s.name for s in self._stages.values())))

    def first_along(self, path: Sequence[str]) -> Broken | None:
        """Return the first broken one on which a chain along these sources and stages rests."""
        until_ns = self._until_ns
        names = self._with_triggers(path)
        silent = [self._sources[name].silence(until_ns) for name in names if name in self._sources]
        own = [self._of_chains.get(name) for name in names]
        return earliest([self.first_of_responses, *own, *silent])

    def _with_triggers(self, path: Sequence[str]) -> list[str]:
        """Return these sources and stages, and all that triggers them."""
        names = dict.fromkeys(path)
        for name in path:
            above = self._triggers.get(name)
            while above is not None and above not in names:
                names[above] = None
                above = self._triggers.get(above)
        return list(names)

    @property
    def _until_ns(self) -> int:
        """Up to when messages are waited for."""
        return min(self._now_ns, self._drained_ns)

    # What came

    def _event(self, event: Event, at_ns: int) -> None:
        match event:
            case Completed() | Failed() | Hung() | SegmentEnded():
                self._stopped(event, at_ns)
            case Arrived():
                for broken, chains_only in self._sources[event.source].take(event, at_ns):
                    self._tell(broken, along=event.source if chains_only else None)
            case DeviceLost(device=name) | StreamLost(stream=name):
                self._tell(Broken("lost", name, None, at_ns))
            case Drain():
                self._drained_ns = at_ns
            case _:
                pass

    def _tell(self, broken: Broken, *, along: str | None = None) -> None:
        """Note what is broken; what concerns chains only, for those along a source or stage."""
        if along is None:
            self._of_responses = earliest([self._of_responses, broken]) or broken
        else:
            self._of_chains[along] = earliest([self._of_chains.get(along), broken]) or broken

    # What executed

    def _moved(self, command: Command, at_ns: int) -> None:
        match command:
            case Dispatch():
                work = self._work.get(command.job)
                if work is None:
                    stage = self._stages[command.task]
                    work = self._work[command.job] = Work(command.task, command.index, stage)
                costs = self._overheads.get(command.device, FREE)
                work.begin(command, at_ns, self._supplies[command.device], costs)
            case Preempt() if command.job in self._work:
                self._work[command.job].pause(at_ns)
            case Resume() if command.job in self._work:
                self._work[command.job].resume(at_ns)
            case Abort() if command.job in self._work:
                work = self._work[command.job]
                work.is_aborted = True
                if work.since_ns is None or work.device in self._preemptive:
                    self._tell_overruns(work, at_ns)
                    del self._work[command.job]
            case _:
                pass

    def _stopped(self, event: Completed | Failed | Hung | SegmentEnded, at_ns: int) -> None:
        work = self._work.get(event.job)
        if work is None:
            return
        self._tell_overruns(work, at_ns)
        work.pause(at_ns)
        if type(event) is not SegmentEnded or work.is_aborted:
            del self._work[event.job]
        if isinstance(event, Failed | Hung):
            detail = event.fault if isinstance(event, Failed) else "hang"
            broken = Broken("failure", work.task, work.index, at_ns, detail=detail)
            self._tell(broken, along=None if self._has_table else work.stage.name)

    def _tell_overruns(self, work: Work, at_ns: int) -> None:
        for broken in work.overruns(at_ns):
            self._tell(broken)

    def _overrunning(self) -> Iterator[Broken]:
        """Yield what executes for too long and has not ended."""
        for work in self._work.values():
            yield from work.overruns(self._now_ns)

    def _ended(self, job: JobRecord) -> None:
        task, index = job.task, job.index
        if job.reason == "lost":  # no event tells of its end
            self._work.pop(job.job, None)
        if job.arrival_ns > job.release_ns:
            late_ns = job.arrival_ns - job.release_ns
            self._tell(Broken("told_late", task, index, job.release_ns, 0, late_ns, "release"))
        if job.outcome == "skipped" and job.reason != "busy":
            broken = Broken("skipped", task, index, job.end_ns, detail=job.reason)
            self._tell(broken, along=None if self._has_table else job.stage)
        best_ns = self._stages[task].bcet_ns or 1
        if job.outcome in {"met", "late"} and job.executed_ns < best_ns:
            self._tell(
                Broken("execution", task, index, job.end_ns, best_ns, job.executed_ns, "bcet")
            )
