"""The voter of one redundant stage: what the kernel asks, answered from the replicas' outputs.

It knows no clock and calls no stage: the same votes give the same answers in every driver. That a
ballot is of the frame that is voted on, and rests on the same inputs, holds by construction: the
kernel binds the inputs of an activation once, for all its replicas.

Without a decision the last accepted output is held: published once more, as old as it was, for at
most HOLD_FRAMES frames in a row and HOLD_NS. What comes after a decision is only compared: whoever
was wrong, late or missing is judged when the vote is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from avrt.safety.replicas import Replicas
from avrt.safety.vote import BLAME, DOUBTFUL, FAILED, OPEN, WRONG, Ballot, decide
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.commands import VoteAt
    from avrt.safety.vote import Abstains, Decision, Rules, Verdict

HOLD_FRAMES = 2
HOLD_NS = 100 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class Answer:
    """What the voter says to one question.

    Attributes:
        verdict: of `avrt.safety.vote`; "" where the vote was decided before.
        choice: the replica whose output is selected, or None.
        merged: a declared merge that is published in its place, or None.
        held: the last accepted output is to be published once more.
        blamed: replicas that were wrong, late or missing; told when the vote is over.
        quarantined: those of them whose output does not count from now on.
    """

    verdict: Verdict | Literal[""]
    choice: int | None = None
    merged: object | None = None
    held: bool = False
    blamed: tuple[int, ...] = ()
    quarantined: tuple[int, ...] = ()

    @property
    def is_doubtful(self) -> bool:
        """Whether its output is not one with which enough agree: readers are to be told so."""
        return self.held or self.merged is not None or self.verdict in DOUBTFUL


@dataclass(slots=True)
class _Decided:
    """A vote that is decided and not over.

    Attributes:
        accepted: the selected payload, or None: a replica's where one is selected, also where it is
            published with what must not be lost of others.
        missing: replicas that had not answered at the last time to decide.
    """

    accepted: object | None
    decision: Decision
    missing: frozenset[int]


class Voter:
    """Votes over the activations of one stage.

    Attributes:
        replicas: how they stand.
        failing: votes in a row without a decision.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.replicas = Replicas(len(rules.domains))
        self.failing = 0
        self._newest = self._accepted_by = -1
        self._previous: object | None = None
        self._accepted_ns = 0
        self._held = 0
        self._decided: dict[int, _Decided] = {}

    def forget(self) -> None:
        """Begin anew: what was accepted before says nothing of what comes."""
        self._previous = None

    def vote(
        self,
        activation: int,
        ballots: Sequence[Ballot],
        when: VoteAt,
        at_ns: int,
        quorum: int | None = None,
    ) -> Answer:
        """Answer one question of the kernel.

        Args:
            activation: its number.
            ballots: one of each replica of which the end is known.
            when: the kind of question.
            at_ns: pipeline time.
            quorum: how many must agree, where it is not what the rules say.
        """
        if quorum is not None and quorum != self._rules.quorum:
            self._rules = replace(self._rules, quorum=quorum)
        screened = self._screened(ballots)
        answer = Answer("")
        if activation < self._newest:
            self._decided.setdefault(activation, _Decided(None, OPEN, frozenset()))
        if activation not in self._decided:
            decision = self._decide(screened, is_last=when != "early")
            if decision is OPEN:
                return Answer(decision.verdict)
            answer = self._take(activation, decision, screened, when, at_ns)
        if when != "over":
            return answer
        return self._judge(answer, self._decided.pop(activation), screened, at_ns)

    def failed(self, activation: int, when: VoteAt, at_ns: int) -> Answer:
        """Answer a question at which `vote` raised: as where nobody can be believed.

        A vote that was decided stays so, and nobody is blamed.
        """
        answer = Answer("")
        if activation not in self._decided:
            answer = self._take(activation, FAILED, (), when, at_ns)
        if when == "over":
            del self._decided[activation]
        return answer

    def _screened(self, ballots: Sequence[Ballot]) -> list[Ballot]:
        """Let ballots abstain that say nothing one could believe."""
        found = []
        for ballot in ballots:
            problem = ballot.abstains or self._rules.agreement.problem(ballot.payload)
            found.append(replace(ballot, abstains=problem))
        return found

    def _decide(self, screened: Sequence[Ballot], *, is_last: bool) -> Decision:
        counted = []
        for ballot in screened:
            distrust: Abstains = ""
            match self.replicas.all[ballot.replica].standing:
                case "shadow":
                    distrust = "shadow"
                case "quarantined" | "out":
                    distrust = "quarantined"
                case _:
                    pass
            counted.append(replace(ballot, abstains=distrust or ballot.abstains))
        if is_last:
            heard = {ballot.replica for ballot in counted}
            others = set(range(len(self._rules.domains))) - heard
            counted += [Ballot(replica, abstains="late") for replica in sorted(others)]
        return decide(counted, self._rules, self._previous, is_last=is_last)

    def _take(
        self,
        activation: int,
        decision: Decision,
        screened: Sequence[Ballot],
        when: VoteAt,
        at_ns: int,
    ) -> Answer:
        accepted = decision.merged
        if decision.choice is not None:
            accepted = next(b.payload for b in screened if b.replica == decision.choice)
        heard = {ballot.replica for ballot in screened}
        late = frozenset(range(len(self._rules.domains))) - heard if when == "deadline" else ()
        self._decided[activation] = _Decided(accepted, decision, frozenset(late))
        is_held = accepted is None and self._hold(activation, at_ns)
        if is_held or (accepted is not None and self._rules.supersedes):
            self._newest = max(self._newest, activation)
        if accepted is None:
            self.failing += 1
            return Answer(decision.verdict, held=is_held)
        self.failing = self._held = 0
        if self._previous is None or activation > self._accepted_by:
            self._accepted_by = activation
            self._previous, self._accepted_ns = accepted, at_ns
        return Answer(decision.verdict, decision.choice, decision.merged)

    def _hold(self, activation: int, at_ns: int) -> bool:
        """Return whether the last accepted output is still good enough, and count it.

        One that is not is forgotten: it would make an acceptance test refuse what is new for ever.
        What was accepted for a newer activation is not held for an older one.
        """
        if activation < self._accepted_by:
            return False
        age_ns = at_ns - self._accepted_ns
        if self._previous is None or self._held >= HOLD_FRAMES or age_ns > HOLD_NS:
            self.forget()
            return False
        self._held += 1
        return True

    def _judge(
        self, answer: Answer, decided: _Decided, screened: Sequence[Ballot], at_ns: int
    ) -> Answer:
        """Judge all replicas by what was accepted."""
        blame = {b.replica: self._points(b, decided) for b in screened}
        for ballot in screened:
            if decided.accepted is not None and ballot.abstains != "skipped":
                agrees = not blame[ballot.replica]
                self.replicas.followed(ballot.replica, agrees=agrees, at_ns=at_ns)
        heard = [ballot.replica for ballot in screened if not ballot.abstains]
        quarantined = self.replicas.judge(blame, heard, at_ns)
        blamed = tuple(replica for replica, points in sorted(blame.items()) if points)
        return replace(answer, blamed=blamed, quarantined=tuple(quarantined))

    def _points(self, ballot: Ballot, decided: _Decided) -> float:
        if ballot.abstains:
            return BLAME[ballot.abstains]
        if decided.accepted is None:
            return decided.decision.blame.get(ballot.replica, 0.0)
        near = self._rules.agreement.distance(ballot.payload, decided.accepted) <= 1
        late = BLAME["late"] if ballot.is_late or ballot.replica in decided.missing else 0.0
        if decided.decision.verdict in DOUBTFUL:
            return max(late, decided.decision.blame.get(ballot.replica, 0.0))
        return late if near else WRONG
