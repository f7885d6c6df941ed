"""`docs/report.md` names the keys of every object, and no others; see also `test_run_object`."""

import re
from pathlib import Path

import pytest

import avrt.metrics.extremes  # noqa: F401 - the first profile brings scipy.stats, 1 s
from avrt.report.profile import CopiesProfile

REPORT = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def rows(title):
    """Return, by key, the names in the whole row, from the table of one section."""
    section = REPORT.partition(f"## {title}")[2].partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names = {name.removesuffix("[]") for name in re.findall(r"`([^`]+)`", line)}
            for key in re.findall(r"`([^`]+)`", line.split("|")[1]):
                found[re.split(r"[{\[]", key)[0]] = names
    return found


@pytest.fixture
def what_if(call, record):
    return call("whatif", record, "--cost", "it=80ms", "--json").data


@pytest.fixture
def comparison(call, record, tmp_path):
    other = tmp_path / "other.mcap"
    assert call("whatif", record, "--cost", "it=+20%", "-o", other).code == 0
    return call("compare", record, other, "--json").data


@pytest.fixture
def profile(call, make_drive, write_pipeline):
    return call("profile", make_drive(3), "-p", write_pipeline(), "--json").data


def test_the_keys_of_the_what_if_object(what_if):
    documented = rows("What if")
    assert set(documented) == set(what_if)
    miss = what_if["misses"][0]
    for part in (miss, miss["before"] or miss["after"], miss["why"][0]):
        assert set(part) <= documented["misses"]
    assert set(what_if["counts"]) <= documented["counts"]


@pytest.mark.live
def test_the_keys_of_the_object_of_a_run_in_real_time(call, make_drive, write_pipeline):
    ran = call("run", write_pipeline(), "--log", make_drive(8), "--rate", 4, "--json").data
    documented = rows("The run object")
    plain = {re.sub(r"\..*", "", key) for key in documented}
    assert plain == set(ran)
    stream = ran["streams"]["it"]
    assert {*stream, *stream["gaps_ns"]} <= documented["streams"]
    assert "total" in documented["streams"]
    host, levels = ran["host"], ran["host"]["levels"]
    assert {*host, *levels, *levels["process_cores"], *host["misses"]} <= documented["host"]
    assert set(ran["flight"]) <= documented["flight"]
    assert "cores_plan" in documented["conditions"] & set(ran["conditions"])
    assert any(name.startswith("realtime.") for name in ran["conditions"])


ANOMALOUS = """
pipeline: anomalous
policy: fp
stages:
  one: {period: 1 s, wcet: 8 ms, deadline: 20 ms, priority: 1, run: "s:c"}
  two: {period: 1 s, offset: 8 ms, wcet: 4 ms, deadline: 6 ms, priority: 1, run: "s:c"}
  three: {period: 1 s, offset: 7 ms, wcet: 10 ms, deadline: 33 ms, priority: 3, run: "s:c"}
"""


def test_the_keys_of_the_anomaly_object_are_those_of_a_run_and_of_a_scenario(call, tmp_path):
    (tmp_path / "small.yaml").write_text(ANOMALOUS)
    scenario, run = tmp_path / "scenario.yaml", tmp_path / "run.mcap"
    scenario.write_text("scenario: s\npipeline: small.yaml\nduration: 500 ms\n")
    simulated = call("simulate", scenario, "--anomalies", "--json").data
    assert call("simulate", scenario, "-o", run).code == 0
    found = call("whatif", run, "--anomalies", "--json").data
    documented = rows("Anomalies")
    assert set(documented) == set(found) == set(simulated)
    first = found["anomalies"][0]
    parts = (first, first["before"], first["after"], first["instead"][0])
    for part in parts:
        assert set(part) <= documented["anomalies"]
    assert set(found["cuts"][0]) <= documented["cuts"]
    assert (first["task"], first["instead"][0]["task"]) == ("two", "three")
    assert found["anomalies"] == simulated["anomalies"]
    shown = call("whatif", run, "--anomalies")
    assert shown.code == 0
    assert "met > late" in shown.out
    assert "three 0 (" in shown.out
    calm = call("whatif", run, "--anomalies", "--policy", "fifo")
    assert "no job ends later" in calm.out
    assert call("whatif", run, "--anomalies", "-o", tmp_path / "x.mcap").code == 2
    assert call("simulate", scenario, "--anomalies", "--runs", 3).code == 2


SCENARIO = """
scenario: s
pipeline: small.yaml
duration: 1 s
arrivals: {lidar: {rate: 300 Hz}}
expect: {all: {missed: 0}}
"""


def test_the_keys_of_the_object_of_many_runs(call, write_pipeline):
    path = write_pipeline()
    path.write_text(path.read_text() + "chains:\n  see: {path: [lidar, it], reaction: 1 s}\n")
    scenario = path.with_name("scenario.yaml")
    scenario.write_text(SCENARIO)
    many = call("simulate", scenario, "--runs", 3, "--json").data
    documented = rows("Many runs")
    assert set(documented) == set(many)
    for name, group in (("stages", "it"), ("chains", "see")):
        assert {*many[name][group], *many[name][group]["a_run"]} <= documented[name]
    row = many["bounds"]["stages"]["it"]
    assert {*many["bounds"], *row} <= documented["bounds"]
    assert (row["holds"], row["runs_above"], row["runs_unexplained"]) == (False, 3, 0)
    assert row["first_above"]["seed"] == 0
    assert row["first_above"]["cause"]["kind"] == "rate"
    assert set(many["unmet"][0]) <= documented["unmet"]
    told = call("simulate", scenario, "--runs", 3).out
    assert "assumption broken: it" in told
    assert "so in 3 runs" in told


def test_the_keys_of_the_comparison_object(comparison):
    documented = rows("Two runs")
    assert set(documented) == set(comparison)
    divergence = comparison["divergence"]
    assert set(divergence) | set(divergence["a"]) <= documented["divergence"]


def test_the_keys_of_the_profile_object(profile):
    documented = rows("A profile")
    assert set(documented) - {"probabilistic_wcet", "shapes", "copies"} == set(profile)
    copies = CopiesProfile((), 0, 0, 0.0, None, None).data()
    assert set(copies) - {"runs"} <= documented["copies"]
    stage = profile["stages"]["it"]
    assert set(stage) <= documented["stages"]
    assert set(stage["probabilistic_wcet"]) <= documented["probabilistic_wcet"]
    assert set(next(iter(stage["shapes"].values()))) <= documented["shapes"]
