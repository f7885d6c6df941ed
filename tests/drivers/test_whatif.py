"""A recorded run repeated: unchanged it is the same, changed it is what the change makes of it."""

from dataclasses import replace

import pytest
from builder import Bench, device, stage, timer
from hypothesis import assume, given
from hypothesis import strategies as st
from test_virtual import FROM_OUTSIDE, Script
from test_wall import PATIENCE_NS, FakeWall, FakeWorker, arrivals, wall_scenarios
from tracing import drive

from avrt.drivers.recording import read_recorded, recorded_run
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.wall import WallLoop
from avrt.drivers.whatif import repeat
from avrt.errors import InputError
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, parse_entry
from avrt.logs.record.run_record import RunRecord
from avrt.metrics.changes import compare_jobs
from avrt.model.codec import encode, to_json
from avrt.model.events import Completed, Drain, Started
from pipelines import Limits, examples, scenarios


class Lines:
    """A journal whose lines are kept."""

    def __init__(self):
        self.lines = []
        self.journal = Journal(lambda _at_ns, line: self.lines.append(line))

    def recorded(self, spec):
        return recorded_run(spec, [parse_entry(line) for line in self.lines], "run")


def simulated(spec, until_ns=200, **keys):
    """A simulated run as it would be read back."""
    lines = []
    feed = list(periodic_arrivals(spec, until_ns))
    options = {"until_ns": until_ns, "feed": feed, "write": lambda _, line: lines.append(line)}
    result = simulate(spec, **options, **keys)
    recorded = recorded_run(spec, [parse_entry(line) for line in lines], "run")
    assert recorded.digest == result.digest
    return recorded


@examples(12)
@given(scenarios(Limits(recorded=False, endless=False)))
def test_a_run_in_virtual_time_is_repeated_call_for_call(scenario):
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    kept = Lines()
    spec, worker, until_ns = scenario.spec, Script(scenario), scenario.until_ns
    VirtualLoop(spec, Kernel(spec), iter(feed), worker, kept.journal, until_ns=until_ns).run()
    recorded = kept.recorded(spec)
    repeated = repeat(recorded, spec)
    assert repeated.digest == recorded.digest
    assert compare_jobs(recorded.log, repeated.log) == []


@examples(20)
@given(wall_scenarios(), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_a_run_at_the_wall_clock_is_repeated_call_for_call(scenario, delays):
    """However late the driver was: what counts is when it was told that work had ended."""
    assume(scenario.spec.sources and scenario.arrivals)
    kept, wall = Lines(), FakeWall(tuple(delays))
    spec, worker = scenario.spec, FakeWorker(scenario, wall)
    worker.hang_timeout_ns = PATIENCE_NS
    WallLoop(Kernel(spec), iter(arrivals(scenario)), worker, kept.journal, wall).run()
    recorded = kept.recorded(spec)
    assert repeat(recorded, spec).digest == recorded.digest


def make(scan_ns=4, **keys):
    """A run of a scan that is tracked and drawn on one slot; track is aborted at its deadline."""
    spec = Bench(
        stage("scan", "lidar", wcet_ns=4, deadline_ns=8, on_miss="abort", **keys),
        stage("track", "scan", wcet_ns=2, deadline_ns=6),
        stage("draw", "camera", wcet_ns=3, deadline_ns=20),
        periods={"lidar": 10, "camera": 10},
    ).spec
    costs = {"scan": scan_ns, "track": 2, "draw": 3}
    return simulated(spec, 50, execution=lambda task, _: costs[task])


def longer(stage_name, cost_ns):
    return lambda name, known_ns: cost_ns if name == stage_name else known_ns


def test_a_longer_stage_makes_the_misses_that_it_causes_appear_with_their_reason():
    recorded = make()
    repeated = repeat(recorded, recorded.spec, change_cost=longer("draw", 19))
    changes = compare_jobs(recorded.log, repeated.log)
    assert {c.kind for c in changes} == {"appears"}
    first = next(change for change in changes if change.task == "scan")
    assert (first.task, first.root, first.after.outcome, first.after.reason) == (
        "scan", 1, "aborted", "deadline",
    )  # fmt: skip
    assert [(i.kind, i.by) for i in first.miss.intervals] == [("blocking", "draw")]
    back = repeat(recorded, recorded.spec, change_cost=longer("draw", 3))
    assert back.digest == recorded.digest


def test_work_is_known_by_its_release_when_an_earlier_output_is_missing():
    """Scan 2 is aborted and publishes nothing: track 2 is then what was track 3 in the run."""
    spec = make().spec
    scan_ns = {0: 4, 1: 4, 2: 4, 3: 4, 4: 4}
    costs = {"scan": scan_ns, "track": {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}}
    recorded = simulated(spec, 50, execution=lambda task, n: costs.get(task, {}).get(n, 1))

    calls = iter(range(99))

    def change(name, cost_ns):
        return 9 if name == "scan" and next(calls) == 2 else cost_ns

    repeated = repeat(recorded, spec, change_cost=change)
    taken = {
        root: j.executed_ns for (task, root), j in repeated.log.jobs.items() if task == "track"
    }
    assert taken == {0: 1, 1: 2, 3: 4, 4: 5}
    assert repeated.log.jobs["track", 3].index == 2
    assert repeated.assumed == set()


def test_work_that_the_run_does_not_have_takes_its_wcet_where_nothing_took_longer():
    """Scan never ends in time there, so nothing was tracked; with a longer deadline it is."""
    recorded = make(scan_ns=9)
    assert not [key for key in recorded.log.jobs if key[0] == "track"]
    spec = recorded.spec
    scan = replace(spec.stage("scan"), deadline_ns=18)
    spec = replace(spec, stages=(scan, *spec.stages[1:]))
    repeated = repeat(recorded, spec)
    tracked = {key: job for key, job in repeated.log.jobs.items() if key[0] == "track"}
    assert ("track", 0) in tracked
    assert repeated.assumed == set(tracked)
    assert {job.executed_ns for job in tracked.values()} == {2}
    kinds = {(c.task, c.root): c.kind for c in compare_jobs(recorded.log, repeated.log)}
    assert kinds["scan", 0] == "vanishes"


def test_another_device_or_slot_count_lets_jobs_run_side_by_side():
    recorded = make(scan_ns=5)
    spec = replace(recorded.spec, devices=(device(slots=2),))
    repeated = repeat(recorded, spec)
    waited = [
        sum(job.start_ns - job.release_ns for job in log.jobs.values())
        for log in (recorded.log, repeated.log)
    ]
    assert waited[0] > waited[1] == 0


def test_a_report_that_came_late_stays_as_late_as_it_was():
    """The device's own time of an end is as long before the report as it was in the run."""
    spec = Bench(timer("beat", 20)).spec
    kept = Lines()
    kernel = Kernel(spec)
    for at_ns, events in ((0, []), (1, [Completed(0, 0, 0)]), (2, [Drain()])):
        kept.journal.note(at_ns, events, kernel.handle(at_ns, events))
    recorded = kept.recorded(spec)
    later = repeat(recorded, spec, change_cost=lambda _, cost_ns: cost_ns + 6)
    job = later.log.jobs["beat", 0]
    assert (job.end_ns, job.device_ns) == (7, 6)


def test_of_work_that_takes_another_time_nobody_knows_when_the_device_began():
    spec = Bench(timer("beat", 20)).spec
    kept = Lines()
    kernel = Kernel(spec)
    for at_ns, events in ((0, []), (9, [Started(0, 2), Completed(0, 0, 8)]), (10, [Drain()])):
        kept.journal.note(at_ns, events, kernel.handle(at_ns, events))
    recorded = kept.recorded(spec)
    assert repeat(recorded, spec).log.jobs["beat", 0].device_start_ns == 2
    for more_ns in (-5, 6):
        changed = repeat(recorded, spec, change_cost=lambda _, ns, more_ns=more_ns: ns + more_ns)
        assert changed.log.jobs["beat", 0].device_start_ns is None
        assert not changed.figures.streams.measured


@pytest.fixture
def pipeline(make_pipeline):
    made = make_pipeline(slots=1)
    made.add(lambda cloud: int(cloud.payload.count), name="count", inputs={"cloud": "lidar"},
             wcet="5 ms", deadline="50 ms")  # fmt: skip
    return made


def failing(cloud):
    if cloud.stamp.sequence == 2:
        raise ValueError("boom")
    return cloud.stamp.sequence


def test_a_recorded_replay_with_failures_is_repeated(make_drive, pipeline, tmp_path):
    pipeline.add(failing, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    path = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(5), out=path)
    recorded = read_recorded(path)
    assert recorded.digest == report.data["digests"]["decisions"]
    assert repeat(recorded, recorded.spec).digest == recorded.digest


@pytest.mark.live
def test_a_replay_at_the_wall_clock_is_repeated(make_drive, pipeline, tmp_path):
    pipeline.add(failing, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    path = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(6), out=path, clock="wall", rate=50)
    recorded = read_recorded(path)
    assert recorded.digest == report.data["digests"]["decisions"]
    assert repeat(recorded, recorded.spec).digest == recorded.digest


def write(path, spec, lines, *, close=True):
    record = RunRecord(path, zero_ns=0, conditions={}, pipeline_json=to_json(encode(spec)))
    for at_ns, line in lines:
        record.journal(line, at_ns)
    if close:
        record.close({"decisions": "", "run": "{}"})
    else:
        record.flush()
        record._file.close()
    return path


def lines_of(events):
    spec = Bench(timer("beat", 20)).spec
    lines, kernel = [], Kernel(spec)
    journal = Journal(lambda at_ns, line: lines.append((at_ns, line)))
    for at_ns, some in events:
        journal.note(at_ns, some, kernel.handle(at_ns, some))
    return spec, lines


@pytest.mark.parametrize(
    ("events", "close", "what"),
    [
        ([(0, []), (2, [Drain(at_once=True)])], True, "found one interrupted"),
        ([(0, [])], True, "found one cut short"),
        ([(0, []), (2, [Drain()])], False, "found one cut short"),
    ],
)
def test_a_run_that_did_not_come_to_its_end_is_refused(tmp_path, events, close, what):
    path = write(tmp_path / "run.mcap", *lines_of(events), close=close)
    with pytest.raises(InputError, match=what):
        read_recorded(path)


def test_an_entry_that_is_missing_is_damage(tmp_path):
    spec, lines = lines_of([(0, []), (2, [Drain()])])
    path = write(tmp_path / "run.mcap", spec, lines[1:])
    with pytest.raises(InputError, match="journal entry 1: expected the check"):
        read_recorded(path)


def test_work_that_was_stopped_takes_its_wcet_at_least():
    """Aborted after 8 of 20 it is known to take more than 8; its declared wcet is 15."""
    spec = Bench(
        timer("scan", 50, wcet_ns=15, deadline_ns=8, on_miss="abort"),
        devices=(device(preemptive=True),),
    ).spec
    recorded = simulated(spec, 50, execution=lambda _task, _index: 20)
    assert recorded.log.jobs["scan", 0].outcome == "aborted"
    patient = replace(spec, stages=(replace(spec.stages[0], deadline_ns=40),))
    repeated = repeat(recorded, patient)
    assert repeated.log.jobs["scan", 0].executed_ns == 15
    assert repeated.assumed == {("scan", 0)}


def test_work_that_the_run_does_not_have_takes_what_the_longest_job_took_there():
    """Every second scan is skipped as busy; declared are 4, but scans took 12 and 13."""
    spec = Bench(timer("scan", 10, wcet_ns=4, deadline_ns=10, on_miss="skip_next")).spec
    recorded = simulated(spec, 40, execution=lambda _task, index: 12 + (index > 1))
    assert recorded.log.jobs["scan", 1].outcome == "skipped"
    patient = replace(spec, stages=(replace(spec.stages[0], on_miss="continue"),))
    repeated = repeat(recorded, patient)
    executed = [repeated.log.jobs["scan", index].executed_ns for index in range(4)]
    assert executed == [12, 13, 13, 13]
    assert repeated.assumed == {("scan", 1), ("scan", 3)}


def test_a_changed_simulation_is_the_simulation_of_the_changed_pipeline():
    """Jobs have other numbers there, and so have their outputs."""
    stages = (
        timer("plan", 1500, wcet_ns=600, deadline_ns=900),
        stage("scan", "lidar", wcet_ns=1600, deadline_ns=4000),
        stage("track", "scan", wcet_ns=400, deadline_ns=1000),
    )
    spec = Bench(*stages, periods={"lidar": 2000}).spec
    wide = replace(spec, devices=(device(slots=2),))

    def cost(task, index):
        return spec.stage(task).wcet_ns - 7 * index - len(task)

    recorded = simulated(spec, 20_000, execution=cost)
    repeated = repeat(recorded, wide)
    assert repeated.digest == simulated(wide, 20_000, execution=cost).digest != recorded.digest
