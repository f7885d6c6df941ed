"""The wall-clock loop under a clock that tests move: no test waits, and none looks at the host."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush

from builder import Bench, device, sampled, stage, timer
from hypothesis import assume, given
from hypothesis import strategies as st
from test_virtual import Calls, Script, outcomes, run, telling

from avrt.drivers.wall import WallLoop
from avrt.kernel import Kernel
from avrt.model.commands import Dispatch, Publish
from avrt.model.events import Arrived, Completed, Drain, Failed, Hung
from pipelines import Limits, examples, scenarios

PATIENCE_NS = 10**6


class FakeWall:
    """Pipeline time that goes on only while the loop waits; wake-ups come late by `delays`."""

    rate = 1.0

    def __init__(self, delays=(0,)):
        self.at = 0
        self.delays = delays
        self.waits = 0
        self.ends = []

    def start(self):
        self.at = 0

    def now_ns(self):
        return self.at

    def take(self, inbox, until_ns):
        self.waits += 1
        delay = self.delays[self.waits % len(self.delays)]
        ends = [until_ns] if until_ns is not None else []
        ends += [self.ends[0][0]] if self.ends else []
        assert ends, "the loop waits for something that never comes"
        self.at = max(self.at, min(ends) + delay)
        while self.ends and self.ends[0][0] <= self.at:
            heappop(self.ends)[2](None)
        return inbox.get() if inbox.qsize() else None


class FakeWorker(Script):
    """The virtual worker of a scenario, on the fake wall clock."""

    idle_ns = ()

    def __init__(self, scenario, wall):
        super().__init__(scenario)
        self.wall = wall
        self.interrupts = self
        self.given_up = []

    def allowed(self):
        return nullcontext()

    def prepare(self, command, at_ns, told):
        cost_ns = self.start(command, at_ns)
        return partial(self._begin, command.job, cost_ns, told)

    def _begin(self, job, cost_ns, told):
        if cost_ns is not None:
            heappush(self.wall.ends, (self.wall.at + cost_ns, job, told))

    def reported(self, job, _result, at_ns):
        return [self.end(job, at_ns)]

    def hung(self, job, at_ns):
        self.given_up.append((job, at_ns))
        return Hung(job)

    def idle(self):
        self.idle_ns = (*self.idle_ns, self.wall.at)


class Costs(FakeWorker):
    """A worker whose jobs take what a table by task says, None for ever."""

    def __init__(self, costs, wall):
        self.costs, self.wall = costs, wall
        self.interrupts = self
        self.given_up, self.obeyed = [], []

    def start(self, command, _at_ns):
        return self.costs[command.task]

    def end(self, job, at_ns):
        return Completed(job, job, at_ns)


def wall_run(spec, worker, feed, delays=(0,), patience_ns=PATIENCE_NS):
    wall = worker.wall
    wall.delays = delays
    worker.hang_timeout_ns = patience_ns
    journal = Calls()
    loop = WallLoop(Kernel(spec), iter(feed), worker, journal, wall)
    loop.run()
    return journal.calls, loop.late_ns.summary()["max"]


def arrivals(scenario):
    at_ns, feed = 0, []
    for handle, one in enumerate(scenario.arrivals):
        at_ns += one.gap_ns
        source = scenario.spec.sources[one.source % len(scenario.spec.sources)].name
        capture_ns = at_ns - one.capture_age_ns
        feed.append((at_ns, Arrived(source, handle, capture_ns, at_ns, -1 - handle)))
    return feed


def wall_scenarios():
    """Scenarios that can come at the wall clock: nothing is preempted, and all work ends."""
    return scenarios(Limits(recorded=False)).map(
        lambda one: replace(
            one,
            spec=replace(
                one.spec, devices=tuple(replace(d, preemptive=False) for d in one.spec.devices)
            ),
            costs=tuple(3 if cost is None else cost for cost in one.costs),
        )
    )


@examples(60)
@given(wall_scenarios())
def test_a_driver_that_is_never_late_decides_as_in_virtual_time(scenario):
    assume(scenario.spec.sources and scenario.arrivals)
    feed = arrivals(scenario)
    expected = run(scenario.spec, Script(scenario), feed)
    calls, late = wall_run(scenario.spec, FakeWorker(scenario, FakeWall()), feed)
    assert telling(calls) == telling(expected)
    assert late == 0


@examples(60)
@given(wall_scenarios(), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_a_late_driver_loses_no_release_and_moves_none(scenario, delays):
    """Timers keep their nominal instants and arrivals their log times; every job ends."""
    assume(scenario.spec.sources and scenario.arrivals)
    feed = arrivals(scenario)
    calls, _ = wall_run(scenario.spec, FakeWorker(scenario, FakeWall()), feed, tuple(delays))
    times = [at for at, *_ in calls]
    assert times == sorted(times)
    handed = [(at, e) for at, events, _ in calls for e in events if isinstance(e, Arrived)]
    assert [event for _, event in handed] == [event for _, event in feed]
    kernel = Kernel(scenario.spec)
    for at_ns, events, commands in calls:
        assert kernel.handle(at_ns, events) == commands
    assert not kernel.working_jobs
    assert sum(Drain() in events for _, events, _ in calls) == 1


class Reported(Script):
    """A worker whose jobs end when a run reported them."""

    def __init__(self, scenario, calls):
        super().__init__(scenario)
        self.ended_ns = {
            event.job: at_ns
            for at_ns, events, _ in calls
            for event in events
            if isinstance(event, Completed | Failed | Hung)
        }

    def start(self, command, at_ns):
        super().start(command, at_ns)
        return self.ended_ns[command.job] - at_ns


@examples(60)
@given(wall_scenarios(), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_decisions_follow_from_the_log_and_from_when_ends_were_reported(scenario, delays):
    """Virtual time, never late, decides the same when each job takes what the late run reported."""
    assume(scenario.spec.sources and scenario.arrivals)
    feed = arrivals(scenario)
    calls, _ = wall_run(scenario.spec, FakeWorker(scenario, FakeWall()), feed, tuple(delays))
    assert telling(run(scenario.spec, Reported(scenario, calls), feed)) == telling(calls)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_a_logical_publication_does_not_depend_on_late_wake_ups(delays):
    """Met jobs publish at their deadlines, and what they read was bound at nominal releases."""
    spec = Bench(
        stage("see", "lidar", deadline_ns=20, publish="at_deadline"),
        timer(
            "act",
            25,
            inputs=(sampled("see", optional=True),),
            deadline_ns=12,
            publish="at_deadline",
        ),
        devices=(device(slots=2),),
    ).spec
    feed = [(at, Arrived("lidar", i, at, at, -1 - i)) for i, at in enumerate(range(0, 200, 20))]
    costs = {"see": 5, "act": 2}

    def seen(delays):
        calls, _ = wall_run(spec, Costs(costs, FakeWall()), feed, tuple(delays))
        commands = [c for _, _, commands in calls for c in commands]
        made = {c.job: c for c in commands if isinstance(c, Dispatch)}
        ended = [e.job for _, events, _ in calls for e in events if isinstance(e, Completed)]
        assert sorted(made) == sorted(ended)
        names = {
            job: (made[job].task, made[job].index) for job in made
        }  # outputs by what made them
        reads = {
            names[job]: (c.release_ns, [names.get(handle, handle) for handle in c.inputs])
            for job, c in made.items()
        }
        return sorted(c.publish_ns for c in commands if isinstance(c, Publish)), reads

    assert seen(delays) == seen([0])


def test_a_message_that_came_meanwhile_is_taken_in_before_the_timer_after_it():
    """Woken at 12 for 3, the driver gives the timer of 5 the message of 3."""
    spec = Bench(
        stage("see", "lidar", deadline_ns=50),
        timer(
            "act",
            5,
            inputs=(sampled("lidar", optional=True),),
            deadline_ns=50,
            publish="at_deadline",
        ),
        devices=(device(slots=2),),
    ).spec
    feed = [(at, Arrived("lidar", at, at, at, -1 - at)) for at in (3, 8)]
    calls, late = wall_run(spec, Costs({"see": 1, "act": 1}, FakeWall()), feed, (9,))
    reads = {
        c.release_ns: c.inputs
        for _, _, commands in calls
        for c in commands
        if isinstance(c, Dispatch) and c.task == "act"
    }
    assert reads[5] == (-4,)
    assert late == 9


class Starting(Costs):
    """A worker that tells in which order jobs begin and commands are obeyed."""

    def __init__(self, costs, wall):
        super().__init__(costs, wall)
        self.told = []

    def _begin(self, job, cost_ns, told):
        self.told.append(("begin", job, self.wall.waits))
        super()._begin(job, cost_ns, told)

    def obey(self, command, at_ns):
        self.told.append((type(command).__name__, None, self.wall.waits))
        return super().obey(command, at_ns)


def test_jobs_begin_after_everything_else_of_their_instant_and_before_the_next_wait():
    """What is published at 5 releases a job that begins once the message is reclaimed, too."""
    spec = Bench(
        stage("see", "lidar", deadline_ns=50),
        stage("act", "see", deadline_ns=50),
        devices=(device(slots=2),),
    ).spec
    worker = Starting({"see": 5, "act": 1}, FakeWall())
    calls, _ = wall_run(spec, worker, [(0, Arrived("lidar", 0, 0, 0, -1))])
    assert outcomes(calls) == [(0, "met", 5), (1, "met", 6)]
    begins = [(job, waits) for what, job, waits in worker.told if what == "begin"]
    assert [job for job, _ in begins] == [0, 1]
    for job, waits in begins:
        same = [what for what, _, seen in worker.told if seen == waits]
        assert same[-1] == "begin", (job, same)


def test_a_worker_hears_that_nothing_is_underway_and_only_then():
    """`act` follows `see` at once: between the two there is always a job."""
    spec = Bench(stage("see", "lidar", deadline_ns=50), stage("act", "see", deadline_ns=50)).spec
    worker = Costs({"see": 5, "act": 1}, FakeWall())
    feed = [(at_ns, Arrived("lidar", i, at_ns, at_ns, -i - 1)) for i, at_ns in enumerate((10, 30))]
    calls, _ = wall_run(spec, worker, feed)
    assert [end_ns for _, _, end_ns in outcomes(calls)] == [15, 16, 35, 36]
    assert worker.idle_ns[0] == 0
    assert not {10, 15, 30, 35} & set(worker.idle_ns)
    assert {16, 36} & set(worker.idle_ns) == {16}  # the run is over with the last job


def test_a_driver_that_is_late_begins_the_jobs_of_each_instant_before_it_takes_in_the_next():
    spec = Bench(timer("act", 5, deadline_ns=50), devices=(device(slots=4),)).spec
    worker = Starting({"act": 100}, FakeWall())
    begun = []
    worker._begin = lambda job, *_: begun.append((job, loop._kernel.now_ns))
    worker.hang_timeout_ns = PATIENCE_NS
    loop = WallLoop(Kernel(spec), iter([(22, Drain())]), worker, Calls(), worker.wall)
    loop._catch_up(12)
    loop._begin_jobs()
    assert begun == [(0, 0)]


def test_a_job_reported_after_its_due_time_is_late_however_early_it_ended():
    spec = Bench(stage("see", "lidar", deadline_ns=10, budget_ns=20)).spec
    feed = [(0, Arrived("lidar", 0, 0, 0, -1))]
    calls, _ = wall_run(spec, Costs({"see": 8}, FakeWall()), feed, (5, 0))
    assert outcomes(calls) == [(0, "late", 13)]


def test_a_job_that_does_not_answer_is_given_up_and_its_late_end_ignored():
    spec = Bench(stage("stuck", "lidar"), stage("see", "lidar"), devices=(device(slots=2),)).spec
    feed = [(at, Arrived("lidar", at, at, at, -1 - at)) for at in (0, 60, 120)]
    worker = Costs({"stuck": None, "see": 2}, FakeWall())
    calls, _ = wall_run(spec, worker, feed, patience_ns=50)
    assert worker.given_up == [(0, 50)]
    ends = {job: outcome for job, outcome, _ in outcomes(calls)}
    assert ends[0] == "aborted"
    assert sorted(ends) == list(range(6))

    worker = Costs({"stuck": 70, "see": 2}, FakeWall())
    calls, _ = wall_run(spec, worker, feed, patience_ns=50)
    completed = [e.job for _, events, _ in calls for e in events if isinstance(e, Completed)]
    assert worker.given_up == [(0, 50)]
    assert 0 not in completed


def test_a_job_has_its_patience_from_when_it_began_however_late_the_driver_was():
    """Woken at 90 for 10, the driver begins the job of 10 at 90; it ends at 95 and did not hang."""
    spec = Bench(stage("see", "lidar", deadline_ns=500)).spec
    feed = [(10, Arrived("lidar", 0, 10, 10, -1))]
    worker = Costs({"see": 5}, FakeWall())
    calls, late = wall_run(spec, worker, feed, (0, 80), patience_ns=50)
    assert late == 80
    assert worker.given_up == []
    assert [outcome for _, outcome, _ in outcomes(calls)] == ["met"]


class Stopping(FakeWall):
    """A wall whose process, stages and all, is stopped once, at 10 and for 200."""

    stop = 200

    def take(self, inbox, until_ns):
        if self.stop and self.ends and min(until_ns, self.ends[0][0]) > 10:
            self.ends = [(end + self.stop, *rest) for end, *rest in self.ends]
            self.at, self.stop = 10 + self.stop, 0
        return super().take(inbox, until_ns)


def test_a_job_has_its_patience_apart_from_time_in_which_the_process_was_stopped():
    """Of 20 it had 10 when everything stood still; what never ends is given up all the same."""
    spec = Bench(stage("see", "lidar", deadline_ns=500)).spec
    feed = [(0, Arrived("lidar", 0, 0, 0, -1))]
    worker = Costs({"see": 20}, Stopping())
    calls, _ = wall_run(spec, worker, feed, patience_ns=50)
    assert worker.given_up == []
    assert outcomes(calls) == [(0, "met", 220)]

    worker = Costs({"see": 300}, Stopping())
    wall_run(spec, worker, feed, patience_ns=50)
    ((job, at_ns),) = worker.given_up
    assert job == 0
    assert 250 - 5 <= at_ns <= 250 + 5  # the driver looks every 5
