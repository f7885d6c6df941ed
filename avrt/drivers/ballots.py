"""Voting over outputs that were really computed: from how jobs ended to what the kernel is told.

A replica says what its job made. One whose job raised or hung crashed; one whose output came too
late to be wanted, or has not come yet, is late; one whose job never began, or was lost with its
device, says nothing and is not blamed. What ends after its vote is over is of no interest any more.
"""

from __future__ import annotations

import logging
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
    from avrt.safety.vote import Abstains
    from avrt.safety.voter import Answer

log = logging.getLogger("avrt.drivers")


@dataclass(frozen=True, slots=True)
class _End:
    """How the job of a replica ended, if it has: what it made, or why there is nothing."""

    job: int
    handle: int | None = None
    draft: Draft | None = None
    abstains: Abstains = "late"

    @property
    def has_failed(self) -> bool:
        return self.draft is None and self.abstains != "late"


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
        self._epochs = {stage.name: 0 for stage in redundant}

    def began(self, task: str, index: int, job: int) -> None:
        """Take in that a job began; those of other stages are none of its business."""
        if task in self._replica:
            stage, copy = self._replica[task]
            self._ends[stage, index][copy] = _End(job)

    def made(self, task: str, index: int, job: int, handle: int, draft: Draft) -> None:
        """Take in what a job made."""
        self._ended(task, index, _End(job, handle, draft, ""))

    def failed(self, task: str, index: int, job: int, why: Abstains = "crashed") -> None:
        """Take in that a job made nothing."""
        self._ended(task, index, _End(job, abstains=why))

    def _ended(self, task: str, index: int, end: _End) -> None:
        if task in self._replica:
            stage, copy = self._replica[task]
            if (stage, index) in self._ends:
                self._ends[stage, index][copy] = end

    def vote(self, question: Vote, at_ns: int) -> Voted:
        """Answer a question of the kernel."""
        stage = question.stage
        ends = self._ends[stage, question.index]
        self._begin_epoch(stage, ends)
        counted = set(question.jobs)
        known = sorted(ends.items())
        voter = self.voters[stage]
        if question.when != "over":  # of others the kernel has not heard yet
            known = [(copy, end) for copy, end in known if end.job in counted or end.has_failed]
        ballots = [self._ballot(copy, end, counted) for copy, end in known]
        if question.when == "over":
            del self._ends[stage, question.index]
            others = set(range(len(voter.replicas.all))) - set(ends)
            ballots += [Ballot(copy, abstains="skipped") for copy in sorted(others)]
        answer = voter.vote(question.activation, ballots, question.when, at_ns)
        for copy in answer.quarantined:
            log.warning("replica %s.%d is quarantined", stage, copy)
        buffer = self._selected(stage, answer, ends)
        return Voted(question.activation, answer.verdict, buffer, answer.held, answer.blamed)

    def _begin_epoch(self, stage: str, ends: Mapping[int, _End]) -> None:
        """Forget what was accepted when the source's clock has begun anew."""
        epoch = max((end.draft.epoch for end in ends.values() if end.draft is not None), default=0)
        if epoch > self._epochs[stage]:
            self._epochs[stage] = epoch
            self.voters[stage].forget()

    def _ballot(self, copy: int, end: _End, counted: set[int]) -> Ballot:
        if end.draft is None:
            return Ballot(copy, abstains=end.abstains)
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
