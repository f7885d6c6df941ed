"""Bugs that were found in the kernel, each as the smallest example that showed it."""

import pytest
from builder import Bench, device, sampled, stage, timer

from avrt.errors import KernelError
from avrt.model.commands import Preempt, Resume, Vote
from avrt.model.events import (
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Failed,
    Hung,
    ModeRequested,
    Read,
    StreamLost,
    Voted,
)
from avrt.model.records import (
    ChainBroken,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
)
from avrt.model.spec import ChainSpec, Criticality, RedundancySpec, SyncSpec


def test_two_devices_may_fall_back_on_each_other():
    devices = (device("a", fallback="b"), device("b", fallback="a"))
    bench = Bench(timer("beat", device="a"), devices=devices)
    assert bench.at(0, DeviceLost("a"), DeviceLost("b")) != []
    assert bench.dispatched() == []
    bench.at(100, DeviceBack("b"))
    assert bench.dispatch().device == "b"


def test_a_result_that_is_reported_after_its_abort_was_due_is_not_published():
    bench = Bench(stage("see", "lidar", on_miss="abort", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.complete(7, 0)  # nobody woke the kernel at 5
    assert bench.outcomes() == [(0, "aborted", "deadline")]
    assert bench.published() == []
    assert bench.reclaimed() == [-100, 0]


def test_a_preempted_job_on_the_fallback_device_is_resumed_when_its_own_device_is_back():
    devices = (device("a", fallback="b"), device("b", preemptive=True))
    bench = Bench(
        stage("long", "lidar", device="a", deadline_ns=50),
        stage("short", "camera", device="b", deadline_ns=5),
        devices=devices,
    )
    bench.at(0, DeviceLost("a"))
    bench.arrive(1, "lidar")
    bench.arrive(2, "camera")
    assert bench.commands(Preempt) == [Preempt(0)]
    bench.at(3, DeviceBack("a"))
    bench.complete(4, 1)
    assert bench.commands(Resume) == [Resume(0)]


def test_a_device_that_is_lost_takes_the_job_that_fell_back_on_it():
    devices = (device("a", fallback="b"), device("b"))
    bench = Bench(stage("see", "lidar", device="a"), devices=devices)
    bench.at(0, DeviceLost("a"))
    bench.arrive(1, "lidar")
    bench.at(2, DeviceBack("a"))
    bench.at(3, DeviceLost("b"))
    assert bench.outcomes() == [(0, "aborted", "lost")]
    assert bench.kernel.working_jobs == ()


def test_a_lost_stream_does_not_revive_because_another_device_is_lost_or_back():
    bench = Bench(stage("see", "lidar", device="a"), devices=(device("a"), device("b")))
    bench.at(0, StreamLost("see"))
    bench.at(1, DeviceLost("b"))
    bench.arrive(2, "lidar")
    assert bench.outcomes() == [(0, "aborted", "lost")]
    bench.at(3, DeviceBack("b"))
    bench.arrive(4, "lidar")
    assert bench.outcomes() == [(1, "aborted", "lost")]


def test_the_earliest_open_set_is_judged_by_what_has_joined_it():
    sync = SyncSpec(tolerance_ns=10, timeout_ns=1000)
    bench = Bench(stage("fuse", "a", "b", "c", sync=sync))
    for capture_ns, source in ((100, "a"), (100, "b"), (104, "a"), (99, "b")):
        bench.arrive(0, source, capture_ns=capture_ns, buffer=capture_ns * 10 + ord(source) % 7)
    bench.arrive(1, "c", capture_ns=100)  # both sets lack it; the second begins at 99
    (first, second, _) = bench.dispatch().inputs
    assert (first // 10, second // 10) == (104, 99)


def test_what_a_preempted_job_has_received_is_not_forgotten_when_a_less_critical_one_asks():
    bench = Bench(
        stage("vital", "a", wcet_ns=10, deadline_ns=40, criticality=Criticality.ASIL_D),
        stage("short", "b", wcet_ns=5, deadline_ns=29),
        stage("plain", "b", wcet_ns=25, deadline_ns=30),
        devices=(device(preemptive=True),),
    )
    bench.arrive(0, "a")  # latest start 30
    bench.arrive(9, "b")  # with 9 of 10 received it is 39
    assert bench.commands(Preempt) == [Preempt(0)]
    bench.complete(14, 1)
    assert bench.dispatched() == ["plain"]  # it ends at 39, which endangers nobody


def test_moving_time_does_not_evaluate_least_laxity_anew():
    bench = Bench(
        stage("long", "lidar", wcet_ns=10, deadline_ns=30),
        stage("short", "camera", wcet_ns=2, deadline_ns=26),
        policy="llf",
        devices=(device(preemptive=True),),
    )
    bench.arrive(0, "lidar")
    bench.arrive(3, "camera")
    assert bench.at(9) == []


def test_a_job_behind_its_predecessor_waits_for_what_is_ordered_before_it():
    bench = Bench(stage("hold", "a", deadline_ns=9, wcet_ns=20), stage("see", "b", deadline_ns=10))
    bench.arrive(0, "a")
    bench.arrive(1, "b")
    bench.arrive(2, "b")  # never first in its queue before it is due
    bench.at(12)
    kinds = {(m.job, i.kind) for m in bench.records(MissRecord) for i in m.intervals}
    assert kinds == {(0, "running"), (1, "waiting"), (2, "waiting")}


def test_history_is_kept_for_jobs_that_wait_behind_the_one_that_ends():
    bench = Bench(stage("short", "tick"), stage("see", "lidar", deadline_ns=1000))
    bench.arrive(0, "tick", bench.arrival(0, "lidar"), bench.arrival(0, "lidar"))
    running = bench.dispatch().job
    for at_ns in range(1, 100):
        bench.arrive(at_ns, "tick", Completed(running, running, at_ns))
        running = bench.dispatch().job
    bench.complete(100, running)
    bench.complete(101, bench.dispatch().job)
    bench.at(1000)
    (miss,) = bench.records(MissRecord)
    shares = [(i.kind, i.by, i.end_ns - i.start_ns) for i in miss.intervals]
    assert sum(share[2] for share in shares if share[:2] == ("waiting", "short")) == 100
    assert shares[-2:] == [("waiting", "see", 1), ("running", "see", 899)]


def test_a_vote_and_an_arrival_with_a_negative_handle_may_come_together():
    bench = Bench(stage("see", "lidar", redundancy=RedundancySpec(copies=2)))
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    bench.complete(4, 1)
    assert bench.commands(Vote) == [Vote(0, "see", 0, 2, (0, 1), "over")]
    bench.arrive(5, "lidar", Voted(0, "majority", 1), buffer=-1)
    assert bench.published() == [1]


@pytest.mark.parametrize(
    "event", [Read(-100), StreamLost("beat"), DeviceLost("cpu"), Drain()], ids=type
)
def test_an_event_that_can_come_once_is_refused_twice_in_one_instant(event):
    bench = Bench(timer("beat"), stage("see", "lidar"), recorded=["lidar"])
    bench.arrive(1, "lidar")
    with pytest.raises(KernelError, match="twice"):
        bench.at(2, event, event)
    bench.at(2, event)


def test_a_stream_that_hangs_and_is_lost_in_one_instant_is_lost_once():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.at(1, StreamLost("see"), Hung(0))
    assert [r.state for r in bench.records(ResourceRecord)] == ["lost"]
    assert bench.outcomes() == [(0, "aborted", "hang")]


def test_losses_of_one_instant_are_taken_in_by_kind_and_name_not_as_they_come():
    def lost(*events):
        bench = Bench(
            stage("see", "lidar", device="a"),
            stage("look", "lidar", device="a"),
            devices=(device("a", fallback="b"), device("b")),
        )
        bench.at(0, DeviceLost("b"))
        bench.arrive(1, "lidar")
        return bench.at(2, *events)

    events = (DeviceLost("a"), DeviceBack("b"), StreamLost("look"), StreamLost("see"))
    assert lost(*events) == lost(*reversed(events))


def test_mode_requests_of_one_instant_are_taken_in_by_cause():
    bench = Bench(timer("beat"))
    bench.at(1, ModeRequested("nominal", "smoke"), ModeRequested("nominal", "heat"))
    assert [r.cause for r in bench.records(ModeRecord)] == ["heat", "smoke"]


def test_messages_with_one_sequence_number_are_taken_in_by_handle():
    bench = Bench(stage("see", "lidar"))
    bench.sequences["lidar"] = 0
    first = bench.arrival(0, "lidar", buffer=8)
    bench.sequences["lidar"] = 0
    second = bench.arrival(0, "lidar", buffer=7)
    bench.at(0, first, second)
    assert bench.dispatch().inputs == (7,)


def test_a_budget_overrun_that_nobody_woke_the_kernel_for_is_still_told():
    bench = Bench(stage("see", "lidar", budget_ns=3))
    bench.arrive(0, "lidar")
    bench.complete(5, 0)
    assert [r.budget_ns for r in bench.records(OverrunRecord)] == [3]
    assert bench.outcomes() == [(0, "met")]


def test_a_budget_overrun_that_nobody_woke_the_kernel_for_still_aborts():
    bench = Bench(stage("see", "lidar", budget_ns=3, on_overrun="abort"))
    bench.arrive(0, "lidar")
    bench.complete(5, 0)
    assert bench.outcomes() == [(0, "aborted", "budget")]
    assert bench.published() == []


@pytest.mark.parametrize("event", [Failed(0, "SoftwareFault"), StreamLost("see")], ids=type)
def test_a_due_time_that_passed_unseen_before_a_fault_is_still_a_miss(event):
    bench = Bench(stage("see", "lidar", deadline_ns=5))
    bench.arrive(0, "lidar")
    bench.at(7, event)
    assert [(r.due_ns, r.at_ns) for r in bench.records(MissRecord)] == [(5, 7)]


def test_a_promise_that_is_broken_when_a_late_message_arrives_is_told_at_once():
    chain = ChainSpec(name="c", path=("lidar", "see"), reaction_ns=5)
    bench = Bench(
        timer("beat", inputs=(sampled("lidar"),)), stage("see", "camera", "lidar"), chains=[chain]
    )
    bench.at(0)
    bench.arrive(20, "lidar", capture_ns=1)
    assert [r.capture_ns for r in bench.records(ChainBroken)] == [1]
    assert bench.kernel.next_wakeup_ns > 20


@pytest.mark.parametrize("read", [False, True])
def test_asking_for_the_next_wakeup_while_draining_forgets_no_promise(read):
    chain = ChainSpec(name="c", path=("beat", "act"), age_ns=50)
    bench = Bench(
        timer("beat", 10, deadline_ns=1000),
        stage("act", "beat", deadline_ns=2000),
        stage("hold", "lidar", deadline_ns=5),
        chains=[chain],
    )
    bench.at(0)
    bench.complete(2, 0)
    bench.complete(4, 1)  # published; what it rests on is 50 old at 50
    bench.arrive(9, "lidar")
    bench.at(10)  # another beat waits for the slot
    bench.at(14)
    bench.at(15, Drain())
    if read:
        assert bench.kernel.next_wakeup_ns is not None
    bench.complete(20, 2)  # the waiting beat reads: something newer is on its way
    bench.at(60)
    assert [r.capture_ns for r in bench.all_records(ChainBroken)] == [0]


def test_outputs_that_are_due_at_one_time_are_published_in_the_order_of_their_jobs():
    """The second, done at that very time, went first; the older output was then the latest."""
    bench = Bench(stage("act", "lidar", wcet_ns=2, deadline_ns=4, publish="at_deadline"))
    bench.arrive(0, "lidar", capture_ns=-10)
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    assert bench.published() == []
    bench.complete(4, 1)
    assert bench.published() == [0, 1]
