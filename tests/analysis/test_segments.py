"""Stages of several segments: what may be said of them, and of what shares a device with them."""

from __future__ import annotations

from builder import device, timer
from test_findings import pipeline

from avrt.analysis.schedulability import analyse
from avrt.drivers.simulate import simulate
from avrt.model.spec import SegmentSpec

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
