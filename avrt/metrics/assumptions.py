"""What the analyses take for granted, held against what a run really did.

A bound is a promise only as long as the declared figures are true. This listens to every call of
the kernel and keeps the first thing that was not as declared:

* execution: a job, or a segment of one, executed longer than its wcet, or shorter than its bcet;
* rate: a message came closer to the one before than period and jitter allow;
* delay: it came later after its capture than the jitter, or before its capture;
* gap: the next message was captured later than a period after the one before;
* lost: a device or a stream was lost, and its work went elsewhere or nowhere;
* told_late: the kernel learned of a release after its nominal time (the wall clock's driver);
* unseen: part of the record is damaged, so nobody knows;
* supply: the operating system gave a device its budget, and nobody saw whether it did;
* failure, skipped: a job gave no result, for a fault or for an input, so nothing was handed on.

Gap, failure and skipped matter only to chains along the source or stage, or along a stage that it
triggers, and so does delay, unless a stage counts its deadline from the capture or matches
captures. With the declared jitter J and period P a row of arrivals is legal if nominal ones exist
at least P apart, each followed by its own within J; taking every nominal arrival as early as it can
be decides that without knowing them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from avrt.model.commands import Abort, Command, Dispatch, Preempt, Record, Resume
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
from avrt.model.records import JobRecord
from avrt.model.supply import end_ns, given_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.model.spec import PipelineSpec, SourceSpec, StageSpec
    from avrt.model.supply import Supply

Kind = Literal[
    "execution",
    "rate",
    "delay",
    "gap",
    "lost",
    "told_late",
    "unseen",
    "supply",
    "failure",
    "skipped",
]
NEVER_NS = 1 << 62
MOVES = frozenset((Dispatch, Preempt, Resume, Abort))


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that was not as declared.

    Attributes:
        subject: the task, source, device or stream.
        index: of the job, or of the message in the order of arrival; None for a device or stream.
        at_ns: when it began to be so.
        declared_ns, found_ns: the figure, where it is one.
        detail: the figure's name, or the reason.
    """

    kind: Kind
    subject: str
    index: int | None
    at_ns: int
    declared_ns: int | None = None
    found_ns: int | None = None
    detail: str = ""


class Assumptions:
    """The first assumption that a run broke: of those behind responses, and of all."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._stages = {task: stage for stage in spec.stages for task in stage.task_names}
        self._preemptive = {device.name for device in spec.devices if device.preemptive}
        self._supplies = {device.name: device.supply for device in spec.devices}
        self._sources = {source.name: _Arrivals(spec, source) for source in spec.sources}
        self._triggers = {
            stage.name: stage.trigger_input.source
            for stage in spec.stages
            if stage.trigger_input is not None
        }
        self._work: dict[int, _Work] = {}
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
            elif type(command) in MOVES:
                self._moved(command, at_ns)

    def unseen(self) -> None:
        """Note that what happened next is not known."""
        self._tell(Broken("unseen", "journal", None, self._now_ns))

    @property
    def first_of_responses(self) -> Broken | None:
        """The first broken assumption on which the bounds of responses rest."""
        return _earliest([self._of_responses, *self._overrunning()])

    @property
    def first(self) -> Broken | None:
        """The first broken assumption of all."""
        return self.first_along((*self._sources, *(s.name for s in self._stages.values())))

    def first_along(self, path: Sequence[str]) -> Broken | None:
        """Return the first broken one on which a chain along these sources and stages rests."""
        until_ns = min(self._now_ns, self._drained_ns)
        names = self._with_triggers(path)
        silent = [self._sources[name].silence(until_ns) for name in names if name in self._sources]
        own = [self._of_chains.get(name) for name in names]
        return _earliest([self.first_of_responses, *own, *silent])

    def _with_triggers(self, path: Sequence[str]) -> list[str]:
        """Return these sources and stages, and all that triggers them."""
        names = dict.fromkeys(path)
        for name in path:
            above = self._triggers.get(name)
            while above is not None and above not in names:
                names[above] = None
                above = self._triggers.get(above)
        return list(names)

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
            self._of_responses = _earliest([self._of_responses, broken]) or broken
        else:
            self._of_chains[along] = _earliest([self._of_chains.get(along), broken]) or broken

    # What executed

    def _moved(self, command: Command, at_ns: int) -> None:
        match command:
            case Dispatch():
                work = self._work.get(command.job)
                if work is None:
                    stage = self._stages[command.task]
                    work = self._work[command.job] = _Work(command.task, command.index, stage)
                work.begin(command, at_ns, self._supplies[command.device])
            case Preempt() if command.job in self._work:
                self._work[command.job].pause(at_ns)
            case Resume() if command.job in self._work:
                self._work[command.job].since_ns = at_ns
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
            self._tell(broken, along=work.stage.name)

    def _tell_overruns(self, work: _Work, at_ns: int) -> None:
        for broken in work.overruns(at_ns):
            self._tell(broken)

    def _overrunning(self) -> Iterator[Broken]:
        """Yield what executes for too long and has not ended."""
        for work in self._work.values():
            yield from work.overruns(self._now_ns)

    def _ended(self, job: JobRecord) -> None:
        task, index = job.task, job.index
        if job.arrival_ns > job.release_ns:
            late_ns = job.arrival_ns - job.release_ns
            self._tell(Broken("told_late", task, index, job.release_ns, 0, late_ns, "release"))
        if job.outcome == "skipped" and job.reason != "busy":
            broken = Broken("skipped", task, index, job.end_ns, detail=job.reason)
            self._tell(broken, along=job.stage)
        best_ns = self._stages[task].bcet_ns or 1
        if job.outcome in {"met", "late"} and job.executed_ns < best_ns:
            self._tell(
                Broken("execution", task, index, job.end_ns, best_ns, job.executed_ns, "bcet")
            )


class _Work:
    """One job that was dispatched: what it has executed in all, and in its present segment."""

    __slots__ = (
        "device",
        "index",
        "is_aborted",
        "part",
        "since_ns",
        "stage",
        "supply",
        "task",
        "whole",
    )

    def __init__(self, task: str, index: int, stage: StageSpec) -> None:
        self.task = task
        self.index = index
        self.stage = stage
        self.whole = _Execution("wcet", stage.wcet_ns)
        self.since_ns: int | None = None
        self.is_aborted = False

    def begin(self, command: Dispatch, at_ns: int, supply: Supply | None) -> None:
        self.device, self.since_ns, self.supply = command.device, at_ns, supply
        parts = self.stage.segments
        limit_ns = parts[command.segment].wcet_ns if parts else self.stage.wcet_ns
        self.part = _Execution("wcet of the segment", limit_ns)

    def pause(self, at_ns: int) -> None:
        if self.since_ns is not None:
            self.whole.add(self.since_ns, at_ns, self.supply)
            self.part.add(self.since_ns, at_ns, self.supply)
            self.since_ns = None

    def overruns(self, at_ns: int) -> Iterator[Broken]:
        """Yield what has executed for longer than declared, from when it had all that it needs."""
        if self.since_ns is not None:
            self.pause(at_ns)
            self.since_ns = at_ns
        for part in (self.whole, self.part):
            if part.done_ns > part.limit_ns:
                assert part.full_ns is not None
                found = (part.limit_ns, part.done_ns, part.name)
                yield Broken("execution", self.task, self.index, part.full_ns, *found)


@dataclass(slots=True)
class _Execution:
    """What was executed, of how much; `full_ns` is when it was all of that."""

    name: str
    limit_ns: int
    done_ns: int = 0
    full_ns: int | None = None

    def add(self, from_ns: int, until_ns: int, supply: Supply | None) -> None:
        missing_ns = self.limit_ns - self.done_ns
        self.done_ns += given_ns(supply, from_ns, until_ns)
        if self.full_ns is None and self.done_ns >= self.limit_ns:
            self.full_ns = end_ns(supply, from_ns, missing_ns)


class _Arrivals:
    """The messages of one source against its declared period and its readers' jitter.

    A reader that samples declares no jitter; the end of a chain counts on the arrival then.
    """

    def __init__(self, spec: PipelineSpec, source: SourceSpec) -> None:
        self._source = source
        triggered = [
            stage
            for stage in spec.stages
            if stage.trigger_input is not None and stage.trigger_input.source == source.name
        ]
        matched = [
            stage
            for stage in spec.stages
            if stage.sync is not None and source.name in [item.source for item in stage.inputs]
        ]
        readers = [s for s in spec.stages if source.name in [item.source for item in s.inputs]]
        released = [*triggered, *matched]
        self._jitter_ns = min((s.jitter_ns if s in released else 0 for s in readers), default=0)
        self._release_jitter_ns = min((stage.jitter_ns for stage in triggered), default=None)
        by_capture = any(s.sync or s.deadline_from == "capture" for s in spec.stages)
        limits = [stage.jitter_ns for stage in released if by_capture]
        self._delay_ns = min(limits, default=NEVER_NS)
        self._matched = bool(matched)
        self._index = -1
        self._last_ns: int | None = None
        self._nominal_ns = -NEVER_NS
        self._capture_ns: int | None = None

    def take(self, event: Arrived, at_ns: int) -> Iterator[tuple[Broken, bool]]:
        """Yield what is not as declared, and whether it concerns chains only."""
        self._index += 1
        for broken in self._rate(min(event.log_ns, at_ns)):
            yield broken, False
        yield from self._captured(event.capture_ns, at_ns)

    def silence(self, until_ns: int) -> Broken | None:
        """Return that the next message should have been captured by then and was not."""
        period_ns, capture_ns = self._source.period_ns, self._capture_ns
        if period_ns is None or capture_ns is None or until_ns <= capture_ns + period_ns:
            return None
        found_ns, at_ns = until_ns - capture_ns, capture_ns + period_ns
        if found_ns <= period_ns + self._jitter_ns:
            return None
        return Broken("gap", self._source.name, self._index + 1, at_ns, period_ns, found_ns)

    def _rate(self, at_ns: int) -> Iterator[Broken]:
        """Yield that a message came too close to the one before."""
        jitter_ns, period_ns = self._release_jitter_ns, self._source.period_ns
        if jitter_ns is None or period_ns is None:
            return
        nominal_ns = max(self._nominal_ns + period_ns, at_ns - jitter_ns)
        if nominal_ns > at_ns:
            last_ns = at_ns if self._last_ns is None else self._last_ns
            yield Broken(
                "rate", self._source.name, self._index, at_ns, period_ns, at_ns - last_ns, "arrival"
            )
            nominal_ns = at_ns
        self._nominal_ns, self._last_ns = nominal_ns, at_ns

    def _captured(self, capture_ns: int, at_ns: int) -> Iterator[tuple[Broken, bool]]:
        name, period_ns, jitter_ns = self._source.name, self._source.period_ns, self._jitter_ns
        late_ns = at_ns - capture_ns
        if not 0 <= late_ns <= jitter_ns:
            passed_ns = min(at_ns, capture_ns + jitter_ns)
            is_harmless = late_ns <= self._delay_ns and (late_ns >= 0 or self._delay_ns == NEVER_NS)
            yield Broken("delay", name, self._index, passed_ns, jitter_ns, late_ns), is_harmless
        before_ns, self._capture_ns = self._capture_ns, capture_ns
        if before_ns is None or period_ns is None:
            return
        apart_ns = capture_ns - before_ns
        if apart_ns > period_ns:
            since_ns = before_ns + period_ns
            yield Broken("gap", name, self._index, since_ns, period_ns, apart_ns), True
        elif apart_ns < period_ns and self._matched:
            yield Broken("rate", name, self._index, at_ns, period_ns, apart_ns, "capture"), False


def _earliest(found: Sequence[Broken | None]) -> Broken | None:
    return min((b for b in found if b is not None), key=lambda b: b.at_ns, default=None)
