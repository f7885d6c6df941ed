"""How the votes over a redundant stage went: what was decided, and who was found wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.records import VoteRecord

DECIDED = frozenset(("unanimous", "majority", "majority_of_two", "weak_majority"))
"""Verdicts of enough replicas that agree."""


class VoteFigures:
    """One stage.

    Attributes:
        verdicts: how often each was given.
        held: votes after which the last accepted output was published once more.
        blamed: by task, votes over which its output was wrong, late or missing.
    """

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.held = 0
        self.blamed: Counter[str] = Counter()

    def vote(self, record: VoteRecord) -> None:
        """Take in a record; one without a verdict only tells who was found wrong."""
        if record.verdict:
            self.verdicts[record.verdict] += 1
        self.held += record.held
        self.blamed.update(record.blamed)

    @property
    def count(self) -> int:
        """Votes that are decided."""
        return self.verdicts.total()

    @property
    def without_majority(self) -> int:
        """Votes in which too few agreed."""
        return sum(count for verdict, count in self.verdicts.items() if verdict not in DECIDED)

    def summary(self) -> dict[str, object]:
        return {
            "count": self.count,
            "verdicts": dict(sorted(self.verdicts.items())),
            "held": self.held,
            "blamed": dict(sorted(self.blamed.items())),
        }
