"""Jobs of several segments by example: what they hold, when they give way, how they end.

Stage `work` has a segment of 2 on `cpu`, one of 5 on `gpu`, and one of 1 on `cpu`.
"""

import pytest
from builder import Bench, device, stage

from avrt.errors import KernelError
from avrt.model.commands import Abort, Discard, Dispatch, Preempt, Resume
from avrt.model.events import (
    Completed,
    DeviceBack,
    DeviceLost,
    Failed,
    Hung,
    SegmentEnded,
    StreamLost,
)
from avrt.model.records import JobRecord, MissRecord, OverrunRecord
from avrt.model.spec import SegmentSpec

DEVICES = (device(), device("gpu"))
PREEMPTIVE_CPU = (device(preemptive=True), device("gpu"))


def segments(*parts):
    """Segments of `(device, wcet)` or `(device, wcet, "spin")`."""
    return tuple(
        SegmentSpec(device=name, wcet_ns=wcet, wait=wait[0] if wait else "suspend")
        for name, wcet, *wait in parts
    )


def work(name="work", source="lidar", wait="suspend", **keys):
    parts = segments(("cpu", 2), ("gpu", 5, wait), ("cpu", 1))
    return stage(name, source, segments=parts, wcet_ns=8, **({"deadline_ns": 30} | keys))


def bench(*stages, devices=DEVICES, **keys):
    return Bench(*stages, devices=devices, **keys)


def sent(made):
    """`(task, segment, device)` of each dispatch of the last call."""
    return [(c.task, c.segment, c.device) for c in made.last if isinstance(c, Dispatch)]


def test_segments_run_one_after_the_other_each_on_its_device():
    made = bench(work())
    made.arrive(0, "lidar")
    assert sent(made) == [("work", 0, "cpu")]
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("work", 1, "gpu")]
    made.at(7, SegmentEnded(0))
    assert sent(made) == [("work", 2, "cpu")]
    made.complete(8, 0)
    (job,) = made.records(JobRecord)
    assert (job.outcome, job.start_ns, job.end_ns, job.executed_ns) == ("met", 0, 8, 8)


def test_the_same_inputs_go_with_every_segment():
    made = bench(work())
    made.arrive(0, "lidar", buffer=-7)
    made.at(2, SegmentEnded(0))
    assert made.dispatch().inputs == (-7,)
    assert made.reclaimed() == []


def test_suspending_frees_the_slot():
    made = bench(work(), stage("other", "radar"))
    made.arrive(0, "lidar")
    made.arrive(1, "radar")
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("other", 0, "cpu"), ("work", 1, "gpu")]


def test_spinning_keeps_the_slot():
    made = bench(work(wait="spin"), stage("other", "radar"))
    made.arrive(0, "lidar")
    made.arrive(1, "radar")
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("work", 1, "gpu")]
    made.at(7, SegmentEnded(0))
    assert sent(made) == [("other", 0, "cpu")], "it is due first, and this is a point to give way"
    made.complete(9, 1)
    assert sent(made) == [("work", 2, "cpu")]


def test_several_segments_may_spin_on_the_same_slot():
    parts = segments(("cpu", 1), ("copy", 1, "spin"), ("gpu", 4, "spin"), ("copy", 1, "spin"))
    made = bench(
        stage("work", "lidar", segments=parts, wcet_ns=7),
        stage("other", "radar"),
        devices=(*DEVICES, device("copy")),
    )
    made.arrive(0, "lidar")
    made.arrive(0, "radar")
    for at_ns, name in ((1, "copy"), (2, "gpu"), (6, "copy")):
        made.at(at_ns, SegmentEnded(0))
        assert [place for *_, place in sent(made)] == [name]
    made.complete(7, 0)
    assert sent(made) == [("other", 0, "cpu")]


def test_spinning_is_no_execution_and_spends_no_budget():
    made = bench(work(wait="spin", budget_ns=8), work("rival", "radar", budget_ns=100))
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.arrive(2, "lidar")
    made.at(4, SegmentEnded(1))
    made.at(20, SegmentEnded(0))
    made.at(25, SegmentEnded(1))
    made.complete(26, 0)
    made.complete(27, 1)
    assert made.all_records(OverrunRecord) == []
    assert [(j.job, j.executed_ns) for j in made.records(JobRecord)] == [(1, 8)]


def test_a_preemptive_device_takes_the_slot_of_one_that_spins_and_gives_it_back():
    made = bench(
        work(wait="spin", priority=2),
        stage("urgent", "radar", priority=1),
        stage("idle", "imu", priority=3),
        devices=PREEMPTIVE_CPU,
        policy="fp",
    )
    made.arrive(0, "lidar")
    made.arrive(0, "imu")
    made.at(2, SegmentEnded(0))
    made.arrive(3, "radar")
    assert sent(made) == [("urgent", 0, "cpu")]
    assert made.commands(Preempt) == [], "the segment goes on; there is nothing to take off"
    made.complete(5, 2)
    assert sent(made) == [], "it spins again, before the idle one"
    assert made.commands(Resume) == []
    made.at(7, SegmentEnded(0))
    assert sent(made) == [("work", 2, "cpu")]


def test_one_that_lost_its_slot_while_spinning_waits_for_it_when_its_segment_has_ended():
    made = bench(
        work(wait="spin", priority=2),
        stage("urgent", "radar", priority=1, wcet_ns=9),
        devices=PREEMPTIVE_CPU,
        policy="fp",
    )
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    made.arrive(3, "radar")
    made.at(7, SegmentEnded(0))
    assert sent(made) == []
    made.complete(12, 1)
    assert sent(made) == [("work", 2, "cpu")]


def test_between_two_segments_on_one_device_a_job_gives_way_to_a_lower_key_only():
    parts = segments(("cpu", 2), ("cpu", 2))
    made = bench(
        stage("sooner", "radar", deadline_ns=9),
        stage("equal", "imu", deadline_ns=19),
        stage("work", "lidar", segments=parts, wcet_ns=4, deadline_ns=20),
    )
    made.arrive(0, "lidar")
    made.arrive(1, "imu")
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("work", 1, "cpu")], "both are due at 20, and it was running"
    made.complete(4, 0)
    made.arrive(4, "lidar")
    made.complete(6, 1)
    made.arrive(7, "radar")
    made.at(8, SegmentEnded(2))
    assert sent(made) == [("sooner", 0, "cpu")]
    made.complete(10, 3)
    assert sent(made) == [("work", 1, "cpu")]


def test_a_miss_while_waiting_for_a_segment_is_explained_by_who_holds_its_device():
    made = bench(work(deadline_ns=10), work("rival", "radar", deadline_ns=40))
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.arrive(3, "lidar")
    made.at(5, SegmentEnded(1))
    made.at(7, SegmentEnded(0))
    made.complete(8, 0)
    made.at(13)
    (miss,) = made.records(MissRecord)
    assert [(i.kind, i.start_ns, i.end_ns, i.by) for i in miss.intervals] == [
        ("running", 3, 5, "work"),
        ("blocking", 5, 7, "rival"),
        ("running", 7, 13, "work"),
    ]


def test_one_that_spins_blocks_others_by_its_name():
    made = bench(work(wait="spin"), stage("other", "radar", deadline_ns=4))
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    made.arrive(3, "radar")
    made.at(7)
    (miss,) = made.records(MissRecord)
    assert [(i.kind, i.start_ns, i.end_ns, i.by) for i in miss.intervals] == [
        ("blocking", 3, 7, "work")
    ]


def test_an_aborted_job_stops_where_its_segment_ends():
    made = bench(work(deadline_ns=4, on_miss="abort"), stage("other", "radar"))
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    made.at(4)
    assert made.commands(Abort) == [Abort(0)]
    made.arrive(5, "lidar")
    assert sent(made) == [], "its stream is busy until the segment ends"
    made.at(7, SegmentEnded(0))
    assert sent(made) == [("work", 0, "cpu")]
    assert made.commands(Discard) == []


def test_one_aborted_between_two_segments_is_over_at_once():
    made = bench(work(deadline_ns=4, on_miss="abort"), work("rival", "radar"))
    made.arrive(0, "radar")
    made.at(1, SegmentEnded(0))
    made.arrive(1, "lidar")
    made.at(3, SegmentEnded(1))
    made.arrive(4, "lidar")
    made.at(5)
    assert made.outcomes() == [(1, "aborted", "deadline")]
    assert sent(made) == [("work", 0, "cpu")]


@pytest.mark.parametrize(("preemptive", "then"), [(True, ["other"]), (False, [])])
def test_an_abort_frees_the_slot_of_one_that_spins_on_a_preemptive_device_only(preemptive, then):
    made = bench(
        work(wait="spin", deadline_ns=4, on_miss="abort"),
        stage("other", "radar", deadline_ns=50),
        devices=(device(preemptive=preemptive), device("gpu")),
    )
    made.arrive(0, "lidar")
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.at(4)
    assert made.dispatched() == then
    made.at(7, SegmentEnded(0))
    assert made.all_records(JobRecord)[0].outcome == "aborted"
    assert (made.dispatched() + then) == ["other"]


def test_a_budget_is_that_of_all_segments_and_an_overrun_may_abort_between_them():
    made = bench(work(budget_ns=7, on_overrun="abort"))
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    assert made.kernel.next_wakeup_ns == 7
    made.at(7, SegmentEnded(0))
    assert made.outcomes() == [(0, "aborted", "budget")]
    assert made.kernel.working_jobs == ()


@pytest.mark.parametrize("end", [Failed(0, "DataFault"), Hung(0)])
def test_a_fault_ends_the_job_and_frees_both_slots(end):
    made = bench(work(wait="spin"), work("rival", "radar", deadline_ns=50))
    made.arrive(0, "lidar")
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.at(5, end)
    assert sent(made) == [("rival", 0, "cpu")]
    made.at(7, SegmentEnded(1))
    assert sent(made) == [("rival", 1, "gpu")]


def test_a_lost_stream_frees_both_slots():
    made = bench(work(wait="spin"), work("rival", "radar", deadline_ns=50))
    made.arrive(0, "lidar")
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.at(5, StreamLost("work"))
    assert sent(made) == [("rival", 0, "cpu")]


WITH_SPARE = (device(), device("gpu", fallback="spare"), device("spare"))


def test_a_segment_goes_to_the_fallback_of_its_lost_device():
    made = bench(work(), devices=WITH_SPARE)
    made.at(0, DeviceLost("gpu"))
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("work", 1, "spare")]


def test_one_that_waits_for_a_lost_device_goes_to_its_fallback():
    made = bench(work(), work("rival", "radar"), devices=WITH_SPARE)
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.arrive(2, "lidar")
    made.at(4, SegmentEnded(1))
    made.at(5, DeviceLost("gpu"))
    assert made.outcomes() == [(0, "aborted", "lost")]
    assert sent(made) == [("work", 1, "spare")]


def test_one_that_spins_on_a_lost_device_is_lost():
    devices = (device(fallback="spare"), device("gpu"), device("spare"))
    made = bench(work(wait="spin"), devices=devices)
    made.arrive(0, "lidar")
    made.at(2, SegmentEnded(0))
    made.at(3, DeviceLost("cpu"))
    assert made.outcomes() == [(0, "aborted", "lost")]
    made.arrive(4, "lidar")
    assert sent(made) == [("work", 0, "spare")]


def test_a_segment_that_falls_back_on_the_slot_that_is_kept_takes_it():
    made = bench(work(wait="spin"), devices=(device(), device("gpu", fallback="cpu")))
    made.arrive(0, "lidar")
    made.at(1, DeviceLost("gpu"))
    made.at(2, SegmentEnded(0))
    assert sent(made) == [("work", 1, "cpu")]
    made.at(7, SegmentEnded(0))
    made.complete(8, 0)
    assert made.outcomes() == [(0, "met")]


def test_a_task_is_lost_with_a_device_that_has_no_stand_in_and_back_with_it():
    made = bench(work())
    made.at(0, DeviceLost("gpu"))
    made.arrive(1, "lidar")
    assert made.outcomes() == [(0, "aborted", "lost")]
    made.at(2, DeviceBack("gpu"))
    made.arrive(3, "lidar")
    assert sent(made) == [("work", 0, "cpu")]


def test_only_the_last_segment_completes_a_job_and_only_another_is_followed_by_one():
    made = bench(work())
    made.arrive(0, "lidar")
    with pytest.raises(KernelError, match="another segment follows"):
        made.complete(2, 0)
    made.at(2, SegmentEnded(0))
    made.at(7, SegmentEnded(0))
    with pytest.raises(KernelError, match="no other segment follows"):
        made.at(8, SegmentEnded(0))
    with pytest.raises(KernelError, match="twice"):
        made.at(8, Completed(0, 0, 8), Failed(0, "DataFault"))


def test_one_that_waits_for_its_next_segment_ends_none():
    made = bench(work(), work("rival", "radar"))
    made.arrive(0, "radar")
    made.at(2, SegmentEnded(0))
    made.arrive(2, "lidar")
    made.at(4, SegmentEnded(1))
    with pytest.raises(KernelError, match="this job is preempted"):
        made.at(5, SegmentEnded(1))
