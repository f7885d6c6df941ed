"""The analyses give the published values of the cases, or the documented difference.

Responses count from the release here; published ones with jitter count from the nominal arrival.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from avrt.analysis import global_tests
from avrt.analysis.chains import job_chains
from avrt.analysis.demand import demand_ns, first_overload_ns, quick_demand_test
from avrt.analysis.executor import callback_response, chain_response
from avrt.analysis.holistic import solve
from avrt.analysis.overheads import KernelCosts, charged
from avrt.analysis.response_time import (
    earliest_deadline_first,
    first_in_first_out,
    fixed_priority_set,
    from_nominal,
)
from avrt.analysis.schedulability import analyse
from avrt.analysis.supply import response_in_supply
from avrt.analysis.tasks import Task, utilisation
from avrt.model.spec import ChainSpec, InputSpec, PipelineSpec, SourceSpec
from avrt.model.supply import Supply
from cases.reference import bounded, exact
from cases.schedule import EDF, Machine, device_of, hyperperiod, periodic, reads, stage_of, tasks_of
from cases.test_chains import IMPLICIT, LOGICAL
from cases.test_devices import resources
from cases.test_edf import NONPREEMPTIVE_SETS, PREEMPTIVE
from cases.test_fixed_priority import RESPONSE_TIMES, VERDICTS
from cases.test_nonpreemptive import FLOATING, LIMITED
from cases.test_nonpreemptive import NONPREEMPTIVE_SETS as NONPREEMPTIVE_FP

FIXED = [
    *RESPONSE_TIMES, "fp-audsley-18", "fp-blocked", "fp-overload", "fp-jitter-back-to-back",
    *NONPREEMPTIVE_FP, *LIMITED, *FLOATING,
]  # fmt: skip
DEADLINE = [*PREEMPTIVE, *NONPREEMPTIVE_SETS, "edf-fnps-ex1", "edf-lp-ex1"]


def analysed(case):
    """The tasks of a case as the analyses know them, in listed order."""
    return [analysed_task(case, place, item) for place, item in enumerate(case["tasks"])]


def analysed_task(case, place, item):
    task = Task(
        name=str(place),
        wcet_ns=item["C"],
        period_ns=item["T"],
        deadline_ns=item.get("D", item["T"]),
        jitter_ns=item.get("J", 0),
        blocking_ns=item.get("B", 0),
        suspension_ns=item.get("suspend", 0),
        priority=place,
    )
    if "max_segment" in item:
        return replace(task, longest_ns=item["max_segment"], last_ns=item["last_segment"])
    if "max_np" in item:
        return replace(task, longest_ns=item["max_np"])
    return task.nonpreemptive() if case["policy"].get("preemptive") is False else task


def others_of(tasks, task):
    return [other for other in tasks if other is not task]


def fixed_priority_responses(tasks):
    return [
        None if finishes is None else from_nominal(task, finishes)
        for task, finishes in zip(tasks, fixed_priority_set(tasks), strict=True)
    ]


# One processor


@exact(*FIXED)
def test_response_times_of_fixed_priorities(case):
    assert fixed_priority_responses(analysed(case)) == case["expected"]["response_times"]


@exact(*VERDICTS)
def test_deadlines_are_met_when_no_response_is_longer(case):
    tasks = analysed(case)
    responses = fixed_priority_responses(tasks)
    pairs = zip(responses, tasks, strict=True)
    meets = all(ns is not None and ns <= task.deadline_ns for ns, task in pairs)
    assert meets is case["expected"]["schedulable"]


@bounded("fp-susp-5")
def test_self_suspension_is_execution_for_the_task_and_jitter_for_the_ones_below(case):
    """The published test ends at the deadline; here the bound above it is told."""
    tasks = analysed(case)
    *first, last = fixed_priority_responses(tasks)
    *expected, nothing = case["expected"]["response_times"]
    assert first == expected
    assert nothing is None
    assert last > tasks[-1].deadline_ns


@exact("can-davis2007-abc")
def test_can_messages_are_one_unit_less_in_discrete_time(case):
    """In continuous time a lower message blocks for all of its length."""
    revised = case["expected"]["revised"]
    assert fixed_priority_responses(analysed(case)) == [revised[0] - 1, revised[1] - 1, revised[2]]


@exact("can-davis2007-abc")
def test_the_first_instance_alone_would_be_optimistic(case):
    tasks = analysed(case)
    first = [finishes[0] for finishes in fixed_priority_set(tasks)]
    single = case["expected"]["single_instance"]
    assert first == [single[0] - 1, single[1] - 1, single[2]]


@exact(*DEADLINE)
def test_response_times_of_edf(case):
    tasks = analysed(case)
    found = [earliest_deadline_first(task, others_of(tasks, task)) for task in tasks]
    assert found == case["expected"]["response_times"]


@exact("fifo-ex1", "fifo-ex2")
def test_response_times_of_fifo(case):
    tasks = analysed(case)
    found = [first_in_first_out(task, others_of(tasks, task)) for task in tasks]
    assert found == case["expected"]["response_times"]


@exact("edf-qpa-8", "edf-qpa-9", "edf-qpa-unsched-1", "edf-qpa-unsched-2")
def test_quick_demand_analysis_decides(case):
    tasks = analysed(case)
    expected = case["expected"]
    assert quick_demand_test(tasks) is expected["qpa"] is expected["schedulable"]
    assert first_overload_ns(tasks) == expected["first_overloaded_interval"]


@exact("edf-pdc-buttazzo")
def test_the_demand_of_each_window(case):
    tasks = analysed(case)
    expected = case["expected"]
    assert {t: demand_ns(tasks, t) for t in expected["demand"]} == expected["demand"]
    assert quick_demand_test(tasks) is expected["schedulable"]


@exact("edf-overload-ts2", "rm-vs-edf-lipari", "rm-vs-edf-buttazzo")
def test_edf_by_demand(case):
    expected = case["expected"]
    verdict = expected["EDF"]["schedulable"] if "EDF" in expected else expected["schedulable"]
    assert quick_demand_test(analysed(case)) is verdict


@exact("fp-liu-layland-2", "fp-simso-doc", "dhall-m2", "dhall-m4")
def test_utilisation(case):
    assert round(float(utilisation(analysed(case))), 4) == case["expected"]["utilization"]


@exact("tmr-identical-replicas")
@pytest.mark.parametrize("policy", ["fp", "edf", "fifo"])
def test_identical_replicas_each_count(case, policy):
    tasks = [replace(task, priority=1) for task in analysed(case)]
    expected = case["expected"]
    for task in tasks:
        others = others_of(tasks, task)
        if policy == "edf":
            assert earliest_deadline_first(task, others) == expected["edf_worst"]
        elif policy == "fifo":
            assert first_in_first_out(task, others) == expected["edf_worst"]
    if policy == "fp":
        assert fixed_priority_responses(tasks) == expected["distinct_priorities"]


# Overheads

KERNEL_COSTS = {
    "schedule": "schedule_ns",
    "ctx_switch": "switch_ns",
    "cache_affinity_loss": "cache_loss_ns",
    "ipi_latency": "ipi_ns",
    "release_latency": "latency_ns",
    "release": "release_ns",
    "tick": "tick_ns",
    "initial_cache_load": "cache_load_ns",
}


@exact(*(f"overhead-{name}" for name in KERNEL_COSTS))
def test_overheads_of_a_kernel_lengthen_tasks(case):
    """What costs how much stands in the title only."""
    name, cost = case["title"].rpartition(": ")[2].split(" = ")
    costs = KernelCosts(**{KERNEL_COSTS[name]: int(cost)}, quantum_ns=case["model"]["quantum"])
    found = charged(analysed(case), costs, case["model"]["processors"])
    assert [task.wcet_ns for task in found] == case["expected"]["C"]
    assert [task.period_ns for task in found] == case["expected"]["T"]


# Several


@exact("gfp-rta-m2", "gfp-rta-m3")
def test_global_fixed_priorities(case):
    found = global_tests.response_times_fp(analysed(case), case["policy"]["processors"])
    assert found == case["expected"]["response_times"]


@bounded("gfp-rta-m3-noslack")
def test_without_slack_the_cut_of_bertogna_and_cirinei_is_tighter_by_one(case):
    """The published tool leaves the cut `min(W, w - C + 1)` out and gives 14."""
    found = global_tests.response_times_fp(analysed(case), 3, use_slack=False)
    assert found == [1, 1, 3, 13]
    assert all(a <= b for a, b in zip(found, case["expected"]["response_times"], strict=True))


@exact("gedf-gfb-yes-bak-no", "gedf-gfb-no-bcl-yes")
def test_global_edf_tests_accept_different_sets(case):
    tasks = analysed(case)
    tests = {"GFB": global_tests.gfb, "BAK": global_tests.bak, "BCL": global_tests.bcl}
    for name, verdict in case["expected"].items():
        assert tests[name](tasks, 2) == ("meets" if verdict else "unknown")


@exact("gedf-tardiness-223")
def test_tardiness_of_global_edf(case):
    assert global_tests.tardiness_ns(analysed(case), 2) == case["expected"]["tardiness_bound"]


@bounded("dhall-m2", "dhall-m4")
def test_no_test_accepts_what_misses(case):
    tasks, slots = analysed(case), case["policy"]["processors"]
    for test in (global_tests.gfb, global_tests.bak, global_tests.bcl):
        assert test(tasks, slots) == "unknown"


@exact("gedf-baruah-uni")
def test_a_fourth_task_needs_the_second_processor(case):
    """The tests of a whole set do not accept it; the window from the release does."""
    tasks = tasks_of(case)
    more = [*tasks, replace(tasks[0], cost=27, period=28, deadline=28)]
    expected = case["expected"]
    for key, members, slots in (("m1", tasks, 1), ("m1_plus_27_28", more, 1),
                                ("m2_plus_27_28", more, 2)):  # fmt: skip
        verdict = analyse(independent(members, replace(EDF, slots=slots))).verdict
        assert (verdict == "meets") is expected[key]


def independent(tasks, machine):
    """A pipeline of tasks that are released by a source each."""
    return PipelineSpec(
        name="case",
        policy=machine.policy,
        devices=(device_of(machine),),
        sources=tuple(
            SourceSpec(name=f"s{i}", type="can", period_ns=task.period)
            for i, task in enumerate(tasks)
        ),
        stages=tuple(
            stage_of(task, machine, f"t{i}", inputs=(reads(f"s{i}"),), trigger="in")
            for i, task in enumerate(tasks)
        ),
    )


@exact("pfair-3")
def test_a_fluid_schedule_exists_when_the_densities_fit(case):
    tasks = analysed(case)
    assert global_tests.fluid(tasks, 2) is case["expected"]["m2"]
    assert global_tests.fluid(tasks, 1) is case["expected"]["m1"]


@exact("pfair-3-constrained")
def test_a_fluid_schedule_that_gives_each_task_its_rate_is_late_by_period_less_deadline(case):
    tasks = analysed(case)
    expected = case["expected"]
    assert global_tests.fluid(tasks, 2) is expected["m2_schedulable"]
    assert utilisation(tasks) == 2 == Fraction(2)
    assert [max(0, t.period_ns - t.deadline_ns) for t in tasks] == expected["tardiness"]


# Supply and arrivals


@exact("ros2-event-source", "ros2-timer-1", "ros2-timer-2", "ros2-timer-3")
def test_responses_within_a_reservation(case):
    task, *others = analysed(case)
    blocking = case["model"].get("blocking", 0)
    found = response_in_supply(task, others, reservation(case), blocking)
    assert found == case["expected"]["bound"]


def reservation(case):
    return Supply(case["model"]["supply"]["period"], case["model"]["supply"]["budget"])


@exact("ros2-pp-1")
def test_responses_of_polled_callbacks(case):
    task, *others = analysed(case)
    assert callback_response(task, others, reservation(case)) == case["expected"]["bound"]


@exact("ros2-chain")
def test_responses_of_chains_of_polled_callbacks(case):
    """A task of the case is a chain, with the wcet of each of its callbacks."""
    chain, *others = [
        analysed_task(case, place, item | {"C": sum(item["C"])})
        for place, item in enumerate(case["tasks"])
    ]
    last = case["tasks"][0]["C"][-1]
    found = chain_response(chain, last, others, reservation(case))
    assert found == case["expected"]["bound"]


@exact("cpa-pjd-delta-min")
def test_the_least_distance_of_events(case):
    (item,) = case["tasks"]
    task = Task(name="it", wcet_ns=1, period_ns=item["P"], deadline_ns=1, jitter_ns=item["J"])
    found = {n: task.earliest_ns(n - 1) for n in case["expected"]["delta_min"]}
    assert found == case["expected"]["delta_min"]


# Chains and pipelines


@exact(*IMPLICIT)
def test_job_chains_of_a_schedule(case):
    tasks, path = tasks_of(case), case["chain"]
    settled = 2 * sum(tasks[index].period for index in path)
    span = (settled, settled + hyperperiod(tasks))
    jobs = periodic(tasks, Machine(), span[1] + settled).jobs
    reads = [[job.start_ns for job in jobs[index]] for index in path]
    writes = [[job.end_ns for job in jobs[index]] for index in path]
    assert values(job_chains(reads, writes, span)) == case["expected"]


@exact(*LOGICAL)
def test_job_chains_of_logical_execution_times(case):
    tasks, path = tasks_of(case), case["chain"]
    settled = 4 * sum(tasks[index].period for index in path)
    span = (settled, settled + hyperperiod(tasks))
    reads = [range(tasks[i].offset, span[1] + settled, tasks[i].period) for i in path]
    writes = [
        [at + tasks[i].deadline for at in times] for i, times in zip(path, reads, strict=True)
    ]
    assert values(job_chains(reads, writes, span)) == case["expected"]


def values(worst):
    return {
        "MRT": worst.reaction_ns,
        "MDA": worst.age_ns,
        "MRRT": worst.reduced_reaction_ns,
        "MRDA": worst.reduced_age_ns,
    }


def rated(case):
    """The pipeline of a pyCPA example with the rates and jitters of its sources."""
    spec, heads = resources(case)
    items = {item["name"]: item for item in case["tasks"]}
    sources = tuple(
        SourceSpec(name=source.name, type="can", period_ns=head["P"])
        for source, head in zip(spec.sources, heads, strict=True)
    )
    stages = tuple(
        replace(stage, bcet_ns=items[stage.name]["bcet"], jitter_ns=items[stage.name].get("J", 0))
        for stage in spec.stages
    )
    return replace(spec, sources=sources, stages=stages)


@exact("cpa-spp-2cpu")
def test_responses_along_two_processors(case):
    solution = solve(rated(case))
    found = {name: solution.response_ns(name) for name in case["expected"]["wcrt"]}
    assert found == case["expected"]["wcrt"]


@bounded("cpa-tutorial-step1")
def test_responses_along_a_bus_are_at_most_a_wider_event_model_apart(case):
    """pyCPA passes on busy windows; jitter alone lets a third T32 meet T31: 14 instead of 11.

    And on its bus a lower message blocks for all of its length, here for one unit less.
    """
    solution = solve(rated(case))
    expected = case["expected"]["wcrt"]
    found = {name: solution.response_ns(name) for name in expected}
    assert found == expected | {"T21": 10, "T31": 14}


@bounded("chain-impl-3-rm", "chain-impl-3-rev", "chain-impl-nonharm", "chain-impl-perception")
def test_the_bound_of_a_chain_is_not_below_its_exact_value(case):
    spec = sampled_chain(case)
    (chain,) = analyse(spec).chains
    assert chain.latency.label == "bound"
    assert chain.latency.ns >= case["expected"]["MRT"]


@exact("chain-let-3-sync", "chain-let-3-desc", "chain-let-3-nonharm", "chain-let-offset")
def test_a_chain_of_logical_execution_times_is_exact(case):
    (chain,) = analyse(sampled_chain(case, publish="at_deadline")).chains
    assert chain.latency.label == "exact"
    assert chain.latency.ns == case["expected"]["MRT"] == case["expected"]["MDA"]


def sampled_chain(case, **keys):
    """A chain of timer stages, each sampling the one before, by fixed priorities."""

    tasks, path = tasks_of(case), case["chain"]
    before = dict(zip(path[1:], path, strict=False))
    machine = Machine()
    stages = tuple(
        stage_of(
            task,
            machine,
            f"t{index}",
            period_ns=task.period,
            offset_ns=task.offset,
            inputs=(InputSpec(name="i", source=f"t{before[index]}", optional=True),)
            if index in before
            else (),
            **keys,
        )
        for index, task in enumerate(tasks)
    )
    chain = ChainSpec(name="chain", path=tuple(f"t{index}" for index in path))
    device = device_of(machine)
    return PipelineSpec(name="case", policy="fp", devices=(device,), stages=stages, chains=(chain,))
