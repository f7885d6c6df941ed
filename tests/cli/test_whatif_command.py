"""`avrt whatif`, `compare` and `profile`: what they print, refuse, and exit with."""

import pytest
import yaml

import avrt.metrics.extremes  # noqa: F401 - the first profile brings scipy.stats, 1 s
from avrt.drivers.verify import verify


def only_line(done):
    assert done.out == ""
    assert done.err.startswith("avrt: ")
    assert done.err.count("\n") == 1
    return done.err


def damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    return path


def test_nothing_changed_is_the_run_itself(call, record):
    done = call("whatif", record)
    assert (done.code, done.err) == (0, "")
    assert "what if: nothing changed" in done.out
    assert "misses: 0 appears, 0 vanishes, 0 moves" in done.out
    data = call("whatif", record, "--json").data
    assert data["reproduced"] is True
    assert data["decisions"]["before"] == data["decisions"]["after"]
    assert f"decisions equal: {data['decisions']['before']}" in done.out
    assert data["misses"] == []


def test_a_longer_cost_makes_misses_appear_with_their_reason(call, record, tmp_path):
    out = tmp_path / "other.mcap"
    done = call("whatif", record, "--cost", "it=120ms", "-o", out)
    assert done.code == 0
    assert "what if: cost it=120ms" in done.out
    assert "waiting for its own predecessor" in done.out
    data = call("whatif", record, "--cost", "it=120ms", "--json").data
    assert data["counts"] == {"appears": 6, "vanishes": 0, "moves": 0}
    assert data["misses"][1]["why"][0]["by"] == "it"
    assert verify(out).equal
    assert call("report", out, "--json").data["jobs"]["late"] == 6
    assert call("report", out, "--json").data["conditions"]["what_if"] == "cost it=120ms"
    back = call("whatif", out, "--cost", "it=5ms", "--json").data
    assert back["counts"] == {"appears": 0, "vanishes": 6, "moves": 0}
    assert back["decisions"]["after"] == data["decisions"]["before"]


def test_the_table_shows_so_many_misses_and_tells_of_the_rest(
    call, make_drive, write_pipeline, tmp_path
):
    path = tmp_path / "long.mcap"
    assert call("replay", make_drive(33), "-p", write_pipeline(), "-o", path).code == 0
    done = call("whatif", path, "--deadline", "it=1 ms")
    assert done.out.count("appears") == 30 + 1
    assert "... 3 more changed misses" in done.out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--cost", "its=+5%"), "cost: no stage named 'its'; did you mean 'it'?"),
        (("--policy", "rmm"), "policy: expected one of edf"),
        (("--slots", "gpu=1"), "slots: no device named 'gpu'; did you mean 'cpu'?"),
        (("--rate", "it=5 Hz"), "rate.it: its inputs release it"),
    ],
)
def test_a_wrong_change_is_one_line_and_2(call, record, arguments, what):
    done = call("whatif", record, *arguments)
    assert done.code == 2
    assert what in only_line(done)


def test_the_run_is_never_written_over(call, record):
    before = record.read_bytes()
    done = call("whatif", record, "-o", record)
    assert done.code == 2
    assert "would overwrite" in only_line(done)
    assert record.read_bytes() == before
    assert call("whatif", record, "-o", record.parent / "no" / "run.mcap").code == 2


@pytest.mark.parametrize("command", ["whatif", "compare"])
def test_what_is_no_record_is_one_line_and_4(call, record, make_drive, command, tmp_path):
    for path in (make_drive(2, name="log.mcap"), tmp_path / "missing.mcap"):
        done = call(command, *([record] if command == "compare" else []), path)
        assert done.code == 4
        assert str(path) in only_line(done)


def test_a_damaged_record_is_refused_for_a_what_if_and_told_in_a_comparison(call, record, tmp_path):
    copy = tmp_path / "copy.mcap"
    copy.write_bytes(record.read_bytes())
    damaged(copy)
    done = call("whatif", copy)
    assert done.code == 4
    assert str(copy) in only_line(done)
    compared = call("compare", record, copy)
    assert compared.code == 3
    assert "damaged: " in compared.out


def test_a_run_compared_with_itself_is_equal(call, record):
    done = call("compare", record, record, "--fail-on-difference")
    assert (done.code, done.err) == (0, "")
    assert "decisions equal: " in done.out
    assert call("compare", record, record, "--json").data["conditions"] == {}


def test_the_first_decision_that_differs_is_named(call, record, tmp_path):
    other = tmp_path / "other.mcap"
    assert call("whatif", record, "--cost", "it=4ms", "-o", other).code == 0
    assert call("compare", record, other).code == 0
    done = call("compare", record, other, "--fail-on-difference")
    assert (done.code, done.err) == (1, "avrt: exit 1: the decisions differ\n")
    assert "decisions differ first at entry 1" in done.out
    assert "at_ns 5000000" in done.out
    assert "at_ns 4000000" in done.out


def test_pipelines_that_differ_are_told_key_by_key(call, record, tmp_path):
    other = tmp_path / "other.mcap"
    assert call("whatif", record, "--deadline", "it=9 ms", "-o", other).code == 0
    done = call("compare", record, other, "--fail-on-difference")
    assert (done.code, done.err) == (1, "avrt: exit 1: the pipelines differ\n")
    data = call("compare", record, other, "--json").data
    assert data["pipeline"] == {"stages.it.deadline_ns": {"a": "50000000", "b": "9000000"}}
    assert data["divergence"] is None


def test_a_run_that_goes_on_longer_differs_where_the_other_has_ended(
    call, make_drive, write_pipeline, record, tmp_path
):
    longer = tmp_path / "longer.mcap"
    assert call("replay", make_drive(7), "-p", write_pipeline(), "-o", longer).code == 0
    data = call("compare", record, longer, "--json").data
    assert data["equal"] is False
    assert data["jobs"]["a"]["met"] + 1 == data["jobs"]["b"]["met"]


def test_a_profile_is_shown_and_kept_with_its_conditions(
    call, make_drive, write_pipeline, tmp_path
):
    out = tmp_path / "profile.yaml"
    missing = call("profile", make_drive(4), "-p", write_pipeline(), "-o", tmp_path / "no" / "p")
    assert missing.code == 2
    assert "no such folder" in missing.err
    done = call("profile", make_drive(4), "-p", write_pipeline(), "-o", out)
    assert (done.code, done.err) == (0, "")
    assert "it: no probabilistic wcet: expected 500 jobs at least, found 3" in done.out
    kept = yaml.safe_load(out.read_text())
    stage = kept["stages"]["it"]
    assert stage["count"] == len(stage["times_ns"]) == 3
    assert stage["min_ns"] == min(stage["times_ns"])
    assert stage["high_water_ns"] == max(*stage["times_ns"], stage["first_job_ns"])
    assert {"host", "processor", "python", "date"} <= kept["conditions"].keys()
    looped = call("profile", make_drive(4), "-p", write_pipeline(), "--loops", 3, "--json")
    assert looped.data["stages"]["it"]["count"] == 11


def test_a_profile_tells_what_failed_and_never_writes_over_its_inputs(
    call, make_drive, write_pipeline
):
    pipeline, drive = write_pipeline(run="stages.py:fails"), make_drive(3)
    assert "ValueError: boom" in call("profile", drive, "-p", pipeline).out
    for path in (pipeline, drive):
        done = call("profile", drive, "-p", pipeline, "-o", path)
        assert done.code == 2
        assert "would overwrite" in only_line(done)
    assert call("profile", drive, "-p", pipeline, "-o", drive / "x.yaml").code == 2


def test_a_run_of_segments_is_repeated_and_moved(call, make_drive, write_pipeline, tmp_path):
    path = write_pipeline(more=", segments: [{device: cpu, wcet: 2 ms}, {device: gpu, wcet: 3 ms}]")
    text = path.read_text() + "devices: {cpu: {type: cpu}, gpu: {type: simulated}}\n"
    path.write_text(text)
    out, moved = tmp_path / "run.mcap", tmp_path / "moved.mcap"
    assert call("replay", make_drive(6), "-p", path, "-o", out).code == 0
    assert call("whatif", out, "--json").data["reproduced"] is True
    done = call("whatif", out, "--device", "it=gpu,cpu", "--cost", "it=+20%", "-o", moved, "--json")
    assert done.data["stages"]["it"]["after"]["execution_ns"]["max"] == 6_000_000
    assert verify(moved).equal
    assert call("whatif", out, "--device", "it=gpu,cpu,gpu").code == 2
