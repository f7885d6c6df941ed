"""Jobs that end later although work takes less: scheduling anomalies, and who ran instead.

Without preemption, or on several slots, a schedule is not sustainable: a job that ends sooner lets
another begin that would have waited, and that one is in the way (Graham, "Bounds on multiprocessing
timing anomalies", 1969). So a run with the longest times need not be the worst.

Jobs of two runs are the same when they are of one task and go back to the same release (`Lineage`).
Who ran instead is whoever held slots of the job's device for longer, from its release to its end,
than in the run before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from avrt.model.commands import Abort, Dispatch, Preempt, Resume
from avrt.model.events import Completed, Failed, Hung, SegmentEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.changes import JobLog
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.records import JobRecord
    from avrt.model.spec import PipelineSpec

RESULTS = ("met", "late")
INSTEAD_KEPT = 3


class Stretch(NamedTuple):
    """A job, by task and index, on a slot from one time to another."""

    end_ns: int
    start_ns: int
    job: tuple[str, int]


class SlotHistory:
    """Who held the slots of each device, and when, in the order of the ends."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._preemptive = {device.name for device in spec.devices if device.preemptive}
        self._stretches: dict[str, list[Stretch]] = {device.name: [] for device in spec.devices}
        self._longest_ns = 0
        self._jobs: dict[int, Dispatch] = {}
        self._since_ns: dict[int, int] = {}
        self.device_of: dict[tuple[str, int], str] = {}

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one call of the kernel."""
        for event in events:
            if isinstance(event, Completed | Failed | Hung | SegmentEnded):
                self._leave(event.job, at_ns)
        for command in commands:
            match command:
                case Dispatch():
                    self._jobs[command.job] = command
                    self._since_ns[command.job] = at_ns
                    self.device_of[command.task, command.index] = command.device
                case Resume():
                    self._since_ns[command.job] = at_ns
                case Preempt():
                    self._leave(command.job, at_ns)
                case Abort() if self._is_stopped(command.job):
                    self._leave(command.job, at_ns)
                case _:
                    pass

    def held_ns(self, device: str, start_ns: int, end_ns: int) -> Counter[tuple[str, int]]:
        """Return for how long each job, by task and index, held a slot between two times."""
        held: Counter[tuple[str, int]] = Counter()
        stretches = self._stretches[device]
        for place in range(bisect_left(stretches, (start_ns,)), len(stretches)):
            item = stretches[place]
            if item.end_ns > end_ns + self._longest_ns:
                break
            held_ns = min(end_ns, item.end_ns) - max(start_ns, item.start_ns)
            if held_ns > 0:
                held[item.job] += held_ns
        return held

    def _is_stopped(self, job: int) -> bool:
        return job in self._since_ns and self._jobs[job].device in self._preemptive

    def _leave(self, job: int, at_ns: int) -> None:
        since_ns = self._since_ns.pop(job, None)
        if since_ns is not None:
            work = self._jobs[job]
            item = Stretch(at_ns, since_ns, (work.task, work.index))
            self._stretches[work.device].append(item)
            self._longest_ns = max(self._longest_ns, at_ns - since_ns)


@dataclass(frozen=True, slots=True)
class Later:
    """A job that ends later than before, or has no result any more.

    Attributes:
        root: the index of the job at the head of its triggers, the same in both runs.
        after: None where it is not even released.
        instead: task and index of who ran instead, and for how much longer than before, ns.
    """

    task: str
    root: int
    before: JobRecord
    after: JobRecord | None
    instead: tuple[tuple[str, int, int], ...]

    @property
    def is_lost(self) -> bool:
        """Whether it gives no result any more."""
        return self.after is None or self.after.outcome not in RESULTS

    @property
    def later_ns(self) -> int | None:
        """By how much its end moved; None where it has no result any more."""
        if self.after is None or self.is_lost:
            return None
        return self.after.end_ns - self.before.end_ns

    @property
    def rank(self) -> tuple[bool, int]:
        """The worst first: without a result, then by how much later."""
        return not self.is_lost, -(self.later_ns or 0)


@dataclass(frozen=True, slots=True)
class Observed:
    """One run: its jobs, and who held the slots."""

    log: JobLog
    slots: SlotHistory


def later_jobs(before: Observed, after: Observed) -> list[Later]:
    """Return the jobs that are worse off, the worst first: without a result, then by how much."""
    found: list[Later] = []
    for (task, root), old in before.log.jobs.items():
        new = after.log.jobs.get((task, root))
        if old.outcome not in RESULTS:
            continue
        if new is None or new.outcome not in RESULTS or new.end_ns > old.end_ns:
            found.append(Later(task, root, old, new, _instead(before, after, old, new)))
    return sorted(found, key=lambda job: (job.rank, job.before.end_ns, job.task))


def _instead(
    before: Observed, after: Observed, old: JobRecord, new: JobRecord | None
) -> tuple[tuple[str, int, int], ...]:
    device = before.slots.device_of.get((old.task, old.index))
    if new is None or device is None:
        return ()
    there = before.slots.held_ns(device, old.release_ns, old.end_ns)
    more = after.slots.held_ns(device, new.release_ns, new.end_ns)
    more.subtract(there)
    own = (new.task, new.index)
    ranked = sorted(more.items(), key=lambda item: (-item[1], item[0]))
    longer = [(*job, ns) for job, ns in ranked if ns > 0 and job != own]
    return tuple(longer[:INSTEAD_KEPT])
