"""`policy: table` from the file to the record: check, simulate, replay, verify, whatif."""

import pytest

from avrt.drivers.verify import verify

TABLE = "policy: table\n"
GIVEN = "policy: table\ntable: {{cycle: 100 ms, starts: {{it: [{start}]}}}}\n"


@pytest.fixture
def write(write_pipeline):
    """Return a function that writes the small pipeline with some lines more at its top."""

    def write_with(head=TABLE, **keys):
        path = write_pipeline(**keys)
        path.write_text(head + path.read_text())
        return path

    return write_with


def test_check_prints_the_table_and_gives_it_as_data(call, write):
    done = call("check", write())
    assert (done.code, done.err) == (0, "")
    assert "starts in a cycle of 100 ms" in done.out
    assert "exact" in done.out
    data = call("check", write(), "--json").data
    assert data["table"] == {"cycle_ns": 100_000_000, "starts_ns": {"it": [0]}}
    assert data["spec"]["table"]["cycle_ns"] == 100_000_000
    assert data["stages"]["it"]["response"]["ns"] == 5_000_000
    assert call("check", write(""), "--json").data["table"] is None


def test_a_table_that_is_wrong_is_told_with_its_line(call, write):
    done = call("check", write(GIVEN.format(start="60 ms")))
    assert done.code == 2
    assert done.err.endswith(
        "small.yaml:2: table.starts.it: done up to 65 ms after its release, due 50 ms after\n"
    )


def test_that_none_can_be_found_is_told_with_the_line_of_the_stage(call, write):
    done = call("check", write(wcet="60 ms"))
    assert done.code == 2
    assert "small.yaml:7: stages.it.wcet: no table can be right" in done.err


def test_a_replay_starts_every_job_as_planned_and_verifies(call, make_drive, write, tmp_path):
    out = tmp_path / "run.mcap"
    path = write(GIVEN.format(start="30 ms"))
    done = call("replay", make_drive(6), "-p", path, "-o", out, "--json")
    stage = done.data["stages"]["it"]
    assert stage["jobs"]["met"] == 6
    assert stage["response_ns"]["max"] == 35_000_000
    assert stage["start_late_ns"]["count"] == 0
    assert verify(out).equal
    assert call("report", out, "--json").data["stages"]["it"] == stage


def test_what_if_keeps_the_table_and_tells_what_no_longer_fits(call, make_drive, write, tmp_path):
    out = tmp_path / "run.mcap"
    assert call("replay", make_drive(6), "-p", write(), "-o", out).code == 0
    same = call("whatif", out, "--json").data
    assert same["reproduced"] is True
    longer = call("whatif", out, "--cost", "it=130ms", "--json").data
    assert longer["stages"]["it"]["after"]["start_late_ns"]["count"] == 5
    shown = tmp_path / "late.mcap"
    told = "5 jobs started later than the table says, by up to 150 ms"
    assert told in call("whatif", out, "--cost", "it=130ms", "-o", shown).out
    assert told in call("report", shown).out


def test_what_if_computes_a_table_for_a_run_of_another_policy(call, record, tmp_path):
    out = tmp_path / "table.mcap"
    done = call("whatif", record, "--policy", "table", "-o", out)
    assert (done.code, done.err) == (0, "")
    assert "what if: policy table" in done.out
    assert verify(out).equal
    back = call("whatif", out, "--policy", "edf", "--json").data
    assert back["reproduced"] is True
    searched = call("whatif", record, "--policy", "table", "--anomalies")
    assert (searched.code, searched.err) == (0, "")
    assert "no job ends later" in searched.out
    refused = call("whatif", record, "--policy", "table", "--deadline", "it=1 ms")
    assert refused.code == 2
    assert "no table can be right: wcet 5 ms is above the deadline 1 ms" in refused.err


def test_a_scenario_whose_pipeline_has_no_table_is_refused_with_its_line(call, write, tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"scenario: try\npipeline: {write(wcet='60 ms').name}\nduration: 1 s\n")
    done = call("simulate", scenario)
    assert done.code == 2
    assert "small.yaml:7: stages.it.wcet: no table can be right" in done.err


def test_where_a_gpu_is_not_driven_the_table_is_computed_for_the_fallback(
    call, make_drive, write, tmp_path
):
    """Two stages that would each have a device of their own share one here."""
    head = "policy: table\ndevices: {gpu: {type: 'cuda:0', fallback: cpu}, cpu: {type: cpu}}\n"
    path = write(head, more=", device: gpu")
    other = '  too: {run: "stages.py:count", inputs: {cloud: lidar}, device: cpu, wcet: 5 ms, '
    path.write_text(path.read_text() + other + "deadline: 50 ms}\n")
    both = call("check", path, "--json").data["table"]["starts_ns"]
    assert both == {"it": [0], "too": [0]}
    done = call("replay", make_drive(4), "-p", path, "-o", tmp_path / "run.mcap", "--json")
    assert done.data["stages"]["it"]["start_late_ns"]["count"] == 0
    assert done.data["stages"]["too"]["start_late_ns"]["count"] == 0
    assert done.data["stages"]["too"]["response_ns"]["max"] == 10_000_000
