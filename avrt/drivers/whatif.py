"""What if: a recorded run's arrivals and execution times through a fresh kernel with another spec.

Nothing computes. Sensor messages, losses and the end of the log come when the journal says that the
kernel learned of them. A job takes the execution that the same work took in the run, from its
dispatch to the *report* of its end: at the wall clock a driver is told of an end late, and what it
decides follows from when it was told, never from when the device was done. So the cost of a job is
its share of the device and of the report, and a run repeated with nothing changed makes the same
calls of the kernel, entry for entry, in virtual time and at the wall clock alike:

* the kernel's own wake-ups are handled at the instants that they were planned for in both;
* each segment of a job takes what that segment took;
* ends of one instant are handed over in the order in which they were recorded;
* timers cease where the recorded run let them cease;
* over the level of a ladder it is decided anew, by what happens then.

What overheads cost in a simulation is part of what its jobs took, and is not charged again; how
much it would be after a change is not known, so such a run is not compared with bounds.

Work that did not run there, or was stopped before its end, takes the worst that is known of it: its
declared wcet, or what the longest job of its task took there if that was longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.drivers.variants import VariantCosts
from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.votes import Recalled
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal
from avrt.metrics.changes import JobLog
from avrt.metrics.run import RunFigures
from avrt.model.events import Completed, Event, Failed, Hung, SegmentEnded, Started, Voted
from avrt.model.segments import split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.drivers.execution import Work
    from avrt.drivers.recording import RecordedRun
    from avrt.model.commands import Command, Dispatch, Vote
    from avrt.model.spec import PipelineSpec, StageSpec

    Key = tuple[str, int]
    ChangeCost = Callable[[str, int], int]


@dataclass(slots=True)
class Repeated:
    """What a repeated run showed.

    Attributes:
        assumed: jobs whose work is not in the recorded run to its end, and took the worst known.
    """

    log: JobLog
    figures: RunFigures
    digest: str = ""
    end_ns: int = 0
    assumed: set[tuple[str, int]] = field(default_factory=set)


def repeat(
    recorded: RecordedRun,
    spec: PipelineSpec,
    *,
    change_cost: ChangeCost | None = None,
    write: Callable[[int, str], None] | None = None,
    watch: Callable[[int, Sequence[Event], Sequence[Command]], None] | None = None,
) -> Repeated:
    """Run a recorded run once more under a checked pipeline with the same sources and stages.

    Args:
        recorded: the run.
        spec: what is different.
        change_cost: from a stage and what its job took, ns, to what it is to take.
        write: takes each journal entry.
        watch: takes each call of the kernel, in place of the figures' own watch.
    """
    figures = RunFigures(spec, recorded.figures.overheads, is_repeated=True)
    repeated = Repeated(JobLog(spec), figures)

    def listen(at_ns: int, commands: Sequence[Command]) -> None:
        repeated.end_ns = at_ns
        repeated.log.take(commands)
        for command in commands:
            repeated.figures.take(command)

    journal = Journal(write, listen, watch or repeated.figures.watch)
    worker = _Repeater(recorded, spec, repeated, change_cost)
    _RepeatLoop(spec, recorded, worker, journal).run()
    repeated.digest = journal.digest
    return repeated


class _Repeater:
    """A worker whose jobs take what the same work took in the recorded run."""

    heeds = False

    def __init__(
        self,
        recorded: RecordedRun,
        spec: PipelineSpec,
        repeated: Repeated,
        change_cost: ChangeCost | None,
    ) -> None:
        self._recorded = recorded
        self._repeated = repeated
        self._worst_ns = {
            task: _declared_ns(stage) for stage in spec.stages for task in stage.task_names
        }
        for work in recorded.works.values():
            worst_ns = self._worst_ns[work.task]
            for segment, part in enumerate(work.parts):
                if part.place is not None:
                    worst_ns[segment] = max(worst_ns[segment], part.received_ns)
        self._stage_of = {task: stage.name for stage in spec.stages for task in stage.task_names}
        self._change_cost = change_cost
        self._variants = VariantCosts(spec)
        self._keys: dict[int, Key] = {}
        self._parts: dict[int, list[int]] = {}
        self._segmented = {task for s in spec.stages if s.segments for task in s.task_names}
        self._changed: set[int] = set()
        self._handles: dict[int, int] = {}
        self._fresh = recorded.fresh_handle
        self._voter = Recalled(recorded.votes, [w.end for w in recorded.works.values()])

    def place(self, job: int, segment: int) -> tuple[bool, int, int]:
        """Return where the end of a segment of a job stands among ends of one instant."""
        work = self._recorded.works.get(self._keys[job])
        place = None if work is None or segment >= len(work.parts) else work.parts[segment].place
        return place is None, place or 0, job

    def parts(self, job: int) -> list[int]:
        """Return what each segment takes of a job that has just begun."""
        return self._parts.pop(job)

    def start(self, command: Dispatch, at_ns: int) -> int | None:
        del at_ns
        task = command.task
        key = self._keys[command.job] = task, self._repeated.log.lineage.root(task, command.index)
        work = self._recorded.works.get(key)
        parts = self._known_parts(task, work)
        known = command.variant if work is None else work.dispatch.variant
        if known != command.variant:
            cost_ns = self._variants.scaled_ns(sum(parts), task, command.variant, known)
            self._changed.add(command.job)
            parts = split(cost_ns, parts)
        if work is None or work.end is None:
            self._repeated.assumed.add(key)
        if self._change_cost is not None:
            cost_ns = sum(parts)
            changed_ns = self._change_cost(self._stage_of[task], cost_ns)
            if changed_ns != cost_ns:
                self._changed.add(command.job)
                parts = split(changed_ns, parts)
        if task in self._segmented:
            self._parts[command.job] = parts
        return sum(parts)

    def _known_parts(self, task: str, work: Work | None) -> list[int]:
        """Return what each segment took; of what is not known to its end the worst that is."""
        worst_ns = self._worst_ns[task]
        if work is None:
            return list(worst_ns)
        parts = [
            max(1, part.received_ns) if part.place is not None else max(part.received_ns + 1, most)
            for part, most in zip(work.parts, worst_ns, strict=False)
        ]
        return parts if work.end is not None else parts + worst_ns[len(parts) :]

    def began(self, end: Event, at_ns: int) -> tuple[Started, ...]:
        """Return what the device said of the beginning of work that ends now, if it said anything.

        It is as long before the end as it was there. Of work that takes another time nobody knows.
        """
        if not isinstance(end, Completed | Failed) or end.job in self._changed:
            return ()
        work = self._recorded.works.get(self._keys[end.job])
        if work is None or work.began_ns is None or work.end is None:
            return ()
        return (Started(end.job, at_ns - (work.end_ns - work.began_ns)),)

    def end(self, job: int, at_ns: int) -> Completed | Failed | Hung:
        work = self._recorded.works.get(self._keys[job])
        match None if work is None else work.end:
            case Failed(fault=fault):
                return Failed(job, fault)
            case Hung():
                return Hung(job)
            case Completed() as done:
                assert work is not None
                handle = self._handles[job] = job if self._fresh is None else done.buffer
                return Completed(job, handle, at_ns - (work.end_ns - done.device_ns))
            case None:
                return Completed(job, self._fresh_handle(job), at_ns)

    def _fresh_handle(self, job: int) -> int:
        """Return the handle of an output that the run did not have."""
        handle = job
        if self._fresh is not None:
            handle, self._fresh = self._fresh, self._fresh + 1
        self._handles[job] = handle
        return handle

    def vote(self, command: Vote, _at_ns: int) -> Voted:
        key = self._repeated.log.lineage.origin(command.activation)
        handles = [self._handles[job] for job in command.jobs]
        return self._voter.vote(command, key, handles)

    def abandon(self, job: int, at_ns: int) -> None:
        pass

    def obey(self, command: Command, at_ns: int) -> list[Event]:
        del command, at_ns
        return []


class _RepeatLoop(VirtualLoop):
    """Hands ends of one instant over in the order in which they were recorded."""

    def __init__(
        self,
        spec: PipelineSpec,
        recorded: RecordedRun,
        worker: _Repeater,
        journal: Journal,
    ) -> None:
        feed, until_ns = iter(recorded.feed), recorded.until_ns
        super().__init__(spec, Kernel(spec), feed, worker, journal, until_ns=until_ns)
        self._after = recorded.after
        self._repeater = worker
        self._segments: dict[int, int] = {}

    def _drain(self) -> None:
        super()._drain()
        self._feed = iter(self._after)
        self._next = next(self._feed, None)

    def _instant(self, at_ns: int, events: list[Event]) -> None:
        ends = sorted(events, key=self._place)
        told = [event for end in ends for event in (*self._repeater.began(end, at_ns), end)]
        super()._instant(at_ns, told)

    def _place(self, end: Event) -> tuple[bool, int, int]:
        assert isinstance(end, SegmentEnded | Completed | Failed | Hung)
        return self._repeater.place(end.job, self._segments[end.job])

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        self._segments[command.job] = command.segment
        super()._dispatch(command, at_ns)

    def _parts(self, command: Dispatch, cost_ns: int) -> list[int]:
        del cost_ns
        return self._repeater.parts(command.job)


def _declared_ns(stage: StageSpec) -> list[int]:
    """Return the declared execution time of each segment; they sum to the stage's wcet."""
    shares = [segment.wcet_ns for segment in stage.segments]
    return split(stage.wcet_ns, shares) if shares else [stage.wcet_ns]
