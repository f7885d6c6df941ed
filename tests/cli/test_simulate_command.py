"""`avrt simulate`: what it prints, writes and refuses, and the code it exits with."""

from pathlib import Path

import pytest

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
NAMES = [
    "burst", "clock_step", "four_three_two_cpu", "jitter", "ladder", "overload",
    "sensor_dropout", "slow_device", "static_schedule",
]  # fmt: skip


@pytest.fixture
def write_scenario(write_pipeline, tmp_path):
    def write(more="", **pipeline):
        path = tmp_path / "scenario.yaml"
        name = write_pipeline(**pipeline).name
        path.write_text(
            f"scenario: try\npipeline: {name}\nduration: 2 s\n"
            "execution: {default: {uniform: {min: 10 ms, max: 60 ms}}}\n" + more
        )
        return path

    return write


def test_the_scenarios_are_there():
    assert [path.stem for path in SCENARIOS] == NAMES


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.stem == "ladder" else ()) for p in SCENARIOS],
    ids=lambda path: path.stem,
)
def test_what_a_scenario_expects_comes_true(call, path):
    done = call("simulate", path)
    assert (done.code, done.err) == (0, "")
    assert f"scenario {path.stem}, seed 1: " in done.out


def test_a_simulation_shows_the_report_of_a_replay(call, write_scenario):
    done = call("simulate", write_scenario())
    assert (done.code, done.err) == (0, "")
    for part in ("small", "20 jobs: ", "modelled", "payloads -", "seed 0: nothing is expected"):
        assert part in done.out


def test_the_stages_need_not_exist(call, write_scenario):
    assert call("simulate", write_scenario(run="gone.py:it")).code == 0


def test_a_failed_expectation_is_one_sentence_and_exit_1(call, write_scenario):
    done = call("simulate", write_scenario("expect: {stages: {it: {late: at most 1}}}"))
    assert done.code == 1
    assert done.err.startswith("avrt: expected late at most 1 of it, found ")
    assert done.err.endswith(" s (seed 0)\n")
    assert "0 of 1 expectations met" in done.out


def test_json_is_one_object(call, write_scenario):
    path = write_scenario("seed: 4\nexpect: {all: {late: 0, shed: 0}}")
    done = call("simulate", path, "--json")
    assert (done.data["scenario"], done.data["seed"], done.data["timing"]) == ("try", 4, "modelled")
    assert len(done.data["unmet"]) == 1
    assert done.data["digests"]["payloads"] == ""


def test_the_seed_decides(call, write_scenario):
    path = write_scenario("seed: 4")
    digests = [
        call("simulate", path, *more, "--json").data["digests"]["decisions"]
        for more in ((), ("--seed", 4), ("--seed", 5))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_record_verifies_and_reports_the_same(call, write_scenario, tmp_path):
    record = tmp_path / "run.mcap"
    done = call("simulate", write_scenario(), "-o", record, "--json")
    assert call("verify", record).code == 0
    reported = call("report", record, "--json")
    assert reported.code == 0
    run = {k: v for k, v in done.data.items() if k not in {"scenario", "seed", "unmet"}}
    assert reported.data == run
    assert reported.data["conditions"]["scenario"] == "try"


def test_many_runs_print_probabilities(call, write_scenario):
    done = call("simulate", write_scenario("expect: {all: {late: 0}}"), "--runs", 10)
    assert done.code == 1
    for part in (
        "10 runs of 2 s, seeds 0 to 9",
        "runs with any",
        "9 of 10",
        "0 of 1 expectations",
    ):
        assert part in done.out
    told = "avrt: in 9 of 10 runs, first with seed 0: expected late exactly 0 of all, found "
    assert done.err.startswith(told)


def test_many_runs_as_json(call, write_scenario):
    path = write_scenario("expect: {all: {late: 0, shed: 0}}")
    data = call("simulate", path, "--runs", 10, "--json").data
    assert data["runs"] == 10
    assert data["stages"]["it"]["jobs"] == 200
    low, value, high = (data["stages"]["it"]["a_job"][k] for k in ("low", "value", "high"))
    assert low < value < high
    # uniform from 10 to 60 ms, the deadline is 50 ms: one in five is late
    assert low < 0.2 < high
    assert [item["runs"] for item in data["unmet"]] == [9]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "0"], "expected 1 to 1000000 runs, found 0"),
        (["--seed", "-1"], "expected a seed from 0"),
        (["--runs", "3", "-o", "x.mcap"], "give either --runs or --out"),
        (["-o", "/nowhere/x.mcap"], "cannot create the run record /nowhere/x.mcap"),
    ],
)
def test_wrong_options_are_told(call, write_scenario, arguments, words):
    done = call("simulate", write_scenario(), *arguments)
    assert done.code == 2
    assert words in done.err
    assert done.out == ""


def test_a_missing_scenario_is_told(call, tmp_path):
    done = call("simulate", tmp_path / "gone.yaml")
    assert done.code == 2
    assert "no such file" in done.err
