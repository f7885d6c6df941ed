"""What else happened at a point in time: losses, faults, modes, overruns, broken windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from avrt.model.records import (
    FaultRecord,
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
    from avrt.model.guard import SensorRecord
    from avrt.model.records import AnyRecord


class Mark(NamedTuple):
    """One event.

    Attributes:
        kind: what its symbol is: "resource", "mode", "fault", "window", "overrun", "start_late",
            "incomplete", "vote" or "sensor".
        task: the task, stage, source, device or stream that it concerns, or the level that is
            entered; empty for the whole run.
        text: what happened, for a person.
    """

    kind: str
    at_ns: int
    task: str
    text: str


def mark_of(record: AnyRecord) -> Mark | None:  # noqa: PLR0911 - one case a record
    """Return the mark of a record; None for one that is shown otherwise."""
    match record:
        case ResourceRecord():
            what = "was lost" if record.state == "lost" else "came back"
            return Mark("resource", record.at_ns, record.name, f"{record.name} {what}")
        case ModeRecord():
            how = "entered" if record.entered else "refused"
            what = f"level {record.mode} {how}: {record.cause}"
            return Mark("mode", record.at_ns, record.mode if record.entered else "", what)
        case FaultRecord():
            return Mark(
                "fault", record.at_ns, record.task, f"fault of {record.task}: {record.fault}"
            )
        case WindowRecord():
            what = f"more than {record.misses_max} of {record.window_jobs} jobs in a row not met"
            return Mark("window", record.at_ns, record.task, f"{record.task}: {what}")
        case OverrunRecord():
            what = f"received more than its budget of {format_ns(record.budget_ns)}"
            return Mark("overrun", record.at_ns, record.task, f"{record.task} {what}")
        case TableRecord():
            what = f"started {format_ns(record.late_ns)} later than the table says"
            return Mark("start_late", record.at_ns, record.task, f"{record.task} {what}")
        case SyncRecord():
            what = f"a set came without {', '.join(record.missing)}"
            return Mark("incomplete", record.at_ns, record.stage, f"{record.stage}: {what}")
        case VoteRecord():
            what = f"vote of {record.stage}: {record.verdict}"
            return Mark("vote", record.at_ns, record.stage, what)
        case _:
            return None


def sensor_mark(record: SensorRecord) -> Mark:
    """Return the mark of a sensor that changed its state."""
    what = f"sensor {record.source}: {record.state}, was {record.was}"
    return Mark("sensor", record.at_ns, record.source, what)
