"""Preemptive fixed priorities on one processor: response times are exact in the busy window.

Lehoczky, RTSS'90: with synchronous release the longest response of a task lies in the first busy
period, so one schedule must show the analysed value itself, and no other may exceed it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from avrt.drivers.simulate import simulate
from avrt.model.spec import DeviceSpec, PipelineSpec, RedundancySpec, StageSpec
from cases.lanes import random_lanes
from cases.reference import bounded, exact
from cases.schedule import (
    EDF,
    Machine,
    Task,
    busy_period,
    hyperperiod,
    periodic,
    released,
    tasks_of,
    with_cost,
)

SCHEDCAT = [f"fp-schedcat-ref-{number:02}" for number in range(1, 16)]
RATE_MONOTONIC = ["fp-liu-layland-2", "fp-simso-doc"]
RESPONSE_TIMES = [
    "fp-basic-4",
    "fp-lehoczky90-ex2a",
    "fp-lehoczky90-ex2b",
    "fp-lehoczky90-ex3",
    "fp-susp-none",
    "dm-buttazzo-4",
    *RATE_MONOTONIC,
    *SCHEDCAT,
]
VERDICTS = [
    "fp-lehoczky90-ex3-D118",
    "fp-lehoczky90-ex3-D116",
    *(f"fp-julia-tda-{variant}" for variant in range(1, 5)),
]


def machine_of(case):
    """The policy that the case names: avrt's own rm and dm, or the listed order."""
    priorities = case["policy"]["priorities"]
    names = {"rate": "rm", "deadline": "dm"}
    return Machine(policy=names.get(priorities.split()[0], "fp"))


def synchronous(case):
    """Schedule the first busy period, and two jobs of every task at least."""
    tasks = tasks_of(case)
    span = max(busy_period(tasks), 2 * max(task.period for task in tasks))
    return periodic(tasks, machine_of(case), span)


@exact(*RESPONSE_TIMES)
def test_the_busy_period_shows_the_response_times(case):
    assert synchronous(case).worst == case["expected"]["response_times"]


@exact(*VERDICTS, *RATE_MONOTONIC, "dm-buttazzo-4")
def test_deadlines_are_met_exactly_when_the_set_is_schedulable(case):
    tasks = tasks_of(case)
    first_miss = periodic(tasks, machine_of(case), hyperperiod(tasks)).first_missed_deadline
    assert (first_miss is None) is case["expected"]["schedulable"]


@exact("fp-liu-layland-2")
def test_one_unit_above_the_liu_and_layland_bound_misses(case):
    short, long = tasks_of(case)
    schedule = periodic([short, with_cost(long, 60)], machine_of(case), hyperperiod([short, long]))
    assert (schedule.first_missed_deadline is None) is case["expected"]["schedulable_with_C2_60"]


def exceed(case, bounds, count):
    """Return the tasks that random lanes let respond later than these bounds."""
    tasks = tasks_of(case)
    lanes = random_lanes(case, tasks, count)
    machine = machine_of(case)
    worst = lanes.worst(released(tasks, machine, lanes.releases, lanes.costs))
    pairs = enumerate(zip(worst, bounds, strict=True))
    return [i for i, (seen, bound) in pairs if bound is not None and seen > bound]


BOUNDS = [*RESPONSE_TIMES, "fp-audsley-18", "fp-jitter-back-to-back", "fp-overload"]


@bounded(*BOUNDS)
def test_no_random_lane_exceeds_the_bounds(case):
    assert not exceed(case, case["expected"]["response_times"], 6)


@pytest.mark.slow
@bounded(*BOUNDS)
def test_no_lane_of_three_hundred_exceeds_the_bounds(case):
    assert not exceed(case, case["expected"]["response_times"], 300)


@exact("fp-overload")
def test_above_full_utilisation_the_lower_tasks_fall_behind_for_ever(case):
    tasks = tasks_of(case)
    span = hyperperiod(tasks)
    schedule = periodic(tasks, Machine(), 8 * span)
    expected = case["expected"]["response_times"]
    assert schedule.worst[:2] == expected[:2]
    assert [schedule.grows(i, span) for i in range(4)] == [value is None for value in expected]


@exact("fp-joseph-pandya86")
def test_first_jobs_finish_at_the_fixed_points_even_past_their_periods(case):
    tasks = tasks_of(case)
    values = case["expected"]["busy_response_first_job"]
    schedule = periodic(tasks, Machine(), max(values))
    assert [finishes[0] for finishes in schedule.finishes] == values


def blocked_response(tasks, index, blocking):
    """The longest response of a task that a lower one, at the task's own ceiling, delays.

    A critical section that blocks task `index` runs at its priority ceiling: for this task it is
    a job just above it, released with it.
    """
    above = [replace(task, priority=2 * i + 1) for i, task in enumerate(tasks[: index + 1])]
    span = sum(task.cost for task in above) + blocking
    while True:
        more = blocking + above[-1].cost
        more += sum(-(-span // task.period) * task.cost for task in above[:-1])
        if more == span:
            break
        span = more
    releases = [list(range(0, span, task.period)) for task in above]
    if blocking:
        above.append(Task(cost=blocking, period=span, deadline=span, priority=2 * index))
        releases.append([0])
    return released(above, Machine(), releases).worst[index]


@exact("fp-audsley-18", "fp-blocked")
def test_blocking_is_a_section_at_the_priority_ceiling(case):
    tasks = tasks_of(case)
    blocking = [task.get("B", 0) for task in case["tasks"]]
    seen = [
        blocked_response(tasks, index, blocking[index]) + task.jitter
        for index, task in enumerate(tasks)
    ]
    assert seen == case["expected"]["response_times"]


@exact("rm-vs-edf-lipari", "rm-vs-edf-buttazzo")
def test_edf_schedules_what_rate_monotonic_cannot(case):
    tasks = tasks_of(case)
    span = hyperperiod(tasks)
    expected = case["expected"]
    rate_monotonic = periodic(tasks, Machine(policy="rm"), span)
    assert rate_monotonic.first_missed_deadline == expected["RM"]["first_missed_deadline"]
    assert periodic(tasks, EDF, span).first_missed_deadline is None


@exact("fp-jitter-back-to-back")
def test_jitter_makes_two_releases_come_back_to_back(case):
    tasks = tasks_of(case)
    schedule = released(tasks, Machine(), [[15, 20, 40], [15, 35]])
    above, below = schedule.finishes
    expected = case["expected"]
    assert [above[0] - 0, below[0] - 15] == expected["response_times"]
    assert below[0] - 15 == expected["simulated_task2_at_critical_instant"]


@exact("tmr-identical-replicas")
def test_identical_replicas_wait_for_each_other(case):
    tasks = tasks_of(case)
    expected = case["expected"]
    equal = [replace(task, priority=1) for task in tasks]
    assert max(periodic(equal, Machine(), 60).worst) == expected["fp_equal_priority_worst"]
    assert max(periodic(tasks, EDF, 60).worst) == expected["edf_worst"]
    assert periodic(tasks, Machine(), 60).worst == expected["distinct_priorities"]


@exact("tmr-identical-replicas")
@pytest.mark.parametrize("policy", ["fp", "edf"])
def test_a_redundant_stage_is_three_identical_replicas(case, policy):
    stage = StageSpec(
        name="voted",
        device="cpu",
        wcet_ns=4,
        deadline_ns=20,
        period_ns=20,
        priority=1,
        redundancy=RedundancySpec(copies=3),
    )
    device = DeviceSpec(name="cpu", type="simulated", preemptive=True)
    spec = PipelineSpec(name="tmr", policy=policy, devices=(device,), stages=(stage,))
    responses = [job.response_ns for job in simulate(spec, until_ns=20).jobs]
    assert responses == case["expected"]["distinct_priorities"]
