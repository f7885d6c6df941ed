"""A trace shows every job once, where it ran, what it read, and why it was late."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from traces import read_trace
from tracing import drive

from avrt.config.pipeline import load
from avrt.logs.record.journal import parse_entry
from avrt.model.commands import Dispatch, Record
from avrt.model.records import ChainRecord, JobRecord, MissRecord
from avrt.report.trace.trace import trace
from pipelines import examples, scenarios

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    text = (GOLDEN / f"{name}.journal").read_text(encoding="ascii")
    return load(GOLDEN / f"{name}.yaml").spec, [parse_entry(line) for line in text.splitlines()]


def records(calls, kind):
    commands = [c for call in calls for c in call.commands if isinstance(c, Record)]
    return [c.record for c in commands if isinstance(c.record, kind)]


def check_jobs(found, calls):
    """Every record of a job is one slice, and what has no record is open."""
    ended = {record.job: record for record in records(calls, JobRecord)}
    for number, item in found.jobs.items():
        if number not in ended:
            assert item.args["outcome"] == "open"
            continue
        record = ended.pop(number)
        for name in ("task", "stage", "index", "release_ns", "due_ns", "outcome", "reason"):
            assert item.args[name] == getattr(record, name)
        assert item.args["response_ns"] == record.end_ns - record.release_ns
        assert item.args["lateness_ns"] == record.end_ns - record.due_ns
        assert item.args["absent"] == ", ".join(record.absent)
        assert item.start_ns == (record.start_ns if item.args["pieces"] else record.end_ns)
    assert not ended


@given(scenarios())
@examples(60)  # 5,000 with --hypothesis-profile=nightly
def test_every_job_is_there_once_and_no_slot_is_taken_twice(scenario):
    driven = drive(scenario)
    found = read_trace(trace(driven.spec, driven.calls))
    check_jobs(found, driven.calls)
    for device in driven.spec.devices:
        group = f"device {device.name} ({device.slots_told})"
        in_flight = [count for _, count in found.counts[f"{group}/jobs in flight"]]
        assert max(in_flight) <= device.slots
        assert min(count for _, count in found.counts[f"{group}/ready jobs"]) >= 0


@pytest.mark.parametrize("name", ["overload", "preemption"])
def test_a_golden_run(name):
    spec, calls = golden(name)
    data = trace(spec, calls)
    assert data == trace(spec, calls)
    found = read_trace(data)
    check_jobs(found, calls)
    assert len(found.of("miss")) == len(records(calls, MissRecord))
    assert len(found.arrows()) == sum(
        buffer is not None
        for call in calls
        for command in call.commands
        if isinstance(command, Dispatch)
        for buffer in command.inputs
    )
    for start, end in found.arrows():
        assert start.category in {"arrival", "job", "piece"}
        assert end.category == "job"
        assert start.end_ns <= end.start_ns


def test_a_preempted_job_is_one_job_of_several_pieces():
    found = read_trace(trace(*golden("preemption")))
    pieces = {number: [item] for number, item in found.jobs.items()}
    for item in found.of("piece"):
        pieces[item.args["job"]].append(item)
    several = {number: parts for number, parts in pieces.items() if len(parts) > 1}
    assert several
    for parts in several.values():
        assert [part.args["piece"] for part in parts] == list(range(len(parts)))
        assert parts[0].args["pieces"] == len(parts)
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(parts))
        executed_ns = sum(part.end_ns - part.start_ns for part in parts)
        assert executed_ns == parts[0].args["executed_ns"]


def test_a_lost_device_and_where_its_stream_ran_then():
    found = read_trace(trace(*golden("preemption")))
    assert [item.name for item in found.of("resource")] == ["main lost", "main back"]
    on_spare = [item for item in found.slices if item.track == "device spare (1 slot)/fast"]
    assert on_spare
    assert all(233_000_000 <= item.start_ns <= 400_000_000 for item in on_spare)


def test_a_miss_says_why():
    _, calls = golden("overload")
    found = read_trace(trace(*golden("overload")))
    for item, record in zip(found.of("miss"), records(calls, MissRecord), strict=True):
        why = item.args["why"]
        assert sum(part["duration_ns"] for part in why) == record.at_ns - record.release_ns
        assert [part["kind"] for part in why] == [part.kind for part in record.intervals]


def test_chains_are_counters():
    spec, calls = golden("overload")
    found = read_trace(trace(spec, calls))
    for chain in spec.chains:
        outputs = [r for r in records(calls, ChainRecord) if r.chain == chain.name]
        assert found.counts[f"chains/{chain.name} path"] == [(r.at_ns, r.path_ns) for r in outputs]


@pytest.mark.parametrize("name", ["overload", "preemption"])
def test_a_journal_that_lacks_entries_still_has_a_trace(name):
    spec, calls = golden(name)
    for start in range(0, len(calls), 29):
        kept = calls[:start] + calls[start + 3 :]
        check_jobs(read_trace(trace(spec, kept)), kept)


def test_a_run_of_nothing_has_tracks_only():
    spec, _ = golden("overload")
    found = read_trace(trace(spec, []))
    assert found.slices == []
    assert "sources" in found.tracks.values()
