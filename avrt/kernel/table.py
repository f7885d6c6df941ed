"""Executing a time-triggered table (Kopetz 1997): which start of its stage a job takes.

* A job is *ready by plan* when what releases it is to be there by plan: at its release for a timer
  and a source, and for a message of a stage when that one's job, begun at its own planned start and
  taking its wcet, is over. A set is ready with the last of its members.
* It takes the first start of its stage from then on that no earlier job of the stage has taken. So
  the start of a job does not depend on how long others really take. A job that never starts takes
  none.
* It starts at its planned start or, when its slot, its stream or its input comes later, as soon
  as it can: among those that wait the earliest planned start goes first. A late start is told.
* Criticality changes nothing: the table has decided. On a fallback device a job keeps its planned
  start, and waits for a slot among the jobs that are planned there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.commands import Record
from avrt.model.records import TableRecord
from avrt.model.table import next_start_ns

if TYPE_CHECKING:
    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation, Job
    from avrt.kernel.state import State
    from avrt.model.spec import StageSpec, TableSpec


class Row:
    """The starts of one task, and the last one that a job has taken."""

    __slots__ = ("_cycle_ns", "_starts_ns", "taken_ns")

    def __init__(self, table: TableSpec, task: str) -> None:
        self._cycle_ns = table.cycle_ns
        self._starts_ns = table.starts_ns(task)
        self.taken_ns = -1

    def next_start_ns(self, ready_ns: int) -> int:
        """Return the first start from that time on which is not taken."""
        from_ns = max(ready_ns, self.taken_ns + 1)
        return next_start_ns(self._starts_ns, self._cycle_ns, from_ns)


def ready_by_plan_ns(stage: StageSpec, release_ns: int, inputs: list[Buffer | None]) -> int:
    """Return when a job that is released with its trigger, or its set, is ready by plan.

    An incomplete set was waited for until it was released.
    """
    planned = [buffer.planned_ns for buffer in inputs if buffer is not None]
    if not planned or (stage.sync is not None and len(planned) < len(inputs)):
        planned.append(release_ns)
    return max(planned)


def note_start(job: Job, wcet_ns: int, state: State) -> None:
    """Take a job's planned start; tell when it is already past."""
    row, planned_ns = job.task.row, job.key[0]
    assert row is not None
    row.taken_ns = planned_ns
    activation = job.activation
    activation.planned_ns = max(activation.planned_ns, planned_ns + wcet_ns)
    if state.now_ns > planned_ns:
        record = TableRecord(job.id, job.task.name, state.now_ns, planned_ns)
        state.out.append(Record(record))


def published_by_plan_ns(activation: Activation) -> int:
    """Return when consumers were to read an activation's output by plan."""
    stage = activation.stage
    if stage.publish == "asap":
        return activation.planned_ns
    base_ns = activation.capture_ns if stage.deadline_from == "capture" else activation.ready_ns
    return max(activation.planned_ns, base_ns + stage.deadline_ns)
