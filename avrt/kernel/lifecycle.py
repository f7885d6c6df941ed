"""From admission to outcome: where a job is queued, when it gets a slot, how it ends.

Every admitted job ends exactly once, in `_end`. Its *work* may end later than the job: on a device
that is not preemptive an aborted job keeps its stream and its slot until the work is done, because
the computation always finishes (so that the stage's state is the same in every driver).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.kernel import segments
from avrt.kernel.job import Course
from avrt.kernel.monitor import Window, explain_miss
from avrt.kernel.notices import dispatch_of, record_of
from avrt.kernel.policy import latest_start_ns
from avrt.kernel.table import note_start
from avrt.kernel.timers import BUDGET, DUE, SHED, START
from avrt.model.commands import Abort, Preempt, Record, Resume
from avrt.model.records import OverrunRecord
from avrt.model.supply import end_ns
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation, Job, Task
    from avrt.kernel.ladder import TaskParameters
    from avrt.kernel.queues import DeviceQueue
    from avrt.kernel.state import State
    from avrt.model.records import Outcome


class Lifecycle:
    """The jobs of all tasks.

    Attributes:
        working: jobs whose work is dispatched and not reported ended, by id.
        bind: gives a job's activation its sampled inputs at first dispatch; returns the reason to
            skip the job, or "".
        ended: called when the outcome of an activation's last job is decided, or of any job of a
            redundant stage.
        released: called when no work reads an activation's inputs any more.
    """

    def __init__(self, state: State, devices: list[DeviceQueue], tasks: list[Task]) -> None:
        self._state = state
        self._devices = devices
        self._timers = state.timers
        self.working: dict[int, Job] = {}
        self._windows: dict[int, Window] = {}
        for task in tasks:
            limit, jobs = task.stage.misses_max, task.stage.window_jobs
            if limit is not None and jobs is not None:
                self._windows[task.index] = Window(limit, jobs)
        self.bind: Callable[[Activation], str]
        self.ended: Callable[[Activation], None]
        self.released: Callable[[Activation], None]

    # Admission

    def admit(self, job: Job, skip: str) -> None:
        """Queue a released job, or end it at once: `skip` is a reason not to run it."""
        task = job.task
        self._timers.add(job.due_ns, DUE, job)
        if not self._state.mode.parameters[task.index].runs:
            self.end(job, "shed", "mode")
        elif skip:
            self.end(job, "skipped", skip)
        elif task.lost:
            self.end(job, "aborted", "lost")
        elif task.stage.on_miss == "skip_next" and task.busy:
            self.end(job, "skipped", "busy")
        else:
            self._queue(job)

    def _queue(self, job: Job) -> None:
        """Let a job wait behind those of its task, the oldest of which gives way if need be."""
        task = job.task
        waiting = task.waiting
        full = len(waiting) >= task.stage.queue
        if full:
            self.end(waiting.popleft(), "shed", "queue_full")
        waiting.append(job)
        if task.occupant is None and (full or len(waiting) == 1):
            self._make_ready(waiting[0])

    def offer(self, task: Task) -> None:
        """Make the first waiting job ready if its stream is idle."""
        if task.occupant is None and task.waiting and not task.lost:
            self._make_ready(task.waiting[0])

    def _make_ready(self, job: Job) -> None:
        device = job.task.device
        device.push(job, self._state.mode)
        if job.displaced:  # it has waited under another mode
            limit_ns = latest_start_ns(job, self._state.mode.of(job))
            self._timers.add(max(limit_ns, self._state.now_ns) + 1, SHED, job)
        if device.planned and job.key[0] > self._state.now_ns:
            self._timers.add(job.key[0], START, job)

    # Dispatch

    def dispatch(self) -> None:
        """Fill the slots of every device, in pipeline-file order: the one pass of an instant."""
        for device in self._devices:
            while device.ready and (choice := device.choose()) and self._place(choice, device):
                pass

    def _place(self, choice: Job, device: DeviceQueue) -> bool:
        """Give a slot to the choice or to a more critical job; return whether anything changed."""
        state = self._state
        if device.lost or (device.planned and choice.key[0] > state.now_ns):
            return False
        victim = urgent = None
        if device.free_slots == 0:  # so it is preemptive
            victim = device.worst_running(choice, state.now_ns, state.mode)
            if victim is None:
                return False
        elif device.graded and device.free_slots == 1:
            urgent = device.more_critical(choice, state.now_ns, state.mode)
        job = choice if urgent is None else urgent
        if not job.activation.bound and (reason := self.bind(job.activation)):
            self._withdraw(job, "skipped", reason)
            return True
        if victim is not None:
            self._preempt(victim)
        if urgent is not None:
            self._displace(choice, urgent)
        self._start(job)
        return True

    def _withdraw(self, job: Job, outcome: Outcome, reason: str) -> None:
        """End a job that has not started."""
        waiting = job.task.waiting
        was_first = waiting[0] is job
        waiting.remove(job)
        self.end(job, outcome, reason)
        if was_first:
            self.offer(job.task)

    def _start(self, job: Job) -> None:
        """Put a job on a slot, for the first time or again."""
        device, now_ns = job.device or job.task.device, self._state.now_ns
        device.occupy(job, now_ns)
        if job.spins:
            return
        parameters = self._state.mode.of(job)
        if job.start_ns is None:
            self._begin(job, device, parameters)
        else:
            self._go_on(job, parameters.variant)
        left_ns = parameters.budget_ns - job.executed_ns
        if left_ns > 0:
            job.budget_end_ns = end_ns(device.supply, now_ns, left_ns)
            self._timers.add(job.budget_end_ns, BUDGET, job)
        else:
            job.budget_end_ns = NEVER_NS

    def _begin(self, job: Job, device: DeviceQueue, parameters: TaskParameters) -> None:
        """Take a job out of its task's queue; the stream is its own until its work has ended."""
        state, task = self._state, job.task
        first = task.waiting.popleft()
        assert first is job
        task.occupant = job
        job.start_ns = state.now_ns
        job.device, job.parameters = device, parameters
        if task.route:
            job.course = Course()
        self.working[job.id] = job
        if device.planned:
            note_start(job, parameters.wcet_ns, state)
        state.out.append(dispatch_of(job, 0, parameters.variant))

    def _go_on(self, job: Job, variant: str) -> None:
        """Let a job that gave its slot away, or is between two segments, go on."""
        course = job.course
        if course is not None and course.between:
            course.between = False
            self._state.out.append(dispatch_of(job, course.segment, variant))
        else:
            self._state.out.append(Resume(job.id))

    def _preempt(self, job: Job) -> None:
        assert job.device is not None
        job.device.vacate(job, self._state.now_ns)
        job.device.push(job, self._state.mode)
        if not job.spins:
            self._state.out.append(Preempt(job.id))

    def _displace(self, choice: Job, urgent: Job) -> None:
        """Let a more critical job go first; the displaced one is shed once it cannot make it."""
        urgent.guarded = True
        if choice.displaced or choice.start_ns is not None:
            return
        choice.displaced = True
        limit_ns = latest_start_ns(choice, self._state.mode.of(choice))
        self._timers.add(limit_ns + 1, SHED, choice)

    # What the timers say

    def due_passed(self, job: Job) -> None:
        """Raise the miss of a job that is open at its due time."""
        self._miss(job)
        if job.task.stage.on_miss == "abort":
            self.abort(job, "deadline")

    def latest_start_passed(self, job: Job) -> None:
        """Shed a displaced job that can no longer be in time, as the mode sees it now."""
        if latest_start_ns(job, self._state.mode.of(job)) < self._state.now_ns:
            self._withdraw(job, "shed", "overload")

    # Budgets: only jobs on a slot spend them, so the end of one moves whenever its job is preempted

    def check_budgets(self) -> None:
        """Report, and where the stage says so abort, the jobs that want more than their budget."""
        now_ns = self._state.now_ns
        for job in [
            job for device in self._devices for job in device.running if job.budget_end_ns <= now_ns
        ]:
            self._overran(job)

    def _overran(self, job: Job) -> None:
        self._note_overrun(job)
        if job.task.stage.on_overrun == "abort":
            self.abort(job, "budget")

    def _note_overrun(self, job: Job) -> None:
        job.budget_end_ns = NEVER_NS
        budget_ns = self._state.mode.of(job).budget_ns
        record = OverrunRecord(job.id, job.task.name, self._state.now_ns, budget_ns)
        self._state.out.append(Record(record))

    # How work and jobs end

    def completed(self, job: Job, output: Buffer) -> bool:
        """End a job whose work is done; return whether its result is wanted.

        A driver that wakes late reports it after a due time or a budget that no timer told of.
        """
        self.work_ended(job)
        is_past = self._state.now_ns > job.due_ns and job.outcome is None
        if is_past and self.due_unseen(job) and job.task.stage.on_miss == "abort":
            self.end(job, "aborted", "deadline")
        if job.outcome is None and job.budget_end_ns < self._state.now_ns:
            self._note_overrun(job)
            if job.task.stage.on_overrun == "abort":
                self.end(job, "aborted", "budget")
        if job.outcome is not None:
            return False
        job.output = output
        self.end(job, "late" if job.missed else "met", "")
        return True

    def segment_ended(self, job: Job) -> None:
        """Let a job go on to its next segment, unless nobody wants its result."""
        if job.budget_end_ns <= self._state.now_ns:  # spent, and more is to follow
            self._overran(job)
        if job.outcome is None:
            segments.go_on(job, self._state)
        elif job.id in self.working:
            self.work_ended(job)

    def failed(self, job: Job, reason: str) -> None:
        """End a job whose work ended without a result."""
        self.work_ended(job)
        if job.outcome is None:
            self.due_unseen(job)
            self.end(job, "aborted", reason)

    def due_unseen(self, job: Job) -> bool:
        """Raise the miss of an open job whose due time passed while nobody woke the kernel."""
        if job.missed or self._state.now_ns <= job.due_ns:
            return False
        self._miss(job)
        return True

    def abort(self, job: Job, reason: str) -> None:
        """End an open job before its work is done."""
        if job.start_ns is None:
            self._withdraw(job, "aborted", reason)
            return
        assert job.device is not None
        self._state.out.append(Abort(job.id))
        self.end(job, "aborted", reason)
        course = job.course
        if job.device.preemptive or (course is not None and course.between):
            self.work_ended(job)
        elif course is not None and course.spinner is not None:
            host = course.spinner.device
            if host is not None and host.preemptive:
                segments.drop_spinner(course, self._state.now_ns)

    def stop(self, task: Task) -> None:
        """Abort everything of a task at once."""
        while task.waiting:
            self.end(task.waiting.popleft(), "aborted", "stop")
        if task.occupant is not None and task.occupant.outcome is None:
            self.abort(task.occupant, "stop")

    def work_ended(self, job: Job) -> None:
        """Free the slot and the stream, and let the task's next job in."""
        assert job.device is not None
        if job.since_ns is not None:
            job.device.vacate(job, self._state.now_ns)
        del self.working[job.id]
        if job.course is not None:
            segments.leave(job, self._state.now_ns)
        job.task.occupant = None
        self.leave_inputs(job.activation)
        if job.task.waiting:
            self.offer(job.task)

    def _miss(self, job: Job) -> None:
        job.missed = True
        device = job.device or job.task.device
        if job.start_ns is None:  # behind another job of its task it has no key yet
            job.key = device.key_of(job, self._state.mode.of(job))
        self._state.out.append(Record(explain_miss(job, self._state.now_ns)))
        self._note_miss(job)

    def _note_miss(self, job: Job) -> None:
        window = self._windows.get(job.task.index)
        if window is None:
            return
        task = job.task
        oldest = task.occupant or (task.waiting[0] if task.waiting else job)
        violation = window.miss(task.name, job.index, oldest.index, self._state.now_ns)
        if violation is not None:
            self._state.out.append(Record(violation))

    def end(self, job: Job, outcome: Outcome, reason: str) -> None:
        """Give a job its outcome; its work may go on."""
        assert job.outcome is None
        job.outcome = outcome
        job.budget_end_ns = NEVER_NS
        if outcome != "met" and not job.missed:
            self._note_miss(job)
        activation = job.activation
        record = record_of(job, outcome, reason, self._state.now_ns)
        self._state.out.append(Record(record))
        if job.start_ns is None:
            self.leave_inputs(activation)
        activation.open_jobs -= 1
        if activation.open_jobs == 0 or activation.copies > 1:
            self.ended(activation)

    def leave_inputs(self, activation: Activation) -> None:
        """Note that one piece of work less reads an activation's inputs."""
        activation.working -= 1
        if activation.working == 0 and activation.inputs:
            self.released(activation)
