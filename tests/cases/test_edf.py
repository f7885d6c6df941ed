"""Earliest deadline first, with and without preemption, and FIFO, on one processor.

With synchronous release the first missed deadline is the first interval whose demand exceeds its
length (Baruah et al. 1990). The longest response of a task lies in a deadline busy period: the
others are released together, the task itself at one of a few offsets, and ties go against it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.lanes import edf_instant, random_lanes
from cases.reference import bounded, exact
from cases.schedule import (
    EDF,
    Machine,
    Task,
    busy_period,
    hyperperiod,
    periodic,
    released,
    segmented,
    tasks_of,
)

REACHED = [*(f"edf-guan-yi-ts{n}" for n in (1, 4, 5, 6)), "edf-rta-ex1", "edf-rta-ex2"]
APPROACHED = ["edf-guan-yi-ts3", "edf-guan-yi-ts7"]
PREEMPTIVE = [*REACHED, *APPROACHED]
TICKS = 1000
NONPREEMPTIVE_SETS = ["npedf-same", "npedf-different", "npedf-improved"]
NONPREEMPTIVE_EDF = Machine(policy="edf", preemptive=False)
FIFO = Machine(policy="fifo", preemptive=False)


@exact("edf-qpa-unsched-1", "edf-qpa-unsched-2")
def test_the_first_overloaded_interval_ends_at_the_first_missed_deadline(case):
    first_miss_is_the_overload(case)


@pytest.mark.slow
@exact("edf-qpa-9")
def test_a_long_overloaded_interval_ends_at_the_first_missed_deadline(case):
    first_miss_is_the_overload(case)


def first_miss_is_the_overload(case):
    expected = case["expected"]
    overloaded = expected["first_overloaded_interval"]
    schedule = periodic(tasks_of(case), EDF, overloaded)
    assert schedule.first_missed_deadline == overloaded
    assert expected["schedulable"] is False


@exact("edf-qpa-8", "edf-pdc-buttazzo")
def test_a_schedulable_set_misses_nothing_in_its_busy_period(case):
    tasks = tasks_of(case)
    schedule = periodic(tasks, EDF, busy_period(tasks))
    assert (schedule.first_missed_deadline is None) is case["expected"]["schedulable"]


@exact("edf-pdc-buttazzo")
def test_work_with_a_deadline_until_t_is_the_demand_of_t(case):
    demand = case["expected"]["demand"]
    jobs = periodic(tasks_of(case), EDF, max(demand)).simulation.jobs
    seen = {t: sum(job.executed_ns for job in jobs if job.due_ns <= t) for t in demand}
    assert seen == demand


def last_in_ties(tasks, index):
    """Put the task under analysis last, so that it loses every tie."""
    return [*tasks[:index], *tasks[index + 1 :], tasks[index]]


def releases_at(tasks, index, instant, start=0):
    """Release the others together at `start` and the task so that it meets its worst instant."""
    end = start + instant.arrival + instant.response
    offsets = [start] * len(tasks)
    offsets[index] = start + instant.arrival % tasks[index].period
    if instant.blocker is not None and start:
        offsets[instant.blocker] = 0
    return [
        list(range(offset, max(end, offset + 1), task.period))
        for offset, task in zip(offsets, tasks, strict=True)
    ]


@exact(*REACHED)
def test_the_worst_deadline_busy_period_shows_the_response_times(case):
    tasks = tasks_of(case)
    for index, value in enumerate(case["expected"]["response_times"]):
        releases = releases_at(tasks, index, edf_instant(tasks, index))
        schedule = released(last_in_ties(tasks, index), EDF, last_in_ties(releases, index))
        assert schedule.worst[-1] == value


@bounded(*APPROACHED)
def test_a_running_job_wins_ties_so_the_response_times_are_approached(case):
    """The analysis lets a job that is released with the same deadline preempt the running one.

    In avrt a running job goes first, so the value is a supremum: a job that arrives one tick
    later, and so is due one tick after the others, comes within that tick of it.
    """
    units = tasks_of(case)
    for index, value in enumerate(case["expected"]["response_times"]):
        instant = edf_instant(units, index)
        releases = [[at * TICKS for at in times] for times in releases_at(units, index, instant)]
        releases[index] = [at + 1 for at in releases[index]]
        ticks = [
            Task(cost=t.cost * TICKS, period=t.period * TICKS, deadline=t.deadline * TICKS)
            for t in units
        ]
        seen = released(ticks, EDF, releases).worst[index]
        assert value * TICKS - 1 <= seen <= value * TICKS


@exact(*NONPREEMPTIVE_SETS)
def test_a_later_deadline_that_has_just_started_gives_the_response_times(case):
    tasks = tasks_of(case)
    costs = [task.cost for task in tasks]
    for index, value in enumerate(case["expected"]["response_times"]):
        instant = edf_instant(tasks, index, last=costs[index], longest=costs)
        releases = releases_at(tasks, index, instant, start=1)
        machine = NONPREEMPTIVE_EDF
        schedule = released(last_in_ties(tasks, index), machine, last_in_ties(releases, index))
        assert schedule.worst[-1] == value


def parts_of(case):
    return [[task["max_segment"], task["last_segment"]] for task in case["tasks"]]


@exact("edf-lp-ex1")
def test_fixed_preemption_points_give_the_response_times(case):
    tasks = tasks_of(case)
    parts = parts_of(case)
    longest = [max(part) for part in parts]
    for index, value in enumerate(case["expected"]["response_times"]):
        instant = edf_instant(tasks, index, last=parts[index][-1], longest=longest)
        releases = releases_at(tasks, index, instant, start=1)
        responses = segmented(
            last_in_ties(tasks, index),
            last_in_ties(parts, index),
            NONPREEMPTIVE_EDF,
            last_in_ties(releases, index),
        )
        assert max(responses[-1]) == value


@exact("edf-fnps-ex1")
def test_a_floating_section_is_a_job_that_is_due_at_once(case):
    tasks = tasks_of(case)
    sections = [task["max_np"] for task in case["tasks"]]
    for index, value in enumerate(case["expected"]["response_times"]):
        instant = edf_instant(tasks, index, longest=sections)
        releases = releases_at(tasks, index, instant)
        ordered, times = last_in_ties(tasks, index), last_in_ties(releases, index)
        if instant.blocking:
            section = Task(cost=instant.blocking, period=1000, deadline=1)
            ordered, times = [section, *ordered], [[0], *times]
        assert released(ordered, EDF, times).worst[-1] == value


@exact("fifo-ex1")
def test_fifo_lets_the_last_of_a_synchronous_release_wait_for_all(case):
    tasks = tasks_of(case)
    for index, value in enumerate(case["expected"]["response_times"]):
        assert periodic(last_in_ties(tasks, index), FIFO, busy_period(tasks)).worst[-1] == value


@exact("fifo-ex2")
def test_fifo_lets_every_task_fall_behind_above_full_utilisation(case):
    tasks = tasks_of(case)
    span = 2 * hyperperiod(tasks)
    schedule = periodic(tasks, FIFO, 8 * span)
    values = case["expected"]["response_times"]
    assert [schedule.grows(i, span) for i in range(3)] == [value is None for value in values]


@exact("edf-overload-ts2")
def test_edf_misses_above_full_utilisation(case):
    tasks = tasks_of(case)
    first_miss = periodic(tasks, EDF, hyperperiod(tasks)).first_missed_deadline
    assert (first_miss is None) is case["expected"]["schedulable"]


@exact("edf-offsets")
def test_offsets_make_a_set_schedulable_that_is_not_so_synchronously(case):
    tasks = tasks_of(case)
    expected = case["expected"]
    first_miss = periodic(tasks, EDF, 40).first_missed_deadline
    assert (first_miss is None) is expected["with_offsets_schedulable"]
    together = [replace(task, offset=0) for task in tasks]
    first_miss = periodic(together, EDF, 40).first_missed_deadline
    assert first_miss == expected["sync_first_missed_deadline"]
    assert (first_miss is None) is expected["synchronous_schedulable"]


@exact("overload-edf-vs-rm")
def test_overload_stretches_every_period_under_edf_and_starves_the_last_under_rm(case):
    tasks = tasks_of(case)
    expected = case["expected"]
    finishes = periodic(tasks, Machine(policy="rm"), 2400).finishes
    completed = [sum(end <= 2400 for end in ends) for ends in finishes]
    assert completed == expected["rm_completed"]
    finishes = periodic(tasks, EDF, 2400).finishes
    completed = [sum(end <= 2400 for end in ends) for ends in finishes]
    assert [2400 / count for count in completed] == expected["edf_average_period"]


def exceed(case, count):
    """Return the tasks that random lanes let respond later than the published bounds."""
    tasks = tasks_of(case)
    preemptive = case["id"] in PREEMPTIVE or case["id"] == "edf-fnps-ex1"
    lanes = random_lanes(case, tasks, count, full_cost=not preemptive)
    if case["id"] == "edf-lp-ex1":
        responses = segmented(tasks, parts_of(case), NONPREEMPTIVE_EDF, lanes.releases)
        worst = [max(times) for times in responses]
    else:
        machine = FIFO if case["id"] == "fifo-ex1" else EDF if preemptive else NONPREEMPTIVE_EDF
        worst = released(tasks, machine, lanes.releases, lanes.costs).worst
    pairs = enumerate(zip(worst, case["expected"]["response_times"], strict=True))
    return [i for i, (seen, bound) in pairs if seen > bound]


BOUNDS = [*PREEMPTIVE, *NONPREEMPTIVE_SETS, "edf-fnps-ex1", "edf-lp-ex1", "fifo-ex1"]


@bounded(*BOUNDS)
def test_no_random_lane_exceeds_the_bounds(case):
    assert not exceed(case, 6)


@pytest.mark.slow
@bounded(*BOUNDS)
def test_no_lane_of_three_hundred_exceeds_the_bounds(case):
    assert not exceed(case, 300)
