"""Voting over outputs that were really computed: from how jobs ended to what the kernel is told.

A replica says what its job made. One whose job raised, hung or was lost crashed; one whose output
came too late to be wanted is late; one whose job never began says nothing and is not blamed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from avrt.model.events import Voted
from avrt.payload.digest import digest_of
from avrt.safety.rules import rules_of
from avrt.safety.vote import Ballot
from avrt.safety.voter import Voter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.drivers.draft import Draft
    from avrt.model.commands import Vote
    from avrt.model.spec import PipelineSpec
    from avrt.safety.voter import Answer


@dataclass(frozen=True, slots=True)
class _End:
    """How the job of a replica ended; its output's handle and draft, or neither."""

    job: int
    handle: int | None = None
    draft: Draft | None = None


class Ballots:
    """The votes over all redundant stages of a run.

    Args:
        spec: the pipeline.
        accepts: the acceptance test of each stage, None where there is none.
        keep: takes the draft of a new message, and returns its handle.
        digested: whether drafts carry a digest of their payload.

    Attributes:
        voters: by stage.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        accepts: Mapping[str, Callable[[object, object | None], bool] | None],
        keep: Callable[[Draft], int],
        *,
        digested: bool,
    ) -> None:
        redundant = [stage for stage in spec.stages if stage.redundancy is not None]
        self.voters = {
            stage.name: Voter(rules_of(stage, accepts.get(stage.name))) for stage in redundant
        }
        self._replica = {
            task: (stage.name, copy)
            for stage in redundant
            for copy, task in enumerate(stage.task_names)
        }
        self._keep = keep
        self._digested = digested
        self._ends: defaultdict[tuple[str, int], dict[int, _End]] = defaultdict(dict)
        self._accepted: dict[str, Draft] = {}

    def ended(
        self, task: str, index: int, job: int, handle: int | None = None, draft: Draft | None = None
    ) -> None:
        """Take in how a job ended; those of other stages are none of its business."""
        if task in self._replica:
            stage, copy = self._replica[task]
            self._ends[stage, index][copy] = _End(job, handle, draft)

    def vote(self, question: Vote, at_ns: int) -> Voted:
        """Answer a question of the kernel."""
        stage = question.stage
        ends = self._ends[stage, question.index]
        counted = set(question.jobs)
        ballots = [self._ballot(copy, end, counted) for copy, end in sorted(ends.items())]
        voter = self.voters[stage]
        if question.when == "over":
            del self._ends[stage, question.index]
            others = set(range(len(voter.replicas.all))) - set(ends)
            ballots += [Ballot(copy, abstains="skipped") for copy in sorted(others)]
        answer = voter.vote(question.activation, ballots, question.when, at_ns)
        buffer = self._selected(stage, answer, ends)
        return Voted(question.activation, answer.verdict, buffer, answer.held, answer.blamed)

    def _ballot(self, copy: int, end: _End, counted: set[int]) -> Ballot:
        if end.draft is None:
            return Ballot(copy, abstains="crashed")
        if end.job not in counted:
            return Ballot(copy, abstains="late")
        return Ballot(copy, end.draft.payload)

    def _selected(self, stage: str, answer: Answer, ends: Mapping[int, _End]) -> int | None:
        """Return the handle of what is selected, of a new message if need be."""
        if answer.held:
            return self._keep(replace(self._accepted[stage], degraded=True))
        if answer.choice is not None:
            chosen = ends[answer.choice]
            assert chosen.draft is not None
            self._accepted[stage] = chosen.draft
            return chosen.handle
        if answer.merged is None:
            return None
        some = next(end.draft for end in ends.values() if end.draft is not None)
        digest = digest_of(answer.merged) if self._digested else b""
        merged = self._accepted[stage] = replace(some, payload=answer.merged, digest=digest)
        return self._keep(merged)
