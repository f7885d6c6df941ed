"""What tells of a fault: which records of a run, and which anomalies of its log, are alarms.

| by       | what                                                                     |
|----------|--------------------------------------------------------------------------|
| fault    | a job ended with a fault: it raised, or gave what is no payload          |
| miss     | a due time passed, a budget was overrun, (m,k) was violated              |
| vote     | a replica was blamed, or not enough of them agreed                       |
| resource | a stream or a device was lost                                            |
| level    | another level of the ladder was entered                                  |
| skip     | a job could not run for want of an input that is there, or new enough    |
| chain    | an end-to-end promise was broken                                         |
| sync     | a set of inputs was released without all of them                         |
| guard    | a message was rejected or mended, is known to be missing; a sensor is out |
| log      | the log's messages are odd: their stamps jump, repeat, stop or go back   |

What says that things go well again (a device is back, a level is entered from below) is no alarm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.metrics.observed import Detection
from avrt.model.records import (
    ChainBroken,
    FaultRecord,
    JobRecord,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
    SyncRecord,
    VoteRecord,
    WindowRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.model.guard import FlawRecord, SensorRecord
    from avrt.model.records import AnyRecord

AGREED = frozenset(("", "unanimous", "majority_of_two", "superseded"))
CLEAR = "clear"


def alarms_of(record: AnyRecord, at_ns: int) -> Iterator[Detection]:  # noqa: C901, PLR0912
    """Yield what a record tells of, at most one thing."""
    match record:
        case FaultRecord():
            yield Detection(at_ns, "fault", f"{record.task}: {record.fault}")
        case MissRecord():
            yield Detection(at_ns, "miss", f"{record.task} {record.index}")
        case OverrunRecord() | WindowRecord():
            yield Detection(at_ns, "miss", record.task)
        case VoteRecord() if record.blamed:
            yield Detection(at_ns, "vote", f"blames {', '.join(record.blamed)}")
        case VoteRecord() if record.verdict not in AGREED:
            yield Detection(at_ns, "vote", f"{record.stage}: {record.verdict}")
        case ResourceRecord() if record.state == "lost":
            yield Detection(at_ns, "resource", record.name)
        case ModeRecord() if record.cause != CLEAR:
            yield Detection(at_ns, "level", f"{record.mode}: {record.cause}")
        case JobRecord() if record.outcome == "skipped" and record.reason != "busy":
            yield Detection(at_ns, "skip", f"{record.task}: {record.reason}")
        case ChainBroken():
            yield Detection(at_ns, "chain", record.chain)
        case SyncRecord():
            yield Detection(at_ns, "sync", record.stage)
        case _:
            pass


def alarm_of_flaw(flaw: FlawRecord) -> Detection:
    """Return what a message that was not as it should be tells of."""
    what = flaw.reason or ("missing" if flaw.missing else "nonfinite")
    return Detection(flaw.at_ns, "guard", f"{flaw.source}: {what}")


def alarms_of_sensor(change: SensorRecord) -> Iterator[Detection]:
    """Yield what the state of a sensor tells of: nothing once it is ok."""
    if change.state != "ok":
        yield Detection(change.at_ns, "guard", f"{change.source}: {change.state}")


def alarm_of_log(at_ns: int, topic: str, kind: str) -> Detection:
    """Return what an anomaly of the log tells of."""
    return Detection(at_ns, "log", f"{topic}: {kind}")
