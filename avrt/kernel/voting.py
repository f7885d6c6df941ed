"""One decision over the replicas of an activation: asked of the voter, never made here.

The voter is asked as soon as a quorum of outputs is there and with each further one (`early`), at
the last time at which a decision still meets the deadline (`deadline`), and once all jobs have
ended (`over`), at the end of the instant. One question is open at a time: what happens meanwhile is
asked about after its answer.

* What the voter selects is published; nothing that comes later can change it. Where outputs are
  published as soon as possible, and wherever one is held, a decision supersedes what is undecided
  of older activations of its stage: consumers never see an older output after a newer one.
* An early question may stay undecided; the others are decided, if need be without an output.
* The selected output is one of the jobs', or a new message: a declared merge of several, or the
  last accepted one held once more, which keeps its capture time and what it rests on.
* Under policy "table" nothing is asked early: what follows is planned for when all have ended.
* Spare copies run only when the others cannot decide: one more whenever too few outputs can still
  come, or all have come and the voter is undecided, and only if its wcet still fits before the
  deadline. It is released as of the release of the others.
* Outputs are kept until all jobs have ended, so that a late one can still be compared.
* An activation that was never asked about, and of which no job began, is not voted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.kernel.timers import VOTE
from avrt.model.commands import Reclaim, Record, Vote
from avrt.model.events import Voted
from avrt.model.records import SUPERSEDED, VoteRecord
from avrt.model.spec import majority_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation
    from avrt.kernel.releases import Releases
    from avrt.kernel.state import State
    from avrt.model.commands import VoteAt
    from avrt.model.events import Event


@dataclass(slots=True, eq=False)
class Poll:
    """The vote over one activation.

    Attributes:
        told: outputs that the voter has been asked about; -1 before the first question.
        asked: the question that is open, or None.
        is_closed: the last time to decide in has come.
        is_judged: the decision is made.
        is_superseded: it was made by that over a newer activation; an answer decides nothing more.
    """

    activation: Activation
    told: int = -1
    asked: VoteAt | None = None
    is_closed: bool = False
    is_judged: bool = False
    is_superseded: bool = False


class Voting:
    """The votes of all redundant stages.

    Args:
        asks_early: whether a decision may come before all jobs have ended or must.

    Attributes:
        polls: those that are not over, by activation.
        stirred: those of which something was heard in this instant.
    """

    def __init__(self, state: State, releases: Releases, *, asks_early: bool) -> None:
        self._state = state
        self._asks_early = asks_early
        self._releases = releases
        self._accepted: dict[str, tuple[int, Buffer]] = {}
        self.polls: dict[int, Poll] = {}
        self.stirred: list[Poll] = []

    def released(self, activation: Activation) -> None:
        """Open the vote over an activation."""
        redundancy = activation.stage.redundancy
        assert redundancy is not None
        poll = self.polls[activation.id] = Poll(activation)
        self._state.timers.add(activation.due_ns - redundancy.decide_ns, VOTE, poll)

    def job_ended(self, activation: Activation) -> None:
        """Note that there may be more to tell."""
        self.stirred.append(self.polls[activation.id])

    def time_over(self, poll: Poll) -> None:
        """Let what is there by now be decided over."""
        poll.is_closed = True
        self.stirred.append(poll)

    def ask(self) -> None:
        """Ask what there is to ask after this instant."""
        stirred, self.stirred = self.stirred, []
        for poll in sorted(stirred, key=lambda poll: poll.activation.id):
            self._ask(poll)

    def voted(self, event: Voted) -> None:
        """Take the answer to the question that is open."""
        poll = self.polls[event.activation]
        activation, asked, poll.asked = poll.activation, poll.asked, None
        decides = not poll.is_judged and (event.buffer is not None or asked != "early")
        if decides or event.blamed:
            self._note(activation, event, decides=decides)
        if decides:
            poll.is_judged = True
            self._decide(activation, event)
        elif event.buffer is not None and not self._state.buffers.is_live(event.buffer):
            self._state.out.append(Reclaim(event.buffer))
        if asked == "over":
            self._close(poll)
        else:
            self.stirred.append(poll)

    def problem(self, event: Voted, batch: Sequence[Event]) -> str:
        """Return why an answer is illegal, or ""; `batch` are all events of the call."""
        poll = self.polls.get(event.activation)
        if poll is None or poll.asked is None:
            return "no vote is open on this activation"
        if any(not 0 <= replica < len(poll.activation.jobs) for replica in event.blamed):
            return "no such replica"
        return "" if event.buffer is None else self._problem_of_choice(poll, event, batch)

    def _problem_of_choice(self, poll: Poll, event: Voted, batch: Sequence[Event]) -> str:
        handle = event.buffer
        assert handle is not None
        if poll.is_judged and not poll.is_superseded:
            return "this vote is decided"
        if event.held and not self._has_accepted(poll.activation, batch):
            return "there is no accepted output to hold"
        is_output = any(buffer.handle == handle for buffer in _outputs(poll.activation))
        if is_output and not event.held:
            return ""
        return "this buffer is live" if self._state.buffers.is_live(handle) else ""

    def _has_accepted(self, activation: Activation, batch: Sequence[Event]) -> bool:
        """Whether there is an accepted output, or will be when this one is decided."""
        if activation.stage.name in self._accepted:
            return True
        before = [
            self.polls[event.activation]
            for event in batch
            if isinstance(event, Voted)
            and event.activation < activation.id
            and event.activation in self.polls
            and event.buffer is not None
            and not event.held
        ]
        return any(poll.activation.stage is activation.stage for poll in before)

    def _ask(self, poll: Poll) -> None:
        activation = poll.activation
        if poll.asked is not None or activation.id not in self.polls:
            return
        quorum = majority_of(activation.copies)
        outputs = len(_outputs(activation))
        when: VoteAt
        if activation.open_jobs == 0 and not self._has_spare(poll):
            when = "over"
        elif poll.is_judged:
            return
        elif poll.is_closed:
            when = "deadline"
        elif self._asks_early and quorum <= outputs > poll.told:
            when = "early"
        else:
            return
        has_begun = any(job.start_ns is not None for job in activation.jobs)
        if when == "over" and poll.told < 0 and not has_begun:
            self._close(poll)
            return
        poll.asked, poll.told = when, outputs
        jobs = tuple(job.id for job in activation.jobs if job.output is not None)
        name, index = activation.stage.name, activation.jobs[0].index
        self._state.out.append(Vote(activation.id, name, index, activation.copies, jobs, when))

    def release_spares(self) -> None:
        """Let spare copies run of what the others cannot decide, before slots are given away."""
        for poll in sorted(self.stirred, key=lambda poll: poll.activation.id):
            activation = poll.activation
            outputs = len(_outputs(activation))
            are_few = outputs + activation.open_jobs < majority_of(activation.copies)
            is_undecided = activation.open_jobs == 0 and poll.told == outputs
            if poll.asked is None and (are_few or is_undecided) and self._has_spare(poll):
                self._releases.release_spare(activation)

    def _has_spare(self, poll: Poll) -> bool:
        """Whether a copy that has not run could, and still be in time; one of the others did."""
        activation = poll.activation
        if poll.is_judged or poll.is_closed or len(activation.jobs) == activation.copies:
            return False
        first = activation.jobs[0].task
        wcet_ns = self._state.mode.parameters[first.index].wcet_ns
        has_begun = any(job.start_ns is not None for job in activation.jobs)
        return has_begun and self._state.now_ns + wcet_ns <= activation.due_ns

    def _note(self, activation: Activation, event: Voted, *, decides: bool) -> None:
        record = VoteRecord(
            activation.id,
            activation.stage.name,
            self._state.now_ns,
            event.verdict if decides else "",
            event.held,
            tuple(activation.jobs[replica].task.name for replica in event.blamed),
            decides and event.buffer is not None and not event.held,
        )
        self._state.out.append(Record(record))

    def _decide(self, activation: Activation, event: Voted) -> None:
        if event.buffer is None:
            self._state.underway[activation.stage.name] -= 1
            return
        chosen = next((b for b in _outputs(activation) if b.handle == event.buffer), None)
        if chosen is None:
            chosen = self._new(activation, event.buffer, held=event.held)
        known = self._accepted.get(activation.stage.name)
        if not event.held and (known is None or known[0] < activation.id):
            self._accepted[activation.stage.name] = activation.id, chosen
        if event.held or activation.stage.publish == "asap":
            self._supersede(activation)
        self._releases.decide(activation, chosen)

    def _supersede(self, newer: Activation) -> None:
        """Decide older activations of a stage without an output."""
        for poll in self.polls.values():
            activation = poll.activation
            if activation.stage is newer.stage and activation.id < newer.id and not poll.is_judged:
                poll.is_judged = poll.is_superseded = True
                record = VoteRecord(
                    activation.id, activation.stage.name, self._state.now_ns, SUPERSEDED
                )
                self._state.out.append(Record(record))
                self._state.underway[activation.stage.name] -= 1

    def _new(self, activation: Activation, handle: int, *, held: bool) -> Buffer:
        """Register a message that no job made."""
        if not held:
            return self._releases.output(activation, handle)
        _, last = self._accepted[activation.stage.name]
        return self._state.buffers.make(handle, last.producer, last.capture_ns, last.heads)

    def _close(self, poll: Poll) -> None:
        """Let go of the outputs that were not selected; all jobs have ended."""
        activation = poll.activation
        del self.polls[activation.id]
        if not poll.is_judged:
            poll.is_judged = True
            self._state.underway[activation.stage.name] -= 1
        for buffer in _outputs(activation):
            if buffer is not activation.decision:
                self._state.buffers.drop(buffer, self._state.out)
        self._releases.vote_over(activation)


def _outputs(activation: Activation) -> list[Buffer]:
    return [job.output for job in activation.jobs if job.output is not None]
