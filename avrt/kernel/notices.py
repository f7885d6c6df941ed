"""What the kernel says of a job: how it is dispatched, and how it ended.

By position, which is three times as fast as by keyword.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.commands import Dispatch
from avrt.model.records import JobRecord

if TYPE_CHECKING:
    from avrt.kernel.job import Job
    from avrt.model.records import Outcome


def dispatch_of(job: Job, segment: int, variant: str) -> Dispatch:
    """Return the command that starts a segment of a job where it is to run."""
    task, device, inputs = job.task, job.device, job.activation.inputs
    assert device is not None
    return Dispatch(
        job.id,
        task.name,
        job.index,
        task.name,
        device.name,
        segment,
        variant,
        tuple([None if b is None else b.handle for b in inputs]) if inputs else (),
        job.release_ns,
        job.due_ns,
    )


def record_of(job: Job, outcome: Outcome, reason: str, now_ns: int) -> JobRecord:
    """Return how a job ended."""
    activation = job.activation
    return JobRecord(
        job.id,
        activation.id,
        job.task.name,
        activation.stage.name,
        job.index,
        job.release_ns,
        job.arrival_ns,
        job.due_ns,
        job.start_ns,
        now_ns,
        outcome,
        reason,
        job.received_ns(now_ns),
        job.device_start_ns,
        job.device_ns,
        activation.absent,
    )
