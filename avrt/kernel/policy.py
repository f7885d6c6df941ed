"""Priority keys: the lower key runs first, and equal keys fall to task order, then job order.

| policy | key | source |
|---|---|---|
| edf | absolute deadline | Liu & Layland 1973 |
| rm | (period, release) | Liu & Layland 1973 |
| dm | (relative deadline, release) | Leung & Whitehead 1982 |
| fp | (declared priority, release); 1 is the most urgent | |
| fifo | release | |
| llf | latest start: due time minus remaining wcet | Mok 1983 |
| table | planned start, before which it is not started | Kopetz 1997 |

The laxity of a waiting job shrinks with time and that of a running one does not; since `latest
start = now + laxity`, comparing latest starts at one instant compares laxities, and a waiting
job's key never changes while it waits. LLF is evaluated at events only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.kernel.job import Job, Key
    from avrt.kernel.ladder import TaskParameters
    from avrt.model.spec import Policy


def earliest_deadline(job: Job, _parameters: TaskParameters) -> Key:
    return (job.due_ns, 0)


def fixed_priority(job: Job, parameters: TaskParameters) -> Key:
    return (parameters.priority, job.release_ns)


def first_in_first_out(job: Job, _parameters: TaskParameters) -> Key:
    return (job.release_ns, 0)


def least_laxity(job: Job, parameters: TaskParameters) -> Key:
    return (latest_start_ns(job, parameters), 0)


def planned_start(job: Job, _parameters: TaskParameters) -> Key:
    row = job.task.row
    assert row is not None
    return (row.next_start_ns(job.activation.ready_ns), 0)


def latest_start_ns(job: Job, parameters: TaskParameters) -> int:
    """Return the last instant at which the job can start, or go on, and still be in time."""
    return job.due_ns - max(0, parameters.wcet_ns - job.executed_ns)


KEYS: dict[Policy, Callable[[Job, TaskParameters], Key]] = {
    "edf": earliest_deadline,
    "rm": fixed_priority,
    "dm": fixed_priority,
    "fp": fixed_priority,
    "fifo": first_in_first_out,
    "llf": least_laxity,
    "table": planned_start,
}
