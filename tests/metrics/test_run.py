"""The figures of a run add up: every record of every kind is counted where it belongs."""

from collections import Counter
from itertools import product

from builder import Bench, stage, timer
from hypothesis import given
from tracing import drive

from avrt.metrics.run import ANOMALIES_KEPT, MISSES_KEPT, RunFigures, StageFigures
from avrt.model.codec import from_json, to_json
from avrt.model.records import (
    OUTCOMES,
    ChainBroken,
    ChainRecord,
    FaultRecord,
    JobRecord,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
    SyncRecord,
    VoteRecord,
    WindowRecord,
)
from avrt.model.spec import RedundancySpec
from pipelines import Limits, examples, scenarios


def figures_of(trace, end=None):
    figures = RunFigures(trace.spec)
    for _, command in trace.commands[:end]:
        figures.take(command)
    return figures


def test_anomalies_are_counted_by_kind_and_no_more_kinds_than_the_limit_are_kept():
    figures = StageFigures()
    words = ["".join(pair) for pair in product("abcdefgh", repeat=2)]
    for seconds in (1.5, 2.5):
        figures.told([f"radar: silent for {seconds} s", *words])
    assert figures.anomalies["radar: silent for 1.5 s"] == 2
    assert len(figures.anomalies) == ANOMALIES_KEPT
    assert set(figures.anomalies.values()) == {2}


@examples(40)
@given(scenarios())
def test_every_record_is_counted_once(scenario):
    trace = drive(scenario)
    figures = figures_of(trace)
    jobs = trace.records(JobRecord)
    totals = figures.jobs()
    assert totals["released"] == len(jobs)
    assert totals["open"] == 0
    assert {name: totals[name] for name in OUTCOMES} == {
        name: sum(j.outcome == name for j in jobs) for name in OUTCOMES
    }
    for name, stage_figures in figures.stages.items():
        mine = [j for j in jobs if j.stage == name]
        done = [j for j in mine if j.outcome in {"met", "late"}]
        assert stage_figures.jobs()["released"] == len(mine)
        assert len(stage_figures.response) == len(stage_figures.execution) == len(done)
        assert stage_figures.reported_late == sum(j.reported_late for j in mine)
        assert sum(stage_figures.absent.values()) == sum(len(j.absent) for j in mine)
        assert sum(stage_figures.reasons.values()) == sum(bool(j.reason) for j in mine)
    misses = trace.records(MissRecord)
    assert figures.miss_count == len(misses)
    assert figures.misses == misses[:MISSES_KEPT]
    assert sum(s.overruns for s in figures.stages.values()) == len(trace.records(OverrunRecord))
    windows = trace.records(WindowRecord)
    assert sum(s.violations for s in figures.stages.values()) == len(windows)
    assert sum(figures.faults.values()) == len(trace.records(FaultRecord))
    assert sum(sets.incomplete for sets in figures.sets.values()) == len(trace.records(SyncRecord))
    votes = sum(stage.votes.count for stage in figures.stages.values())
    assert votes == len([r for r in trace.records(VoteRecord) if r.verdict])
    assert figures.modes == trace.records(ModeRecord)
    assert figures.resources == trace.records(ResourceRecord)


@examples(30)
@given(scenarios())
def test_causes_of_lateness_sum_to_the_time_between_release_and_miss(scenario):
    trace = drive(scenario)
    figures = figures_of(trace)
    expected = Counter()
    for miss in trace.records(MissRecord):
        expected[trace.stage_of(miss.task).name] += miss.at_ns - miss.release_ns
    found = {name: sum(stage.causes.values()) for name, stage in figures.stages.items()}
    assert found == {name: expected[name] for name in figures.stages}


@examples(40)
@given(scenarios(Limits(stages_max=5)))
def test_chains_count_their_outputs_and_broken_promises(scenario):
    trace = drive(scenario)
    figures = figures_of(trace)
    for name, chain in figures.chains.items():
        outputs = [r for r in trace.records(ChainRecord) if r.chain == name]
        assert len(chain.path) == len(outputs)
        assert len(chain.age) == sum(r.age_ns is not None for r in outputs)
        assert len(chain.reaction) == sum(r.reaction_ns is not None for r in outputs)
        broken = [r.promise for r in trace.records(ChainBroken) if r.chain == name]
        assert chain.broken == Counter(broken)
        assert chain.summary()["broken"] == len(broken)


@examples(20)
@given(scenarios(Limits(stages_max=5)))
def test_broken_promises_are_jobs_not_met_windows_and_chain_limits(scenario):
    trace = drive(scenario)
    not_met = sum(j.outcome != "met" for j in trace.records(JobRecord))
    others = len(trace.records(WindowRecord)) + len(trace.records(ChainBroken))
    assert figures_of(trace).broken_promises == not_met + others


@examples(30)
@given(scenarios())
def test_after_an_interruption_jobs_that_had_begun_are_open(scenario):
    trace = drive(scenario)
    for end in range(0, len(trace.commands), 1 + len(trace.commands) // 5):
        totals = figures_of(trace, end).jobs()
        assert totals["released"] == sum(totals[name] for name in (*OUTCOMES, "open"))
        assert totals["open"] >= 0


@examples(20)
@given(scenarios())
def test_the_summary_is_plain_data(scenario):
    summary = figures_of(drive(scenario)).summary()
    assert from_json(to_json(summary)) == summary


def test_the_first_execution_on_the_host_is_warm_up():
    figures = RunFigures(Bench(timer("beat")).spec).stages["beat"]
    figures.measured(900)
    for host_ns in (10, 20, 30):
        figures.measured(host_ns, "boom" if host_ns == 20 else None)
    assert figures.first_ns == 900
    assert figures.first_fault == "boom"
    assert figures.host_execution.summary()["max"] == 30


def test_replicas_are_counted_with_their_stage():
    spec = Bench(stage("see", "lidar", redundancy=RedundancySpec(copies=3))).spec
    figures = RunFigures(spec)
    assert figures.stage_of("see.2") is figures.stages["see"]
