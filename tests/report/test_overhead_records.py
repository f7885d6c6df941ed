"""A record of a run with overheads is judged as the run itself was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avrt.api.scenario import Scenario
from avrt.api.whatif import what_if
from avrt.config.changes import Changes
from avrt.errors import InputError
from avrt.logs.record.recorded import overhead_conditions, read_overheads
from avrt.model.scenario import OverheadSpec
from avrt.report.summary import read_summary

PIPELINE = """
pipeline: two
policy: fp
devices: {d: {type: simulated, preemptive: true}}
stages:
  hi: {device: d, period: 10 ms, wcet: 2 ms, deadline: 10 ms, priority: 1}
  lo: {device: d, period: 100 ms, wcet: 40 ms, deadline: 80 ms, priority: 2}
"""
SCENARIO = """
scenario: s
pipeline: two.yaml
duration: 100 ms
overheads: {d: {context_switch: 200 us, decision: 50 us, release: 400 us}}
"""
COSTS = {"d": OverheadSpec(release_ns=400_000, decision_ns=50_000, switch_ns=200_000)}


@pytest.fixture
def simulated(tmp_path):
    """The report of a run with overheads, and its record."""
    (tmp_path / "two.yaml").write_text(PIPELINE)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    record = tmp_path / "run.mcap"
    report, _ = Scenario.load(tmp_path / "s.yaml").run(out=record)
    return report.summary, record


def test_the_report_of_the_record_says_what_the_run_said(simulated):
    summary, record = simulated
    again = read_summary(record)
    assert again.figures.overheads == COSTS
    assert again.bounds.data() == summary.bounds.data()
    assert (again.bounds.verdict, again.bounds.assumption) == ("holds", None)


def test_a_what_if_of_it_is_compared_with_no_bound_and_says_so(simulated, tmp_path):
    summary, record = simulated
    out = tmp_path / "again.mcap"
    found = what_if(record, Changes("edf"), out)
    assert found.before.bounds.data() == summary.bounds.data()
    for check in (found.after.bounds, read_summary(out).bounds):
        assert (check.verdict, check.assumption) == ("unknown", None)
        assert [note for note in check.notes() if "not compared with bounds" in note]
    again = what_if(out, Changes(None))
    assert again.reproduced
    assert {side.bounds.verdict for side in (again.before, again.after)} == {"unknown"}


def test_a_run_without_overheads_has_no_word_of_them(tmp_path):
    (tmp_path / "two.yaml").write_text(PIPELINE)
    (tmp_path / "s.yaml").write_text(SCENARIO.partition("overheads")[0])
    record = tmp_path / "run.mcap"
    report, _ = Scenario.load(tmp_path / "s.yaml").run(out=record)
    assert "overheads" not in report.summary.conditions
    assert what_if(record, Changes("edf")).after.bounds.verdict == "holds"


def test_overheads_of_a_record_are_those_of_the_run():
    costs = {**COSTS, "gpu": replace(COSTS["d"], launch_ns=7)}
    assert read_overheads(overhead_conditions(costs), "r") == costs
    assert read_overheads({}, "r") == {}


@pytest.mark.parametrize("text", ["", "[]", '{"d": 3}', '{"d": ["StageSpec", {}]}'])
def test_damaged_overheads_are_told(text):
    with pytest.raises(InputError, match="the recorded overheads are damaged: "):
        read_overheads({"overheads": text}, "r")
