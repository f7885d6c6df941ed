"""A record verifies exactly when nothing in it was changed."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import avrt
from avrt.drivers.verify import verify
from avrt.errors import InputError
from avrt.logs.record.journal import Journal, parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.logs.record.run_record import RunRecord
from avrt.logs.writer import LogWriter
from avrt.model.codec import encode, to_json
from avrt.report.summary import read_summary

FLIPS = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
PLACES = st.integers(0, 2**32)


def count(cloud):
    return cloud.payload.count


def make_record(make_drive, path, **options):
    """Record a small overloaded run, so that its journal holds records of most kinds."""
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 1}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(count, name="slow", inputs={"cloud": "lidar"}, wcet="70 ms", deadline="60 ms",
                 miss_at_most="1 of 4", criticality="ASIL-B")  # fmt: skip
    pipeline.add(count, name="quick", inputs={"cloud": "lidar"}, wcet="40 ms", deadline="90 ms",
                 on_miss="abort")  # fmt: skip
    pipeline.add(lambda: 1, name="beat", period="90 ms", wcet="1 ms", deadline="50 ms",
                 on_miss="skip_next")  # fmt: skip
    pipeline.chain("see", path=["lidar", "slow"], reaction="200 ms", age="250 ms")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("avrt.api.replay.read_conditions", lambda **more: more)
        pipeline.replay(make_drive(12, points=1), out=path, **options)
    return path


@pytest.fixture
def record(make_drive, tmp_path):
    return make_record(make_drive, tmp_path / "good.mcap")


@pytest.fixture(scope="module")
def good(tmp_path_factory, settled):  # noqa: ARG001 - by its name
    """The bytes of a good record, made once: its log is written here."""
    folder = tmp_path_factory.mktemp("good")

    def write(frames, points):
        with LogWriter(folder / "drive.mcap") as log:
            for k in range(frames):
                xyz = np.full((points, 3), k, np.float32)
                log.add_cloud("/lidar", "roof", 10**18 + k * 10**8, xyz)
        return folder / "drive.mcap"

    return Bytes(make_record(write, folder / "run.mcap").read_bytes())


class Bytes(bytes):
    """Bytes that are not printed whole when a test fails."""

    __slots__ = ()

    def __repr__(self):
        return f"{len(self)} bytes"


def check(path, data):
    """Verify these bytes; return the verification, or None for an unusable file."""
    path.write_bytes(data)
    try:
        result = verify(path)
    except InputError:
        return None
    if result.difference is not None:
        assert result.difference.expected != result.difference.found
        assert result.difference.index == result.entries
    return result


def says_nothing(good):
    """The bytes that nobody reads: the length of the record that ends the data, which is fixed."""
    data_end = good.rindex(b"\x0f\x04\0\0\0\0\0\0\0")
    return range(data_end + 1, data_end + 9)


def test_a_record_verifies_equal(record):
    result = verify(record)
    assert result.equal
    assert result.complete
    assert result.difference is None
    assert result.damage == ()
    with RunFile(record) as run:
        assert result.digest == run.result["decisions"]
        assert result.entries == len(list(run.journal()))


@pytest.mark.parametrize("timing", ["measured", "model"])
def test_a_run_verifies_whatever_its_times_come_from(make_drive, tmp_path, timing):
    assert verify(make_record(make_drive, tmp_path / "run.mcap", timing=timing)).equal


def test_every_flipped_journal_entry_is_named(tmp_path, good):
    """One byte of every entry in turn, at a place in it that moves on."""
    path = tmp_path / "bad.mcap"
    path.write_bytes(good)
    with RunFile(path) as run:
        lines = list(run.journal())
    assert len(lines) > 30
    for line in lines[::4]:
        start = good.index(line.text.encode())
        offset = start + line.index * 31 % len(line.text)
        bad = bytearray(good)
        bad[offset] ^= 1
        result = check(path, bytes(bad))
        difference = result.difference
        assert not result.equal
        assert difference is not None
        first = min(entry.index for entry in lines if entry.index // 64 == line.index // 64)
        assert first <= difference.index <= line.index
        if difference.index == line.index:
            assert difference.at_ns == line.at_ns or "entry" in difference.expected


@given(place=PLACES, flip=st.integers(1, 255))
@FLIPS
def test_no_flipped_byte_goes_unnoticed(tmp_path, good, place, flip):
    offset = place % len(good)
    bad = bytearray(good)
    bad[offset] ^= flip
    result = check(tmp_path / "bad.mcap", bytes(bad))
    assert result is None or not result.equal or offset in says_nothing(good)
    assert result is None or result.equal or result.difference or result.damage


@pytest.mark.slow
@pytest.mark.parametrize("flip", [1, 0x20, 0x80, 0xFF])
def test_no_byte_of_a_sample_of_the_whole_file_goes_unnoticed(tmp_path, good, flip):
    for offset in range(flip % 149, len(good), 149):
        bad = bytearray(good)
        bad[offset] ^= flip
        result = check(tmp_path / "bad.mcap", bytes(bad))
        assert result is None or not result.equal or offset in says_nothing(good), offset
        read_damaged(tmp_path / "bad.mcap")


def read_damaged(path):
    """Read the summary; nothing but InputError may leave it, and it can be shown."""
    try:
        summary = read_summary(path)
    except InputError:
        return None
    json.dumps(summary.data(), allow_nan=False)
    return summary


@given(place=PLACES)
@FLIPS
def test_a_record_that_was_cut_is_equal_as_far_as_it_goes(tmp_path, good, place):
    length = place % len(good)
    result = check(tmp_path / "cut.mcap", good[:length])
    if result is not None:
        assert result.difference is None
        assert not result.equal
        assert not result.complete or length > good.index(b"avrt.result")
        assert result.damage
        read_damaged(tmp_path / "cut.mcap")


def test_a_record_cut_late_still_verifies_most_entries(tmp_path, good):
    whole = check(tmp_path / "run.mcap", good)
    cut = check(tmp_path / "run.mcap", good[: good.rindex(b'{"index":') - 9])
    assert 0 < cut.entries <= whole.entries
    assert not cut.complete


def forge(good, tmp_path, change):
    """Write a record whose journal lines are `change(lines)`, with every CRC right."""
    (tmp_path / "good.mcap").write_bytes(good)
    path = tmp_path / "forged.mcap"
    with RunFile(tmp_path / "good.mcap") as run:
        lines = change([(line.at_ns, line.text) for line in run.journal()])
        with RunRecord(
            path, zero_ns=run.zero_ns, conditions=run.conditions, pipeline_json=run.pipeline_json
        ) as record:
            for at_ns, text in lines:
                record.journal(text, at_ns)
            record.close(run.result)
    return path


def test_a_forged_decision_is_named_with_what_it_should_be(tmp_path, good):
    def change(lines):
        place = next(k for k, (_, text) in enumerate(lines) if '"outcome":"met"' in text)
        at_ns, text = lines[place]
        lines[place] = at_ns, text.replace('"outcome":"met"', '"outcome":"late"')
        change.index, change.at_ns = place, at_ns
        return lines

    result = verify(forge(good, tmp_path, change))
    assert not result.equal
    assert (result.difference.index, result.difference.at_ns) == (change.index, change.at_ns)
    assert '"outcome":"met"' in result.difference.expected
    assert '"outcome":"late"' in result.difference.found


def rehash(lines):
    """Return the lines with checks that fit, as a careful forger makes them."""
    forged = []
    journal = Journal(lambda at_ns, text: forged.append((at_ns, text)))
    for _, text in lines:
        entry = parse_entry(text)
        journal.note(entry.at_ns, entry.events, entry.commands)
    return forged


def without_a_command(lines):
    at_ns, text = lines[9]
    entry = json.loads(text)
    entry["calls"][1] = entry["calls"][1][:-1]
    return rehash([*lines[:9], (at_ns, to_json(entry)), *lines[10:]])


def with_a_command_more(lines):
    at_ns, text = lines[9]
    entry = json.loads(text)
    entry["calls"][1].append(["EnterMode", {"mode": "x"}])
    return rehash([*lines[:9], (at_ns, to_json(entry)), *lines[10:]])


def with_an_event_more(lines):
    at_ns, text = lines[9]
    entry = json.loads(text)
    entry["calls"][0].append(["Completed", {"job": 99, "buffer": 999, "device_ns": 1}])
    return [*lines[:9], (at_ns, to_json(entry)), *lines[10:]]


@pytest.mark.parametrize(
    ("change", "expected", "found"),
    [
        (without_a_command, "{", "no further command"),
        (with_a_command_more, "no further command", "EnterMode"),
        (with_an_event_more, "events that may come now", "this job is not on a stream"),
        (lambda lines: lines[:9] + lines[10:], "entry 9 at", "entry 10 at"),
        (lambda lines: [*lines[:9], lines[10], lines[9], *lines[11:]], "entry 9 at", "entry 10 at"),
        (lambda lines: [*lines[:9], lines[8], *lines[9:]], "entry 9 at", "entry 8 at"),
        (lambda lines: [*lines[:9], (lines[9][0] + 1, lines[9][1]), *lines[10:]], "ns", "entry 9"),
        (lambda lines: [*lines[:9], (lines[9][0], "{}"), *lines[10:]], "an entry", "{}"),
        (lambda lines: lines[:-1], "digest", "digest"),
    ],
    ids=["fewer", "more", "illegal", "missing", "swapped", "twice", "moved", "empty", "short"],
)
def test_a_forged_journal_is_found_out_where_it_was_forged(tmp_path, good, change, expected, found):
    result = verify(forge(good, tmp_path, change))
    assert not result.equal
    assert expected in result.difference.expected
    assert found in result.difference.found
    assert result.difference.index in {9, result.entries}


def test_another_pipeline_is_another_run(tmp_path, good):
    (tmp_path / "good.mcap").write_bytes(good)
    with RunFile(tmp_path / "good.mcap") as run:
        spec = json.loads(run.pipeline_json)
        spec[1]["policy"] = "fifo"
        lines = [(line.at_ns, line.text) for line in run.journal()]
        with RunRecord(
            tmp_path / "other.mcap",
            zero_ns=run.zero_ns,
            conditions={},
            pipeline_json=to_json(spec),
        ) as record:
            for at_ns, text in lines:
                record.journal(text, at_ns)
            record.close(run.result)
    assert verify(tmp_path / "other.mcap").difference is not None


@pytest.mark.parametrize(
    "pipeline_json",
    ["", "{}", "null", "[]", '["PipelineSpec",{}]', "[" * 10**5, '"\\ud800"'],
    ids=["nothing", "empty", "null", "list", "fields", "deep", "surrogate"],
)
def test_a_record_without_a_pipeline_that_reads_is_unusable(tmp_path, pipeline_json):
    with RunRecord(
        tmp_path / "run.mcap", zero_ns=0, conditions={}, pipeline_json=pipeline_json
    ) as record:
        record.journal("{}", 0)
    with pytest.raises(InputError, match="pipeline"):
        verify(tmp_path / "run.mcap")
    with pytest.raises(InputError, match="pipeline"):
        read_summary(tmp_path / "run.mcap")


def test_a_record_of_a_run_that_never_ended_is_not_complete(make_pipeline, tmp_path):
    pipeline = make_pipeline()
    pipeline.add(count, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    with RunRecord(
        tmp_path / "run.mcap",
        zero_ns=0,
        conditions={},
        pipeline_json=to_json(encode(pipeline.spec)),
    ):
        pass
    result = verify(tmp_path / "run.mcap")
    assert (result.entries, result.difference, result.damage) == (0, None, ())
    assert not result.complete
    assert not result.equal


STOPPED = textwrap.dedent("""
    import os, signal, sys, threading
    import numpy as np
    import avrt
    from avrt.logs.writer import LogWriter

    folder, how = sys.argv[1:]
    with LogWriter(folder + "/drive.mcap") as log:
        for k in range(400):
            xyz = np.full((2000, 3), k, np.float32)
            log.add_cloud("/lidar", "roof", 10**18 + k * 10**8, xyz)

    calls = []

    def work(cloud):
        calls.append(1)
        if len(calls) == 80:
            os.kill(os.getpid(), getattr(signal, how))
        return cloud.payload

    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(work, inputs={"cloud": "lidar"}, wcet="250 ms", deadline="1 s")
    report = pipeline.replay(folder + "/drive.mcap", out=folder + "/run.mcap")
    jobs = report.jobs
    assert report.summary.interrupted
    assert jobs["released"] == sum(n for name, n in jobs.items() if name != "released"), jobs
    stopped = report.summary.figures.stages["work"].reasons["aborted: stop"]
    sys.exit(40 + (stopped > 1 and not jobs["open"]))
""")


def stop(tmp_path, how):
    command = [sys.executable, "-c", STOPPED, str(tmp_path), how]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - our own code


@pytest.mark.slow
def test_a_killed_run_leaves_a_record_that_verifies_as_far_as_it_goes(tmp_path):
    assert stop(tmp_path, "SIGKILL") == -9
    result = verify(tmp_path / "run.mcap")
    assert result.difference is None
    assert result.entries > 100
    assert not result.complete
    assert not result.equal
    summary = read_summary(tmp_path / "run.mcap")
    assert summary.figures.jobs()["met"] > 50
    assert not summary.complete


@pytest.mark.slow
def test_an_interrupted_run_leaves_a_whole_record(tmp_path):
    assert stop(tmp_path, "SIGINT") == 41
    result = verify(tmp_path / "run.mcap")
    assert result.equal
    assert result.complete
    summary = read_summary(tmp_path / "run.mcap")
    assert summary.interrupted
    assert summary.figures.jobs()["open"] == 0
