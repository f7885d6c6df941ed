"""What is known of stages on a device that is there for part of the time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, stage, timer
from test_findings import found, pipeline

from avrt.analysis.admission import known_misses
from avrt.analysis.bounds import bounds
from avrt.analysis.schedulability import analyse, meets
from avrt.analysis.sensitivity import remedies
from avrt.drivers.plain import why_not
from avrt.drivers.simulate import simulate
from avrt.metrics.load import overload_warnings
from avrt.model.spec import ChainSpec, RedundancySpec, SegmentSpec
from avrt.model.supply import Supply

FIXED = ("fp", "rm", "dm")


def server(budget_ns=3, period_ns=5, *, starts_ns=(0,), preemptive=True):
    return replace(device(preemptive=preemptive), supply=Supply(period_ns, budget_ns, starts_ns))


def pair(**keys):
    """Two timers that rm, dm and fp order alike."""
    return pipeline(
        timer("high", 20, wcet_ns=2, deadline_ns=20, priority=1),
        timer("low", 50, wcet_ns=4, deadline_ns=50, priority=2),
        **({"devices": (server(),), "policy": "fp"} | keys),
    )


@pytest.mark.parametrize("policy", FIXED)
def test_fixed_priorities_are_bounded_by_the_least_supply(policy):
    """High: 2 after 2 (5 - 3) of nothing. Low: 6 in 4 + 5 + 3."""
    spec = pair(policy=policy)
    assert found(spec, "high") == (4 + 2, "bound", "meets")
    assert found(spec, "low") == (4 + 5 + 3, "bound", "meets")
    assert analyse(spec).devices[0].source == "busy window in the least supply (Shin & Lee 2003)"


@pytest.mark.parametrize("policy", ["edf", "llf", "fifo"])
def test_other_policies_are_bounded_in_any_order(policy):
    spec = pair(policy=policy)
    assert [found(spec, name)[0] for name in ("high", "low")] == [12, 12]


def test_what_a_whole_processor_would_do_in_time_is_not_in_time_in_a_supply():
    """Processor demand, 2 in any 4, says nothing of a device that may not be there for 4."""
    spec = pipeline(timer("a", 20, wcet_ns=2, deadline_ns=4), devices=(server(),))
    assert found(spec, "a") == (6, "bound", "unknown")


def test_without_preemption_a_lower_job_counts_whole():
    """4 of the lower one, which came to the slot and received nothing, and 2: 6 in 4 + 5 + 3."""
    assert found(pair(devices=(server(preemptive=False),)), "high") == (12, "bound", "meets")


def test_a_lower_job_that_has_received_nothing_does_block_for_all_of_its_wcet():
    """Low begins at 3, as the budget is spent; high comes at 4 and waits until 13."""
    spec = pipeline(
        timer("low", 50, wcet_ns=4, deadline_ns=50, priority=2, offset_ns=3),
        timer("high", 100, wcet_ns=2, deadline_ns=50, priority=1, offset_ns=4),
        devices=(server(starts_ns=(0, 2, 2), preemptive=False),),
        policy="fp",
    )
    jobs = simulate(spec, until_ns=50).jobs_of("high")
    assert [job.response_ns for job in jobs] == [15 - 4]
    assert found(spec, "high")[0] == 12


def test_a_run_reaches_the_bound():
    """The budget begins early, and then late twice."""
    spec = pair(devices=(server(starts_ns=(0, 2, 2)),))
    shifted = tuple(replace(s, offset_ns=3) for s in spec.stages)
    spec = replace(spec, stages=shifted)
    worst = {
        name: simulate(spec, until_ns=20).jobs_of(name)[0].response_ns for name in ("high", "low")
    }
    assert worst == {"high": 6, "low": 12}
    assert {name: figure.ns for name, figure in bounds(spec).stages.items()} == worst


def test_the_whole_period_is_a_device_that_is_always_there():
    always = pair(devices=(device(preemptive=True),))
    whole = pair(devices=(server(5, 5),))
    for name in ("high", "low"):
        assert found(whole, name)[0] == found(always, name)[0]


def test_utilisation_counts_against_the_budget():
    """0.1 and 0.08 of one slot, of 0.2 and of 0.15 that there is."""
    assert analyse(pair(devices=(server(1),))).devices[0].verdict == "unknown"
    spec = pair(devices=(server(3, 20),))
    finding = analyse(spec).devices[0]
    source = "utilisation above its supply of 0.15 (Liu & Layland 1973)"
    assert (float(finding.utilisation), finding.verdict, finding.source) == (0.18, "misses", source)
    assert found(spec, "low") == (None, "unknown", "unknown")
    assert next(what for _, what in known_misses(spec, analyse(spec))) == (
        f"cpu is asked for 0.18 of 1 slot, {source}"
    )
    told = "cpu: 0.18 of the 0.15 that its supply gives are asked for: overload"
    assert overload_warnings(spec) == [told]
    assert overload_warnings(pair(devices=(server(1),))) == []


@pytest.mark.parametrize("policy", FIXED)
def test_segments_and_what_shares_a_device_with_them_are_unknown(policy):
    parts = (SegmentSpec(device="cpu", wcet_ns=1), SegmentSpec(device="gpu", wcet_ns=1))
    spec = pair(policy=policy, devices=(server(), device("gpu")))
    first = replace(spec.stages[0], segments=parts)
    spec = replace(spec, stages=(first, spec.stages[1]))
    assert [found(spec, name)[1:] for name in ("high", "low")] == [("unknown", "unknown")] * 2


def test_stages_that_trigger_each_other_wait_for_the_supply_each():
    chain = ChainSpec(name="c", path=("s", "a", "b"), age_ns=500)
    spec = pipeline(
        stage("a", "s", wcet_ns=2, deadline_ns=40, priority=1),
        stage("b", "a", wcet_ns=2, deadline_ns=40, priority=2),
        devices=(server(),), policy="fp", chains=(chain,),
    )  # fmt: skip
    a, b = found(spec, "a")[0], found(spec, "b")[0]
    assert (a, b) == (4 + 2, 4 + 5 + 1)
    assert analyse(spec).chains[0].latency.ns == 100 + a + b


def test_every_replica_counts():
    spec = pair()
    first = replace(spec.stages[0], redundancy=RedundancySpec(copies=3))
    spec = replace(spec, stages=(first, spec.stages[1]))
    assert found(spec, "high")[0] == 4 + 5 + 3


def test_what_would_be_enough_is_a_larger_budget_and_never_a_slot_more():
    spec = pair(devices=(server(2, 10),))
    stages = (replace(spec.stages[0], deadline_ns=10), spec.stages[1])
    spec = replace(spec, stages=stages)
    assert not meets(spec)
    changes = {change.key: change for change in remedies(spec)}
    assert ("devices", "cpu", "slots") not in changes
    enough = changes["devices", "cpu", "supply", "budget"]
    assert enough.what == "supply of cpu to at least 6 ns of 10 ns"
    assert meets(enough.spec)
    less = replace(enough.spec, devices=(server(5, 10),))
    assert not meets(less)


def test_no_task_set_on_a_supply_is_plain():
    assert why_not(pair()) == "stage high is on a device with a supply"
