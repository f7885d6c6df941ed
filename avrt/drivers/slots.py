"""The loops over one device of a plain task set: see `avrt.drivers.plain`.

Both walk through the sorted releases. When the time of the next one is later, the instant is
complete: the slots are dispatched, and time goes on from end to end until that release. A job that
ends at the very time of a release leaves its slot idle until all releases of that instant are in.

* `run_one_slot`: nothing is aborted or skipped, so jobs of a task are ready all at once and the
  order alone keeps them apart.
* `Slots`: several slots, queues with a bound, `abort` and `skip_next`. At most one job of a task
  is ready or runs; the others wait in its queue.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING

from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.drivers.plain import PlainTask
    from avrt.model.records import Outcome

OPEN = -1  # end of a job that has none yet, and who is on a stream where nobody is


def run_one_slot(tasks: Sequence[PlainTask], releases: Sequence[int], *, preemptive: bool) -> None:
    """Run all jobs on one slot; `releases` are `time * tasks + task`, in order."""
    count = len(tasks)
    bias = [task.bias_ns * count for task in tasks]
    costs = [iter(task.cost_ns) for task in tasks]
    started = [task.start_ns.append for task in tasks]
    ended = [task.end_ns.append for task in tasks]
    left_ns = [0] * count  # of the preempted job of each task
    ready: list[int] = []
    now_ns, end_ns = 0, 0
    place, running = 0, -1
    for release in chain(releases, (NEVER_NS * count,)):
        time_ns, index = divmod(release, count)
        if time_ns > now_ns:
            if preemptive and running >= 0 and ready and ready[0] < place - running:
                left_ns[running] = end_ns - now_ns
                heappush(ready, place)
                running = -1
            while True:
                if running < 0:
                    if not ready:
                        break
                    place = heappop(ready)
                    running = place % count
                    rest_ns = left_ns[running]
                    if rest_ns:
                        left_ns[running] = 0
                        end_ns = now_ns + rest_ns
                    else:
                        started[running](now_ns)
                        end_ns = now_ns + next(costs[running])
                if end_ns > time_ns:
                    break
                ended[running](end_ns)
                now_ns, running = end_ns, -1
                if now_ns == time_ns:
                    break
            now_ns = time_ns
        heappush(ready, release + bias[index])


class Slots:
    """The jobs of one device, by task number and job number.

    A task's `place` is that of its job which is ready or runs; `end_ns` is when the one on a slot
    ends, OPEN where none is.
    """

    def __init__(self, tasks: Sequence[PlainTask], slots: int, *, preemptive: bool) -> None:
        count = len(tasks)
        self._tasks = tasks
        self._count = count
        self._slots = slots
        self._preemptive = preemptive
        self._now_ns = 0
        self._bias = [task.bias_ns * count for task in tasks]
        self._queue = [task.stage.queue for task in tasks]
        self._is_strict = [task.stage.on_miss != "continue" for task in tasks]
        self._released = [0] * count
        self._waiting: list[deque[int]] = [deque() for _ in tasks]
        self._occupant = [OPEN] * count
        self._place = [OPEN] * count
        self._end_ns = [OPEN] * count
        self._left_ns = [0] * count
        self._ready: list[int] = []
        self._running: list[int] = []  # places of those on a slot, in order
        self._ends: list[int] = []
        self._dues: list[int] = []
        self._expired = [0] * count
        for task in tasks:
            task.start_ns[:] = [None] * len(task.release_ns)
            task.end_ns[:] = [OPEN] * len(task.release_ns)

    def run(self, releases: Sequence[int]) -> None:
        """Run all jobs; `releases` are `time * tasks + task`, in order."""
        count = self._count
        for release in releases:
            time_ns, index = divmod(release, count)
            if time_ns > self._now_ns:
                self._go_on(time_ns)
            self._admit(release, index)
        self._go_on(NEVER_NS)

    def _admit(self, release: int, index: int) -> None:
        """Take in a task's next job."""
        waiting, job = self._waiting[index], self._released[index]
        self._released[index] = job + 1
        if self._is_strict[index] and self._is_skipped(index, job):
            return
        waiting.append(job)
        if len(waiting) > self._queue[index]:
            self._end(index, waiting.popleft(), "shed")
            if self._occupant[index] == OPEN:
                self._offer(index)
        elif len(waiting) == 1 and self._occupant[index] == OPEN:
            place = release + self._bias[index]
            self._place[index] = place
            heappush(self._ready, place)

    def _is_skipped(self, index: int, job: int) -> bool:
        """Apply what a task says of misses to a job that is released."""
        stage = self._tasks[index].stage
        if stage.on_miss == "abort":
            heappush(self._dues, (self._now_ns + stage.deadline_ns) * self._count + index)
        elif self._waiting[index] or self._occupant[index] != OPEN:
            self._end(index, job, "skipped")
            return True
        return False

    def _offer(self, index: int) -> None:
        """Make a task's first waiting job ready."""
        release_ns = self._tasks[index].release_ns[self._waiting[index][0]]
        place = release_ns * self._count + index + self._bias[index]
        self._place[index] = place
        heappush(self._ready, place)

    def _go_on(self, until_ns: int) -> None:
        """Dispatch the present instant, then go from instant to instant up to this one."""
        count, ends, dues, end_ns = self._count, self._ends, self._dues, self._end_ns
        while True:
            if self._ready:
                self._dispatch()
            next_ns = until_ns
            if ends and ends[0] < next_ns * count:
                next_ns = ends[0] // count
            if dues and dues[0] < next_ns * count:
                next_ns = dues[0] // count
            self._now_ns = next_ns
            limit = (next_ns + 1) * count
            while ends and ends[0] < limit:
                end, index = divmod(heappop(ends), count)
                if end_ns[index] == end:  # else it was preempted or stopped before
                    self._leave(index)
            while dues and dues[0] < limit:
                self._expire(heappop(dues) % count)
            if next_ns == until_ns:
                return

    def _dispatch(self) -> None:
        ready, running, count = self._ready, self._running, self._count
        now_ns, end_ns, free = self._now_ns, self._end_ns, self._slots - len(self._running)
        while ready:
            place = ready[0]
            index = place % count
            if place != self._place[index] or end_ns[index] != OPEN:
                heappop(ready)  # aborted, shed, or on a slot: jobs of one release have one place
                continue
            if free > 0:
                free -= 1
            else:
                worst = running[-1]
                if not self._preemptive or place - index >= worst - worst % count:
                    return
                self._preempt(running.pop())
            heappop(ready)
            insort(running, place)
            end = now_ns + (self._left_ns[index] or self._start(index))
            end_ns[index] = end
            heappush(self._ends, end * count + index)

    def _start(self, index: int) -> int:
        """Let a task's first waiting job begin; return what it takes."""
        job = self._waiting[index].popleft()
        self._occupant[index] = job
        task = self._tasks[index]
        task.start_ns[job] = self._now_ns
        return task.cost_ns[job]

    def _preempt(self, place: int) -> None:
        index = place % self._count
        self._left_ns[index] = self._end_ns[index] - self._now_ns
        self._end_ns[index] = OPEN
        heappush(self._ready, place)

    def _leave(self, index: int) -> None:
        """End the work of a task's job, on a slot or preempted; the next one is ready."""
        job, ends = self._occupant[index], self._tasks[index].end_ns
        if ends[job] == OPEN:
            ends[job] = self._now_ns
        if self._end_ns[index] != OPEN:
            self._running.remove(self._place[index])
            self._end_ns[index] = OPEN
        self._left_ns[index] = 0
        self._occupant[index] = self._place[index] = OPEN
        if self._waiting[index]:
            self._offer(index)

    def _expire(self, index: int) -> None:
        """Abort the job of a task whose deadline is the next to pass, if it is open."""
        job, waiting = self._expired[index], self._waiting[index]
        self._expired[index] = job + 1
        if self._tasks[index].end_ns[job] != OPEN:
            return
        self._end(index, job, "aborted")
        if self._occupant[index] == job:
            if self._preemptive:
                self._leave(index)
            return
        waiting.popleft()  # deadlines of a task pass in release order
        if self._occupant[index] == OPEN:
            self._place[index] = OPEN
            if waiting:
                self._offer(index)

    def _end(self, index: int, job: int, outcome: Outcome) -> None:
        self._tasks[index].end_ns[job] = self._now_ns
        self._tasks[index].ended[job] = outcome
