"""Stages of several segments: what may be said of them, and of what shares a device with them."""

from __future__ import annotations

from dataclasses import replace

from builder import device, stage, timer
from test_findings import pipeline

from avrt.analysis.schedulability import analyse
from avrt.analysis.sensitivity import sensitivity, with_optimal_priorities, with_wcet
from avrt.drivers.simulate import simulate
from avrt.model.spec import ChainSpec, Criticality, SegmentSpec

PARTS = (device(preemptive=True), device("gpu"))


def parted(name, period_ns, *parts, **keys):
    """A timer stage of `(device, wcet)` or `(device, wcet, "spin")`."""
    segments = tuple(
        SegmentSpec(device=where, wcet_ns=wcet_ns, **({"wait": wait[0]} if wait else {}))
        for where, wcet_ns, *wait in parts
    )
    whole_ns = sum(segment.wcet_ns for segment in segments)
    first = segments[0].device
    return timer(name, period_ns, device=first, segments=segments, **({"wcet_ns": whole_ns} | keys))


def with_gpu(**keys):
    return pipeline(
        parted("a", 10, ("cpu", 1), ("gpu", 4), ("cpu", 1), deadline_ns=10),
        parted("b", 20, ("cpu", 2), ("gpu", 6), ("cpu", 1), deadline_ns=20),
        timer("c", 40, device="gpu", wcet_ns=3, deadline_ns=40, offset_ns=2),
        **({"devices": PARTS, "policy": "dm"} | keys),
    )


def test_work_on_another_device_is_no_load_of_the_first():
    """It was: 1.05 of one slot, known to miss, and never late in any run."""
    findings = analyse(with_gpu())
    assert findings.verdict != "misses"
    assert [float(d.utilisation) for d in findings.devices] == [0.35, 0.775]


def test_what_shares_a_device_with_a_segment_waits_for_it():
    """It was: exactly its wcet, nothing it can wait for."""
    spec = with_gpu()
    response = analyse(spec).stage("c").response
    worst_ns = max(job.response_ns for job in simulate(spec, until_ns=400).jobs_of("c"))
    assert worst_ns > 3
    assert response.ns is None or response.ns >= worst_ns


def pair(*wait, **keys):
    return pipeline(
        parted("a", 40, ("cpu", 1), ("gpu", 4, *wait), ("cpu", 1), deadline_ns=30),
        parted("b", 80, ("cpu", 2), ("gpu", 6, *wait), ("cpu", 1), deadline_ns=60),
        **({"devices": PARTS, "policy": "dm"} | keys),
    )


def told(spec, name):
    finding = analyse(spec).stage(name)
    return finding.response.ns, finding.response.label, finding.verdict


def test_each_segment_is_blocked_on_its_own_device_and_all_add_up():
    """1, then 4 behind all but the first ns of the other's 6, then 1."""
    assert told(pair(), "a") == (1 + (5 + 4) + 1, "bound", "meets")


def test_who_spins_keeps_its_slot_from_others():
    def beside(*wait):
        first = parted("a", 40, ("cpu", 2), ("gpu", 6, *wait))
        lower = timer("c", 90, deadline_ns=80)
        return told(pipeline(first, lower, devices=PARTS, policy="dm"), "c")

    free, kept = beside(), beside("spin")
    assert free[0] == 2 + 2
    assert kept[0] == 2 + (2 + 6)


def test_alone_a_job_takes_the_sum_of_its_segments_exactly():
    for wait in ((), ("spin",)):
        spec = pipeline(parted("a", 40, ("cpu", 2), ("gpu", 6, *wait)), devices=PARTS)
        assert told(spec, "a") == (8, "exact", "meets")
    less = pipeline(parted("a", 40, ("cpu", 2), ("gpu", 6), wcet_ns=7), devices=PARTS)
    assert told(less, "a")[:2] == (8, "bound")


def test_jobs_that_overlap_wait_for_each_other_though_no_device_is_full():
    """12 ns of every 10, six on each device: each job begins 2 ns later than the one before."""
    spec = pipeline(parted("a", 10, ("cpu", 6), ("gpu", 6), deadline_ns=30), devices=PARTS)
    assert told(spec, "a") == (None, "unknown", "unknown")
    ended = [job.response_ns for job in simulate(spec, until_ns=60).jobs_of("a")]
    assert ended == [12, 14, 16, 18, 20, 22]


def test_nothing_is_said_where_a_job_may_not_be_done_before_the_next():
    """11 ns of every 10; what shares a device with it is unknown too."""
    spec = with_gpu()
    assert [told(spec, name)[1] for name in "abc"] == ["unknown"] * 3


def test_a_segment_that_may_be_pushed_aside_may_be_shed():
    graded = replace(pair(), stages=(
        replace(pair().stages[0], criticality=Criticality.ASIL_D, deadline_ns=14),
        pair().stages[1],
    ))  # fmt: skip
    finding = analyse(graded).stage("b")
    assert finding.verdict == "unknown"
    assert "give way" in finding.why


def test_a_chain_through_segments_waits_for_the_last_of_them():
    first = stage("a", "s", device="cpu", wcet_ns=8, deadline_ns=30, segments=(
        SegmentSpec(device="cpu", wcet_ns=2), SegmentSpec(device="gpu", wcet_ns=6)))  # fmt: skip
    chain = ChainSpec(name="c", path=("s", "a", "b"), age_ns=500)
    spec = pipeline(first, stage("b", "a", wcet_ns=3), devices=PARTS, chains=(chain,))
    assert analyse(spec).chains[0].latency.ns == 100 + 8 + 3


def test_all_segments_grow_with_the_wcet():
    room = sensitivity(pair())
    assert room.wcet_ns["a"] > 6
    grown = with_wcet(pair(), "a", 12)
    assert [part.wcet_ns for part in grown.stages[0].segments] == [2, 8, 2]
    assert with_optimal_priorities(pair()) is None
