"""Every number in the tables of docs/exercise.md is what avrt says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from avrt.analysis.planner import planned
from avrt.api.judgement import judge
from avrt.config.pipeline import parse
from avrt.drivers.simulate import simulate
from avrt.errors import SpecError
from avrt.units import NS_PER_MS, duration_ns, format_ns

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "exercise.md").read_text(encoding="utf-8")
TEXT = (ROOT / "pipelines" / "three_rates.yaml").read_text(encoding="utf-8")
SEGMENT = "{device: cpu, wcet: 5 ms}"


CHANGES = {
    "rm": [],
    "edf": [("policy: rm", "policy: edf")],
    "rm, detect 21 ms": [("wcet: 20 ms", "wcet: 21 ms")],
    "edf, detect 21 ms": [("policy: rm", "policy: edf"), ("wcet: 20 ms", "wcet: 21 ms")],
    "rm, not preemptive": [("preemptive: true", "preemptive: false")],
    "rm, not preemptive, segments of 5 ms": [
        ("preemptive: true", "preemptive: false"),
        (
            "device: cpu, period: 30 ms, wcet: 10 ms",
            f"segments: [{SEGMENT}, {SEGMENT}], period: 30 ms",
        ),
        (
            "device: cpu, period: 50 ms, wcet: 20 ms",
            f"segments: [{', '.join([SEGMENT] * 4)}], period: 50 ms",
        ),
    ],
    "table, two slots": [("policy: rm", "policy: table"), ("preemptive: true", "slots: 2")],
}


def variant(name):
    text = TEXT
    for old, new in CHANGES[name]:
        assert old in text
        text = text.replace(old, new)
    return planned(parse(text, name).spec)


def rows(*columns):
    """Return the rows of all tables with these columns."""
    head = r" \| ".join(columns)
    found = re.findall(rf"\| {head} \|\n\|[-|]+\|\n((?:\|.*\n)+)", DOC)
    assert found
    return [[c.strip() for c in line[1:-1].split("|")] for t in found for line in t.splitlines()]


VARIANTS = rows("variant", "control", "track", "detect", "verdict")


def test_every_variant_is_in_a_table():
    assert [row[0] for row in VARIANTS] == list(CHANGES)


@pytest.mark.parametrize("row", VARIANTS, ids=[row[0] for row in VARIANTS])
def test_worst_responses_and_verdicts(row):
    name, *responses, verdict = row
    findings = judge(variant(name))
    assert [format_ns(f.response.ns) for f in findings.stages] == responses
    assert findings.verdict == verdict


def test_the_tasks():
    for name, period, wcet, share in rows("task", "period = deadline", "wcet", ".*"):
        stage = variant("rm").stage(name)
        assert stage.period_ns == stage.deadline_ns == duration_ns(period)
        assert stage.wcet_ns == duration_ns(wcet)
        assert f"{stage.wcet_ns / stage.period_ns:.3f}" == share


@pytest.mark.parametrize("row", rows("policy", "control", "track", "detect"))
def test_met_jobs_when_detect_takes_too_long(row):
    spec = variant(row[0])
    costs = {stage.name: stage.wcet_ns for stage in spec.stages} | {"detect": 26 * NS_PER_MS}
    run = simulate(spec, until_ns=3000 * NS_PER_MS, execution=lambda task, _: costs[task])
    for stage, told in zip(spec.stages, row[1:], strict=True):
        outcomes = [job.outcome for job in run.jobs_of(stage.name)]
        assert f"{outcomes.count('met')} of {len(outcomes)}" == told


def test_on_one_slot_there_is_no_table():
    text = TEXT.replace("policy: rm", "policy: table").replace(", preemptive: true", "")
    with pytest.raises(SpecError, match="no table found"):
        planned(parse(text, "one").spec)
