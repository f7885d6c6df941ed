"""What a run gives back to a Python program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.report.terminal import as_text

if TYPE_CHECKING:
    from avrt.errors import InputError
    from avrt.model.records import MissRecord
    from avrt.report.summary import RunSummary


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed.

    Attributes:
        summary: everything, as objects.
        damage: what was wrong with the log, when it ended the run early.
    """

    summary: RunSummary
    damage: InputError | None = None

    def __str__(self) -> str:
        """The report as a person reads it."""
        return as_text(self.summary)

    @property
    def data(self) -> dict[str, object]:
        """The run object, plain data as `--json` prints it."""
        return self.summary.data()

    @property
    def jobs(self) -> dict[str, int]:
        """Outcomes over all stages; they sum to `released`."""
        return self.summary.figures.jobs()

    @property
    def misses(self) -> tuple[MissRecord, ...]:
        """The first misses, explained."""
        return tuple(self.summary.figures.misses)
