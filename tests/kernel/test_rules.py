"""The kernel contract by example: time, order, releases, outcomes, budgets, shedding.

Each test is the smallest story that shows one rule. A stage has wcet 2 and deadline 10 unless told
otherwise; job numbers count from 0 in release order.
"""

import pytest
from builder import Bench, device, sampled, stage, timer

from avrt.errors import KernelError
from avrt.model.commands import Abort, Discard, Dispatch, Preempt, Record, Resume
from avrt.model.events import Completed, Drain, Failed, Started
from avrt.model.records import (
    Interval,
    JobRecord,
    MissRecord,
    OverrunRecord,
    WindowRecord,
)
from avrt.model.spec import Criticality, SyncSpec

PREEMPTIVE = (device(preemptive=True),)
TWO_SLOTS = (device(slots=2),)


def intervals(bench):
    """The intervals of the only miss in the last call, as `(kind, start, end, by)`."""
    (miss,) = bench.records(MissRecord)
    return [(i.kind, i.start_ns, i.end_ns, i.by) for i in miss.intervals]


# Time and order


def test_a_call_without_events_only_moves_time():
    bench = Bench(stage("see", "lidar"))
    assert bench.at(5) == []
    assert bench.kernel.now_ns == 5
    assert bench.kernel.next_wakeup_ns is None


def test_the_same_instant_may_come_again():
    bench = Bench(stage("see", "lidar"), devices=TWO_SLOTS)
    bench.at(5)
    bench.arrive(5, "lidar")
    assert bench.dispatched() == ["see"]
    bench.arrive(5, "lidar")
    assert bench.dispatched() == []
    bench.complete(5, 0)
    assert bench.dispatched() == ["see"]


def test_time_never_goes_back():
    bench = Bench(stage("see", "lidar"))
    bench.at(5)
    with pytest.raises(KernelError, match="time went back from 5 to 4 ns"):
        bench.at(4)
    assert bench.kernel.now_ns == 5


def test_completions_come_before_deadlines():
    bench = Bench(stage("see", "lidar", deadline_ns=5, on_miss="abort"))
    bench.arrive(0, "lidar")
    bench.complete(5, 0)
    assert bench.outcomes() == [(0, "met")]


def test_a_deadline_check_closes_its_instant():
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.at(5)
    assert len(bench.records(MissRecord)) == 1
    bench.complete(5, 0)
    assert bench.outcomes() == [(0, "late")]


def test_deadlines_and_aborts_come_before_releases():
    bench = Bench(timer("beat", 5, deadline_ns=5, on_miss="abort"), devices=PREEMPTIVE)
    bench.at(0)
    bench.at(5)
    kinds = [type(c.record if isinstance(c, Record) else c) for c in bench.last]
    assert kinds == [MissRecord, Abort, JobRecord, Dispatch]


def test_releases_are_made_in_pipeline_file_order():
    bench = Bench(timer("first"), stage("second", "lidar"), timer("third"), devices=TWO_SLOTS)
    bench.arrive(0, "lidar")
    assert bench.dispatched() == ["first", "second"]
    bench.complete(1, 0, 1)
    assert bench.dispatched() == ["third"]
    assert bench.dispatch().job == 2


def test_releases_come_before_budgets():
    keys = {"budget_ns": 5, "on_overrun": "abort", "on_miss": "skip_next"}
    bench = Bench(timer("beat", 5, **keys), devices=PREEMPTIVE)
    bench.at(0)
    bench.at(5)
    assert bench.outcomes() == [(1, "skipped", "busy"), (0, "aborted", "budget")]


def test_one_dispatch_pass_sees_everything_of_the_instant():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50),
        stage("urgent", "camera", deadline_ns=5),
        timer("beat", deadline_ns=20),
    )
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.arrive(2, "camera", Completed(0, 0, 2))
    assert bench.dispatched() == ["urgent"]


def test_a_driver_that_wakes_late_gets_every_release_at_its_nominal_time():
    bench = Bench(timer("beat", 10, offset_ns=3, deadline_ns=100), devices=TWO_SLOTS)
    bench.at(25)
    bench.complete(26, 0)
    bench.complete(27, 1)
    bench.complete(28, 2)
    jobs = bench.all_records(JobRecord)
    assert [(j.release_ns, j.arrival_ns, j.due_ns) for j in jobs] == [
        (3, 25, 103),
        (13, 25, 113),
        (23, 25, 123),
    ]
    assert bench.kernel.next_wakeup_ns == 33


def test_the_next_wakeup_is_the_earliest_of_release_due_time_and_budget():
    bench = Bench(timer("beat", 100, deadline_ns=30, budget_ns=20))
    assert bench.kernel.next_wakeup_ns == 0
    bench.at(0)
    assert bench.kernel.next_wakeup_ns == 20
    bench.at(20)
    assert bench.kernel.next_wakeup_ns == 30
    bench.at(30)
    assert bench.kernel.next_wakeup_ns == 100


def test_the_device_s_own_times_are_stored_beside_the_kernel_s():
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.at(1, Started(0, 1))
    bench.at(5)
    bench.at(7, Completed(0, 0, 4))
    (job,) = bench.records(JobRecord)
    assert (job.device_start_ns, job.device_ns, job.end_ns) == (1, 4, 7)
    assert job.outcome == "late"
    assert job.reported_late


# The total order


@pytest.mark.parametrize(
    ("policy", "winner"),
    [("edf", "b"), ("rm", "a"), ("dm", "b"), ("fp", "a"), ("llf", "c"), ("fifo", "c")],
)
def test_the_policy_arbitrates(policy, winner):
    bench = Bench(
        stage("a", "quick", deadline_ns=40, priority=1),
        stage("b", "middle", deadline_ns=20, priority=2),
        stage("c", "slow", deadline_ns=30, priority=3, wcet_ns=25),
        timer("hold", 100, deadline_ns=99, priority=9),
        policy=policy,
        periods={"quick": 5, "middle": 10, "slow": 50},
    )
    bench.at(0)
    bench.arrive(1, "slow")
    bench.arrive(2, "middle")
    bench.arrive(3, "quick")
    bench.complete(4, 0)
    assert bench.dispatched() == [winner]


@pytest.mark.parametrize("policy", ["fp", "rm", "dm"])
def test_equal_priorities_are_first_in_first_out(policy):
    bench = Bench(
        stage("a", "lidar", priority=1),
        stage("b", "camera", priority=1),
        timer("hold", 10, priority=1),
        policy=policy,
    )
    bench.at(0)
    bench.arrive(1, "camera")
    bench.arrive(2, "lidar")
    bench.complete(3, 0)
    assert bench.dispatched() == ["b"]


def test_equal_keys_fall_to_pipeline_file_order():
    bench = Bench(stage("a", "lidar"), stage("b", "lidar"), stage("c", "lidar"))
    bench.arrive(0, "lidar")
    assert bench.dispatched() == ["a"]
    bench.complete(1, 0)
    assert bench.dispatched() == ["b"]


def test_a_running_job_goes_first_on_equal_keys():
    bench = Bench(stage("a", "lidar", deadline_ns=9), stage("b", "camera"), devices=PREEMPTIVE)
    bench.arrive(0, "camera")
    bench.arrive(1, "lidar")  # due at 10 too, and first in the file
    assert bench.last == []


def test_rate_monotonic_inherits_the_period_of_the_trigger():
    bench = Bench(
        stage("rare", "slow"),
        stage("often", "fast"),
        timer("hold", 100),
        policy="rm",
        periods={"slow": 50, "fast": 20},
    )
    bench.at(0)
    bench.arrive(1, "slow")
    bench.arrive(1, "fast")
    bench.complete(2, 0)
    assert bench.dispatched() == ["often"]


def test_rate_monotonic_takes_the_longest_period_of_a_synchronised_set():
    sync = SyncSpec(tolerance_ns=5, timeout_ns=40)
    bench = Bench(
        stage("both", "slow", "fast", sync=sync),
        stage("one", "middle"),
        timer("hold", 100),
        policy="rm",
        periods={"slow": 50, "middle": 30, "fast": 20},
    )
    bench.at(0)
    bench.arrive(1, "slow", bench.arrival(1, "fast"), bench.arrival(1, "middle"))
    bench.complete(2, 0)
    assert bench.dispatched() == ["one"]


def test_least_laxity_counts_what_a_running_job_has_received_and_looks_at_events_only():
    bench = Bench(
        stage("long", "lidar", wcet_ns=10, deadline_ns=30),
        stage("short", "camera", wcet_ns=2, deadline_ns=26),
        policy="llf",
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.arrive(3, "camera")  # latest start 27; the long one's is 23 by now
    assert bench.last == []
    assert bench.at(9) == []  # the long one's is 29 by now, but nothing happened
    bench.at(9, Started(0, 9))
    assert bench.commands(Preempt) == [Preempt(0)]


# Preemption


def test_a_preemptive_device_runs_the_most_urgent_job_and_resumes_the_other():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, budget_ns=9),
        stage("quick", "camera", deadline_ns=5),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.arrive(3, "camera")
    assert bench.last[:1] == [Preempt(0)]
    assert bench.dispatched() == ["quick"]
    bench.complete(5, 1)
    assert bench.commands(Resume) == [Resume(0)]
    assert bench.kernel.next_wakeup_ns == 11  # the budget has 6 left
    bench.complete(7, 0)
    (job,) = bench.records(JobRecord)
    assert (job.start_ns, job.executed_ns) == (0, 5)


def test_any_other_device_lets_work_run_to_its_end():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, wcet_ns=4), stage("quick", "camera", deadline_ns=5)
    )
    bench.arrive(0, "lidar")
    assert bench.arrive(3, "camera") == []
    bench.complete(4, 0)
    assert bench.dispatched() == ["quick"]


def test_of_several_running_jobs_the_last_in_the_order_is_preempted():
    bench = Bench(
        stage("a", "lidar", deadline_ns=30),
        stage("b", "lidar", deadline_ns=40),
        stage("c", "camera", deadline_ns=5),
        devices=(device(slots=2, preemptive=True),),
    )
    bench.arrive(0, "lidar")
    bench.arrive(1, "camera")
    assert bench.commands(Preempt) == [Preempt(1)]


# Releases


def test_a_message_releases_at_its_log_time_and_both_times_are_kept():
    bench = Bench(stage("see", "lidar", deadline_ns=10))
    bench.arrive(6, "lidar", capture_ns=1, log_ns=4)
    bench.complete(8, 0)
    (job,) = bench.records(JobRecord)
    assert (job.release_ns, job.arrival_ns, job.due_ns) == (4, 6, 14)


def test_a_deadline_from_capture_counts_from_the_capture_time():
    bench = Bench(stage("see", "lidar", deadline_ns=10, deadline_from="capture"))
    bench.arrive(6, "lidar", capture_ns=1)
    assert bench.dispatch().due_ns == 11


def test_a_release_whose_due_time_is_past_is_missed_at_once():
    bench = Bench(stage("see", "lidar", deadline_ns=3, deadline_from="capture", on_miss="abort"))
    bench.arrive(6, "lidar", capture_ns=1)
    assert bench.outcomes() == [(0, "aborted", "deadline")]
    assert intervals(bench) == []
    assert bench.dispatched() == []


def test_a_publication_releases_who_it_triggers_in_the_same_instant():
    bench = Bench(stage("see", "lidar"), stage("track", "see"))
    bench.arrive(0, "lidar")
    bench.complete(4, 0)
    assert bench.published() == [0]
    dispatch = bench.dispatch()
    assert (dispatch.task, dispatch.release_ns, dispatch.inputs) == ("track", 4, (0,))


def test_a_dispatch_says_all_that_a_worker_needs():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(3, "lidar", buffer=-7)
    assert bench.last == [
        Dispatch(0, "see", 0, "see", "cpu", 0, "", (-7,), release_ns=3, due_ns=13)
    ]


def test_after_drain_timers_cease_and_what_is_open_finishes():
    bench = Bench(timer("beat", 10, deadline_ns=20), stage("see", "lidar"))
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.at(10, Drain())  # the release of this very instant is still made
    bench.complete(11, 0)
    assert bench.dispatched() == ["see"]
    bench.complete(12, 1)
    assert bench.dispatch().release_ns == 10
    bench.complete(13, 2)
    assert bench.kernel.next_wakeup_ns is None
    assert bench.at(99) == []


def test_a_drain_at_once_aborts_what_is_open_and_leaves_alone_what_has_ended():
    bench = Bench(
        stage("see", "lidar", deadline_ns=5, on_miss="abort"),
        stage("look", "camera", deadline_ns=50),
        devices=TWO_SLOTS,
    )
    bench.arrive(0, "lidar", bench.arrival(0, "camera"), bench.arrival(0, "camera"))
    bench.at(5)
    assert bench.outcomes() == [(0, "aborted", "deadline")]
    bench.at(6, Drain(at_once=True))
    assert bench.outcomes() == [(2, "aborted", "stop"), (1, "aborted", "stop")]
    bench.complete(8, 0, 1)
    assert bench.commands(Discard) == [Discard(0), Discard(1)]
    assert bench.kernel.working_jobs == ()


def test_the_oldest_waiting_job_is_shed_when_a_fifth_one_comes():
    bench = Bench(stage("see", "lidar", deadline_ns=100))
    for at_ns in range(6):
        bench.arrive(at_ns, "lidar")
    assert bench.outcomes() == [(1, "shed", "queue_full")]
    bench.complete(6, 0)
    assert bench.dispatch().index == 2


def test_at_most_one_job_of_a_task_runs_though_slots_are_free():
    bench = Bench(stage("see", "lidar"), devices=(device(slots=4),))
    bench.arrive(0, "lidar")
    assert bench.arrive(1, "lidar") == []


def test_slots_bound_the_jobs_in_flight():
    bench = Bench(*(stage(name, "lidar") for name in "abc"), devices=TWO_SLOTS)
    bench.arrive(0, "lidar")
    assert bench.dispatched() == ["a", "b"]
    bench.complete(3, 1)
    assert bench.dispatched() == ["c"]


# Outcomes and misses


def test_completion_at_the_due_time_is_met():
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.complete(5, 0)
    assert bench.outcomes() == [(0, "met")]
    assert bench.records(MissRecord) == []


def test_a_miss_is_raised_at_the_due_time_while_the_job_is_open():
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    assert bench.kernel.next_wakeup_ns == 2  # the budget
    bench.at(2)
    assert bench.kernel.next_wakeup_ns == 5
    bench.at(5)
    assert [(m.job, m.at_ns, m.due_ns) for m in bench.records(MissRecord)] == [(0, 5, 5)]
    bench.complete(9, 0)
    assert bench.records(MissRecord) == []
    assert bench.outcomes() == [(0, "late")]


def test_a_miss_is_explained_by_intervals_that_sum_to_the_time_since_release():
    bench = Bench(
        stage("lower", "a", deadline_ns=50),
        stage("higher", "b", deadline_ns=4),
        stage("late", "c", deadline_ns=12),
    )
    bench.arrive(0, "a")
    bench.arrive(1, "c")
    bench.arrive(2, "b")
    bench.complete(3, 0)
    assert bench.dispatched() == ["higher"]
    bench.complete(7, 2)
    assert bench.dispatched() == ["late"]
    bench.at(13)
    assert intervals(bench) == [
        ("blocking", 1, 3, "lower"),
        ("waiting", 3, 7, "higher"),
        ("running", 7, 13, "late"),
    ]


def test_waiting_for_the_task_s_own_predecessor_is_waiting():
    bench = Bench(stage("see", "lidar", deadline_ns=10))
    bench.arrive(0, "lidar")
    bench.arrive(2, "lidar")
    bench.complete(9, 0)
    bench.at(12)
    assert intervals(bench) == [("waiting", 2, 9, "see"), ("running", 9, 12, "see")]


def test_time_before_the_kernel_knew_of_the_release_has_no_holder():
    bench = Bench(stage("see", "lidar", deadline_ns=10))
    bench.arrive(6, "lidar", log_ns=2)
    bench.at(12)
    (miss,) = bench.records(MissRecord)
    assert miss.intervals[0] == Interval("waiting", 2, 6, "", None)


def test_with_several_slots_the_holder_ordered_last_is_named():
    bench = Bench(
        stage("a", "x", deadline_ns=50),
        stage("b", "x", deadline_ns=3),
        stage("late", "y", deadline_ns=5),
        devices=TWO_SLOTS,
    )
    bench.arrive(0, "x")
    bench.arrive(0, "y")
    bench.at(3)
    bench.at(5)
    assert intervals(bench) == [("blocking", 0, 5, "a")]


def test_explanations_reach_back_over_many_short_jobs():
    bench = Bench(
        timer("beat", 2, wcet_ns=1, deadline_ns=2), stage("late", "lidar", deadline_ns=600)
    )
    bench.at(0)
    bench.arrive(0, "lidar")
    for at_ns in range(2, 600, 2):
        bench.complete(at_ns, len(bench.all_records(JobRecord)) + (at_ns > 2))
        assert "late" not in bench.dispatched()
    bench.at(600, Completed(300, 300, 600))
    assert sum(end - start for _, start, end, _ in intervals(bench)) == 600
    assert {by for _, _, _, by in intervals(bench)} == {"beat"}


def test_on_miss_continue_finishes_late():
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.at(5)
    bench.complete(8, 0)
    assert bench.outcomes() == [(0, "late")]
    assert bench.published() == [0]


def test_on_miss_abort_stops_the_work_of_a_preemptive_device_at_once():
    bench = Bench(
        stage("see", "lidar", deadline_ns=5, on_miss="abort"),
        stage("look", "camera"),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.arrive(1, "camera")
    bench.at(5)
    assert bench.commands(Abort) == [Abort(0)]
    assert bench.outcomes() == [(0, "aborted", "deadline")]
    assert bench.dispatched() == ["look"]
    assert bench.kernel.working_jobs == (1,)


def test_on_miss_abort_elsewhere_keeps_stream_and_slot_until_the_work_ends():
    bench = Bench(stage("see", "lidar", deadline_ns=5, on_miss="abort"), stage("look", "camera"))
    bench.arrive(0, "lidar")
    bench.arrive(1, "camera")
    bench.at(5)
    assert bench.outcomes() == [(0, "aborted", "deadline")]
    assert bench.dispatched() == []
    assert bench.kernel.working_jobs == (0,)
    bench.complete(8, 0)
    assert bench.commands(Discard) == [Discard(0)]
    assert bench.published() == []
    assert bench.dispatched() == ["look"]


def test_on_miss_abort_ends_a_waiting_job_too():
    bench = Bench(stage("see", "lidar", deadline_ns=5, on_miss="abort"), timer("hold", 100))
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.arrive(4, "lidar")
    bench.at(6)
    assert bench.outcomes() == [(1, "aborted", "deadline")]
    assert bench.commands(Abort) == []
    bench.complete(7, 0)
    assert bench.dispatch().index == 1


def test_on_miss_abort_ends_a_preempted_job_too():
    bench = Bench(
        stage("see", "lidar", deadline_ns=8, on_miss="abort"),
        stage("look", "camera", deadline_ns=4),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.arrive(1, "camera")
    bench.at(8)
    assert (0, "aborted", "deadline") in bench.outcomes()
    assert bench.kernel.working_jobs == (1,)


def test_skip_next_drops_the_new_release():
    bench = Bench(stage("see", "lidar", on_miss="skip_next"))
    bench.arrive(0, "lidar")
    bench.arrive(2, "lidar")
    assert bench.outcomes() == [(1, "skipped", "busy")]
    bench.complete(3, 0)
    bench.arrive(4, "lidar")
    assert bench.dispatch().index == 2


def test_a_failing_job_is_aborted():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.at(3, Failed(0, "DataFault"))
    assert bench.outcomes() == [(0, "aborted", "failure")]


def test_a_failure_after_an_abort_frees_the_slot_and_says_nothing_more():
    bench = Bench(stage("see", "lidar", deadline_ns=5, on_miss="abort"), stage("look", "camera"))
    bench.arrive(0, "lidar")
    bench.arrive(1, "camera")
    bench.at(5)
    bench.at(7, Failed(0, "SoftwareFault"))
    assert bench.outcomes() == []
    assert bench.dispatched() == ["look"]


# Budgets


def test_a_budget_counts_execution_received_and_is_reported_when_it_is_spent():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, budget_ns=5),
        stage("quick", "camera", deadline_ns=5),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.arrive(2, "camera")
    bench.complete(4, 1)
    bench.at(6)
    assert bench.records(OverrunRecord) == []
    bench.at(7)
    assert bench.records(OverrunRecord) == [OverrunRecord(0, "slow", 7, 5)]
    bench.at(20)
    assert bench.records(OverrunRecord) == []


def test_a_completion_when_the_budget_is_just_spent_is_no_overrun():
    bench = Bench(stage("see", "lidar", wcet_ns=4))
    bench.arrive(0, "lidar")
    bench.complete(4, 0)
    assert bench.records(OverrunRecord) == []


def test_on_overrun_abort_ends_the_job():
    bench = Bench(stage("see", "lidar", budget_ns=3, on_overrun="abort"))
    bench.arrive(0, "lidar")
    bench.at(3)
    assert bench.outcomes() == [(0, "aborted", "budget")]
    assert bench.commands(Abort) == [Abort(0)]


def test_a_preempted_job_that_has_overrun_is_told_of_once():
    bench = Bench(
        stage("slow", "lidar", deadline_ns=50, budget_ns=2),
        stage("quick", "camera", deadline_ns=5),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "lidar")
    bench.at(2)
    bench.arrive(3, "camera")
    bench.complete(5, 1)
    bench.at(9)
    assert bench.commands(Resume) == []
    assert [(r.task, r.at_ns) for r in bench.all_records(OverrunRecord)] == [("slow", 2)]


@pytest.mark.parametrize("level", [Criticality.QM, Criticality.ASIL_D])
def test_what_ended_while_it_waited_is_forgotten(level):
    bench = Bench(
        stage("see", "lidar", deadline_ns=5, on_miss="abort", criticality=level),
        stage("hold", "camera", deadline_ns=3),
    )
    bench.arrive(0, "camera")
    for at_ns in range(0, 1000, 5):
        bench.arrive(at_ns, "lidar", buffer=-1000 - at_ns)
    assert bench.outcomes() == [(199, "aborted", "deadline")]
    (queue,) = bench.kernel._devices.values()
    assert len(queue.ready) < 100
    assert all(len(heap) < 100 for heap in queue._urgent.values())


# Weakly-hard windows


def test_more_than_m_misses_in_k_jobs_in_a_row_is_a_violation():
    bench = Bench(stage("see", "lidar", on_miss="skip_next", misses_max=1, window_jobs=3))
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")  # skipped: the first miss
    assert bench.records(WindowRecord) == []
    bench.arrive(2, "lidar")
    assert bench.records(WindowRecord) == [WindowRecord("see", 2, (1, 2), 1, 3)]


def test_misses_further_apart_than_the_window_are_none():
    bench = Bench(stage("see", "lidar", on_miss="skip_next", misses_max=1, window_jobs=2))
    for job in range(0, 6, 2):
        bench.arrive(10 * job, "lidar")
        bench.arrive(10 * job + 1, "lidar")  # every other one is skipped
        bench.complete(10 * job + 2, job)
    assert bench.all_records(WindowRecord) == []


def test_a_miss_that_is_known_late_is_judged_in_its_own_place():
    bench = Bench(
        stage("see", "lidar", deadline_ns=5, on_miss="skip_next", misses_max=1, window_jobs=2)
    )
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")  # job 1 is skipped first
    bench.at(5)  # then job 0 is known to be late
    assert bench.records(WindowRecord) == [WindowRecord("see", 5, (0, 1), 1, 2)]


def test_misses_that_no_window_can_reach_are_forgotten():
    bench = Bench(stage("see", "lidar", on_miss="skip_next", misses_max=2, window_jobs=3))
    for job in range(0, 40, 2):
        bench.arrive(10 * job, "lidar")
        bench.arrive(10 * job + 1, "lidar")
        bench.complete(10 * job + 2, job)
    (window,) = bench.kernel._lifecycle._windows.values()
    assert len(window._misses) <= 3


# Criticality


def contest(**keys):
    """A QM job that is due first, and a vital one; the device has one slot or as given."""
    vital = {"wcet_ns": 5, "deadline_ns": 20, "criticality": Criticality.ASIL_D}
    plain = {"wcet_ns": 10, "deadline_ns": 12}
    return Bench(stage("vital", "a", **(vital | keys)), stage("plain", "a", **plain))


def test_on_the_last_slot_a_job_that_would_endanger_a_more_critical_one_gives_way():
    bench = contest(deadline_ns=14)  # latest start 9, and the plain one ends at 10
    bench.arrive(0, "a")
    assert bench.dispatched() == ["vital"]


def test_a_less_critical_job_that_endangers_nobody_goes_as_the_policy_says():
    bench = contest(deadline_ns=15)  # latest start 10, when the plain one ends
    bench.arrive(0, "a")
    assert bench.dispatched() == ["plain"]


def test_a_displaced_job_is_shed_when_its_own_latest_start_has_passed():
    bench = contest(deadline_ns=14)
    bench.arrive(0, "a")
    assert bench.kernel.next_wakeup_ns == 3
    bench.at(3)  # latest start 2
    assert bench.outcomes() == [(1, "shed", "overload")]


def test_a_displaced_job_whose_turn_comes_in_time_runs():
    bench = contest(deadline_ns=14)
    bench.arrive(0, "a")
    bench.complete(2, 0)
    assert bench.dispatched() == ["plain"]
    bench.at(3)
    assert bench.outcomes() == []


def test_a_job_is_displaced_once_however_often_it_gives_way():
    bench = Bench(
        stage("vital", "a", wcet_ns=5, deadline_ns=14, criticality=Criticality.ASIL_D),
        stage("grave", "a", wcet_ns=5, deadline_ns=15, criticality=Criticality.ASIL_C),
        stage("plain", "a", wcet_ns=10, deadline_ns=13),
    )
    bench.arrive(0, "a")
    assert bench.dispatched() == ["vital"]
    bench.complete(1, 0)
    assert bench.dispatched() == ["grave"]
    bench.at(4)
    assert bench.outcomes() == [(2, "shed", "overload")]


def test_with_more_than_one_free_slot_the_policy_decides():
    bench = Bench(
        stage("vital", "a", wcet_ns=5, deadline_ns=14, criticality=Criticality.ASIL_D),
        stage("plain", "a", wcet_ns=10, deadline_ns=12),
        devices=TWO_SLOTS,
    )
    bench.arrive(0, "a")
    assert bench.dispatched() == ["plain", "vital"]


def test_a_job_that_went_before_the_policy_s_choice_is_not_preempted():
    bench = Bench(
        stage("vital", "a", wcet_ns=5, deadline_ns=14, criticality=Criticality.ASIL_D),
        stage("plain", "a", wcet_ns=10, deadline_ns=12),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "a")
    assert bench.dispatched() == ["vital"]
    assert bench.commands(Preempt) == []
    bench.arrive(1, "a")
    assert bench.commands(Preempt) == []


def test_a_preempted_job_that_gives_way_is_not_shed():
    bench = Bench(
        stage("plain", "a", wcet_ns=9, deadline_ns=13),
        stage("quick", "b", wcet_ns=1, deadline_ns=5),
        stage("vital", "c", wcet_ns=5, deadline_ns=12, criticality=Criticality.ASIL_D),
        devices=PREEMPTIVE,
    )
    bench.arrive(0, "a")
    bench.arrive(1, "b")
    assert bench.commands(Preempt) == [Preempt(0)]
    bench.arrive(2, "c", Completed(1, 1, 2))  # due 14; latest start 9, and 2 + 9 is later
    assert bench.dispatched() == ["vital"]
    bench.at(12)
    assert [o for o in bench.outcomes() if "shed" in o] == []


# Sampled inputs decide at dispatch whether a job runs at all


def test_a_more_critical_job_that_cannot_run_leaves_the_slot_to_the_other():
    bench = Bench(
        stage(
            "vital",
            "a",
            sampled("map"),
            wcet_ns=5,
            deadline_ns=14,
            criticality=Criticality.ASIL_D,
        ),
        stage("plain", "a", wcet_ns=10, deadline_ns=12),
    )
    bench.arrive(0, "a")
    assert bench.outcomes() == [(0, "skipped", "input_missing")]
    assert bench.dispatched() == ["plain"]
