"""No legal run of the real kernel exceeds what the analyses say of its pipeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from worlds import worlds

from avrt.analysis import holistic
from avrt.analysis.holistic import solve
from avrt.analysis.schedulability import analyse
from avrt.model.records import ChainRecord
from pipelines import ONLINE, examples


def check_world(world):
    """Compare one run with all that is known of its pipeline."""
    check_against(world, world.spec)


def check_against(world, spec):
    """Compare one run with all that is known of a pipeline."""
    findings = analyse(spec)
    simulation = world.simulate()
    for stage in world.spec.stages:
        finding = findings.stage(stage.name)
        for name in stage.task_names:
            jobs = simulation.jobs_of(name)
            ended = [job for job in jobs if job.outcome in ("met", "late")]
            if finding.response.ns is not None:
                worst_ns = max((j.end_ns - j.release_ns for j in ended), default=0)
                assert worst_ns <= finding.response.ns, (stage.name, finding)
            if finding.verdict == "meets":
                lost = [j for j in jobs if j.outcome != "met" and j.reason not in INPUTS]
                assert lost == [], (stage.name, finding)
    check_chains(world, findings, simulation)


SHORT = (1, 1, 1, 2, 3)
INPUTS = ("input_missing", "stale")  # no matter of scheduling


def check_chains(world, findings, simulation):
    records = [r for r in simulation.records if isinstance(r, ChainRecord)]
    for finding in findings.chains:
        limit_ns = finding.latency.ns
        if limit_ns is None or world.is_sporadic:
            continue  # what comes less often than declared is known later
        for record in (r for r in records if r.chain == finding.name):
            assert (record.reaction_ns or 0) <= limit_ns, finding
            assert (record.age_ns or 0) <= limit_ns, finding


@given(worlds())
@examples(30)
def test_no_run_exceeds_what_is_known(world):
    check_world(world)


@given(worlds(segmented=True))
@examples(30)
def test_no_run_with_segments_exceeds_what_is_known(world):
    check_world(world)


@given(worlds(supplied=True, wcets=SHORT))
@examples(30)
def test_no_run_with_a_supply_exceeds_what_is_known(world):
    check_world(world)


@given(worlds(captured=True))
@examples(30)
def test_no_run_with_late_captures_exceeds_what_is_known(world):
    check_world(world)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_nor_where_the_search_was_given_up(rounds, monkeypatch):
    monkeypatch.setattr(holistic, "ROUNDS_MAX", rounds)

    @given(worlds(segmented=True))
    @examples(60)
    def check_all(world):
        check_world(world)
        check_touched(world.spec)

    check_all()


def check_touched(spec):
    """What shares a device with a stage of segments that has no bound has none either."""
    solution = solve(spec)
    unknown = [s for s in spec.stages if s.segments and solution.response_ns(s.name) is None]
    devices = {part.device for stage in unknown for part in stage.segments}
    members = [member for name in devices for member in solution.on(name)]
    assert [member.name for member in members if member.response_ns is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("policy", ONLINE)
def test_no_run_of_a_thousand_exceeds_what_is_known(policy):
    @given(worlds(policies=(policy,)))
    @examples(170)  # 5,000 each with --hypothesis-profile=nightly
    def check_all(world):
        check_world(world)

    check_all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"simple": True}, {"segmented": True}])
@pytest.mark.parametrize("policy", ONLINE)
def test_no_run_of_a_thousand_with_a_supply_exceeds_what_is_known(policy, shape):
    @given(worlds(policies=(policy,), supplied=True, wcets=SHORT, **shape))
    @examples(170)  # 5,000 each with --hypothesis-profile=nightly
    def check_all(world):
        check_world(world)

    check_all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ONLINE)
def test_no_run_of_a_thousand_with_late_captures_exceeds_what_is_known(policy):
    @given(worlds(policies=(policy,), captured=True))
    @examples(170)  # 5,000 each with --hypothesis-profile=nightly
    def check_all(world):
        check_world(world)

    check_all()


@given(worlds(simple=True, segmented=True))
@examples(15)
def test_no_run_with_preemption_points_exceeds_what_is_known(world):
    check_world(world)


@pytest.mark.slow
@pytest.mark.parametrize("simple", [False, True])
@pytest.mark.parametrize("policy", ONLINE)
def test_no_run_of_a_thousand_with_segments_exceeds_what_is_known(policy, simple):
    @given(worlds(policies=(policy,), simple=simple, segmented=True))
    @examples(170)  # 5,000 each with --hypothesis-profile=nightly
    def check_all(world):
        check_world(world)

    check_all()


@given(worlds(simple=True))
@examples(15)
def test_what_executes_longer_or_comes_with_more_jitter_never_ends_sooner(world):
    before = solve(world.spec)
    for place in range(len(world.spec.stages)):
        for changed in heavier(world.spec, place):
            after = solve(changed)
            for stage in world.spec.stages:
                old, new = before.response_ns(stage.name), after.response_ns(stage.name)
                assert new is None or (old is not None and old <= new), stage.name


def heavier(spec, place):
    """The pipeline with a longer wcet of one stage, and with more jitter of it."""
    stage = spec.stages[place]
    for more in (
        replace(stage, wcet_ns=stage.wcet_ns + 1),
        replace(stage, jitter_ns=stage.jitter_ns + 2),
    ):
        stages = [*spec.stages]
        stages[place] = more
        yield replace(spec, stages=tuple(stages))
