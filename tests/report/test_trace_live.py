"""The trace of a run in real time: what devices worked within each job, and what the host gave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from live_records import MS, calls, make_spec, write_live_record
from traces import read_trace

from avrt.model.commands import Record
from avrt.report.trace.trace import trace
from avrt.report.trace.writing import Watched, write_trace


def watched(change=lambda record: record, **keys):
    """Return the calls of the live run, its job records changed."""
    return [
        Watched(
            at_ns,
            events,
            [
                Record(change(c.record))
                if isinstance(c, Record) and hasattr(c.record, "device_ns")
                else c
                for c in commands
            ],
        )
        for at_ns, events, commands in calls(**keys)
    ]


def test_what_a_device_worked_lies_within_its_job():
    found = read_trace(trace(make_spec(), watched()))
    assert len(found.jobs) == 3
    works = found.of("device")
    assert [(work.start_ns, work.end_ns) for work in works] == [
        (103 * MS, 120 * MS), (205 * MS, 290 * MS), (295 * MS, 305 * MS),
    ]  # fmt: skip
    for work in works:
        job = found.jobs[work.args["job"]]
        assert work.track == job.track
        assert work.args["handing_over_ns"] == work.start_ns - job.start_ns
        assert work.args["reporting_ns"] == job.end_ns - work.end_ns


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(record, device_start_ns=None),
        lambda record: replace(record, device_ns=record.device_start_ns),
        lambda record: replace(record, device_start_ns=record.start_ns - 1),
        lambda record: replace(record, device_ns=record.end_ns + 1),
    ],
    ids=["no begin", "no time", "too early", "too late"],
)
def test_what_cannot_nest_is_told_by_the_job_alone(change):
    found = read_trace(trace(make_spec(), watched(change)))
    assert found.of("device") == []
    assert all("device_ns" in job.args for job in found.jobs.values())


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0), (0, 0)])
def test_work_that_begins_or_ends_with_its_job_nests(before, after):
    def change(record):
        began_ns, done_ns = record.device_start_ns, record.device_ns
        return replace(
            record,
            device_start_ns=began_ns if before else record.start_ns,
            device_ns=done_ns if after else record.end_ns,
        )

    found = read_trace(trace(make_spec(), watched(change)))
    assert len(found.of("device")) == 3


def test_a_run_whose_devices_have_no_clocks_has_no_work():
    found = read_trace(trace(make_spec(), watched(clocked=False)))
    assert len(found.jobs) == 3
    assert found.of("device") == []
    assert "host" not in found.tracks.values()


def test_the_host_is_counters(tmp_path):
    record, path = tmp_path / "run.mcap", tmp_path / "run.pftrace"
    write_trace(write_live_record(record), path)
    found = read_trace(path.read_bytes())
    assert found.counts["host/process cores"] == [
        (0, 1.25), (150 * MS, 1.5), (250 * MS, 1.25),
    ]  # fmt: skip
    assert found.counts["host/others cores"] == [(ns * MS, 0.5) for ns in (0, 150, 250)]
    assert "host/stolen cores" not in found.tracks.values()
    assert found.counts["host/process memory"] == [(ns * MS, 300 << 20) for ns in (150, 250, 350)]


def test_the_same_record_gives_the_same_bytes(tmp_path):
    record = write_live_record(tmp_path / "run.mcap")
    for name in ("a", "b"):
        write_trace(record, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
