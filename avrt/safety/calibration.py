"""How far outputs of healthy copies lie apart: what a tolerance is calibrated from.

In a run without faults every copy is right, so the votes let all agree and only look: nobody is
blamed, taken out of the vote, or given another one's state, however small the tolerance is that the
pipeline has. What is measured is what the stage's key allows: `tolerance` is a share of the largest
magnitude, `within` a difference. The calibrated value is FACTOR times the largest found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

from avrt.payload import Plan, Tracks
from avrt.safety.agreement import SHARE, Scalar, Tolerance
from avrt.safety.rules import Contained, rules_of
from avrt.safety.voter import Voter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.commands import VoteAt
    from avrt.model.spec import StageSpec
    from avrt.safety.agreement import Agreement, Problem
    from avrt.safety.rules import Test
    from avrt.safety.vote import Ballot
    from avrt.safety.voter import Answer

    Allowance: TypeAlias = Literal["", "tolerance", "within"]

FACTOR = 10.0
MEANINGS = (Tracks, Plan)
"""What vote `kind` compares by what it means: with distances of its own, which nobody sets."""


@dataclass(slots=True)
class Spread:
    """How far outputs of the copies of one stage lay apart.

    Attributes:
        by: the key that allows as much; "" where none does.
        frames: activations in which all copies that run each time gave a valid output.
        unlike: those of them in which outputs differ by more than numbers.
        largest: the largest distance of two outputs of one other frame: as a share, as a
            difference, or where no key allows it, in units of what is allowed.
    """

    by: Allowance = ""
    frames: int = 0
    unlike: int = 0
    largest: float = 0.0

    @property
    def calibrated(self) -> float | None:
        """What the key is to say; None where no key allows it."""
        if not self.by:
            return None
        return max(FACTOR * self.largest, SHARE if self.by == "tolerance" else 0.0)


class MeasuringVoter(Voter):
    """Lets all copies agree, and measures how far they lie apart.

    Attributes:
        spread: what was found so far.
    """

    def __init__(self, stage: StageSpec, accept: Test | None) -> None:
        assert stage.redundancy is not None
        rules = rules_of(stage, accept)
        super().__init__(replace(rules, agreement=_Open(rules.agreement)))
        self.spread = Spread()
        self._vote = stage.redundancy.vote
        self._own = rules.agreement
        self._all = stage.redundancy.copies - stage.redundancy.spare

    def vote(
        self,
        activation: int,
        ballots: Sequence[Ballot],
        when: VoteAt,
        at_ns: int,
        quorum: int | None = None,
    ) -> Answer:
        if when == "over":
            self._look(ballots)
        return super().vote(activation, ballots, when, at_ns, quorum)

    def _look(self, ballots: Sequence[Ballot]) -> None:
        valid = [
            ballot.payload
            for ballot in ballots
            if not ballot.abstains and not self._own.problem(ballot.payload)
        ]
        if len(valid) < self._all:
            return
        spread = self.spread
        spread.by, measure = self._measured(valid[0])
        largest = max(measure.distance(a, b) for a, b in combinations(valid, 2))
        spread.frames += 1
        if math.isinf(largest):
            spread.unlike += 1
        else:
            spread.largest = max(spread.largest, largest)

    def _measured(self, payload: object) -> tuple[Allowance, Agreement]:
        """Return what allows outputs to differ, and an agreement that measures it."""
        match self._vote:
            case "number":
                return "within", Contained(Scalar(1.0))
            case "angle":
                return "within", Contained(Scalar(1.0, period=math.tau))
            case "tolerance":
                return "tolerance", Contained(Tolerance(1.0, 0.0))
            case "kind" if not isinstance(payload, MEANINGS):
                return "tolerance", Contained(Tolerance(1.0, 0.0))
            case _:
                return "", self._own


class _Open:
    """An agreement of any valid outputs."""

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement

    def problem(self, payload: object) -> Problem:
        return self._agreement.problem(payload)

    def distance(self, a: object, b: object) -> float:
        del a, b
        return 0.0

    def settle(self, payloads: Sequence[object]) -> object | None:
        return self._agreement.settle(payloads)

    def completed(self, selected: object, others: Sequence[object]) -> None:
        del selected, others
