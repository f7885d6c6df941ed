"""Smallest examples at the edges of the rules: found by reading the code against the contract."""

from __future__ import annotations

from builder import Bench, device, sampled, stage, timer

from avrt.drivers.simulate import simulate
from avrt.model.events import Completed, DeviceLost, Drain, Failed, Hung
from avrt.model.graph import check
from avrt.model.records import ChainBroken, ChainRecord, JobRecord, MissRecord, SyncRecord
from avrt.model.spec import (
    ChainSpec,
    Criticality,
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    StageSpec,
    SyncSpec,
)

PAIR = ("left", "right")


def pair(**keys):
    inputs = tuple(InputSpec(name=name, source=name, **keys) for name in PAIR)
    return stage("pair", *inputs, sync=SyncSpec(tolerance_ns=5, timeout_ns=10))


def test_the_ready_heap_is_bounded_by_the_tasks_even_if_one_starves():
    stages = tuple(
        StageSpec(
            name=name,
            device="cpu",
            wcet_ns=wcet,
            deadline_ns=period,
            period_ns=period,
            priority=number,
            on_miss="abort",
        )
        for number, (name, wcet, period) in enumerate((("high", 10, 10), ("low", 1, 5)))
    )
    devices = (DeviceSpec(name="cpu", type="simulated", preemptive=True),)
    spec = PipelineSpec(name="starve", policy="fp", devices=devices, stages=stages)
    check(spec)
    bench = Bench(*stages, devices=devices, policy="fp")
    job = bench.at(0) and bench.dispatch().job
    for at_ns in range(5, 5000, 5):
        done = [Completed(job, job, at_ns)] if at_ns % 10 == 0 else []
        bench.at(at_ns, *done)
        if done:
            job = bench.dispatch().job
    assert len(bench.kernel._devices["cpu"].ready) < 100


def test_a_job_that_went_first_still_gives_way_to_a_more_critical_one():
    qm = timer("qm", wcet_ns=20, deadline_ns=25, offset_ns=0)
    b = timer("b", wcet_ns=20, deadline_ns=30, criticality=Criticality.ASIL_B)
    d = timer("d", wcet_ns=5, deadline_ns=8, offset_ns=5, criticality=Criticality.ASIL_D)
    bench = Bench(qm, b, d, devices=[device("cpu", preemptive=True)])
    bench.at(0)
    assert bench.dispatched() == ["b"]  # `qm` would have endangered it
    bench.at(5)
    assert bench.dispatched() == ["d"]


def test_what_arrives_at_the_timeout_of_a_set_still_joins_it():
    bench = Bench(pair())
    bench.arrive(0, "left")
    bench.arrive(10, "right", capture_ns=3)
    assert bench.records(SyncRecord) == []
    assert bench.dispatched() == ["pair"]


def test_a_set_without_its_stale_member_carries_the_capture_of_what_is_left():
    follower = stage("after", "pair", deadline_from="capture", deadline_ns=100)
    left = InputSpec(name="left", source="left", optional=True, max_age_ns=2)
    right = InputSpec(name="right", source="right")
    joined = stage("pair", left, right, sync=SyncSpec(tolerance_ns=5, timeout_ns=10))
    bench = Bench(joined, follower)
    bench.arrive(0, "left")
    bench.arrive(4, "right")  # `left` is 4 old now
    bench.complete(6, 0)
    (dispatch,) = [c for c in bench.last if getattr(c, "task", "") == "after"]
    assert dispatch.due_ns == 104


def test_a_stream_that_hung_does_not_come_back_with_another_device():
    devices = [device("gpu", fallback="cpu"), device("cpu")]
    bench = Bench(timer("s", period_ns=10, device="gpu"), devices=devices)
    bench.at(0)
    bench.at(1, Hung(0))
    bench.at(2, DeviceLost("gpu"))
    bench.at(10)
    assert bench.dispatched() == []
    assert bench.outcomes() == [(1, "aborted", "lost")]


def test_the_time_before_a_move_is_explained_by_the_device_it_was_spent_on():
    devices = [device("a", fallback="b"), device("b")]
    x = timer("x", device="a", deadline_ns=5)
    y = timer("y", device="a", deadline_ns=10)
    bench = Bench(x, y, devices=devices)
    bench.at(0)
    bench.at(4, DeviceLost("a"))
    bench.at(10)
    (miss,) = [m for m in bench.all_records(MissRecord) if m.task == "y"]
    assert [(i.kind, i.by, i.start_ns, i.end_ns) for i in miss.intervals] == [
        ("waiting", "x", 0, 4),
        ("running", "y", 4, 10),
    ]


def chain(*path, **limits):
    return ChainSpec(name="c", path=path, **limits)


def test_a_promise_over_what_is_on_its_way_is_kept_or_broken_after_the_end():
    bench = Bench(
        stage("s", "lidar", deadline_ns=500), chains=[chain("lidar", "s", reaction_ns=20)]
    )
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    bench.arrive(10, "lidar")
    bench.at(10, Drain())
    bench.at(20)
    assert [b.promise for b in bench.records(ChainBroken)] == ["reaction"]
    bench.complete(60, 1)
    assert [r.reaction_ns for r in bench.records(ChainRecord)] == [60]


def test_nothing_is_owed_after_the_end_when_nothing_is_on_its_way():
    bench = Bench(stage("s", "lidar"), chains=[chain("lidar", "s", reaction_ns=20, age_ns=20)])
    bench.arrive(0, "lidar")
    bench.complete(2, 0)
    bench.at(3, Drain())
    assert bench.kernel.next_wakeup_ns is None
    assert bench.all_records(ChainBroken) == []


def test_a_timer_stage_owes_an_output_from_the_instant_it_reads():
    head = timer("head", period_ns=100, deadline_ns=90)
    tail = stage("tail", "head", deadline_ns=90)
    bench = Bench(head, tail, chains=[chain("head", "tail", reaction_ns=30)])
    bench.at(0)
    bench.at(5, Failed(0, "exception"))
    bench.at(30)
    assert [(b.promise, b.capture_ns) for b in bench.records(ChainBroken)] == [("reaction", 0)]


def test_a_sampled_input_may_be_the_only_thing_a_timer_stage_reads():
    beat = timer("beat", period_ns=10, inputs=(sampled("lidar", optional=True),))
    result = simulate(Bench(beat).spec, until_ns=20)
    assert [j.absent for j in result.jobs] == [("lidar",), ("lidar",)]
    assert all(isinstance(j, JobRecord) for j in result.jobs)


def test_a_stop_aborts_what_runs_what_waits_and_what_is_released_at_that_instant():
    bench = Bench(stage("s", "lidar"))
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar")
    bench.at(2, bench.arrival(2, "lidar"), Drain(at_once=True))
    assert sorted(bench.outcomes()) == [(job, "aborted", "stop") for job in (0, 1, 2)]
    assert bench.dispatched() == []
