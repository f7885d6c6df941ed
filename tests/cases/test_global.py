"""Global scheduling on several processors: exact schedules, first misses, and bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avrt.drivers.simulate import simulate
from avrt.model.spec import PipelineSpec
from cases.lanes import random_lanes
from cases.reference import bounded, exact
from cases.schedule import (
    EDF,
    Machine,
    Schedule,
    Task,
    device_of,
    hyperperiod,
    periodic,
    released,
    stage_of,
    tasks_of,
)

SYNCHRONOUS = {
    "gfp-rta-m2": [1, 1, 4, 14],
    "gfp-rta-m3": [1, 1, 3, 10],
    "gfp-rta-m3-noslack": [1, 1, 3, 10],
}
ACCEPTED = ["gedf-gfb-yes-bak-no", "gedf-gfb-no-bcl-yes"]


def global_edf(slots):
    return replace(EDF, slots=slots)


@bounded(*SYNCHRONOUS)
def test_the_synchronous_schedule_stays_below_the_global_bounds(case):
    tasks = tasks_of(case)
    machine = Machine(slots=case["policy"]["processors"])
    schedule = periodic(tasks, machine, hyperperiod(tasks))
    assert schedule.worst == SYNCHRONOUS[case["id"]]
    assert not exceed(schedule.worst, case)
    assert schedule.first_missed_deadline is None


def exceed(worst, case):
    pairs = enumerate(zip(worst, case["expected"]["response_times"], strict=True))
    return [index for index, (seen, bound) in pairs if seen > bound]


def worst_of_lanes(case, machine, count):
    tasks = tasks_of(case)
    lanes = random_lanes(case, tasks, count, full_cost=True)
    return released(tasks, machine, lanes.releases).worst


@bounded(*SYNCHRONOUS)
def test_no_random_lane_exceeds_the_global_bounds(case):
    assert not exceed(worst_of_lanes(case, Machine(slots=case["policy"]["processors"]), 8), case)


@pytest.mark.slow
@bounded(*SYNCHRONOUS)
def test_no_lane_of_three_hundred_exceeds_the_global_bounds(case):
    assert not exceed(worst_of_lanes(case, Machine(slots=case["policy"]["processors"]), 300), case)


@exact("gedf-exact-schedule-223")
def test_the_exact_global_edf_schedule(case):
    """The source lets tasks 1 and 3 go first, so they come first in the pipeline here."""
    first, second, third = tasks_of(case)
    one, three, two = periodic([first, third, second], global_edf(2), 9).finishes
    expected = case["expected"]["completions"]
    assert [one[:3], two[:2], three[:3]] == expected


@exact("gedf-first-miss-223")
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_time_of_the_first_global_edf_miss(case, slots):
    schedule = periodic(tasks_of(case), global_edf(slots), 60)
    assert schedule.first_missed_deadline == case["expected"]["first_missed_deadline"][f"m{slots}"]


@exact("gedf-tardiness-223")
def test_tardiness_of_the_synchronous_schedule(case):
    jobs = periodic(tasks_of(case), global_edf(2), 300).simulation.jobs
    assert max(job.tardiness_ns for job in jobs) == case["expected"]["simulated_max_tardiness"]


@bounded("gedf-tardiness-223")
def test_tardiness_of_random_lanes_is_bounded(case):
    tasks = tasks_of(case)
    lanes = random_lanes(case, tasks, 10)
    schedule = released(tasks, global_edf(2), lanes.releases)
    for jobs, bound in zip(schedule.jobs, case["expected"]["tardiness_bound"], strict=True):
        assert max(job.tardiness_ns for job in jobs) <= bound


@exact("dhall-m2", "dhall-m4")
def test_a_heavy_task_misses_on_processors_that_are_almost_idle(case):
    tasks = tasks_of(case)
    slots = case["policy"]["processors"]
    expected = case["expected"]
    schedule = periodic(tasks, global_edf(slots), 102)
    assert schedule.first_missed_deadline == expected["gedf_first_missed_deadline"]
    if slots == 2:
        assert schedule.finishes[-1][0] == expected["gedf_finish_heavy"]
        rate_monotonic = periodic(tasks, Machine(policy="rm", slots=2), 102)
        assert rate_monotonic.first_missed_deadline == expected["grm_first_missed_deadline"]


@exact("dhall-m2")
def test_partitioning_schedules_what_global_edf_cannot(case):
    tasks = tasks_of(case)
    names = [f"t{index}" for index in range(3)]
    devices = ("one", "one", "two")
    spec = PipelineSpec(
        name="partitioned",
        policy="edf",
        devices=(device_of(EDF, "one"), device_of(EDF, "two")),
        stages=tuple(
            stage_of(task, EDF, name, device=device, period_ns=task.period)
            for task, name, device in zip(tasks, names, devices, strict=True)
        ),
    )
    schedule = Schedule(simulate(spec, until_ns=hyperperiod(tasks)), names)
    assert (schedule.first_missed_deadline is None) is case["expected"]["partitioned_schedulable"]


@bounded(*ACCEPTED)
def test_what_a_sound_test_accepts_never_misses(case):
    """One of the two tests accepts each set; what the other says is left to the analysis."""
    tasks = tasks_of(case)
    assert any(case["expected"].values())
    assert periodic(tasks, global_edf(2), 4 * hyperperiod(tasks)).first_missed_deadline is None
    lanes = random_lanes(case, tasks, 20)
    schedule = released(tasks, global_edf(2), lanes.releases)
    assert schedule.first_missed_deadline is None


@exact("gedf-baruah-uni")
def test_a_heavy_fourth_task_needs_the_second_processor(case):
    tasks = tasks_of(case)
    more = [*tasks, Task(cost=27, period=28, deadline=28)]
    expected = case["expected"]
    for key, members, slots in (
        ("m1", tasks, 1),
        ("m1_plus_27_28", more, 1),
        ("m2_plus_27_28", more, 2),
    ):
        schedule = periodic(members, global_edf(slots), hyperperiod(members))
        assert (schedule.first_missed_deadline is None) is expected[key]
