"""What goes wrong in a run and is worth a record of its own, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from avrt.model.records import FaultRecord, MissRecord, ModeRecord, ResourceRecord

if TYPE_CHECKING:
    from avrt.model.records import AnyRecord

Incident: TypeAlias = MissRecord | FaultRecord | ResourceRecord | ModeRecord
INCIDENTS = (MissRecord, FaultRecord, ResourceRecord, ModeRecord)


def told(record: AnyRecord) -> str:
    """Return an incident in words."""
    match record:
        case MissRecord():
            return f"{record.task} {record.index} missed its deadline"
        case FaultRecord():
            return f"{record.task} failed: {record.fault}"
        case ResourceRecord():
            return f"{record.name} is {record.state}"
        case ModeRecord():
            return f"mode {record.mode}: {record.cause}"
        case _:
            return type(record).__name__
