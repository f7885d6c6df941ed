"""The kernel contract by example: inputs, sets, publications, buffers, chains, losses."""

import pytest
from builder import Bench, device, sampled, stage, timer

from avrt.model.commands import (
    Discard,
    EnterMode,
    Publish,
    Reclaim,
    Vote,
)
from avrt.model.events import (
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Hung,
    ModeRequested,
    Read,
    StreamBack,
    StreamLost,
)
from avrt.model.records import (
    ChainBroken,
    ChainRecord,
    FaultRecord,
    JobRecord,
    ModeRecord,
    ResourceRecord,
    SyncRecord,
)
from avrt.model.spec import ChainSpec, InputSpec, RedundancySpec, SyncSpec

TWINS = RedundancySpec(copies=2)
SYNC = SyncSpec(tolerance_ns=5, timeout_ns=40)
OTHERS = (device("a", fallback="b"), device("b"))


# Inputs


def test_the_trigger_binds_at_release_and_sampled_inputs_at_first_dispatch():
    bench = Bench(stage("fuse", "lidar", sampled("radar")), timer("hold", 100))
    bench.at(0)
    bench.arrive(1, "radar", buffer=-1)
    bench.arrive(2, "lidar", buffer=-2)
    bench.arrive(3, "lidar", buffer=-3)
    bench.arrive(4, "radar", buffer=-4)
    bench.complete(5, 0)
    assert bench.dispatch().inputs == (-2, -4)


@pytest.mark.parametrize("keys", [{"redundancy": TWINS}, {"publish": "at_deadline"}], ids=str)
def test_sampled_inputs_bind_at_release_of_a_redundant_or_at_deadline_stage(keys):
    bench = Bench(stage("fuse", "lidar", sampled("radar"), **keys), timer("hold", 100))
    bench.at(0)
    bench.arrive(1, "radar", buffer=-1)
    bench.arrive(2, "lidar", buffer=-2)
    bench.arrive(4, "radar", buffer=-4)
    bench.complete(5, 0)
    assert bench.dispatch().inputs == (-2, -1)


def test_a_job_whose_required_input_is_missing_is_skipped():
    bench = Bench(stage("fuse", "lidar", sampled("radar")))
    bench.arrive(0, "lidar")
    assert bench.outcomes() == [(0, "skipped", "input_missing")]


def test_a_job_whose_required_input_is_too_old_is_skipped():
    bench = Bench(stage("fuse", "lidar", sampled("radar", max_age_ns=10)))
    bench.arrive(0, "radar", capture_ns=-3)
    bench.arrive(7, "lidar")
    assert bench.dispatched() == ["fuse"]
    bench.complete(8, 0)
    bench.arrive(8, "lidar")
    assert bench.outcomes() == [(1, "skipped", "stale")]


def test_a_trigger_that_waited_too_long_is_stale_too():
    bench = Bench(
        stage("see", InputSpec(name="lidar", source="lidar", max_age_ns=5)), timer("hold")
    )
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.complete(7, 0)
    assert bench.outcomes() == [(0, "met"), (1, "skipped", "stale")]
    assert bench.reclaimed() == [0, -100]


def test_every_replica_of_an_activation_that_cannot_bind_is_skipped():
    bench = Bench(stage("fuse", "lidar", sampled("radar"), redundancy=TWINS))
    bench.arrive(0, "lidar")
    assert bench.outcomes() == [(0, "skipped", "input_missing"), (1, "skipped", "input_missing")]
    assert bench.commands(Vote) == []


def test_a_job_says_which_optional_inputs_it_ran_without():
    inputs = (sampled("radar", optional=True), sampled("map", optional=True, max_age_ns=5))
    bench = Bench(stage("fuse", "lidar", *inputs))
    bench.arrive(0, "map")
    bench.arrive(9, "lidar")
    assert bench.dispatch().inputs == (-100, None, None)
    bench.complete(10, 0)
    assert [r.absent for r in bench.records(JobRecord)] == [("radar", "map")]


def test_a_timer_stage_samples_all_its_inputs():
    bench = Bench(timer("plan", 10, offset_ns=5, inputs=(sampled("lidar"),)))
    bench.arrive(0, "lidar")
    bench.arrive(3, "lidar")
    bench.at(5)
    assert bench.dispatch().inputs == (-101,)


def test_ages_count_from_capture_and_an_output_carries_that_of_its_trigger():
    bench = Bench(
        stage("see", "lidar"),
        timer("plan", 100, offset_ns=20, inputs=(sampled("see", max_age_ns=15),)),
    )
    bench.arrive(5, "lidar", capture_ns=4)
    bench.complete(19, 0)
    bench.at(20)
    assert bench.outcomes() == [(1, "skipped", "stale")]


# Synchronised sets


def test_a_set_is_released_at_its_last_arrival():
    bench = Bench(stage("stereo", "left", "right", sync=SYNC, deadline_from="capture"))
    bench.arrive(3, "left", capture_ns=1)
    assert bench.dispatched() == []
    bench.arrive(7, "right", capture_ns=6)
    dispatch = bench.dispatch()
    assert (dispatch.release_ns, dispatch.due_ns, dispatch.inputs) == (7, 11, (-100, -200))


def test_messages_further_apart_than_the_tolerance_make_two_sets():
    bench = Bench(stage("stereo", "left", "right", sync=SYNC))
    bench.arrive(1, "left")
    bench.arrive(7, "right")
    assert bench.dispatched() == []
    bench.arrive(8, "left", capture_ns=2)
    assert bench.dispatch().inputs == (-101, -200)


def test_a_message_of_an_input_that_the_set_has_opens_another():
    bench = Bench(stage("stereo", "left", "right", sync=SYNC))
    bench.arrive(1, "left")
    bench.arrive(2, "left")
    bench.arrive(3, "right")
    assert bench.dispatch().inputs == (-100, -200)


def test_an_incomplete_set_is_released_at_earliest_capture_plus_timeout():
    bench = Bench(stage("stereo", "left", sampled("right", optional=True), sync=SYNC))
    bench.arrive(5, "left", capture_ns=2)
    assert bench.kernel.next_wakeup_ns == 42
    bench.at(42)
    assert bench.records(SyncRecord) == [SyncRecord("stereo", 42, ("right",), (2, None))]
    assert (bench.dispatch().release_ns, bench.dispatch().inputs) == (42, (-100, None))


def test_an_incomplete_set_without_a_required_input_is_skipped():
    bench = Bench(stage("stereo", "left", "right", sync=SYNC))
    bench.arrive(0, "left")
    bench.at(40)
    assert bench.outcomes() == [(0, "skipped", "input_missing")]
    assert bench.reclaimed() == [-100]


def test_a_message_that_arrives_at_the_timeout_still_joins_its_set():
    bench = Bench(stage("stereo", "left", "right", sync=SYNC))
    bench.arrive(0, "left")
    bench.arrive(40, "right", capture_ns=3)
    assert bench.records(SyncRecord) == []
    assert bench.dispatch().inputs == (-100, -200)


def test_an_earlier_capture_that_joins_a_set_brings_its_timeout_forward():
    bench = Bench(stage("stereo", "left", "right", "top", sync=SYNC))
    bench.arrive(10, "left", capture_ns=10)
    bench.arrive(11, "right", capture_ns=7)
    assert bench.kernel.next_wakeup_ns == 47
    bench.at(47)
    assert len(bench.records(SyncRecord)) == 1
    assert bench.at(50) == []


def test_a_set_whose_timeout_is_past_is_released_at_once():
    bench = Bench(stage("stereo", "left", sampled("right", optional=True), sync=SYNC))
    bench.arrive(100, "left", capture_ns=50)
    assert bench.dispatch().release_ns == 100


def test_of_more_than_eight_open_sets_the_earliest_is_released():
    bench = Bench(
        stage("stereo", "left", sampled("right", optional=True), sync=SYNC, deadline_ns=100)
    )
    for at_ns in range(8):
        bench.arrive(at_ns, "left", capture_ns=10 * at_ns)
    assert bench.all_records(SyncRecord) == []
    bench.arrive(8, "left", capture_ns=80)
    assert bench.dispatch().inputs == (-100, None)
    bench.arrive(9, "left", capture_ns=-20)  # the new one is the earliest
    bench.complete(10, 0)
    assert bench.dispatch().inputs == (-109, None)


def test_a_stale_optional_member_of_a_set_is_left_out():
    right = InputSpec(name="right", source="right", optional=True, max_age_ns=10)
    bench = Bench(stage("stereo", "left", right, sync=SYNC), timer("hold"))
    bench.at(0)
    bench.arrive(1, "right")
    bench.arrive(2, "left")
    bench.complete(12, 0)
    assert bench.dispatch().inputs == (-100, None)
    assert -200 in bench.reclaimed()


# Publications


def test_a_result_is_published_as_soon_as_it_is_there():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.complete(4, 0)
    assert bench.commands(Publish) == [Publish(0, 0, 4)]


def test_at_the_deadline_a_result_is_published_at_its_due_time():
    bench = Bench(stage("plan", "lidar", publish="at_deadline", deadline_ns=10))
    bench.arrive(0, "lidar")
    bench.complete(4, 0)
    assert bench.outcomes() == [(0, "met")]
    assert bench.published() == []
    assert bench.kernel.next_wakeup_ns == 10
    bench.at(10)
    assert bench.commands(Publish) == [Publish(0, 0, 10)]


def test_at_the_deadline_a_late_result_is_published_at_completion():
    bench = Bench(stage("plan", "lidar", publish="at_deadline", deadline_ns=10))
    bench.arrive(0, "lidar")
    bench.at(10)
    bench.complete(14, 0)
    assert bench.commands(Publish) == [Publish(0, 0, 14)]


# Buffers


def test_an_input_may_be_reused_when_the_work_that_reads_it_has_ended():
    bench = Bench(stage("see", "lidar"), stage("look", "lidar"), devices=(device(slots=2),))
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    assert bench.reclaimed() == [0]
    bench.complete(3, 1)
    assert bench.reclaimed() == [-100, 1]


def test_an_aborted_job_keeps_its_inputs_until_its_work_has_ended():
    bench = Bench(stage("see", "lidar", deadline_ns=5, on_miss="abort"))
    bench.arrive(0, "lidar")
    bench.at(5)
    assert bench.reclaimed() == []
    bench.complete(8, 0)
    assert bench.last == [Reclaim(-100), Discard(0), Reclaim(0)]


def test_replicas_share_their_inputs_until_the_last_of_them_has_ended():
    bench = Bench(stage("see", "lidar", redundancy=TWINS), devices=(device(slots=2),))
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    assert bench.reclaimed() == []
    bench.complete(3, 1)
    assert bench.reclaimed() == [-100]


def test_the_newest_message_is_kept_for_those_who_sample_it():
    bench = Bench(timer("plan", 100, offset_ns=50, inputs=(sampled("lidar"),)))
    bench.arrive(0, "lidar")
    assert bench.reclaimed() == []
    bench.arrive(1, "lidar")
    assert bench.reclaimed() == [-100]


def test_a_message_that_nobody_reads_may_be_reused_at_once():
    bench = Bench(timer("beat"), sources=["lidar"])
    bench.arrive(1, "lidar")
    assert bench.reclaimed() == [-100]


def test_the_recorder_keeps_a_buffer_until_it_has_read_it():
    bench = Bench(stage("see", "lidar"), recorded=["lidar", "see"])
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    assert bench.reclaimed() == []
    bench.at(3, Read(-100))
    assert bench.reclaimed() == [-100]
    bench.at(4, Read(0))
    assert bench.reclaimed() == [0]


def test_a_reclaimed_handle_may_be_used_again():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar", buffer=1)
    bench.at(2, Completed(0, 2, 2))
    assert bench.reclaimed() == [1, 2]
    bench.arrive(3, "lidar", buffer=1)
    assert bench.dispatch().inputs == (1,)


# Chains


def chained(**limits):
    chain = ChainSpec(name="c", path=("lidar", "see"), **limits)
    return Bench(stage("see", "lidar"), chains=[chain])


def test_reaction_age_and_path_of_a_chain():
    bench = chained()
    bench.arrive(10, "lidar", capture_ns=8)
    bench.complete(12, 0)
    assert bench.records(ChainRecord) == [ChainRecord("c", 12, 0, None, None, 4)]
    bench.arrive(20, "lidar", capture_ns=18)
    bench.complete(23, 1)
    assert bench.records(ChainRecord) == [ChainRecord("c", 23, 1, 15, 15, 5)]


def test_an_output_that_knows_nothing_new_has_no_reaction():
    chain = ChainSpec(name="c", path=("lidar", "plan"))
    bench = Bench(timer("plan", 10, inputs=(sampled("lidar"),)), chains=[chain])
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    bench.at(10)
    bench.complete(12, 1)
    assert bench.records(ChainRecord) == [ChainRecord("c", 12, 1, None, 12, 12)]


def test_a_broken_reaction_is_told_when_its_limit_passes():
    bench = chained(reaction_ns=30)
    bench.arrive(10, "lidar", capture_ns=8)
    bench.at(37)
    assert bench.records(ChainBroken) == []
    bench.at(38)
    assert bench.records(ChainBroken) == [ChainBroken("c", 38, "reaction", 30, 8)]


def test_a_publication_in_the_instant_of_the_limit_keeps_the_promise():
    bench = chained(reaction_ns=30)
    bench.arrive(10, "lidar", capture_ns=8)
    bench.complete(12, 0)
    bench.arrive(20, "lidar", capture_ns=18)
    bench.complete(38, 1)
    assert bench.records(ChainRecord)[0].reaction_ns == 30
    assert bench.records(ChainBroken) == []


def test_an_output_that_knows_too_little_breaks_the_next_promise_at_once():
    bench = chained(reaction_ns=30)
    bench.arrive(10, "lidar", capture_ns=8)
    bench.complete(38, 0)  # a change just after 8 is not known yet
    assert bench.records(ChainBroken) == [ChainBroken("c", 38, "reaction", 30, 8)]


def test_a_broken_age_is_told_when_its_limit_passes():
    bench = chained(age_ns=30)
    bench.arrive(10, "lidar", capture_ns=8)
    bench.complete(12, 0)
    bench.at(38)
    assert bench.records(ChainBroken) == [ChainBroken("c", 38, "age", 30, 8)]


def test_promises_lapse_with_the_drain():
    bench = chained(age_ns=30)
    bench.arrive(10, "lidar", capture_ns=8)
    bench.complete(12, 0)
    bench.at(20, Drain())
    assert bench.kernel.next_wakeup_ns is None
    assert bench.at(99) == []


def test_a_chain_may_begin_at_a_timer_stage_when_it_reads():
    chain = ChainSpec(name="c", path=("beat", "act"))
    bench = Bench(timer("beat", 100), stage("act", "beat"), chains=[chain])
    bench.at(3)
    bench.complete(5, 0)
    bench.complete(7, 1)
    assert bench.records(ChainRecord) == [ChainRecord("c", 7, 1, None, None, 4)]


# Losses and supervision


def test_a_hung_job_loses_its_stream():
    bench = Bench(stage("see", "lidar"), stage("look", "lidar"))
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")
    bench.at(5, Hung(0))
    assert bench.records(FaultRecord) == [FaultRecord(0, "see", 5, "hang")]
    assert bench.records(ResourceRecord) == [ResourceRecord("see", 5, "lost")]
    assert bench.outcomes() == [(0, "aborted", "hang"), (2, "aborted", "lost")]
    assert bench.dispatched() == ["look"]
    bench.arrive(6, "lidar")
    assert (4, "aborted", "lost") in bench.outcomes()


def test_a_lost_stream_takes_its_jobs_with_it():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")
    bench.at(2, StreamLost("see"))
    assert bench.outcomes() == [(0, "aborted", "lost"), (1, "aborted", "lost")]
    assert bench.reclaimed() == [-100, -101]


def test_a_lost_device_with_a_fallback_goes_on_there():
    bench = Bench(stage("see", "lidar", device="a"), devices=OTHERS)
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")
    bench.at(2, DeviceLost("a"))
    assert bench.outcomes() == [(0, "aborted", "lost")]
    assert bench.dispatch().device == "b"
    bench.at(3, DeviceBack("a"))
    bench.complete(4, 1)
    bench.arrive(5, "lidar")
    assert bench.dispatch().device == "a"


def test_a_waiting_job_moves_to_the_fallback():
    bench = Bench(
        stage("hold", "lidar", device="a"), stage("see", "lidar", device="a"), devices=OTHERS
    )
    bench.arrive(0, "lidar")
    bench.at(1, DeviceLost("a"))
    assert bench.dispatched() == ["see"]
    assert bench.dispatch().device == "b"


def test_a_lost_device_without_a_fallback_ends_its_jobs_until_it_is_back():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.at(1, DeviceLost("cpu"))
    assert bench.outcomes() == [(0, "aborted", "lost")]
    bench.arrive(2, "lidar")
    assert bench.outcomes() == [(1, "aborted", "lost")]
    bench.at(3, DeviceBack("cpu"))
    assert bench.records(ResourceRecord) == [ResourceRecord("cpu", 3, "back")]
    bench.arrive(4, "lidar")
    assert bench.dispatched() == ["see"]


def test_a_stream_lost_together_with_the_last_fallback_comes_back_with_either():
    bench = Bench(stage("see", "lidar", device="a"), devices=OTHERS)
    bench.at(0, DeviceLost("a"))
    bench.at(1, DeviceLost("b"))
    bench.arrive(2, "lidar")
    assert bench.outcomes() == [(0, "aborted", "lost")]
    bench.at(3, DeviceBack("b"))
    bench.arrive(4, "lidar")
    assert bench.dispatch().device == "b"


def test_a_stream_that_hung_works_again_once_it_is_back():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.at(1, Hung(0))
    bench.arrive(2, "lidar")
    assert bench.outcomes() == [(1, "aborted", "lost")]
    bench.at(3, StreamBack("see"))
    assert bench.records(ResourceRecord) == [ResourceRecord("see", 3, "back")]
    bench.arrive(4, "lidar")
    assert bench.dispatched() == ["see"]
    bench.at(5, StreamBack("see"))
    assert bench.last == []


def test_a_stream_whose_device_is_lost_is_not_back_before_it():
    bench = Bench(stage("see", "lidar"))
    bench.at(0, StreamLost("see"))
    bench.at(1, DeviceLost("cpu"))
    bench.at(2, StreamBack("see"))
    bench.arrive(3, "lidar")
    assert bench.outcomes() == [(0, "aborted", "lost")]
    bench.at(4, DeviceBack("cpu"))
    bench.arrive(5, "lidar")
    assert bench.dispatched() == ["see"]


def test_completions_of_an_instant_are_taken_in_before_its_losses():
    bench = Bench(stage("see", "lidar"))
    bench.arrive(0, "lidar")
    bench.at(4, DeviceLost("cpu"), StreamLost("see"), Completed(0, 0, 4))
    assert bench.outcomes() == [(0, "met")]


def test_another_mode_is_refused_while_there_is_one():
    bench = Bench(timer("beat"))
    bench.at(1, ModeRequested("nominal", "smoke"))
    assert bench.records(ModeRecord) == [ModeRecord("nominal", 1, "smoke", entered=False)]
    assert bench.commands(EnterMode) == []


def test_a_snapshot_restores_into_another_kernel_of_the_pipeline():
    bench, other = (Bench(stage("see", "lidar", redundancy=TWINS)) for _ in range(2))
    bench.arrive(0, "lidar")
    snapshot = bench.kernel.snapshot()
    tail = [bench.complete(2, 0), bench.complete(3, 1)]
    other.kernel.restore(snapshot)
    assert [other.complete(2, 0), other.complete(3, 1)] == tail
    bench.kernel.restore(snapshot)
    assert [bench.complete(2, 0), bench.complete(3, 1)] == tail


def test_what_no_reader_comes_for_any_more_breaks_no_promise():
    chain = ChainSpec(name="c", path=("radar", "fuse"), reaction_ns=30, age_ns=30)
    bench = Bench(stage("fuse", "lidar", sampled("radar", optional=True)), chains=[chain])
    bench.arrive(0, "radar")
    bench.arrive(10, "lidar")
    bench.complete(12, 0)
    bench.arrive(20, "radar")  # only another sweep would release who reads it
    bench.at(25, Drain())
    assert bench.kernel.next_wakeup_ns is None
    assert bench.records(ChainBroken) == []


def test_what_is_underway_when_the_log_ends_still_keeps_its_promise_or_breaks_it():
    chain = ChainSpec(name="c", path=("radar", "fuse"), reaction_ns=30)
    bench = Bench(stage("fuse", "lidar", sampled("radar", optional=True)), chains=[chain])
    bench.arrive(0, "radar")
    bench.arrive(10, "lidar")
    bench.complete(12, 0)
    bench.arrive(20, "radar")
    bench.arrive(22, "lidar")
    bench.at(25, Drain())
    bench.at(30)
    assert bench.records(ChainBroken) == [ChainBroken("c", 30, "reaction", 30, 0)]


def test_what_others_still_do_when_the_log_ends_breaks_no_promise_either():
    chain = ChainSpec(name="c", path=("radar", "fuse"), reaction_ns=30, age_ns=30)
    fuse = stage("fuse", "lidar", sampled("radar", optional=True))
    bench = Bench(fuse, stage("slow", "camera"), chains=[chain])
    bench.arrive(0, "radar")
    bench.arrive(10, "lidar")
    bench.complete(12, 0)
    bench.arrive(20, "radar")
    bench.arrive(21, "camera")
    bench.at(25, Drain())
    bench.at(60)
    assert bench.records(ChainBroken) == []
