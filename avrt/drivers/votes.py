"""How replicas are voted on where nothing is computed: as in a recorded run, or they all agree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.model.events import Completed, Voted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.model.commands import Vote


class Agreeing:
    """A voter of equal outputs: the first is selected as soon as more than half are there."""

    def __init__(self) -> None:
        self._decided: defaultdict[str, set[int]] = defaultdict(set)
        self._accepted: set[str] = set()

    def vote(self, question: Vote, outputs: Sequence[int], known: Voted | None = None) -> Voted:
        """Return the answer to a question.

        Args:
            question: of the kernel.
            outputs: of the jobs in question, in their order.
            known: what is to be answered unless the vote is decided already.
        """
        activation, decided = question.activation, self._decided[question.stage]
        is_open = activation not in decided
        if known is not None and known.held and question.stage not in self._accepted:
            known = replace(known, buffer=None, held=False)
        if known is not None and (is_open or known.buffer is None):
            answer = replace(known, activation=activation)
        elif is_open:
            answer = self._answer(question, outputs)
        else:
            answer = Voted(activation, "", None)
        if question.when == "over":
            decided.discard(activation)
        elif question.when == "deadline" or answer.buffer is not None:
            decided.add(activation)
        if answer.buffer is not None:
            self._accepted.add(question.stage)
        return answer

    @staticmethod
    def _answer(question: Vote, outputs: Sequence[int]) -> Voted:
        if len(outputs) >= question.quorum:
            return Voted(question.activation, "unanimous", outputs[0])
        if question.when == "early":
            return Voted(question.activation, "open", None)
        return Voted(question.activation, "single" if outputs else "none", None)


class Recalled:
    """A voter that answers as in a recorded run; outputs that it did not have agree.

    Args:
        answers: over each activation of a redundant stage, in order, by its stage and root.
        ends: how the work of the run's jobs ended.
    """

    def __init__(
        self,
        answers: Mapping[tuple[str, int], Sequence[Voted]],
        ends: Iterable[object],
    ) -> None:
        self._answers = answers
        self._made = {end.buffer for end in ends if isinstance(end, Completed)}
        self._left: dict[tuple[str, int], Iterator[Voted]] = {}
        self._other = Agreeing()

    def vote(self, question: Vote, key: tuple[str, int], outputs: Sequence[int]) -> Voted:
        """Return the answer to a question over the activation that `key` tells."""
        left = self._left.setdefault(key, iter(self._answers.get(key, ())))
        known = next(left, None)
        while known is not None and known.verdict == "open" and question.when != "early":
            known = next(left, None)  # here it is asked later, and must be decided
        if known is not None and known.buffer in self._made.difference(outputs):
            known = None  # the job that made it has not ended here
        if question.when == "over":
            del self._left[key]
        return self._other.vote(question, outputs, known)
