"""Small pipelines, each of which shows one rule of the verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, sampled, stage, timer

from avrt.analysis.schedulability import analyse, meets
from avrt.model.graph import check
from avrt.model.spec import ChainSpec, Criticality, PipelineSpec, RedundancySpec, SourceSpec

PREEMPTIVE = device(preemptive=True)


def pipeline(*stages, devices=(), policy="edf", chains=(), period_ns=100):
    """A pipeline whose unnamed producers are sources of one period."""
    made = {s.name for s in stages}
    read = [i.source for s in stages for i in s.inputs if i.source not in made]
    spec = PipelineSpec(
        name="p",
        policy=policy,
        devices=tuple(devices) or (device(),),
        sources=tuple(
            SourceSpec(name=name, type="lidar", period_ns=period_ns) for name in dict.fromkeys(read)
        ),
        stages=stages,
        chains=chains,
    )
    check(spec)
    return spec


def found(spec, name):
    finding = analyse(spec).stage(name)
    return finding.response.ns, finding.response.label, finding.verdict


def test_a_stage_alone_takes_its_wcet_exactly():
    assert found(pipeline(stage("a", "s", wcet_ns=4)), "a") == (4, "exact", "meets")


def test_two_sources_of_unknown_phase_delay_each_other_exactly():
    spec = pipeline(
        stage("a", "s", wcet_ns=4, deadline_ns=50), stage("b", "r", wcet_ns=6, deadline_ns=60)
    )
    assert found(spec, "a") == (4 + 5, "exact", "meets")
    assert found(spec, "b") == (10, "exact", "meets")


def test_stages_of_one_source_cannot_block_what_is_released_with_them():
    spec = pipeline(
        stage("a", "s", wcet_ns=4, deadline_ns=50), stage("b", "s", wcet_ns=6, deadline_ns=60)
    )
    assert found(spec, "a") == (4, "exact", "meets")


def test_a_stage_never_waits_for_what_it_rests_on():
    spec = pipeline(stage("a", "s", wcet_ns=4), stage("b", "a", wcet_ns=6))
    assert found(spec, "b") == (6, "exact", "meets")


def test_it_does_once_the_next_message_may_come_before_it_is_done():
    spec = pipeline(
        stage("a", "s", wcet_ns=4, deadline_ns=50), stage("b", "a", wcet_ns=6, deadline_ns=50),
        period_ns=9,
    )  # fmt: skip
    assert analyse(spec).devices[0].verdict == "misses"
    spec = pipeline(stage("a", "s", wcet_ns=3), stage("b", "a", wcet_ns=3), period_ns=6)
    assert found(spec, "b") == (3, "exact", "meets")


@pytest.mark.parametrize("policy", ["edf", "fp", "rm", "dm", "fifo", "llf"])
def test_identical_replicas_each_count(policy):
    replicas = stage(
        "a", "s", wcet_ns=4, deadline_ns=20, priority=1, redundancy=RedundancySpec(copies=3)
    )
    response_ns, _, verdict = found(pipeline(replicas, policy=policy, period_ns=20), "a")
    assert (response_ns, verdict) == (12, "meets")


def test_publication_at_the_deadline_takes_the_jitter_away():
    def jitter_of(publish):
        other = stage("x", "r", wcet_ns=9, deadline_ns=90, device="one")
        first = stage("a", "s", wcet_ns=4, deadline_ns=30, publish=publish, device="one")
        spec = pipeline(
            other, first, stage("b", "a", device="two"), devices=(device("one"), device("two"))
        )
        from avrt.analysis.holistic import solve  # noqa: PLC0415

        return solve(spec).members["b"][0].task.jitter_ns

    assert jitter_of("asap") == 4 + 8 - 1
    assert jitter_of("at_deadline") == 0


def test_a_source_without_a_rate_leaves_all_of_its_device_unknown():
    spec = pipeline(stage("a", "s"), timer("b"))
    spec = replace(spec, sources=(replace(spec.sources[0], period_ns=None),))
    findings = analyse(spec)
    assert [finding.verdict for finding in findings.stages] == ["unknown", "unknown"]
    assert findings.devices[0].utilisation is None
    assert not meets(spec)


def test_a_wcet_above_the_deadline_is_known_to_miss():
    assert found(pipeline(stage("a", "s", wcet_ns=11)), "a")[2] == "misses"


def test_more_work_than_slots_is_known_to_miss():
    spec = pipeline(*(stage(f"a{i}", "s", wcet_ns=9, deadline_ns=30) for i in range(3)),
                    devices=(device(slots=2),), period_ns=13)  # fmt: skip
    findings = analyse(spec)
    assert findings.verdict == "misses"
    assert "utilisation" in findings.devices[0].source


def test_what_the_synchronous_release_shows_is_known_to_miss_whatever_the_policy():
    spec = pipeline(
        timer("a", 20, wcet_ns=6, deadline_ns=7), timer("b", 20, wcet_ns=6, deadline_ns=8),
        policy="llf",
    )  # fmt: skip
    assert "demand" in analyse(spec).devices[0].source
    assert analyse(spec).verdict == "misses"


def test_a_bound_above_the_deadline_is_only_unknown():
    spec = pipeline(
        timer("a", 20, wcet_ns=6, deadline_ns=8),
        timer("b", 20, wcet_ns=6, deadline_ns=20, offset_ns=10),
    )
    assert found(spec, "a") == (11, "bound", "unknown")


def test_a_more_critical_stage_in_danger_is_taken_to_go_first():
    stages = [
        stage("a", "s", wcet_ns=4, deadline_ns=20),
        stage("b", "r", wcet_ns=6, deadline_ns=9),
        stage("c", "q", wcet_ns=5, deadline_ns=30),
    ]
    calm = pipeline(*stages)
    graded = [stages[0], stages[1], replace(stages[2], criticality=Criticality.ASIL_D)]
    assert found(calm, "a") == found(pipeline(*graded), "a")
    graded[2] = replace(graded[2], deadline_ns=21, wcet_ns=12)
    plain = pipeline(stages[0], stages[1], replace(graded[2], criticality=Criticality.QM))
    assert found(pipeline(*graded), "a")[0] >= found(plain, "a")[0]


def test_a_queue_that_may_overflow_is_told():
    spec = pipeline(
        timer("a", 10, wcet_ns=2, deadline_ns=60, queue=1),
        timer("b", 100, wcet_ns=30, deadline_ns=100),
    )
    finding = analyse(spec).stage("a")
    assert finding.verdict == "unknown"
    assert "queue of 1 may overflow" in finding.why


def test_a_chain_adds_a_period_and_a_jitter_where_a_stage_samples():
    chain = ChainSpec(name="c", path=("s", "a", "b"), reaction_ns=130, age_ns=200)
    spec = pipeline(
        stage("a", "s", wcet_ns=4, device="one"),
        timer("b", 20, wcet_ns=3, deadline_ns=20, inputs=(sampled("a", optional=True),)),
        devices=(device("one"), device()),
        chains=(chain,),
    )
    (finding,) = analyse(spec).chains
    assert (finding.latency.ns, finding.latency.label) == (100 + 4 + 20 + 3, "bound")
    assert finding.verdict == "meets"
    spec = replace(spec, chains=(replace(chain, reaction_ns=120),))
    assert analyse(spec).chains[0].verdict == "unknown"


def test_preemptive_edf_on_one_slot_is_decided_by_demand():
    spec = pipeline(
        *(stage(f"a{i}", f"s{i}", wcet_ns=3, deadline_ns=10) for i in range(3)),
        devices=(PREEMPTIVE,), period_ns=10,
    )  # fmt: skip
    assert found(spec, "a0") == (9, "exact", "meets")
