"""Why a job was late, and whether a task keeps its weakly-hard promise.

A miss is raised by the deadline timer while the job is open. Its explanation partitions the time
from release to miss, by who held the slot:

* planned: under a table, until its planned start;
* running: the job itself;
* waiting: a job ordered before it, or its own task's predecessor;
* blocking: a job ordered later (started first and not preempted, or more critical).

With several slots the holder named is the one ordered last, since its slot is the one that the job
would have been given. A stretch with a free slot means that the kernel had not been told of the
release yet (`by` is empty).

Weakly-hard constraints (m,k): Bernat, Burns, Llamosi, "Weakly hard real-time systems", 2001.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from avrt.model.records import Interval, MissRecord, WindowRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.kernel.job import Job
    from avrt.kernel.queues import DeviceQueue
    from avrt.model.records import IntervalKind

    Part = tuple[IntervalKind, str, int | None, int, int]  # kind, by, job, start, end


def explain_miss(job: Job, now_ns: int) -> MissRecord:
    """Return the miss with its intervals, which sum to `now_ns - job.release_ns`."""
    intervals: list[Interval] = []
    for device, start_ns, end_ns in _stays(job, now_ns):
        for kind, by, holder, from_ns, until_ns in _partition(job, device, start_ns, end_ns):
            last = intervals[-1] if intervals else None
            if last is not None and (last.kind, last.by, last.job) == (kind, by, holder):
                intervals[-1] = Interval(kind, last.start_ns, until_ns, by, holder)
            else:
                intervals.append(Interval(kind, from_ns, until_ns, by, holder))
    task, found = job.task.name, tuple(intervals)
    return MissRecord(job.id, task, job.index, now_ns, job.release_ns, job.due_ns, found)


def _stays(job: Job, now_ns: int) -> Iterator[tuple[DeviceQueue, int, int]]:
    """Yield where a job was: with its stream until it began, then where it began."""
    if job.start_ns is None or job.course is not None or job.device is None:
        yield from job.task.stays(job.release_ns, now_ns)
        return
    yield from job.task.stays(job.release_ns, job.start_ns)
    if job.start_ns < now_ns:
        yield job.device, job.start_ns, now_ns


def _partition(job: Job, device: DeviceQueue, start_ns: int, end_ns: int) -> Iterator[Part]:
    """Divide a stay on one device wherever a slot changes hands."""
    first = bisect_right(device.history, start_ns, key=itemgetter(2))  # in order of their ends
    stretches = device.history[first:]
    stretches += [(other, other.since_ns or 0, end_ns) for other in device.running]
    edges = {start_ns, end_ns, max(start_ns, min(job.arrival_ns, end_ns))}
    planned_ns = job.key[0] if device.planned else start_ns
    if start_ns < planned_ns < end_ns:
        edges.add(planned_ns)
    for _, begin, end in stretches:
        edges.update(edge for edge in (begin, end) if start_ns < edge < end_ns)
    for from_ns, until_ns in pairwise(sorted(edges)):
        if from_ns < planned_ns:
            yield "planned", "", None, from_ns, until_ns
            continue
        holders = [other for other, begin, end in stretches if begin <= from_ns < end]
        yield (*_classify(job, holders, device.slots), from_ns, until_ns)


def _classify(job: Job, holders: list[Job], slots: int) -> tuple[IntervalKind, str, int | None]:
    for holder in holders:
        if holder is job:
            return "running", job.task.name, job.id
        if holder.task is job.task:
            return "waiting", holder.task.name, holder.id
    if len(holders) < slots:
        return "waiting", "", None
    holder = max(holders, key=lambda other: other.order)
    kind: IntervalKind = "blocking" if holder.order > job.order else "waiting"
    return kind, holder.task.name, holder.id


class Window:
    """At most `misses_max` of any `window_jobs` jobs in a row may be anything but met.

    Jobs count in release order and are taken as met until the contrary is known, so a miss known
    out of order (a release skipped while an older job is open) is judged in its own place.
    """

    def __init__(self, misses_max: int, window_jobs: int) -> None:
        self.misses_max = misses_max
        self.window_jobs = window_jobs
        self._misses: list[int] = []

    def miss(self, task: str, index: int, oldest_open: int, now_ns: int) -> WindowRecord | None:
        """Note that job `index` is not met; return the violation that this makes, if any.

        `oldest_open` is the lowest job index whose outcome may still become a miss: misses more
        than a window before it are forgotten.
        """
        insort(self._misses, index)
        place = bisect_left(self._misses, index)
        violation = None
        for first in range(max(0, place - self.misses_max), place + 1):
            group = tuple(self._misses[first : first + self.misses_max + 1])
            if len(group) > self.misses_max and group[-1] - group[0] < self.window_jobs:
                violation = WindowRecord(task, now_ns, group, self.misses_max, self.window_jobs)
                break
        horizon = min(oldest_open, index) - self.window_jobs
        del self._misses[: bisect_left(self._misses, horizon)]
        return violation
