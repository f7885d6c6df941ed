"""One decision over the replicas of an activation: asked of the voter, never made here.

The voter is asked as soon as QUORUM outputs are there and with each further one (`early`), at the
last time at which a decision still meets the deadline (`deadline`), and once all jobs have ended
(`over`), at the end of the instant. One question is open at a time: what happens meanwhile is asked
about after its answer.

* What the voter selects is published; nothing that comes later can change it.
* An early question may stay undecided; the others are decided, if need be without an output.
* The selected output is one of the jobs', or a new message: a declared merge of several, or the
  last accepted one held once more, which keeps its capture time and what it rests on.
* Under policy "table" nothing is asked early: what follows is planned for when all have ended.
* Outputs are kept until all jobs have ended, so that a late one can still be compared.
* An activation of which no job ever began is not voted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.kernel.timers import VOTE
from avrt.model.commands import Record, Vote
from avrt.model.records import VoteRecord

if TYPE_CHECKING:
    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation
    from avrt.kernel.releases import Releases
    from avrt.kernel.state import State
    from avrt.model.commands import VoteAt
    from avrt.model.events import Voted

QUORUM = 2


@dataclass(slots=True, eq=False)
class Poll:
    """The vote over one activation.

    Attributes:
        told: outputs that the voter has been asked about.
        asked: the question that is open, or None.
        is_closed: the last time to decide in has come.
        is_judged: the decision is made.
    """

    activation: Activation
    told: int = 0
    asked: VoteAt | None = None
    is_closed: bool = False
    is_judged: bool = False


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
        self._accepted: dict[str, Buffer] = {}
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
        for poll in stirred:
            self._ask(poll)

    def voted(self, event: Voted) -> None:
        """Take the answer to the question that is open."""
        poll = self.polls[event.activation]
        activation, asked, poll.asked = poll.activation, poll.asked, None
        decides = not poll.is_judged and (event.buffer is not None or asked != "early")
        if decides or event.blamed:
            self._note(activation, event)
        if decides:
            poll.is_judged = True
            self._decide(activation, event)
        if asked == "over":
            self._close(poll)
        else:
            self.stirred.append(poll)

    def problem(self, event: Voted) -> str:
        """Return why an answer is illegal, or ""."""
        poll = self.polls.get(event.activation)
        if poll is None or poll.asked is None:
            return "no vote is open on this activation"
        if any(not 0 <= replica < len(poll.activation.jobs) for replica in event.blamed):
            return "no such replica"
        return "" if event.buffer is None else self._problem_of_choice(poll, event, event.buffer)

    def _problem_of_choice(self, poll: Poll, event: Voted, handle: int) -> str:
        if poll.is_judged:
            return "this vote is decided"
        if event.held and poll.activation.stage.name not in self._accepted:
            return "there is no accepted output to hold"
        is_output = any(buffer.handle == handle for buffer in _outputs(poll.activation))
        if is_output and not event.held:
            return ""
        return "this buffer is live" if self._state.buffers.is_live(handle) else ""

    def _ask(self, poll: Poll) -> None:
        activation = poll.activation
        if poll.asked is not None or activation.id not in self.polls:
            return
        outputs = len(_outputs(activation))
        when: VoteAt
        if activation.open_jobs == 0:
            when = "over"
        elif poll.is_judged:
            return
        elif poll.is_closed:
            when = "deadline"
        elif self._asks_early and outputs >= QUORUM and outputs > poll.told:
            when = "early"
        else:
            return
        if when == "over" and all(job.start_ns is None for job in activation.jobs):
            self._close(poll)
            return
        poll.asked, poll.told = when, outputs
        jobs = tuple(job.id for job in activation.jobs if job.output is not None)
        name, index = activation.stage.name, activation.jobs[0].index
        self._state.out.append(Vote(activation.id, name, index, jobs, when))

    def _note(self, activation: Activation, event: Voted) -> None:
        blamed = tuple(activation.jobs[replica].task.name for replica in event.blamed)
        name, now_ns = activation.stage.name, self._state.now_ns
        record = VoteRecord(activation.id, name, now_ns, event.verdict, event.held, blamed)
        self._state.out.append(Record(record))

    def _decide(self, activation: Activation, event: Voted) -> None:
        if event.buffer is None:
            self._state.underway[activation.stage.name] -= 1
            return
        chosen = next((b for b in _outputs(activation) if b.handle == event.buffer), None)
        if chosen is None:
            chosen = self._new(activation, event.buffer, held=event.held)
        if not event.held:
            self._accepted[activation.stage.name] = chosen
        self._releases.decide(activation, chosen)

    def _new(self, activation: Activation, handle: int, *, held: bool) -> Buffer:
        """Register a message that no job made."""
        if not held:
            return self._releases.output(activation, handle)
        last = self._accepted[activation.stage.name]
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


def _outputs(activation: Activation) -> list[Buffer]:
    return [job.output for job in activation.jobs if job.output is not None]
