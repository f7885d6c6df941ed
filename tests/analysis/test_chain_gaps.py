"""A chain is bounded only where each of its stages runs as often as it is released."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import sampled, stage, timer
from test_findings import pipeline

from avrt.analysis.schedulability import analyse
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, SyncSpec

UNTIL_NS = 5_000
SYNC = SyncSpec(tolerance_ns=1, timeout_ns=5)


def latency(path, *stages, rare=()):
    """Return what is known of a chain, and the worst of a legal run, that must not be above it."""
    chain = ChainSpec(name="c", path=path, reaction_ns=900)
    spec = pipeline(*stages, chains=(chain,))
    slow = (replace(s, period_ns=1_000) if s.name in rare else s for s in spec.sources)
    spec = replace(spec, sources=tuple(slow))
    run = simulate(
        spec,
        until_ns=UNTIL_NS,
        execution=lambda task, _: spec.stage(task).wcet_ns,
        feed=periodic_arrivals(spec, UNTIL_NS, {}),
    )
    records = [record for record in run.records if isinstance(record, ChainRecord)]
    worst_ns = max(max(r.reaction_ns or 0, r.age_ns or 0) for r in records)
    figure = analyse(spec).chains[0].latency
    assert figure.ns is None or worst_ns <= figure.ns
    return figure, worst_ns


def test_another_input_that_may_be_too_old_leaves_a_chain_unknown():
    reads = stage("a", "s", sampled("x", max_age_ns=5))
    figure, worst_ns = latency(("s", "a"), reads, rare=("x",))
    assert figure.source == "a may find x too old"
    assert worst_ns > 1_000
    optional = stage("a", "s", sampled("x", max_age_ns=5, optional=True))
    assert latency(("s", "a"), optional, rare=("x",))[0].ns == 102


def test_another_input_without_an_age_limit_is_only_missing_before_it_first_comes():
    figure, worst_ns = latency(("s", "a"), stage("a", "s", sampled("x")), rare=("x",))
    assert worst_ns <= figure.ns == 102


@pytest.mark.parametrize(("max_age_ns", "known"), [(1, False), (2, True), (None, True)])
def test_a_trigger_that_may_be_too_old_is_not_handed_on(max_age_ns, known):
    trigger = sampled("s", max_age_ns=max_age_ns)
    assert (latency(("s", "a"), stage("a", trigger))[0].ns is not None) == known


def test_what_releases_a_stage_that_samples_must_come_for_certain():
    joined = stage("j", "s", sampled("r"), sync=SYNC)
    figure, worst_ns = latency(("q", "k"), joined, stage("k", "j", sampled("q")), rare=("r",))
    assert figure.source == "j skips incomplete sets"
    assert worst_ns > 1_000
    by_timer = (timer("j"), stage("k", "j", sampled("q")))
    assert latency(("q", "k"), *by_timer)[0].ns is not None


def test_a_path_of_logical_execution_times_is_no_exception():
    keys = {"publish": "at_deadline", "deadline_ns": 10}
    reads = timer("b", inputs=(sampled("a"), sampled("x", max_age_ns=5)), **keys)
    figure, _ = latency(("a", "b"), timer("a", **keys), reads, rare=("x",))
    assert figure.source == "b may find x too old"
