"""Derived figures of a job are computed, never stored."""

from __future__ import annotations

from dataclasses import replace

from avrt.model.records import JobRecord

JOB = JobRecord(
    job=1,
    activation=1,
    task="a",
    stage="a",
    index=0,
    release_ns=100,
    arrival_ns=100,
    due_ns=150,
    start_ns=110,
    end_ns=160,
    outcome="late",
    reason="",
    executed_ns=50,
    device_start_ns=111,
    device_ns=149,
    absent=(),
)


def test_response_lateness_and_tardiness():
    assert (JOB.response_ns, JOB.lateness_ns, JOB.tardiness_ns) == (60, 10, 10)
    early = replace(JOB, end_ns=120, outcome="met")
    assert (early.lateness_ns, early.tardiness_ns) == (-30, 0)


def test_a_job_done_in_time_by_the_device_is_only_reported_late():
    assert JOB.reported_late
    assert not replace(JOB, device_ns=151).reported_late
    assert not replace(JOB, device_ns=None).reported_late
    assert not replace(JOB, outcome="met").reported_late
