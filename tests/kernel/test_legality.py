"""Every event that may not come now is refused with its reason, and changes nothing."""

import pytest
from builder import Bench, device, stage, timer

from avrt.errors import KernelError
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Failed,
    Hung,
    ModeRequested,
    Ordered,
    Read,
    SegmentEnded,
    Started,
    StreamBack,
    StreamLost,
    Voted,
)
from avrt.model.spec import RedundancySpec

RUNNING, PREEMPTED, ENDED, WAITING = 1, 0, 2, 5


def busy():
    """A kernel at 20 ns with a job of each kind, an open vote on activation 3, a lost device.

    Job 0 is preempted by job 1; job 2 has ended; jobs 3 and 4 wait for their vote; job 5 waits.
    """
    bench = Bench(
        stage("slow", "a", deadline_ns=500),
        stage("quick", "b", deadline_ns=50),
        stage("done", "c", device="other", deadline_ns=500),
        stage("twins", "c", device="other", deadline_ns=500, redundancy=RedundancySpec(copies=2)),
        timer("gone", 1000, offset_ns=900, device="lost"),
        devices=(device(preemptive=True), device("other", slots=3), device("lost")),
        recorded=["a", "done"],
    )
    bench.arrive(0, "a")
    bench.arrive(1, "b")
    bench.arrive(2, "c")
    bench.complete(3, 2, 3, 4)
    bench.arrive(4, "b")
    bench.at(5, DeviceLost("lost"))
    return bench


@pytest.fixture
def bench():
    return busy()


ILLEGAL = [
    (Completed(ENDED, 70, 5), "this job is not on a stream"),
    (Completed(WAITING, 70, 5), "this job is not on a stream"),
    (Completed(99, 70, 5), "this job is not on a stream"),
    (Completed(PREEMPTED, 70, 5), "this job is preempted"),
    (Completed(RUNNING, 3, 5), "this buffer is live"),
    (Completed(RUNNING, -100, 5), "this buffer is live"),
    (Failed(ENDED, "DataFault"), "this job is not on a stream"),
    (Failed(PREEMPTED, "DataFault"), "this job is preempted"),
    (Hung(WAITING), "this job is not on a stream"),
    (Hung(PREEMPTED), "this job is preempted"),
    (Started(ENDED, 5), "this job is not on a stream"),
    (SegmentEnded(RUNNING), "no other segment follows"),
    (Voted(0, "majority", None), "no vote is open on this activation"),
    (Voted(3, "majority", 2), "this buffer is live"),
    (Voted(3, "hold", 70, held=True), "there is no accepted output to hold"),
    (Voted(3, "majority", 3, blamed=(2,)), "no such replica"),
    (Read(3), "no outside reader holds this buffer"),
    (Read(99), "no outside reader holds this buffer"),
    (Arrived("nobody", 0, 5, 5, 70), "no such source"),
    (Arrived("a", 9, 5, 5, -100), "this buffer is live"),
    (StreamLost("nobody"), "no such stream"),
    (StreamLost("gone"), "lost already"),
    (DeviceLost("nowhere"), "no such device"),
    (DeviceLost("lost"), "lost already"),
    (DeviceBack("cpu"), "not lost"),
    (DeviceBack("nowhere"), "no such device"),
    (StreamBack("nobody"), "no such stream"),
    (ModeRequested("heaven", "smoke"), "no such mode"),
]
LEGAL = [
    Completed(RUNNING, 70, 5),
    Failed(RUNNING, "DataFault"),
    Hung(RUNNING),
    Started(RUNNING, 5),
    Started(PREEMPTED, 5),
    Voted(3, "majority", 3),
    Voted(3, "no_majority", None),
    Voted(3, "merged", 70, blamed=(1,)),
    Read(-100),
    Read(2),
    Arrived("a", 1, 5, 5, 70),
    StreamLost("slow"),
    StreamLost("quick"),
    DeviceLost("cpu"),
    DeviceBack("lost"),
    StreamBack("gone"),
    StreamBack("quick"),
    ModeRequested("nominal", "smoke"),
    Ordered("stop"),
    Drain(),
]


def tail(bench):
    """What the kernel says to a fixed continuation."""
    bench.complete(30, RUNNING)
    bench.at(31, Voted(3, "majority", 4), Read(-100), Read(2))
    bench.complete(32, WAITING)
    bench.complete(33, PREEMPTED)
    bench.at(2000)
    return bench.all


@pytest.mark.parametrize(("event", "reason"), ILLEGAL, ids=lambda value: str(value)[:40])
def test_an_illegal_event_is_refused_with_its_reason_and_changes_nothing(bench, event, reason):
    with pytest.raises(KernelError, match=reason):
        bench.at(20, event)
    with pytest.raises(KernelError, match=reason):
        bench.at(20, Completed(RUNNING, 71, 20), event, Drain())
    assert bench.kernel.now_ns == 5
    assert tail(bench) == tail(busy())


@pytest.mark.parametrize("event", LEGAL, ids=str)
def test_a_legal_event_is_taken(bench, event):
    bench.at(20, event)
    assert bench.kernel.now_ns == 20


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Completed(RUNNING, 70, 20), Completed(RUNNING, 71, 20)),
        (Completed(RUNNING, 70, 20), Failed(RUNNING, "DataFault")),
        (Completed(RUNNING, 70, 20), Hung(RUNNING)),
        (Completed(RUNNING, 70, 20), Arrived("a", 1, 20, 20, 70)),
        (Arrived("a", 1, 20, 20, 70), Arrived("b", 2, 20, 20, 70)),
        (Voted(3, "majority", 3), Voted(3, "majority", 4)),
    ],
    ids=str,
)
def test_two_events_of_one_instant_cannot_end_one_job_make_one_buffer_or_decide_one_vote(
    bench, first, second
):
    for events in ((first, second), (second, first)):
        with pytest.raises(KernelError, match="twice"):
            bench.at(20, *events)
    assert tail(bench) == tail(busy())


def test_nothing_arrives_after_drain_and_drain_comes_once():
    bench = Bench(stage("see", "lidar"))
    bench.at(1, Drain())
    with pytest.raises(KernelError, match="nothing arrives after Drain"):
        bench.arrive(2, "lidar")
    with pytest.raises(KernelError, match="draining already"):
        bench.at(2, Drain())


def test_a_message_may_arrive_in_the_instant_of_the_drain():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(1, "lidar", Drain())
    assert bench.dispatched() == ["see"]


def test_a_lost_stream_is_lost_once():
    bench = Bench(stage("see", "lidar"))
    bench.at(1, StreamLost("see"))
    with pytest.raises(KernelError, match="lost already"):
        bench.at(2, StreamLost("see"))


def test_a_refusal_asks_for_a_report():
    bench = Bench(stage("see", "lidar"))
    with pytest.raises(KernelError, match="bug in avrt"):
        bench.at(1, Hung(0))
