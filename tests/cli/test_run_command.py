"""`avrt run`: exit codes, what it prints, what it leaves."""

import json

import pytest

from avrt.drivers.verify import verify

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The flight recorder writes into the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_log_is_played_and_recorded(call, make_drive, write_pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    pipeline = write_pipeline(deadline="1 s")
    done = call("run", pipeline, "--log", make_drive(5), "--rate", "2", "--record", out)
    assert done.code == 0, done.err
    assert "5 jobs: 5 met" in done.out
    assert "clock live, rate 2" in done.out
    assert verify(out).equal


def test_json_is_one_object_with_what_only_a_live_run_knows(call, make_drive, write_pipeline):
    done = call("run", write_pipeline(), "--log", make_drive(3), "--rate", "20", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["jobs"]["released"] == 3
    assert data["streams"]["it"]["busy_ns"] > 0
    assert set(data["host"]["levels"]) >= {"process_cores", "rss_bytes", "descriptors"}
    assert any(name.startswith("realtime.") for name in data["conditions"])
    assert data["flight"]["failure"] == ""


def test_a_stage_that_fails_leaves_a_flight_record(call, make_drive, write_pipeline, tmp_path):
    pipeline = write_pipeline(run="stages.py:fails", deadline="1 s")
    done = call("run", pipeline, "--log", make_drive(3), "--rate", "2")
    assert done.code == 0
    (record,) = (tmp_path / "flight").iterdir()
    assert record.name in done.out
    shown = call("report", record)
    assert "a flight record, the middle of a run: it failed: exception" in shown.out


def test_a_miss_fails_where_it_is_to(call, make_drive, write_pipeline):
    pipeline = write_pipeline(run="stages.py:fails")
    done = call("run", pipeline, "--log", make_drive(2), "--rate", "20", "--fail-on-miss")
    assert done.code == 1
    assert "2 jobs not met" in done.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--duration", "soon"), "duration: expected a duration"),
        (("--rate", "0"), "expected a rate from"),
        (("--loops", "0"), "expected one loop or more"),
        (("--world", "moon"), "moon"),
        (("--strict",), "only a log can be damaged"),
    ],
)
def test_wrong_arguments_are_refused(call, write_pipeline, arguments, what):
    done = call("run", write_pipeline(), *arguments)
    assert done.code == 2
    assert what in done.err


def test_a_pipeline_that_nothing_feeds_is_refused_with_its_line(call, write_pipeline):
    done = call("run", write_pipeline())
    assert done.code == 2
    assert "small.yaml:4: sources.lidar: nothing feeds lidar" in done.err


@pytest.mark.parametrize(("size", "code"), [(0, 4), (2500, 3)])
def test_a_log_that_is_empty_or_cut_is_told(call, make_drive, write_pipeline, size, code):
    log = make_drive(40, points=20, chunk_bytes=1000)
    log.write_bytes(log.read_bytes()[: size or 0] if size == 0 else log.read_bytes()[:-size])
    done = call("run", write_pipeline(), "--log", log, "--rate", "50")
    assert done.code == code, done.err + done.out


def test_a_log_that_is_to_be_strict_ends_where_it_is_damaged(call, make_drive, write_pipeline):
    log = make_drive(40, points=20, chunk_bytes=1000)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    arguments = ("run", write_pipeline(), "--log", log, "--rate", "50", "--json")
    tolerant, done = call(*arguments), call(*arguments, "--strict")
    assert (tolerant.code, done.code) == (3, 3)
    met, all_met = (json.loads(one.out)["jobs"]["released"] for one in (done, tolerant))
    assert 0 < met < all_met
    assert f"({met} good messages were delivered)" in json.loads(done.out)["damage"][0]


def test_a_log_that_is_not_there_is_told(call, write_pipeline, tmp_path):
    done = call("run", write_pipeline(), "--log", tmp_path / "no.mcap")
    assert done.code == 4
    assert "no such log" in done.err


def test_a_record_may_not_overwrite_its_log(call, make_drive, write_pipeline):
    log = make_drive(2)
    done = call("run", write_pipeline(), "--log", log, "--record", log)
    assert done.code == 2
    assert "would overwrite" in done.err
