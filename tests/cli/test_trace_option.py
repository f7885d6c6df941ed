"""`--trace FILE` of `replay`, `simulate` and `report`."""

from __future__ import annotations

import pytest
from traces import read_trace


def only_line(done):
    assert done.out == ""
    assert done.err.count("\n") == 1
    return done.err


def test_the_trace_of_a_run_and_of_its_record_are_equal(call, make_drive, write_pipeline, tmp_path):
    run, live, later = (tmp_path / name for name in ("run.mcap", "a.pftrace", "b.pftrace"))
    pipeline = write_pipeline()
    log = make_drive(6)
    assert call("replay", log, "-p", pipeline, "-o", run, "--trace", live).code == 0
    assert call("report", run, "--trace", later).code == 0
    assert live.read_bytes() == later.read_bytes()
    alone = tmp_path / "c.pftrace"
    assert call("replay", log, "-p", pipeline, "--trace", alone, "--json").code == 0
    assert alone.read_bytes() == live.read_bytes()
    found = read_trace(live.read_bytes())
    assert [item.name for item in found.of("job")] == [f"it {n}" for n in range(6)]
    assert len(found.arrows()) == 6


def test_a_simulation_and_a_what_if_have_traces(call, write_pipeline, tmp_path):
    scenario = write_pipeline().with_name("scenario.yaml")
    scenario.write_text("scenario: s\npipeline: small.yaml\nduration: 500 ms\n")
    run, other, path = (tmp_path / name for name in ("run.mcap", "if.mcap", "t.pftrace"))
    assert call("simulate", scenario, "-o", run, "--trace", path).code == 0
    simulated = path.read_bytes()
    assert call("report", run, "--trace", path).code == 0
    assert path.read_bytes() == simulated
    assert call("whatif", run, "--cost", "it=80ms", "-o", other).code == 0
    assert call("report", other, "--trace", path).code == 0
    assert {item.args["outcome"] for item in read_trace(path.read_bytes()).of("job")} == {"late"}
    assert "one run" in only_line(call("simulate", scenario, "--runs", 2, "--trace", path))


def test_a_record_that_was_cut_has_a_trace_as_far_as_it_goes(call, record, tmp_path):
    path = tmp_path / "t.pftrace"
    whole = record.read_bytes()
    counts = set()
    for part in range(1, 8):
        record.write_bytes(whole[: len(whole) * part // 8])
        done = call("report", record, "--trace", path)
        assert done.code in {3, 4}
        counts.add(len(read_trace(path.read_bytes()).jobs) if path.exists() else None)
    assert max(count or 0 for count in counts) > 0


@pytest.mark.parametrize("where", ["run.mcap", "no/such/folder", "."])
def test_a_trace_that_cannot_be_written_there(call, record, tmp_path, where):
    before = record.read_bytes()
    done = call("report", record, "--trace", tmp_path / where)
    assert done.code == 2
    assert "trace" in only_line(done)
    assert record.read_bytes() == before


def test_a_refused_run_leaves_no_trace_and_an_old_one_as_it_was(
    call, make_drive, write_pipeline, tmp_path
):
    new, old = tmp_path / "new.pftrace", tmp_path / "old.pftrace"
    old.write_bytes(b"old")
    log, pipeline = make_drive(2), write_pipeline(topic="/other")
    for path in (new, old):
        assert call("replay", log, "-p", pipeline, "--trace", path).code == 2
    assert not new.exists()
    assert old.read_bytes() == b"old"
    assert call("replay", log, "-p", pipeline, "--trace", log).code == 2
    assert call("replay", log, "-p", pipeline, "--trace", pipeline).code == 2
    assert call("replay", log, "-p", pipeline, "-o", new, "--trace", new).code == 2
    timing = f"recorded:{old}"
    assert call("replay", log, "-p", pipeline, "--timing", timing, "--trace", old).code == 2
    assert old.read_bytes() == b"old"


def test_no_run_record(call, tmp_path):
    (tmp_path / "empty.mcap").write_bytes(b"")
    done = call("report", tmp_path / "empty.mcap", "--trace", tmp_path / "t.pftrace")
    assert done.code == 4
    assert not (tmp_path / "t.pftrace").exists()
