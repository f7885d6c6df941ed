"""The sensor mode of a run: which sensors were out of use when, and what became of bad messages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.guard import FlawRecord, SensorRecord, SensorState

CHANGES_KEPT = 100


class SensorFigures:
    """One sensor that has a guard.

    Attributes:
        state: what it is now.
        rejected: messages that no stage got, by reason.
        missing: messages that its sender's counter says are missing.
        dropped: points that were taken out of messages.
        changes: of its state, the first CHANGES_KEPT; `change_count` has all.
    """

    def __init__(self) -> None:
        self.state: SensorState = "ok"
        self.rejected: Counter[str] = Counter()
        self.missing = 0
        self.dropped = 0
        self.changes: list[SensorRecord] = []
        self.change_count = 0

    def flaw(self, record: FlawRecord) -> None:
        if record.reason:
            self.rejected[record.reason] += 1
        self.missing += record.missing
        self.dropped += record.dropped

    def change(self, record: SensorRecord) -> None:
        self.state = record.state
        if record.state == record.was:
            return
        self.change_count += 1
        if len(self.changes) < CHANGES_KEPT:
            self.changes.append(record)

    @property
    def is_flawless(self) -> bool:
        return not (self.rejected or self.missing or self.dropped or self.change_count)

    def summary(self) -> dict[str, object]:
        return {
            "state": self.state,
            "rejected": dict(sorted(self.rejected.items())),
            "missing": self.missing,
            "points_dropped": self.dropped,
            "change_count": self.change_count,
            "changes": [
                {"at_ns": change.at_ns, "state": change.state, "was": change.was}
                for change in self.changes
            ],
        }
