"""Voting over outputs that were really computed: from how jobs ended to what the kernel is told.

A replica says what its job made. One whose job raised or hung crashed; one whose output came too
late to be wanted, or has not come yet, is late; one whose job never began, or was lost with its
device, says nothing and is not blamed. What ends after its vote is over is of no interest any more.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from avrt.errors import CORRUPTED, FaultError
from avrt.exec.runner import guarded
from avrt.model.events import Voted
from avrt.safety.rules import INTERRUPTS, rules_of
from avrt.safety.vote import Ballot
from avrt.safety.voter import Voter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.drivers.draft import Draft
    from avrt.model.commands import Vote
    from avrt.model.spec import PipelineSpec, StageSpec
    from avrt.payload.digest import Digest
    from avrt.safety.rules import Test
    from avrt.safety.vote import Abstains
    from avrt.safety.voter import Answer

    MakeVoter: TypeAlias = Callable[[StageSpec, Test | None], Voter]

log = logging.getLogger("avrt.drivers")


def voter_of(stage: StageSpec, accept: Test | None) -> Voter:
    """Return the voter of a redundant stage, given its acceptance test, if it has one."""
    return Voter(rules_of(stage, accept))


@dataclass(frozen=True, slots=True)
class _End:
    """How the job of a replica ended, if it has: what it made, or why there is nothing."""

    job: int
    due_ns: int
    handle: int | None = None
    draft: Draft | None = None
    abstains: Abstains = "late"
    is_late: bool = False

    @property
    def has_failed(self) -> bool:
        return self.draft is None and self.abstains != "late"


class Ballots:
    """The votes over all redundant stages of a run.

    Args:
        spec: the pipeline.
        accepts: the acceptance test of each stage, None where there is none.
        keep: takes the draft of a new message, and returns its handle.
        digest: makes the digest that drafts carry of their payload; None for none.
        make: makes the voter of a stage.

    Attributes:
        voters: by stage.
        takeovers: after the vote just answered, tasks of replicas that are to follow along again,
            each with that of a trusted one whose state it is to take over.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        accepts: Mapping[str, Test | None],
        keep: Callable[[Draft], int],
        digest: Digest | None,
        *,
        make: MakeVoter = voter_of,
    ) -> None:
        redundant = [stage for stage in spec.stages if stage.redundancy is not None]
        self.voters = {stage.name: make(stage, accepts.get(stage.name)) for stage in redundant}
        self._replica = {
            task: (stage.name, copy)
            for stage in redundant
            for copy, task in enumerate(stage.task_names)
        }
        self._spares = {
            stage.name: range(
                stage.redundancy.copies - stage.redundancy.spare, stage.redundancy.copies
            )
            for stage in redundant
            if stage.redundancy is not None
        }
        self._keep = keep
        self._digest = digest
        self._ends: defaultdict[tuple[str, int], dict[int, _End]] = defaultdict(dict)
        self._accepted: dict[str, tuple[int, Draft]] = {}
        self._epochs = {stage.name: 0 for stage in redundant}
        self.takeovers: list[tuple[str, str]] = []

    def began(self, task: str, index: int, job: int, due_ns: int) -> None:
        """Take in that a job began; those of other stages are none of its business."""
        if task in self._replica:
            stage, copy = self._replica[task]
            self._ends[stage, index][copy] = _End(job, due_ns)

    def made(self, task: str, index: int, handle: int, draft: Draft, at_ns: int) -> None:
        """Take in what a job made, and when that was told."""
        if (end := self._begun(task, index)) is not None:
            is_late = at_ns > end.due_ns
            done = replace(end, handle=handle, draft=draft, abstains="", is_late=is_late)
            self._note(task, index, done)

    def failed(self, task: str, index: int, why: Abstains = "crashed") -> None:
        """Take in that a job made nothing."""
        if (end := self._begun(task, index)) is not None:
            self._note(task, index, replace(end, abstains=why))

    def faulted(self, task: str, index: int, fault: FaultError) -> None:
        """Take in that a job ended with a fault; what its input was is none of its own."""
        self.failed(task, index, "skipped" if fault.kind == CORRUPTED else "crashed")

    def given_up(self, task: str, index: int, at_ns: int) -> None:
        """Take in that an output is not wanted any more; before its deadline that is no fault."""
        if (end := self._begun(task, index)) is not None and at_ns < end.due_ns:
            self._note(task, index, replace(end, abstains="skipped"))

    def _begun(self, task: str, index: int) -> _End | None:
        stage, copy = self._replica.get(task, ("", 0))
        ends = self._ends.get((stage, index))
        return None if ends is None else ends.get(copy)

    def _note(self, task: str, index: int, end: _End) -> None:
        stage, copy = self._replica[task]
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
        idle = self._idle(question, ends)
        ballots += [Ballot(copy, abstains="skipped") for copy in idle]
        if question.when == "over":
            del self._ends[stage, question.index]
            others = set(range(len(voter.replicas.all))) - set(ends) - set(idle)
            ballots += [Ballot(copy, abstains="skipped") for copy in sorted(others)]
        answer = self._answered(voter, question, ballots, at_ns)
        for copy in answer.quarantined:
            log.warning("replica %s.%d is quarantined", stage, copy)
        is_over = question.when == "over"
        self.takeovers = self._take_over(question, ends) if is_over else []
        buffer = self._selected(question, answer, ends)
        return Voted(question.activation, answer.verdict, buffer, answer.held, answer.blamed)

    def _answered(
        self, voter: Voter, question: Vote, ballots: Sequence[Ballot], at_ns: int
    ) -> Answer:
        """Ask the voter; one that raises is no reason to end the run, it has decided nothing."""
        activation, when = question.activation, question.when
        asked = partial(voter.vote, activation, ballots, when, at_ns, question.quorum)
        answer = guarded(asked, INTERRUPTS)
        if not isinstance(answer, FaultError):
            return answer
        log.warning("the voter of stage %s failed: %s", question.stage, answer)
        return voter.failed(activation, when, at_ns)

    def _take_over(self, question: Vote, ends: Mapping[int, _End]) -> list[tuple[str, str]]:
        """Restore replicas that are quarantined; return who takes over whose state.

        Both must have come to the end of this activation and no further; else it is tried again
        after the next one.
        """
        stage = question.stage
        replicas = self.voters[stage].replicas
        further = {
            copy
            for (name, index), later in self._ends.items()
            if name == stage and index > question.index
            for copy in later
        }
        made = {copy for copy, end in ends.items() if end.draft is not None} - further
        crashed = {copy for copy, end in ends.items() if end.abstains == "crashed"} - further
        trusted = sorted(made & set(replicas.active))
        if not trusted:
            return []
        found = [c for c in sorted(made | crashed) if replicas.all[c].standing == "quarantined"]
        for copy in found:
            replicas.restored(copy)
        return [(f"{stage}.{copy}", f"{stage}.{trusted[0]}") for copy in found]

    def _idle(self, question: Vote, ends: Mapping[int, _End]) -> list[int]:
        """Return the replicas that need not have begun: spare ones, and those of other levels."""
        begin = question.copies - len(self._spares[question.stage])
        count = len(self.voters[question.stage].replicas.all)
        return [copy for copy in range(max(1, begin), count) if copy not in ends]

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
        return Ballot(copy, end.draft.payload, is_late=end.is_late)

    def _selected(self, question: Vote, answer: Answer, ends: Mapping[int, _End]) -> int | None:
        """Return the handle of what is selected, of a new message if need be."""
        if answer.held:
            return self._keep(replace(self._accepted[question.stage][1], degraded=True))
        chosen = None if answer.choice is None else ends[answer.choice]
        if chosen is None and answer.merged is None:
            return None
        some = chosen or next(end for end in ends.values() if end.draft is not None)
        assert some.draft is not None
        if not answer.is_doubtful:
            self._accept(question, some.draft)
            return some.handle
        made = replace(some.draft, degraded=True)
        if answer.merged is not None:
            digest = b"" if self._digest is None else self._digest(answer.merged)
            made = replace(made, payload=answer.merged, digest=digest)
        self._accept(question, made)
        return self._keep(made)

    def _accept(self, question: Vote, draft: Draft) -> None:
        """Keep what may be held: the newest, and nothing of a clock that has begun anew since."""
        stage = question.stage
        if draft.epoch < self._epochs[stage]:
            self.voters[stage].forget()
        elif question.activation > self._accepted.get(stage, (-1, draft))[0]:
            self._accepted[stage] = question.activation, draft
