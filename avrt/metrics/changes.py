"""The jobs of two runs of one pipeline side by side: which misses appear, vanish or move.

Jobs are the same when they are of one task and go back to the same release (`Lineage`). A job that
is not met is a miss here, whatever its outcome; one that was never released is none. A miss moves
when the job ends otherwise, or is late by another time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from avrt.metrics.lineage import Lineage
from avrt.model.commands import Record
from avrt.model.records import JobRecord, MissRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.commands import Command
    from avrt.model.spec import PipelineSpec

ChangeKind = Literal["appears", "vanishes", "moves"]
CHANGE_KINDS: tuple[ChangeKind, ...] = ("appears", "vanishes", "moves")


class JobLog:
    """Every job of one run, by `(task, root)`, and the explained miss of each that had one."""

    def __init__(self, spec: PipelineSpec) -> None:
        self.lineage = Lineage(spec)
        self.jobs: dict[tuple[str, int], JobRecord] = {}
        self._misses: dict[int, MissRecord] = {}

    def take(self, commands: Sequence[Command]) -> None:
        """Take in what the kernel decided in one call."""
        self.lineage.take(commands)
        for command in commands:
            if not isinstance(command, Record):
                continue
            record = command.record
            if isinstance(record, JobRecord):
                self.jobs[record.task, self.lineage.root(record.task, record.index)] = record
            elif isinstance(record, MissRecord):
                self._misses[record.job] = record

    def miss_of(self, job: JobRecord) -> MissRecord | None:
        """Return why a job missed its due time, or None if it was no longer open then."""
        return self._misses.get(job.job)


@dataclass(frozen=True, slots=True)
class JobChange:
    """One job whose miss appears, vanishes or moves.

    Attributes:
        root: the index of the job at the head of its triggers, the same in both runs.
        before, after: how it ended in each run; None where it was never released.
        miss: in the second run, where the time from its release to its due time went.
    """

    kind: ChangeKind
    task: str
    root: int
    before: JobRecord | None
    after: JobRecord | None
    miss: MissRecord | None


def compare_jobs(before: JobLog, after: JobLog) -> list[JobChange]:
    """Return the changes in the order of the releases, those of the first run before the others."""
    keys = dict.fromkeys((*before.jobs, *after.jobs))
    changes: list[JobChange] = []
    for key in keys:
        old, new = before.jobs.get(key), after.jobs.get(key)
        kind = _kind(old, new)
        if kind is not None:
            miss = None if new is None else after.miss_of(new)
            changes.append(JobChange(kind, *key, old, new, miss))
    return sorted(changes, key=_released)


def _kind(old: JobRecord | None, new: JobRecord | None) -> ChangeKind | None:
    missed, misses = (job is not None and job.outcome != "met" for job in (old, new))
    if missed and misses:
        assert old is not None
        assert new is not None
        ends = [(job.outcome, job.reason, job.lateness_ns) for job in (old, new)]
        return None if ends[0] == ends[1] else "moves"
    if missed:
        return "vanishes"
    return "appears" if misses else None


def _released(change: JobChange) -> tuple[int, str]:
    job = change.before or change.after
    assert job is not None
    return job.release_ns, change.task
