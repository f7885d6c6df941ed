"""Virtual time: the loop that simulation and replay share, against the tests' own driver."""

from dataclasses import replace

import pytest
from builder import Bench, device, stage, timer
from hypothesis import given
from tracing import Voter, drive, task_names

from avrt.drivers.virtual import VirtualLoop, VirtualWork
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal
from avrt.model.commands import Dispatch, Publish, Reclaim, Record
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Failed,
    Hung,
    ModeRequested,
    Read,
    StreamBack,
    StreamLost,
)
from avrt.model.records import JobRecord, OverrunRecord
from pipelines import Limits, examples, scenarios

FROM_OUTSIDE = (Arrived, StreamLost, StreamBack, DeviceLost, DeviceBack, ModeRequested)


class Calls(Journal):
    """A journal that keeps the calls themselves."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def note(self, at_ns, events, commands):
        self.calls.append((at_ns, list(events), list(commands)))


class Script:
    """A worker that takes the times and endings of a scenario; votes as it says."""

    heeds = True

    def __init__(self, scenario):
        self.scenario = scenario
        self.places = {name: i for i, name in enumerate(task_names(scenario.spec))}
        self.dispatched = {}
        self.vote = Voter(scenario)
        self.obeyed = []
        self.abandoned = []

    def start(self, command, _at_ns):
        self.dispatched[command.job] = command
        return self.scenario.cost_ns(self.places[command.task], command.index)

    def end(self, job, at_ns):
        command = self.dispatched[job]
        match self.scenario.ending(self.places[command.task], command.index):
            case "completed":
                return Completed(job, job, at_ns)
            case "failed":
                return Failed(job, "SoftwareFault")
            case _:
                return Hung(job)

    def abandon(self, job, at_ns):
        self.abandoned.append((at_ns, job))

    def obey(self, command, at_ns):
        self.obeyed.append((at_ns, command))
        return []


def run(spec, worker, feed=(), until_ns=None, kernel=None):
    journal = Calls()
    VirtualLoop(spec, kernel or Kernel(spec), iter(feed), worker, journal, until_ns=until_ns).run()
    return journal.calls


class Costs(Script):
    """A worker whose jobs take what a table by task says, None for ever."""

    def __init__(self, costs):
        self.costs = costs
        self.obeyed = []
        self.abandoned = []

    def start(self, command, _at_ns):
        return self.costs[command.task]

    def end(self, job, at_ns):
        return Completed(job, job, at_ns)


def outcomes(calls):
    return [
        (c.record.job, c.record.outcome, c.record.end_ns)
        for _, _, commands in calls
        for c in commands
        if isinstance(c, Record) and isinstance(c.record, JobRecord)
    ]


@examples(30)
@given(scenarios(Limits(recorded=False)))
def test_the_loop_makes_the_same_calls_as_the_tests_own_driver(scenario):
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    calls = run(scenario.spec, Script(scenario), feed, until_ns=scenario.until_ns)
    expected = [(call.at_ns, call.events, call.commands) for call in trace.calls]
    assert telling(calls) == telling(expected)


def telling(calls):
    """Calls in which something happened, with their events in any order."""
    return [
        (at, sorted(map(repr, events)), commands)
        for at, events, commands in calls
        if events or commands
    ]


@examples(20)
@given(scenarios(Limits(recorded=False)))
def test_nothing_is_released_at_or_after_the_end(scenario):
    calls = run(
        scenario.spec,
        Script(scenario),
        [
            (a, Arrived(s.name, 0, a, a, -1 - a))
            for a in (0, 30, 44, 45)
            for s in scenario.spec.sources[:1]
        ],
        until_ns=45,
    )
    drains = [at for at, events, _ in calls if Drain() in events]
    assert len(drains) == 1
    arrivals = [at for at, events, _ in calls for e in events if isinstance(e, Arrived)]
    assert all(at < 45 for at in arrivals)
    for at_ns, _, commands in calls:
        for command in commands:
            if isinstance(command, Dispatch) and at_ns > 45:
                stage_spec = scenario.spec.stage(command.task.partition(".")[0])
                assert stage_spec.period_ns is None or command.release_ns < 45


def test_without_an_end_the_run_drains_when_the_feed_is_over():
    bench = Bench(stage("see", "lidar"), timer("beat", 10))
    feed = [(at, bench.arrival(at, "lidar")) for at in (0, 25)]
    calls = run(bench.spec, Costs({"see": 3, "beat": 1}), feed)
    assert [at for at, events, _ in calls if Drain() in events] == [25]
    assert [job for job, *_ in outcomes(calls)] == [0, 1, 2, 3, 4]


def test_everything_of_one_instant_is_handed_over_in_one_call():
    bench = Bench(stage("see", "lidar"), stage("look", "lidar"), devices=(device(slots=2),))
    feed = [(0, bench.arrival(0, "lidar")), (3, bench.arrival(3, "lidar"))]
    calls = run(bench.spec, Costs({"see": 3, "look": 3}), feed)
    at_three = [events for at, events, _ in calls if at == 3]
    assert [type(e) for e in at_three[0]] == [Completed, Completed, Arrived]


def test_what_follows_from_a_command_at_the_same_instant_is_a_call_of_its_own():
    class Recorder(Costs):
        def obey(self, command, at_ns):
            reads = isinstance(command, Publish)
            return [Read(command.buffer)] if reads else super().obey(command, at_ns)

    bench = Bench(stage("see", "lidar"), recorded=["see"])
    worker = Recorder({"see": 2})
    calls = run(bench.spec, worker, [(0, bench.arrival(0, "lidar"))], kernel=bench.kernel)
    assert (2, [Read(0)], [Reclaim(0)]) in calls
    assert (2, Reclaim(0)) in worker.obeyed


def test_a_preempted_job_goes_on_where_it_was():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, budget_ns=9),
        stage("quick", "camera", deadline_ns=5),
        devices=(device(preemptive=True),),
    )
    feed = [(0, bench.arrival(0, "lidar")), (4, bench.arrival(4, "camera"))]
    calls = run(bench.spec, Costs({"slow": 6, "quick": 2}), feed)
    assert outcomes(calls) == [(1, "met", 6), (0, "met", 8)]


def test_a_job_that_never_ends_hangs_when_nothing_else_can_happen():
    bench = Bench(stage("see", "lidar", deadline_ns=20))
    calls = run(bench.spec, Costs({"see": None}), [(0, bench.arrival(0, "lidar"))])
    assert outcomes(calls) == [(0, "aborted", 20)]
    assert calls[-1][1] == [Hung(0)]


def test_a_job_that_is_preempted_by_one_that_never_ends_is_not_hung():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, budget_ns=9),
        stage("quick", "camera", deadline_ns=5),
        devices=(device(preemptive=True),),
    )
    feed = [(0, bench.arrival(0, "lidar")), (4, bench.arrival(4, "camera"))]
    calls = run(bench.spec, Costs({"slow": 6, "quick": None}), feed)
    assert outcomes(calls) == [(1, "aborted", 50), (0, "late", 52)]


def test_jobs_that_never_end_hang_one_after_the_other_on_a_preemptive_device():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50),
        stage("quick", "camera", deadline_ns=5),
        devices=(device(preemptive=True),),
    )
    feed = [(0, bench.arrival(0, "lidar")), (4, bench.arrival(4, "camera"))]
    calls = run(bench.spec, Costs({"slow": None, "quick": None}), feed)
    assert [(job, outcome) for job, outcome, _ in outcomes(calls)] == [
        (1, "aborted"),
        (0, "aborted"),
    ]


@pytest.mark.parametrize("preemptive", [True, False])
def test_aborted_work_stops_at_once_only_on_a_preemptive_device(preemptive):
    bench = Bench(
        stage("see", "lidar", deadline_ns=3, on_miss="abort"),
        devices=(device(preemptive=preemptive),),
    )
    worker = Costs({"see": 7})
    calls = run(bench.spec, worker, [(0, bench.arrival(0, "lidar"))])
    completed = [at for at, events, _ in calls if Completed(0, 0, at) in events]
    assert completed == ([] if preemptive else [7])
    assert worker.abandoned == ([(3, 0)] if preemptive else [])


def test_work_on_a_lost_device_is_forgotten():
    bench = Bench(stage("see", "lidar"))
    feed = [(0, bench.arrival(0, "lidar")), (2, DeviceLost("cpu"))]
    calls = run(bench.spec, Costs({"see": 5}), feed)
    assert outcomes(calls) == [(0, "aborted", 2)]
    assert calls[-1][0] == 2


def test_the_kernel_is_woken_for_its_own_timers():
    bench = Bench(stage("see", "lidar", budget_ns=4, deadline_ns=6))
    calls = run(bench.spec, Costs({"see": 9}), [(0, bench.arrival(0, "lidar"))])
    assert [at for at, *_ in calls] == [0, 0, 4, 6, 9]
    records = [c.record for _, _, commands in calls for c in commands if isinstance(c, Record)]
    assert OverrunRecord(0, "see", 4, 4) in records


# Work in virtual time


def test_work_ends_when_its_cost_has_passed_on_a_slot():
    work = VirtualWork()
    work.start(1, 5, 10)
    work.start(2, 5, 10)
    work.start(3, 2, 10)
    assert work.next_ns() == 12
    assert work.pop_ended(12) == [3]
    assert work.pop_ended(15) == [1, 2]
    assert work.next_ns() is None


def test_preempted_work_stands_still():
    work = VirtualWork()
    work.start(1, 5, 0)
    work.preempt(1, 3)
    assert not work.is_running(1)
    assert work.next_ns() is None
    work.resume(1, 10)
    assert work.is_running(1)
    assert work.next_ns() == 12


def test_work_without_a_cost_runs_and_never_ends():
    work = VirtualWork()
    work.start(1, None, 0)
    assert work.is_running(1)
    work.preempt(1, 3)
    work.resume(1, 4)
    assert work.next_ns() is None
    work.keep_only(())
    assert not work.is_running(1)


def test_dropped_work_is_forgotten():
    work = VirtualWork()
    work.start(1, 5, 0)
    work.start(2, 6, 0)
    work.keep_only((2,))
    assert work.pop_ended(5) == []
    assert work.pop_ended(6) == [2]
