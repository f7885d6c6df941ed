"""How replicas are voted on where nothing is computed: as in a recorded run, or they all agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.kernel.voting import QUORUM
from avrt.model.events import Completed, Voted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.model.commands import Vote


class Agreeing:
    """A voter of equal outputs: the first is selected as soon as there are enough."""

    def __init__(self) -> None:
        self._decided: set[int] = set()

    def vote(self, question: Vote, outputs: Sequence[int], known: Voted | None = None) -> Voted:
        """Return the answer to a question.

        Args:
            question: of the kernel.
            outputs: of the jobs in question, in their order.
            known: what is to be answered unless the vote is decided already.
        """
        activation = question.activation
        is_open = activation not in self._decided
        if known is not None and (is_open or known.buffer is None):
            answer = replace(known, activation=activation)
        elif is_open and outputs:
            verdict = "unanimous" if len(outputs) >= QUORUM else "single"
            answer = Voted(activation, verdict, outputs[0])
        else:
            answer = Voted(activation, "none" if is_open else "", None)
        if question.when == "over":
            self._decided.discard(activation)
        elif question.when == "deadline" or answer.buffer is not None:
            self._decided.add(activation)
        return answer


class Recalled:
    """A voter that answers as in a recorded run; outputs that it did not have agree.

    Args:
        answers: over each activation of a redundant stage, in order, by its stage and root.
        ends: how the work of the run's jobs ended.
    """

    def __init__(
        self, answers: Mapping[tuple[str, int], Sequence[Voted]], ends: Iterable[object]
    ) -> None:
        self._answers = answers
        self._made = {end.buffer for end in ends if isinstance(end, Completed)}
        self._left: dict[tuple[str, int], Iterator[Voted]] = {}
        self._other = Agreeing()

    def vote(self, question: Vote, key: tuple[str, int], outputs: Sequence[int]) -> Voted:
        """Return the answer to a question over the activation that `key` tells."""
        left = self._left.setdefault(key, iter(self._answers.get(key, ())))
        known = next(left, None)
        if known is not None and known.buffer in self._made.difference(outputs):
            known = None  # the job that made it has not ended here
        return self._other.vote(question, outputs, known)
