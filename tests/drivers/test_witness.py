"""Legal runs as witnesses: what they find is real, and never contradicts an analysis."""

from __future__ import annotations

import pytest
from builder import device, sampled, stage, timer
from hypothesis import given, settings
from worlds import worlds

from avrt.analysis.schedulability import analyse
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
