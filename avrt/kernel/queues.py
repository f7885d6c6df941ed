"""The jobs ready for one device and those on its slots.

`slots: 1` is non-preemptive scheduling of one processor, `slots: n` global scheduling on n; a
preemptive device may take a slot from a running job for one with a strictly lower key (a running
job goes first on equal keys). A job never queues behind other work on a stream: it is dispatched
only when its own stream is idle and a slot is free.

The ready heap holds the first waiting job of each idle task. Entries of jobs that ended meanwhile
are dropped when met, or all at once when there are more than two a task, so every operation is
O(log n) in the tasks and the heap is bounded by them.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING

from avrt.kernel.policy import KEYS, latest_start_ns
from avrt.model.supply import given_ns

if TYPE_CHECKING:
    from avrt.kernel.job import Job, Key, Task
    from avrt.kernel.ladder import Mode
    from avrt.model.spec import Criticality, DeviceSpec, Policy

Entry = tuple["Key", int, int, "Job"]
Stretch = tuple["Job", int, int]  # one uninterrupted stay on a slot: job, start, end

HISTORY_MIN = 256
ENTRIES_SPARE = 64
FIRST = 1 << 30  # above any number of tasks


class DeviceQueue:
    """One device: its ready heap, its slots, and who held them since the oldest open release.

    `places` are where its streams may run: here, then on its fallback, on that one's, and so on.
    `visitors` are tasks whose jobs come here for a segment and go on elsewhere. Under a table it is
    `planned`: no job starts before its key, and criticality changes nothing.
    """

    def __init__(self, spec: DeviceSpec, policy: Policy) -> None:
        self.name = spec.name
        self.slots = spec.slots
        self.preemptive = spec.preemptive
        self.supply = spec.supply
        self.places: list[DeviceQueue] = []
        self.lost = False
        self.free_slots = spec.slots
        self.running: list[Job] = []
        self.ready: list[Entry] = []
        self.history: list[Stretch] = []
        self._history_limit = HISTORY_MIN
        self.key_of = KEYS[policy]
        self._dynamic = policy == "llf"
        self.planned = policy == "table"
        self._entries_max = ENTRIES_SPARE
        self._urgent: dict[Criticality, list[Entry]] = {}
        self._levels: list[Criticality] = []
        self.graded = False
        self.visitors: list[Task] = []

    @property
    def stand_in(self) -> DeviceQueue | None:
        """The device itself, or the first of its fallbacks that is not lost."""
        return next((place for place in self.places if not place.lost), None)

    def serve(self, level: Criticality) -> None:
        """Say that one more task, of this criticality, may be queued here."""
        self._entries_max += 2
        if level not in self._levels:
            self._levels.append(level)
            self._levels.sort()
            self.graded = len(self._levels) > 1 and not self.planned

    def push(self, job: Job, mode: Mode, *, running_first: bool = False) -> None:
        """Make a job ready; its key is computed here, once per stay in the queue.

        One that has just ended a segment here goes first on equal keys.
        """
        task = job.task
        parameters = mode.of(job)
        job.key = self.key_of(job, parameters)
        entry = (job.key, task.index - FIRST if running_first else task.index, job.index, job)
        heappush(self.ready, entry)
        if len(self.ready) > self._entries_max:
            self._drop_ended(self.ready)
        if self.graded and task.stage.criticality > self._levels[0]:
            heap = self._urgent.setdefault(task.stage.criticality, [])
            if job.start_ns is not None:  # an older entry does not know what it has received since
                heap[:] = [entry for entry in heap if entry[3] is not job]
                heapify(heap)
            heappush(heap, ((latest_start_ns(job, parameters), 0), *entry[1:]))
            if len(heap) > self._entries_max:
                self._drop_ended(heap)

    def renew(self, mode: Mode) -> None:
        """Let the latest starts of what waits here be those of a mode that was entered."""
        for heap in self._urgent.values():
            jobs = dict.fromkeys(entry[3] for entry in heap if self._is_ready(entry[3]))
            heap[:] = [
                ((latest_start_ns(job, mode.of(job)), 0), job.task.index, job.index, job)
                for job in jobs
            ]
            heapify(heap)

    def choose(self) -> Job | None:
        """Return the policy's choice among the ready jobs, None where it can have no slot.

        It leaves them when it is put on a slot.
        """
        ready = self.ready
        while ready:
            key, _, _, job = ready[0]
            if self.free_slots == 0 and not self._may_give_way(key):
                return None
            if job.outcome is None and job.since_ns is None and job.key == key:
                device = job.device or job.task.device
                if device is self:
                    return job
            heappop(ready)
        return None

    def _may_give_way(self, key: Key) -> bool:
        """Whether a job that runs goes after this key; under llf their own are not up to date."""
        if self._dynamic or not self.preemptive:
            return self.preemptive
        for job in self.running:  # noqa: SIM110 - a generator takes three times as long
            if job.key > key:
                return True
        return False

    def more_critical(self, choice: Job, now_ns: int, mode: Mode) -> Job | None:
        """Return the ready job of higher criticality that running `choice` now would endanger.

        Of several, the one with the smallest latest start.
        """
        end_ns = now_ns + mode.of(choice).wcet_ns
        level = choice.task.stage.criticality
        best: Entry | None = None
        for other, heap in self._urgent.items():
            if other > level and self._top(heap) is not None and (best is None or heap[0] < best):
                best = heap[0]
        if best is None or best[0][0] >= end_ns:
            return None
        return best[3]

    def worst_running(self, choice: Job, now_ns: int, mode: Mode) -> Job | None:
        """Return the job last in the order of those that run, if it goes after `choice`.

        One that went before a less critical job does not give way to less critical ones.
        """
        if self._dynamic:
            self._refresh_keys(now_ns, mode)
        level = choice.task.stage.criticality
        worst: Job | None = None
        for job in self.running:
            if (
                job.key > choice.key
                and (worst is None or job.order > worst.order)
                and (not job.guarded or job.task.stage.criticality <= level)
            ):
                worst = job
        return worst

    def occupy(self, job: Job, now_ns: int) -> None:
        """Put a job on a slot."""
        assert self.free_slots > 0
        self.free_slots -= 1
        self.running.append(job)
        job.since_ns = now_ns
        if self.ready and self.ready[0][3] is job:
            heappop(self.ready)

    def vacate(self, job: Job, now_ns: int) -> None:
        """Take a job off its slot."""
        since_ns = job.since_ns
        assert since_ns is not None
        if len(self.history) >= self._history_limit:
            self._forget()
        self.running.remove(job)
        self.free_slots += 1
        job.executed_ns += given_ns(self.supply, since_ns, now_ns)
        job.since_ns = None
        self.history.append((job, since_ns, now_ns))

    def _top(self, heap: list[Entry]) -> Job | None:
        while heap and not self._is_ready(heap[0][3]):
            heappop(heap)
        return heap[0][3] if heap else None

    def _is_ready(self, job: Job) -> bool:
        device = job.device or job.task.device
        return job.outcome is None and job.since_ns is None and device is self

    def _drop_ended(self, heap: list[Entry]) -> None:
        """Bound a heap by the tasks served here; amortised O(1), for it is at least half ended."""
        heap[:] = [entry for entry in heap if self._is_ready(entry[3])]
        heapify(heap)

    def _refresh_keys(self, now_ns: int, mode: Mode) -> None:
        for job in self.running:
            left_ns = mode.of(job).wcet_ns - job.received_ns(now_ns)
            job.key = (job.due_ns - max(0, left_ns), 0)

    def _forget(self) -> None:
        """Drop the history that no open job's explanation can reach: it is in order of its ends."""
        tasks = [job.task for job in self.running] + [entry[3].task for entry in self.ready]
        tasks += self.visitors
        releases = [job.release_ns for task in tasks for job in task.waiting]
        releases += [task.occupant.release_ns for task in tasks if task.occupant is not None]
        oldest_ns = min(releases)  # of the job that is about to leave its slot, at the least
        del self.history[: bisect_right(self.history, oldest_ns, key=itemgetter(2))]
        self._history_limit = max(HISTORY_MIN, 2 * len(self.history))
