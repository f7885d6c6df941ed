"""What is exact, and what is known to miss, rests on jobs that really run for their wcet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, sampled, stage, timer
from test_findings import found, pipeline

from avrt.analysis.schedulability import analyse
from avrt.drivers.witness import look_for_misses
from avrt.model.spec import Criticality, SegmentSpec, SyncSpec

DEVICES = (device(preemptive=True), device("other"))
HIGH = timer("hi", 10, wcet_ns=8, deadline_ns=10, priority=1)
LOW = timer("lo", 100, wcet_ns=20, deadline_ns=40, priority=2)


def made(*stages, policy="fp", **keys):
    return pipeline(*stages, devices=DEVICES, policy=policy, **keys)


def test_a_rival_that_always_runs_makes_a_response_exact():
    assert found(made(HIGH, LOW), "lo") == (100, "exact", "misses")


@pytest.mark.parametrize(
    "keys",
    [
        {"inputs": (sampled("s", max_age_ns=5),)},
        {"inputs": (sampled("s"),)},
        {"budget_ns": 2, "on_overrun": "abort"},
        {"on_miss": "abort", "deadline_ns": 2},
    ],
)
def test_a_rival_that_may_end_before_makes_it_only_a_bound(keys):
    spec = made(replace(HIGH, **keys), LOW)
    assert found(spec, "lo") == (100, "bound", "unknown")
    assert look_for_misses(spec).worst_ns["lo"] <= 100


@pytest.mark.parametrize(
    "keys",
    [
        {"inputs": (sampled("s", optional=True, max_age_ns=5),)},
        {"budget_ns": 2},
        {"budget_ns": 8, "on_overrun": "abort"},
        {"on_miss": "abort"},
        {"on_miss": "skip_next"},
        {"queue": 1},
    ],
)
def test_what_never_ends_a_job_before_changes_nothing(keys):
    assert found(made(replace(HIGH, **keys), LOW), "lo") == (100, "exact", "misses")


@pytest.mark.parametrize("keys", [{"queue": 1}, {"on_miss": "skip_next"}, {"queue": 2}])
def test_nor_is_a_rival_counted_that_is_shed_or_skipped(keys):
    middle = timer("mid", 20, wcet_ns=3, deadline_ns=60, priority=2, **keys)
    low = timer("lo", 200, wcet_ns=20, deadline_ns=40, priority=3)
    spec = made(timer("hi", 100, wcet_ns=30, deadline_ns=50, priority=1), middle, low)
    assert found(spec, "lo")[1] == ("exact" if keys == {"queue": 2} else "bound")


def test_a_job_that_never_runs_for_its_wcet_does_not_attain_it():
    alone = timer("a", wcet_ns=8, deadline_ns=10)
    assert found(made(alone, policy="edf"), "a") == (8, "exact", "meets")
    cut = replace(alone, budget_ns=2, on_overrun="abort")
    assert found(made(cut, policy="edf"), "a") == (8, "bound", "misses")
    late = replace(alone, deadline_ns=2, on_miss="abort")
    assert found(made(late, policy="edf"), "a") == (8, "bound", "misses")
    segments = tuple(SegmentSpec(device=name, wcet_ns=4) for name in ("cpu", "other"))
    parted = replace(alone, segments=segments)
    assert found(made(parted, policy="edf"), "a") == (8, "exact", "meets")
    parted = replace(parted, budget_ns=2, on_overrun="abort")
    assert found(made(parted, policy="edf"), "a") == (8, "bound", "misses")


@pytest.mark.parametrize("keys", [{"wcet_ns": 11}, {"budget_ns": 2, "on_overrun": "abort"}])
def test_what_may_lack_its_input_need_not_miss(keys):
    reads = replace(HIGH, inputs=(sampled("s", max_age_ns=1),), **keys)
    assert found(made(reads), "hi")[2] == "unknown"
    assert found(made(replace(reads, inputs=())), "hi")[2] == "misses"


def device_of(*stages, **keys):
    (finding, _) = analyse(made(*stages, policy="edf", **keys)).devices
    return finding.verdict


def test_a_stage_that_may_lack_its_input_is_no_overload():
    reads = timer("hi", 10, wcet_ns=12, deadline_ns=60, inputs=(sampled("s", max_age_ns=5),))
    assert device_of(reads, LOW) == "unknown"
    assert device_of(replace(reads, inputs=()), LOW) == "misses"
    follower = stage("c", "hi", wcet_ns=12, deadline_ns=60)
    other = replace(reads, device="other", wcet_ns=1)
    assert device_of(other, follower) == "unknown"
    assert device_of(replace(other, inputs=()), follower) == "misses"


def test_what_follows_a_stage_of_another_device_that_may_not_end_is_no_overload():
    first = stage("a", "s", wcet_ns=2, deadline_ns=5, device="other", on_miss="abort")
    then = stage("b", "a", wcet_ns=12, deadline_ns=60)
    assert device_of(first, then, period_ns=10) == "misses"
    rival = stage("r", "q", wcet_ns=6, deadline_ns=60, device="other")
    assert device_of(first, rival, then, period_ns=10) == "unknown"
    same = replace(first, device="cpu")
    assert device_of(same, then, period_ns=10) == "misses"


def test_nor_is_a_demand_that_no_input_backs():
    reads = timer("a", 20, wcet_ns=6, deadline_ns=8, inputs=(sampled("s", max_age_ns=5),))
    rival = timer("b", 20, wcet_ns=6, deadline_ns=8)
    assert device_of(reads, rival) == "unknown"
    assert device_of(replace(reads, inputs=()), rival) == "misses"


def test_sets_that_need_an_input_are_not_taken_for_certain():
    sync = SyncSpec(tolerance_ns=1, timeout_ns=2)
    joined = stage("j", "s", "r", sync=sync, wcet_ns=12, deadline_ns=60)
    assert device_of(joined, period_ns=10) == "unknown"


def test_what_criticality_may_shed_is_not_exact():
    critical = replace(HIGH, criticality=Criticality.ASIL_D, deadline_ns=9, wcet_ns=6)
    spec = made(critical, replace(LOW, wcet_ns=10))
    assert found(spec, "lo")[1] == "bound"
