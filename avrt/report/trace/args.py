"""What is told of a thing in a trace: a category, a name, and the fields of its record."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from avrt.model.records import (
    ChainBroken,
    FaultRecord,
    Interval,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
    SyncRecord,
    TableRecord,
    VoteRecord,
    WindowRecord,
)
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from avrt.report.trace.courses import Course
    from avrt.report.trace.file import Args, Value

Happening = (
    MissRecord
    | OverrunRecord
    | TableRecord
    | WindowRecord
    | ChainBroken
    | SyncRecord
    | ResourceRecord
    | VoteRecord
    | ModeRecord
    | FaultRecord
)
"""A record that is an instant of its own in a trace."""


def title(record: Happening) -> tuple[str, str]:  # noqa: C901, PLR0911 - one case a record
    """Return a record's category and its name."""
    match record:
        case MissRecord():
            return "miss", f"miss {record.task} {record.index}"
        case OverrunRecord():
            return "overrun", f"overrun {record.task}: budget {format_ns(record.budget_ns)}"
        case TableRecord():
            return "table", f"{record.task} starts {format_ns(record.late_ns)} after its plan"
        case WindowRecord():
            found, most = len(record.misses), f"{record.misses_max} of {record.window_jobs}"
            return "window", f"{record.task}: {found} misses, at most {most}"
        case ChainBroken():
            return "broken", f"{record.chain}: {record.promise} above {format_ns(record.limit_ns)}"
        case SyncRecord():
            return "sync", f"{record.stage}: set without {', '.join(record.missing)}"
        case ResourceRecord():
            return "resource", f"{record.name} {record.state}"
        case VoteRecord():
            return "vote", f"{record.stage}: {record.verdict}"
        case ModeRecord():
            return "mode", f"mode {record.mode}{'' if record.entered else ' refused'}"
        case FaultRecord():
            return "fault", f"fault {record.task}: {record.fault}"


def args_of(item: object, leave_out: Container[str] = ()) -> Args:
    """Return the fields of a record or an event; the intervals of a miss are its `why`."""
    found: Args = {}
    for field in fields(item):  # type: ignore[arg-type]  # records and events are dataclasses
        if field.name in leave_out:
            continue
        value: object = getattr(item, field.name)
        if field.name == "intervals":
            assert isinstance(value, tuple)
            found["why"] = [_interval(part) for part in value]
        else:
            found[field.name] = _plain(value)
    return found


def job_args(number: int, course: Course, stage_of: Mapping[str, str]) -> Args:
    """Return what is known of a job, in the words of its record."""
    record, pieces = course.record, len(course.pieces)
    if record is not None:
        more: Args = {"response_ns": record.response_ns, "lateness_ns": record.lateness_ns}
        return {**args_of(record), **more, "pieces": pieces}
    begun = course.dispatch
    assert begun is not None
    return {
        "job": number,
        "task": begun.task,
        "stage": stage_of[begun.task],
        "index": begun.index,
        "release_ns": begun.release_ns,
        "due_ns": begun.due_ns,
        "start_ns": course.pieces[0].start_ns,
        "outcome": "open",
        "reason": "",
        "pieces": pieces,
    }


def _interval(part: Interval) -> Args:
    return {**args_of(part), "duration_ns": part.duration_ns}


def _plain(value: object) -> Value:
    if value is None or isinstance(value, int | str):
        return value
    assert isinstance(value, tuple)
    return ", ".join(map(str, value))
