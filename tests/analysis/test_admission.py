"""What is known to miss is told with its place, by how much, and what would be enough."""

from __future__ import annotations

import pytest
from builder import device, stage, timer
from test_findings import pipeline

from avrt.analysis import admission
from avrt.analysis.admission import admit, known_misses
from avrt.analysis.schedulability import analyse
from avrt.api.judgement import judge
from avrt.errors import SpecError
from avrt.model.spec import ChainSpec


def let_in(spec):
    return admit(spec, analyse(spec), forced=False)


def told(spec):
    return list(known_misses(spec, analyse(spec)))


def test_what_meets_or_is_unknown_is_let_in():
    assert let_in(pipeline(timer("a", 20))) == ""
    unknown = pipeline(
        timer("a", 20, wcet_ns=6, deadline_ns=8),
        timer("b", 20, wcet_ns=6, deadline_ns=20, offset_ns=10),
    )
    assert let_in(unknown) == ""


def test_a_stage_that_misses_is_refused_with_a_remedy_and_can_be_forced():
    spec = pipeline(stage("a", "s", wcet_ns=14), period_ns=20)
    what = "a can take 14 ns of 10 ns, 4 ns too long"
    with pytest.raises(SpecError) as refused:
        let_in(spec)
    assert what in str(refused.value)
    assert "enough would be: wcet of a to at most 10 ns" in str(refused.value)
    assert "--force runs it anyway" in str(refused.value)
    assert refused.value.key == ("stages", "a")
    assert admit(spec, analyse(spec), forced=True) == what


def test_a_response_that_can_really_happen_is_told():
    spec = pipeline(
        stage("a", "s", wcet_ns=4, deadline_ns=8), stage("b", "r", wcet_ns=6, deadline_ns=60)
    )
    assert told(spec) == [(("stages", "a"), "a can take 9 ns of 8 ns, 1 ns too long")]


def test_a_budget_below_the_wcet_is_told_in_words():
    spec = pipeline(stage("a", "s", wcet_ns=4, budget_ns=3, on_overrun="abort"))
    assert told(spec) == [(("stages", "a"), "a: its budget 3 ns is below its wcet")]


def test_an_overloaded_device_is_told_where_no_stage_is_known_to_miss():
    spec = pipeline(*(timer(f"a{i}", 13, wcet_ns=9, deadline_ns=30) for i in range(3)),
                    devices=(device(slots=2),))  # fmt: skip
    ((key, what),) = told(spec)
    assert key == ("devices", "cpu")
    assert what.startswith("cpu is asked for 2.08 of 2 slots, utilisation above its slots")


def test_a_chain_of_known_reads_and_writes_is_told():
    stages = [
        timer("a", 20, publish="at_deadline", deadline_ns=20),
        timer("b", 20, publish="at_deadline", deadline_ns=20, inputs=stage("x", "a").inputs),
    ]
    spec = pipeline(*stages, chains=(ChainSpec(name="c", path=("a", "b"), age_ns=50),))
    assert told(spec) == [(("chains", "c"), "c can take 60 ns of 50 ns, 10 ns too long")]


def test_no_remedy_is_looked_for_where_that_takes_long(monkeypatch):
    spec = pipeline(stage("a", "s", wcet_ns=14), period_ns=20)
    monkeypatch.setattr(admission, "REMEDY_EFFORT_MAX", 0)
    with pytest.raises(SpecError, match="too long; --force"):
        let_in(spec)


def test_a_miss_that_a_legal_run_shows_is_refused():
    spec = pipeline(
        timer("beat", 10, wcet_ns=2, deadline_ns=10), timer("long", 50, wcet_ns=20, deadline_ns=50)
    )
    assert let_in(spec) == ""
    with pytest.raises(SpecError, match=r"beat: in a legal run job 1, released 10 ns, is late"):
        admit(spec, judge(spec), forced=False)
