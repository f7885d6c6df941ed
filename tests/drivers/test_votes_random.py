"""The kernel with the real voter over random scenarios: whatever ends how, outputs stay right."""

import math

import pytest
from hypothesis import assume, given
from test_virtual import FROM_OUTSIDE, Calls, Script
from tracing import drive

from avrt.drivers.ballots import Ballots
from avrt.drivers.draft import Draft
from avrt.drivers.virtual import VirtualLoop
from avrt.kernel import Kernel
from avrt.model.commands import Publish, Reclaim
from avrt.model.events import Completed
from pipelines import Limits, examples, scenarios

WRONG = (0.0, 0.0, 1.0, math.nan)
NEW = 1_000_000


class Voting(Script):
    """Outputs are the index of the activation, or something else as the scenario says."""

    def __init__(self, scenario):
        super().__init__(scenario)
        self.drafts = {}
        self.ballots = Ballots(scenario.spec, {}, self.keep, None)
        self.vote = self.ballots.vote

    def keep(self, draft):
        handle = NEW + len(self.drafts)
        self.drafts[handle] = draft
        return handle

    def start(self, command, at_ns):
        self.ballots.began(command.task, command.index, command.job, command.due_ns)
        return super().start(command, at_ns)

    def end(self, job, at_ns):
        command, end = self.dispatched[job], super().end(job, at_ns)
        if not isinstance(end, Completed):
            self.ballots.failed(command.task, command.index)
            return end
        votes = self.scenario.votes
        choice = votes[(3 * self.places[command.task] + command.index) % len(votes)]
        off = WRONG[0 if choice is None else (choice + self.places[command.task]) % 4]
        value = float(command.index) + off
        draft = Draft(command.task, value, b"", at_ns, at_ns, "", 0, {}, degraded=False)
        self.drafts[job] = draft
        self.ballots.made(command.task, command.index, job, draft, at_ns)
        return end

    def abandon(self, job, at_ns):
        super().abandon(job, at_ns)
        command = self.dispatched[job]
        self.ballots.given_up(command.task, command.index, at_ns)


@pytest.mark.slow
@examples(200)
@given(
    scenarios(Limits(copies=(2, 3, 3), stages_max=2, recorded=False, endless=False, faults=False))
)
def test_outputs_of_replicas_come_in_order_are_numbers_and_leave_nothing(scenario):
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    assume(feed or any(stage.period_ns for stage in scenario.spec.stages))
    worker, journal, kernel = Voting(scenario), Calls(), Kernel(scenario.spec)
    loop = VirtualLoop(
        scenario.spec, kernel, iter(feed), worker, journal, until_ns=scenario.until_ns
    )
    loop.run()
    newest, reclaimed, published = {}, set(), set()
    for _, _, commands in journal.calls:
        for command in commands:
            if isinstance(command, Reclaim):
                reclaimed.add(command.buffer)
            if isinstance(command, Publish):
                draft = worker.drafts[command.buffer]
                stage = draft.stage.rpartition(".")[0]
                assert math.isfinite(draft.payload)
                assert command.activation > newest.get(stage, -1)
                newest[stage] = command.activation
                published.add(command.buffer)
    assert not worker.ballots._ends
    assert not any(voter._decided for voter in worker.ballots.voters.values())
    assert not kernel._voting.polls
    assert set(worker.drafts) - reclaimed <= published
