"""Legal runs as witnesses: what they find is real, and never contradicts an analysis."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, sampled, stage, timer
from hypothesis import given, settings
from worlds import worlds

from avrt.analysis.figure import Figure
from avrt.analysis.schedulability import analyse
from avrt.api import judgement
from avrt.api.judgement import judge
from avrt.drivers.witness import look_for_misses
from avrt.model.graph import check
from avrt.model.spec import ChainSpec, PipelineSpec, SourceSpec


def pipeline(*stages, policy="rm", preemptive=False, sources=(), chains=()):
    spec = PipelineSpec(
        name="p",
        policy=policy,
        devices=(device(preemptive=preemptive),),
        sources=sources,
        stages=stages,
        chains=chains,
    )
    check(spec)
    return spec


BEAT = timer("beat", period_ns=10, wcet_ns=2, deadline_ns=10)
LONG = timer("long", period_ns=50, wcet_ns=20, deadline_ns=50)


def test_a_miss_that_happens_is_told_with_its_job_and_cause():
    spec = pipeline(BEAT, LONG)
    assert analyse(spec).stage("beat").verdict == "unknown"
    found = judge(spec)
    beat = found.stage("beat")
    assert (beat.verdict, found.devices[0].verdict, found.verdict) == ("misses",) * 3
    assert beat.why == (
        "in a legal run job 1, released 10 ns, is late: due after 10 ns = 10 ns blocked by long"
    )
    assert found.stage("long").verdict == "meets"


def test_messages_a_nanosecond_apart_meet_the_other_ones_started_work():
    sources = tuple(SourceSpec(name=n, type="lidar", period_ns=100) for n in ("s", "r"))
    short = stage("short", "s", wcet_ns=2, deadline_ns=10)
    long = stage("long", "r", wcet_ns=20, deadline_ns=100)
    for order in (sources, sources[::-1]):
        witness = look_for_misses(pipeline(short, long, sources=order, policy="edf"))
        assert witness.ended["short"].outcome == "late"
        assert witness.worst_ns["short"] == 21


def test_a_bound_that_a_run_reaches_is_exact():
    spec = pipeline(
        BEAT,
        timer("track", period_ns=25, wcet_ns=8, deadline_ns=25),
        LONG,
        policy="edf",
        preemptive=True,
    )
    before, after = analyse(spec).stage("long"), judge(spec).stage("long")
    assert (before.response.ns, before.response.label) == (46, "bound")
    assert (after.response.ns, after.response.label) == (46, "exact")
    assert after.response.source.endswith("; reached in a legal run")


@pytest.fixture
def wrong(monkeypatch):
    """Let the analysis say of a stage what is not so."""

    def claim(name, ns, label, verdict):
        def analyse_wrongly(spec):
            found = analyse(spec)
            stages = tuple(
                replace(s, response=Figure(ns, label, "a wrong test"), verdict=verdict, why="")
                if s.name == name else replace(s, verdict="unknown")
                for s in found.stages
            )  # fmt: skip
            devices = (replace(found.devices[0], verdict="meets"),)
            return replace(found, stages=stages, devices=devices)

        monkeypatch.setattr(judgement, "analyse", analyse_wrongly)

    return claim


@pytest.mark.parametrize("label", ["bound", "exact"])
@pytest.mark.parametrize(
    ("verdict", "deadline_ns", "found"),
    [
        ("meets", 50, "unknown"),
        ("unknown", 50, "unknown"),
        ("meets", 25, "misses"),
        ("unknown", 25, "misses"),
        ("misses", 25, "misses"),
    ],
)
def test_a_run_above_a_bound_shows_that_the_analysis_is_wrong(
    wrong, label, verdict, deadline_ns, found
):
    spec = pipeline(BEAT, replace(LONG, deadline_ns=deadline_ns), preemptive=True)
    wrong("long", 20, label, verdict)
    long = judge(spec).stage("long")
    assert (long.response.ns, long.response.label, long.verdict) == (None, "unknown", found)
    assert (
        "in a legal run job 0, released 0 ns, takes 26 ns, above the bound of 20 ns (a wrong test):"
        " a bug of avrt" in long.why
    )
    assert ("is late: due after 25 ns" in long.why) == (found == "misses" != verdict)
    assert judge(spec).devices[0].verdict == ("meets" if found == "unknown" else "misses")


def test_a_miss_of_what_is_said_to_meet_is_a_miss(wrong):
    spec = pipeline(BEAT, LONG)
    wrong("beat", 40, "bound", "meets")
    beat = judge(spec).stage("beat")
    assert (beat.response.ns, beat.response.label, beat.verdict) == (40, "bound", "misses")
    assert beat.why.startswith("in a legal run job 1, released 10 ns, is late")
    assert "The analysis says that it meets: a bug of avrt" in beat.why


def test_a_broken_promise_of_a_chain_that_is_said_to_be_kept(monkeypatch):
    chain = ChainSpec(name="c", path=("long", "next"), age_ns=60)
    spec = pipeline(BEAT, LONG, stage("next", "long", wcet_ns=1, deadline_ns=50), chains=(chain,))
    found = analyse(spec)
    kept = replace(found.chains[0], latency=Figure(50, "bound", "a wrong test"), verdict="meets")
    monkeypatch.setattr(judgement, "analyse", lambda _: replace(found, chains=(kept,)))
    (chain,) = judge(spec).chains
    assert (chain.latency.ns, chain.latency.label, chain.verdict) == (None, "unknown", "misses")


def test_a_job_without_its_input_is_no_miss():
    fuse = timer("fuse", period_ns=10, wcet_ns=1, deadline_ns=10, inputs=(sampled("beat"),))
    witness = look_for_misses(pipeline(fuse, BEAT))
    assert "fuse" not in witness.ended


def test_a_broken_promise_of_a_chain_is_known():
    spec = pipeline(
        BEAT,
        LONG,
        stage("next", "long", wcet_ns=1, deadline_ns=50),
        chains=(ChainSpec(name="c", path=("long", "next"), age_ns=60),),
    )
    assert [c.verdict for c in analyse(spec).chains] != ["meets"]
    assert [c.verdict for c in judge(spec).chains] == ["misses"]


def test_a_pipeline_that_nothing_releases_shows_nothing():
    sources = (SourceSpec(name="s", type="lidar"),)
    witness = look_for_misses(pipeline(stage("a", "s"), sources=sources, policy="edf"))
    assert (witness.worst_ns, witness.ended) == ({}, {})


@pytest.mark.slow
@settings(max_examples=300)
@given(worlds())
def test_no_legal_run_contradicts_an_analysis(world):
    findings, witness = analyse(world.spec), look_for_misses(world.spec)
    for finding in findings.stages:
        worst_ns = witness.worst_ns.get(finding.name)
        if finding.response.ns is not None and worst_ns is not None:
            assert worst_ns <= finding.response.ns
        if finding.verdict == "meets":
            assert finding.name not in witness.ended
    for chain in findings.chains:
        assert chain.verdict != "meets" or chain.name not in witness.broken
