"""A timer stage captures when it starts: what counts from there is later than its release."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, sampled, stage, timer
from test_findings import pipeline

from avrt.analysis.holistic import solve
from avrt.analysis.schedulability import analyse
from avrt.drivers.witness import look_for_misses
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, SourceSpec, SyncSpec

DEVICES = (device(), device("gpu"), device("p", preemptive=True))
SENSE = timer("sense", wcet_ns=5, deadline_ns=100, priority=2)
OTHER = timer("other", 300, offset_ns=100, wcet_ns=30, deadline_ns=100, priority=1)
ACT = stage(
    "act",
    "sense",
    device="gpu",
    deadline_ns=60,
    deadline_from="capture",
    publish="at_deadline",
    priority=3,
)
LATE_NS = 30  # the other goes first when both are released at once
LOOP = ChainSpec(name="loop", path=("sense", "act"), reaction_ns=165, age_ns=165)


def made(*stages, **keys):
    return pipeline(SENSE, OTHER, *stages, devices=DEVICES, policy="fp", **keys)


def lowest(offset_ns):
    keys = {"wcet_ns": 35, "deadline_ns": 150, "priority": 2}
    return timer("l", 600, device="p", offset_ns=offset_ns, **keys)


def check_bound(spec, name):
    """Return the bound on a stage, which no run of `look_for_misses` exceeds."""
    response_ns = analyse(spec).stage(name).response.ns
    assert response_ns >= look_for_misses(spec).worst_ns[name]
    return response_ns


def test_what_is_published_a_time_after_capture_has_the_start_delay_as_jitter():
    then = stage("w", "act", device="p", wcet_ns=40, deadline_ns=60, priority=1)
    spec = made(ACT, then, lowest(190))
    assert check_bound(spec, "l") == 35 + 2 * 40
    assert solve(spec).members["w"][0].task.jitter_ns == LATE_NS


def test_a_deadline_from_capture_is_never_longer_than_declared():
    task = solve(made(ACT)).members["act"][0].task
    assert (task.deadline_ns, task.due_max_ns) == (60 - (5 + LATE_NS), 60)


def test_a_chain_waits_for_what_is_due_after_a_late_capture():
    spec = made(ACT, chains=(LOOP,))
    (finding,) = analyse(spec).chains
    assert (finding.latency.ns, finding.verdict) == (100 + 60 + LATE_NS, "unknown")
    assert finding.latency.ns >= worst_latency(spec)


def worst_latency(spec):
    from avrt.drivers.simulate import simulate  # noqa: PLC0415

    run = simulate(spec, until_ns=3_000, execution=lambda task, _: spec.stage(task).wcet_ns)
    return max(max(r.reaction_ns or 0, r.age_ns or 0) for r in chain_records(run))


def chain_records(run):
    return [record for record in run.records if isinstance(record, ChainRecord)]


def joined(**keys):
    """A set of the timer and of what seldom comes, which waits for it until the timeout."""
    inputs = ("sense", sampled("rare", optional=True))
    sync = SyncSpec(tolerance_ns=1, timeout_ns=50)
    return stage("j", *inputs, sync=sync, wcet_ns=40, bcet_ns=40, deadline_ns=60, device="p",
                 priority=1, **keys)  # fmt: skip


def test_a_timeout_counts_from_a_late_capture():
    spec = made(joined(), lowest(180))
    spec = replace(spec, sources=(SourceSpec(name="rare", type="gnss", period_ns=2_000),))
    assert check_bound(spec, "l") == 35 + 2 * 40
    assert check_bound(spec, "j") == 40 + 19  # the one before came LATE_NS + 50 - 1 late


@pytest.mark.parametrize(
    ("keys", "late_ns"),
    [
        ({}, LATE_NS),
        ({"publish": "at_deadline"}, 0),
        ({"on_miss": "abort"}, LATE_NS + 5 - 1),
        ({"on_miss": "abort", "bcet_ns": 3}, LATE_NS + 5 - 3),
        ({"budget_ns": 2}, LATE_NS + 5 - 2),
    ],
)
def test_a_capture_is_as_late_as_a_start(keys, late_ns):
    spec = made(ACT)
    spec = replace(spec, stages=(replace(SENSE, **keys), *spec.stages[1:]))
    solution = solve(spec)
    assert solution.published["sense"].captured_ns == late_ns
    assert solution.published["act"].captured_ns == late_ns


def test_a_set_that_may_lose_an_old_input_has_a_later_capture():
    plain = pipeline(joined(), stage("k", "j", device="p", priority=3), SENSE,
                     devices=DEVICES, policy="fp")  # fmt: skip
    assert solve(plain).published["k"].captured_ns == 0
    old = replace(plain.stage("j").inputs[1], max_age_ns=5)
    first = replace(plain.stage("j"), inputs=(plain.stage("j").inputs[0], old))
    changed = replace(plain, stages=(first, *plain.stages[1:]))
    assert solve(changed).published["k"].captured_ns == 1


def test_a_chain_through_a_set_counts_from_the_capture_of_its_head():
    chain = ChainSpec(name="c", path=("sense", "j"), reaction_ns=900)
    spec = made(joined(), chains=(chain,))
    spec = replace(spec, sources=(SourceSpec(name="rare", type="gnss", period_ns=2_000),))
    (finding,) = analyse(spec).chains
    assert finding.latency.ns == 100 + LATE_NS + 50 + (40 + 19)
    assert finding.latency.ns >= worst_latency(spec)
