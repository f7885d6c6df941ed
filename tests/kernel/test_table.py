"""Policy table: every job starts at its planned start, or as soon after as it can, and it is told.

`test_NAME` tells the rule of `avrt.kernel.table` by a smallest example; the properties let anything
happen to random pipelines with any table.
"""

from collections import defaultdict

from builder import Bench, device, sampled, stage, timer
from hypothesis import given
from hypothesis import strategies as st
from tracing import World, drive

from avrt.kernel import Kernel
from avrt.model.commands import Dispatch
from avrt.model.events import Completed, DeviceLost, Drain, Failed, Voted
from avrt.model.records import JobRecord, MissRecord, TableRecord
from avrt.model.spec import Criticality, RedundancySpec, SyncSpec, TableRow, TableSpec
from pipelines import Limits, examples, scenarios

TABLES = scenarios(Limits(policies=("table",), devices_max=2))


def bench(*stages, cycle=20, starts, **keys):
    """A bench that executes a table: `starts` by task."""
    rows = tuple(TableRow(task=task, starts_ns=times) for task, times in starts.items())
    table = TableSpec(cycle_ns=cycle, rows=rows)
    return Bench(*stages, policy="table", table=table, **keys)


# By hand


def test_a_job_waits_for_its_planned_start_and_the_kernel_asks_to_be_woken_then():
    b = bench(timer("beat", 20), starts={"beat": (7,)})
    b.at(0)
    assert b.dispatched() == []
    assert b.kernel.next_wakeup_ns == 7
    b.at(6)
    assert b.dispatched() == []
    b.at(7)
    assert b.dispatched() == ["beat"]
    assert b.all_records(TableRecord) == []


def test_the_table_repeats_every_cycle():
    b = bench(timer("beat", 10), starts={"beat": (3, 14)})
    for start_ns in (3, 14, 23, 34, 43):
        b.at(start_ns // 10 * 10)
        b.at(start_ns)
        assert b.dispatch().index == (start_ns // 10)
        b.complete(start_ns + 1, b.dispatch().job)
    assert b.all_records(TableRecord) == []


def test_a_message_takes_the_next_start_of_its_stage():
    b = bench(stage("scan", "lidar"), starts={"scan": (4, 9)})
    b.arrive(5, "lidar")
    assert b.dispatched() == []
    b.at(9)
    assert b.dispatched() == ["scan"]


def test_a_start_that_an_earlier_job_has_taken_is_not_taken_twice():
    b = bench(stage("scan", "lidar"), starts={"scan": (4, 9)})
    b.arrive(2, "lidar")
    b.arrive(3, "lidar")
    b.at(4)
    b.complete(5, 0)
    assert b.dispatched() == []
    b.at(9)
    assert b.dispatch().index == 1


def test_a_job_that_never_starts_takes_no_start():
    b = bench(
        stage("scan", "lidar", on_miss="abort", deadline_ns=3), starts={"scan": (4, 14)}, cycle=20
    )
    b.arrive(0, "lidar")
    b.at(3)
    assert b.outcomes() == [(0, "aborted", "deadline")]
    b.arrive(3, "lidar")
    b.at(4)
    assert b.dispatch().index == 1


def test_what_is_done_early_lets_nobody_start_before_the_plan():
    b = bench(
        timer("scan", 20, wcet_ns=4), stage("track", "scan"), starts={"scan": (0,), "track": (2, 6)}
    )
    b.at(0)
    b.complete(1, 0)
    b.at(2)  # by plan the scan is done at 4
    assert b.dispatched() == []
    b.at(6)
    assert b.dispatched() == ["track"]


def test_what_overruns_shifts_later_starts_and_every_one_is_told():
    b = bench(
        timer("scan", 20, wcet_ns=4),
        stage("track", "scan"),
        timer("beat", 20),
        starts={"scan": (0,), "beat": (4,), "track": (6,)},
    )
    b.at(0)
    b.at(4)
    b.at(6)
    assert b.all_records(TableRecord) == []
    b.complete(9, 0)
    assert b.dispatched() == ["beat"]  # it was planned before track, though both are late
    assert b.records(TableRecord) == [TableRecord(1, "beat", 9, 4)]
    b.complete(10, 1)
    assert b.dispatched() == ["track"]
    assert b.records(TableRecord) == [TableRecord(2, "track", 10, 6)]


def test_one_cycle_after_an_overrun_all_is_as_planned_again():
    b = bench(
        timer("scan", 20, wcet_ns=4),
        stage("track", "scan"),
        starts={"scan": (0,), "track": (4,)},
    )
    b.at(0)
    b.complete(15, 0)
    b.complete(17, 1)
    b.at(20)
    b.complete(24, 2)
    assert b.dispatched() == ["track"]
    assert [r.job for r in b.all_records(TableRecord)] == [1]


def test_a_job_whose_predecessor_is_still_running_starts_when_that_ends():
    b = bench(timer("beat", 10), starts={"beat": (0, 10)}, devices=(device(slots=2),))
    b.at(0)
    b.at(10)
    assert b.dispatched() == []
    b.complete(13, 0)
    assert b.records(TableRecord) == [TableRecord(1, "beat", 13, 10)]


def test_criticality_does_not_change_the_order():
    b = bench(
        timer("calm", 20, wcet_ns=8),
        timer("dire", 20, deadline_ns=6, criticality=Criticality.ASIL_D),
        starts={"calm": (0,), "dire": (8,)},
    )
    b.at(0)
    assert b.dispatched() == ["calm"]


def test_on_a_fallback_a_job_keeps_its_planned_start_and_waits_among_those_there():
    b = bench(
        timer("scan", 20, device="gpu"),
        timer("beat", 20),
        starts={"scan": (5,), "beat": (4,)},
        devices=(device("gpu", fallback="cpu"), device()),
    )
    b.at(0, DeviceLost("gpu"))
    b.at(4)
    assert b.dispatched() == ["beat"]
    b.at(5)
    b.complete(6, 1)
    assert (b.dispatch().task, b.dispatch().device) == ("scan", "cpu")
    assert b.records(TableRecord) == [TableRecord(0, "scan", 6, 5)]


def test_what_is_open_at_the_drain_still_gets_its_start():
    b = bench(timer("beat", 20), starts={"beat": (7,)})
    b.at(0)
    b.at(1, Drain())
    assert b.kernel.next_wakeup_ns == 7
    b.at(7)
    b.complete(9, 0)
    assert b.outcomes() == [(0, "met")]
    assert b.kernel.next_wakeup_ns is None


def test_a_miss_tells_the_time_until_the_planned_start():
    b = bench(
        timer("slow", 40, deadline_ns=40),
        timer("beat", 40, deadline_ns=12),
        starts={"slow": (0,), "beat": (7,)},
        cycle=40,
    )
    b.at(0)
    b.at(12)
    (miss,) = b.records(MissRecord)
    spent = [(i.kind, i.by, i.duration_ns) for i in miss.intervals]
    assert spent == [("planned", "", 7), ("waiting", "slow", 5)]


def test_each_replica_has_starts_of_its_own_and_the_last_counts_for_who_follows():
    b = bench(
        timer("scan", 20, redundancy=RedundancySpec(copies=2)),
        stage("track", "scan"),
        starts={"scan.0": (0,), "scan.1": (5,), "track": (3, 7)},
        devices=(device(slots=2),),
    )
    b.at(0)
    assert b.dispatched() == ["scan.0"]
    b.complete(1, 0)
    b.at(5)
    assert b.dispatched() == ["scan.1"]
    b.complete(6, 1)
    b.at(6, Voted(0, "unanimous", 0))
    assert b.dispatched() == []
    b.at(7)
    assert b.dispatched() == ["track"]


def test_what_publishes_at_its_deadline_is_ready_by_plan_then():
    b = bench(
        timer("scan", 20, publish="at_deadline", deadline_ns=9),
        stage("track", "scan"),
        starts={"scan": (0,), "track": (4, 12)},
    )
    b.at(0)
    b.complete(2, 0)
    b.at(9)
    assert b.dispatched() == []
    b.at(12)
    assert b.dispatched() == ["track"]


def test_a_set_is_ready_by_plan_with_the_last_of_its_members():
    b = bench(
        stage("scan", "lidar", wcet_ns=5),
        stage("fuse", "scan", "camera", sync=SyncSpec(tolerance_ns=0, timeout_ns=50)),
        starts={"scan": (0,), "fuse": (2, 8)},
    )
    b.arrive(0, "lidar", b.arrival(0, "camera"))
    b.complete(1, 0)
    b.at(2)
    assert b.dispatched() == []
    b.at(8)
    assert b.dispatched() == ["fuse"]


def test_a_set_without_a_member_is_ready_when_it_is_released():
    b = bench(
        stage(
            "fuse",
            sampled("lidar", optional=True),
            "camera",
            sync=SyncSpec(tolerance_ns=0, timeout_ns=6),
        ),
        starts={"fuse": (2, 8)},
    )
    b.arrive(0, "camera")
    b.at(2)
    assert b.dispatched() == []
    b.at(6)
    b.at(8)
    assert b.dispatched() == ["fuse"]


# Whatever happens


def planned_starts(trace):
    """The planned start of every job that started, by job; and whether it was told as late."""
    late = {record.job: record.planned_ns for record in trace.records(TableRecord)}
    return {job: late.get(job, at_ns) for job, (at_ns, _) in trace.dispatches().items()}, late


@examples(40)
@given(TABLES)
def test_every_job_starts_at_a_start_of_its_own_row_or_is_told_as_late(scenario):
    trace = drive(scenario)
    planned, late = planned_starts(trace)
    table, by_task = scenario.spec.table, defaultdict(list)
    for job, (at_ns, command) in sorted(trace.dispatches().items()):
        assert planned[job] % table.cycle_ns in table.starts_ns(command.task)
        assert (at_ns > planned[job]) == (job in late)
        by_task[command.task].append((command.index, planned[job]))
    for starts in by_task.values():
        starts.sort()
        times = [time for _, time in starts]
        assert times == sorted(set(times))


@examples(40)
@given(TABLES)
def test_no_job_starts_before_it_is_released_and_none_skips_a_start_that_was_free(scenario):
    """For stages that timers and sources release, ready by plan is released."""
    trace = drive(scenario)
    planned, _ = planned_starts(trace)
    table, taken = scenario.spec.table, {}
    sources = {source.name for source in scenario.spec.sources}
    jobs = trace.jobs()
    for job, (_, command) in sorted(trace.dispatches().items(), key=lambda item: item[1][0]):
        item = trace.stage_of(command.task)
        if item.sync is None and (
            item.trigger_input is None or item.trigger_input.source in sources
        ):
            ready_ns = max(jobs[job].release_ns, taken.get(command.task, -1) + 1)
            between = range(ready_ns, planned[job])
            assert not [t for t in between if t % table.cycle_ns in table.starts_ns(command.task)]
        assert jobs[job].release_ns <= trace.dispatches()[job][0]
        taken[command.task] = planned[job]


@examples(30)
@given(scenarios(Limits(policies=("table",), faults=False, copies=(1,), devices_max=1)))
def test_of_two_late_jobs_the_earlier_planned_goes_first(scenario):
    trace = drive(scenario)
    planned, late = planned_starts(trace)
    starts = trace.dispatches()
    for job in late:
        at_ns, command = starts[job]
        task = command.task
        for other, (other_ns, other_command) in starts.items():
            record = trace.jobs()[other]
            is_ready = record.arrival_ns < at_ns < other_ns and other_command.task != task
            if is_ready and planned[other] < planned[job]:
                # it waited for its own stream, or only became first of its task later
                before = [
                    j
                    for j in trace.jobs().values()
                    if j.task == other_command.task and j.index < record.index
                ]
                assert any(j.end_ns >= at_ns or _works_at(trace, j.job, at_ns) for j in before)


def _works_at(trace, job, at_ns):
    """Whether a job's work was still reported as going on at that time."""
    ended = [at for at, e in trace.events if isinstance(e, Completed | Failed) and e.job == job]
    return job in trace.dispatches() and (not ended or ended[0] >= at_ns)


@examples(30)
@given(TABLES)
def test_every_released_job_ends_exactly_once(scenario):
    world = World(scenario)
    trace = world.run()
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    assert trace.working == ()
    assert not any(task.busy for task in world.kernel._tasks.values())
    assert not any(world.kernel._state.underway.values())


@examples(20)
@given(TABLES)
def test_a_driver_that_wakes_late_loses_no_job_and_starts_none_too_early(scenario):
    trace = drive(scenario, grain=4)
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    planned, _ = planned_starts(trace)
    table = scenario.spec.table
    for job, (at_ns, command) in trace.dispatches().items():
        assert planned[job] <= at_ns
        assert planned[job] % table.cycle_ns in table.starts_ns(command.task)


@examples(30)
@given(TABLES)
def test_a_miss_is_explained_from_its_release_to_its_due_time(scenario):
    for miss in drive(scenario).records(MissRecord):
        assert sum(i.duration_ns for i in miss.intervals) == miss.at_ns - miss.release_ns


@examples(20)
@given(TABLES, st.integers(0, 40))
def test_a_snapshot_taken_anywhere_gives_the_same_tail(scenario, place):
    whole = drive(scenario).calls
    place = min(place, len(whole) - 1)
    kernel = Kernel(scenario.spec, recorded=scenario.recorded)
    for call in whole[:place]:
        kernel.handle(call.at_ns, call.events)
    other = Kernel(scenario.spec, recorded=scenario.recorded)
    other.restore(kernel.snapshot())
    for call in whole[place:]:
        assert other.handle(call.at_ns, call.events) == call.commands
        assert other.next_wakeup_ns == call.wakeup_ns


@examples(20)
@given(TABLES)
def test_a_call_that_comes_too_early_decides_nothing(scenario):
    """Between two calls of a run any number of calls without events says nothing."""
    whole = drive(scenario).calls
    kernel = Kernel(scenario.spec, recorded=scenario.recorded)
    for call, coming in zip(whole, [*whole[1:], None], strict=True):
        assert kernel.handle(call.at_ns, call.events) == call.commands
        if coming is not None and coming.at_ns > call.at_ns + 1:
            assert not any(isinstance(c, Dispatch) for c in kernel.handle(coming.at_ns - 1))
