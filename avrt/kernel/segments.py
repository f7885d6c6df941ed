"""Jobs of several segments, each on a device of its own.

* A job's segments run one after the other; each is dispatched on its own. Between two of them the
  job is ready like any other, with the key of its policy; one that has just run there goes first
  on equal keys. So on a device that is not preemptive it gives way between its segments only.
* `wait: suspend` frees the slot of the segment before. `wait: spin` keeps it: until the segment
  (and those that spin after it) has ended, a *spinner* holds that slot in the job's place, with the
  job's key. A spinner receives no execution and spends no budget. A preemptive device may take its
  slot like any other; the segment goes on elsewhere meanwhile. Under llf it counts as running.
* Who spins for a device holds one while it waits for another, so no ring of devices may do so
  (`avrt.model.graph`). Where a lost device falls back on the very one whose slot is kept, the
  segment takes that slot.
* An aborted job stops where its present segment ends: no further one is dispatched. Its spinner
  goes at once from a preemptive device, and with the segment from any other.
* The stream is where the job is, so a miss is explained by who held the slot of the device that the
  job was waiting for at the time.
* A task is lost with any device that one of its segments has no other place for.

Self-suspension and its analyses: Chen et al., "Many suspensions, many problems", 2019. Fixed
preemption points: Burns, "Preemptive priority-based scheduling: an appropriate engineering
approach", 1994.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.kernel.job import Job

if TYPE_CHECKING:
    from avrt.kernel.job import Course, Task
    from avrt.kernel.queues import DeviceQueue
    from avrt.kernel.state import State


def go_on(job: Job, state: State) -> None:
    """Take a job whose segment has ended off its slot and send it to the next one's device."""
    course, here = job.course, job.device
    assert course is not None
    assert here is not None
    course.segment += 1
    course.between = True
    here.vacate(job, state.now_ns)
    if _spins_next(job, course) and course.spinner is None and _next_place(job) is not here:
        course.spinner = _spinner(job, here)
        here.occupy(course.spinner, state.now_ns)
    send(job, state, left=here)


def send(job: Job, state: State, left: DeviceQueue | None = None) -> None:
    """Make a job between two segments ready where the next one runs.

    `left` is the device whose slot it has just given back.
    """
    course, place = job.course, _next_place(job)
    assert course is not None
    spinner = course.spinner
    held = left
    if spinner is not None and (spinner.device is place or not _spins_next(job, course)):
        held = spinner.device if spinner.since_ns is not None else None
        drop_spinner(course, state.now_ns)
    job.task.go_to(place, state.now_ns)
    job.device = place
    job.guarded = False
    place.push(job, state.mode, running_first=held is place)


def leave(job: Job, now_ns: int) -> None:
    """Let a job whose work is over leave the slot it kept, and its stream return."""
    assert job.course is not None
    drop_spinner(job.course, now_ns)
    first = job.task.route[0].stand_in
    if first is not None:
        job.task.go_to(first, now_ns)


def drop_spinner(course: Course, now_ns: int) -> None:
    """End what a job holds on the device that it left, if it holds anything."""
    spinner = course.spinner
    if spinner is None:
        return
    course.spinner = None
    spinner.outcome = "met"  # so that its place among the ready jobs is forgotten
    if spinner.since_ns is not None:
        assert spinner.device is not None
        spinner.device.vacate(spinner, now_ns)


def rests_on(job: Job, device: DeviceQueue) -> bool:
    """Whether work of this job, or its spinner, is on a device."""
    course = job.course
    if course is None:
        return job.device is device
    spinner = course.spinner
    return (job.device is device and not course.between) or (
        spinner is not None and spinner.device is device
    )


def is_cut_off(task: Task) -> bool:
    """Whether some segment of a task has no place to run any more."""
    return any(home.stand_in is None for home in task.route)


def _spins_next(job: Job, course: Course) -> bool:
    return job.task.stage.segments[course.segment].wait == "spin"


def _next_place(job: Job) -> DeviceQueue:
    assert job.course is not None
    place = job.task.route[job.course.segment].stand_in
    assert place is not None  # else the task is lost
    return place


def _spinner(job: Job, device: DeviceQueue) -> Job:
    """Return what keeps a job's slot.

    Its index is no job's and no other spinner's, so it ties with none, not even with one that is
    gone and whose place among the ready jobs is not forgotten yet.
    """
    assert job.course is not None
    place = job.index * len(job.task.route) + job.course.segment
    return Job(
        job.id,
        job.activation,
        job.task,
        -1 - place,
        job.release_ns,
        job.arrival_ns,
        job.due_ns,
        key=job.key,
        device=device,
        start_ns=job.start_ns,
        executed_ns=job.executed_ns,
        spins=True,
    )
