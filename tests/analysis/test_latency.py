"""A sensor's latency, from capture to arrival, is part of what a chain promises."""

from dataclasses import replace

import pytest
from builder import stage
from test_findings import pipeline

from avrt.analysis.schedulability import analyse
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.errors import SpecError
from avrt.metrics.run import RunFigures
from avrt.model.graph import check
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, SourceSpec

CHAIN = ChainSpec(name="c", path=("s", "see", "act"), reaction_ns=400, age_ns=400)
SEE = stage("see", "s", wcet_ns=20, deadline_ns=50)
ACT = stage("act", "see", wcet_ns=10, deadline_ns=50)


def made(latency_ns):
    spec = pipeline(SEE, ACT, chains=(CHAIN,))
    source = SourceSpec(name="s", type="lidar", period_ns=100, latency_ns=latency_ns)
    return replace(spec, sources=(source,))


@pytest.mark.parametrize("latency_ns", [0, 30, 250])
def test_a_chain_bound_has_the_latency_once_and_runs_reach_it(latency_ns):
    spec = made(latency_ns)
    (finding,) = analyse(spec).chains
    assert finding.latency.ns == 100 + latency_ns + 30
    feed = periodic_arrivals(spec, 2_000)
    run = simulate(
        spec, until_ns=2_000, execution=lambda task, _: spec.stage(task).wcet_ns, feed=feed
    )
    reactions = [r.reaction_ns for r in run.records if isinstance(r, ChainRecord)]
    assert max(ns for ns in reactions if ns is not None) == finding.latency.ns


def test_arrivals_of_a_simulation_come_a_latency_after_their_captures():
    events = [event for _, event in periodic_arrivals(made(30), 400)]
    assert [(one.capture_ns, one.log_ns) for one in events] == [(0, 30), (100, 130), (200, 230),
                                                                (300, 330)]  # fmt: skip


@pytest.mark.parametrize("late_ns", [29, 31])
def test_a_message_sooner_or_later_than_its_latency_is_told(late_ns):
    spec = made(30)
    figures = RunFigures(spec)
    for at_ns, event in periodic_arrivals(spec, 300):
        moved = replace(event, capture_ns=at_ns - late_ns)
        figures.watch(at_ns, [moved], [])
    (broken,) = [figures.assumptions.first]
    assert (broken.kind, broken.declared_ns, broken.found_ns) == ("delay", 30, late_ns)


def test_a_negative_latency_is_refused():
    with pytest.raises(SpecError, match=r"sources\.s\.latency.*expected 0 or more"):
        check(made(-1))
