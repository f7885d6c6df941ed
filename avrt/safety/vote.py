"""The decision over the outputs of one activation: a pure function of who says what.

Ballots that abstain never count as values: a NaN in a median of three makes the output NaN. Of the
others, the one with which most agree is selected (of equals the one nearest to its supporters, then
the lowest number): always a whole output of a real replica, never a mean. What must not be lost of
those that disagree goes with it (`Agreement.completed`: an object in the way of the vehicle).

| at the last time to decide              | verdict         | output                   |
|-----------------------------------------|-----------------|--------------------------|
| all are valid and agree                 | unanimous       | the selected one         |
| enough agree, others do not             | majority        | the selected one         |
| enough agree, the others abstain        | majority_of_two | the selected one         |
| enough of one domain, another objects   | weak_majority   | if the test passes it    |
| enough agree, the acceptance test fails | rejected        | none                     |
| two are valid and disagree              | tie             | arbitration              |
| more are valid, too few agree           | no_majority     | arbitration              |
| one is valid                            | single          | if allowed and accepted  |
| none is valid                           | none            | none                     |
| the voter itself raises                 | failed          | none                     |

Arbitration: the only one that passes the acceptance test, else what is safest for its kind
(`Agreement.settle`): both are `arbitrated`, but for the safest of three or more, which remains a
`no_majority`: it has an output, and is not to go on for long. Before the last time everything but
agreement of enough is `open`. Who was wrong gets points of blame: 1 for a wrong, non-finite or
malformed output, 0.5 for a late one, 3 for a crash, 0.25 where nobody can tell. Who objects to a
pair of one domain gets none: quarantined for it, it would leave the pair to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.safety.agreement import Agreement

Verdict: TypeAlias = Literal[
    "open",
    "unanimous",
    "majority",
    "majority_of_two",
    "weak_majority",
    "rejected",
    "arbitrated",
    "tie",
    "no_majority",
    "single",
    "none",
    "failed",
]
Abstains: TypeAlias = Literal[
    "", "late", "crashed", "nonfinite", "schema", "range", "shadow", "quarantined", "skipped"
]
BLAME: Mapping[Abstains, float] = MappingProxyType(
    {
        "late": 0.5,
        "crashed": 3.0,
        "nonfinite": 1.0,
        "schema": 1.0,
        "range": 1.0,
        "shadow": 0.0,
        "quarantined": 0.0,
        "skipped": 0.0,
    }
)
WRONG, UNCLEAR = 1.0, 0.25
DOUBTFUL: frozenset[Verdict] = frozenset(("weak_majority", "arbitrated", "no_majority"))
"""Verdicts that may have an output, with which too few agree that do not share a fault."""
PAIR = 2


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one replica says.

    Attributes:
        abstains: why its payload does not count, or "".
        is_late: it came after the deadline.
    """

    replica: int
    payload: object = None
    abstains: Abstains = ""
    is_late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a stage is voted on.

    Attributes:
        domains: of each replica, what it shares with others so that one fault may hit both.
        supersedes: whether what is undecided of older activations is given up at a decision.
        quorum: how many must agree.
        accept: tests an output against the one accepted before, None at first; None: no test.
        allow_single: whether a single valid output that passes the test is good enough.
    """

    agreement: Agreement
    domains: tuple[str, ...]
    quorum: int = PAIR
    accept: Callable[[object, object | None], bool] | None = None
    allow_single: bool = False
    supersedes: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """What comes of a vote.

    Attributes:
        choice: the replica whose output is selected, or None.
        merged: a declared merge that is published in its place, or None.
        blame: points by replica.
        is_chain: the outputs agree one with the next and not all with each other: the tolerance is
            too small for what healthy replicas differ by.
    """

    verdict: Verdict
    choice: int | None = None
    merged: object | None = None
    blame: Mapping[int, float] = field(default_factory=dict)
    is_chain: bool = False


OPEN, FAILED = Decision("open"), Decision("failed")


def decide(
    ballots: Sequence[Ballot], rules: Rules, previous: object | None, *, is_last: bool
) -> Decision:
    """Decide over ballots, in any order.

    Args:
        ballots: one of each replica that has been heard of or, at the last time, of each.
        rules: of the stage.
        previous: the output accepted before, or None.
        is_last: whether it is the last time to decide.
    """
    valid = sorted((b for b in ballots if not b.abstains), key=lambda ballot: ballot.replica)
    support, is_chain = _support(valid, rules.agreement)
    if len(support) < rules.quorum:
        return _without_quorum(ballots, valid, rules, previous) if is_last else OPEN
    leader = support[0]
    accepts = rules.accept is None or rules.accept(leader.payload, previous)
    is_weak = _is_weak(support, valid, rules, is_last=is_last)
    if is_weak:
        if not is_last:
            return OPEN
        if rules.accept is None or not accepts:
            return _arbitrate(ballots, valid, rules, previous)
    elif not accepts:
        blame = _blame(ballots, support)
        return Decision("rejected", blame=blame) if is_last else OPEN
    others = [ballot.payload for ballot in valid if ballot is not leader]
    merged = rules.agreement.completed(leader.payload, others)
    if is_weak:
        return Decision("weak_majority", leader.replica, merged, _blame(ballots, valid))
    verdict = _verdict(len(support), len(valid), len(rules.domains), is_chain=is_chain)
    found = _blame(ballots, support) if is_last else {}
    return Decision(verdict, leader.replica, merged, found, is_chain=is_chain)


def _support(valid: Sequence[Ballot], agreement: Agreement) -> tuple[list[Ballot], bool]:
    """Return the ballot with which most agree, first, and those; and whether they are a chain."""
    if not valid:
        return [], False
    distances = {
        (a.replica, b.replica): agreement.distance(a.payload, b.payload)
        for a, b in combinations(valid, 2)
    }
    near = {key: distance for key, distance in distances.items() if distance <= 1}
    around = {
        ballot.replica: [distance for pair, distance in near.items() if ballot.replica in pair]
        for ballot in valid
    }

    def rank(ballot: Ballot) -> tuple[int, float, int]:
        found = around[ballot.replica]
        return -len(found), sum(found), ballot.replica

    leader = min(valid, key=rank)
    others = [
        ballot
        for ballot in valid
        if (leader.replica, ballot.replica) in near or (ballot.replica, leader.replica) in near
    ]
    is_chain = any((a.replica, b.replica) not in near for a, b in combinations(others, 2))
    return [leader, *others], is_chain


def _verdict(support: int, valid: int, copies: int, *, is_chain: bool) -> Verdict:
    if support == copies and not is_chain:
        return "unanimous"
    return "majority_of_two" if support == valid == PAIR else "majority"


def _is_weak(
    support: Sequence[Ballot], valid: Sequence[Ballot], rules: Rules, *, is_last: bool
) -> bool:
    """Whether one fault may have made all of them agree, and somebody else objects or still may."""
    agreeing = {rules.domains[ballot.replica] for ballot in support}
    heard = {rules.domains[ballot.replica] for ballot in valid}
    others = (heard if is_last else set(rules.domains)) - agreeing
    return len(agreeing) == 1 and bool(others)


def _without_quorum(
    ballots: Sequence[Ballot], valid: Sequence[Ballot], rules: Rules, previous: object | None
) -> Decision:
    if not valid:
        return Decision("none", blame=_blame(ballots, ()))
    if len(valid) > 1:
        return _arbitrate(ballots, valid, rules, previous)
    (only,) = valid
    accept = rules.accept if rules.allow_single else None
    is_accepted = accept is not None and accept(only.payload, previous)
    choice = only.replica if is_accepted else None
    return Decision("single", choice, blame=_blame(ballots, valid))


def _arbitrate(
    ballots: Sequence[Ballot], valid: Sequence[Ballot], rules: Rules, previous: object | None
) -> Decision:
    """Choose among outputs of which nobody knows who is right."""
    blame = _blame(ballots, valid) | {ballot.replica: UNCLEAR for ballot in valid}
    passing = (
        [ballot.replica for ballot in valid if rules.accept(ballot.payload, previous)]
        if rules.accept is not None
        else []
    )
    if len(passing) == 1:
        return Decision("arbitrated", passing[0], blame=blame)
    settled = rules.agreement.settle([ballot.payload for ballot in valid])
    are_two = len(valid) == PAIR
    if settled is None:
        return Decision("tie" if are_two else "no_majority", blame=blame)
    choice = next((b.replica for b in valid if b.payload is settled), None)
    merged = settled if choice is None else None
    return Decision("arbitrated" if are_two else "no_majority", choice, merged, blame)


def _blame(ballots: Sequence[Ballot], support: Sequence[Ballot]) -> dict[int, float]:
    """Return the points of all that are not among those who agree."""
    right = {ballot.replica for ballot in support}
    points = {
        ballot.replica: BLAME[ballot.abstains] if ballot.abstains else WRONG
        for ballot in ballots
        if ballot.replica not in right
    }
    return {replica: value for replica, value in points.items() if value}
