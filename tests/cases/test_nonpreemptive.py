"""Fixed priorities without preemption, with fixed preemption points, and on a CAN bus.

A lower task blocks one unit less than its longest part, because a job that is released at the
same instant is not blocked: the published values in discrete time are reached exactly.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.lanes import nonpreemptive_instant, random_lanes
from cases.reference import bounded, exact
from cases.schedule import (
    NONPREEMPTIVE,
    Machine,
    Task,
    hyperperiod,
    periodic,
    released,
    segmented,
    tasks_of,
)

NONPREEMPTIVE_SETS = ["np-fp-1", "np-fp-overload"]
LIMITED = ["lp-fp-1", "lp-fp-overload"]
FLOATING = ["fnps-fp-1", "fnps-fp-overload"]
BIT = 4000
INTER_FRAME = 3 * BIT


def bounded_tasks(values):
    return [index for index, value in enumerate(values) if value is not None]


@exact(*NONPREEMPTIVE_SETS)
def test_blocking_one_unit_less_than_a_lower_job_gives_the_response_times(case):
    tasks = tasks_of(case)
    values = case["expected"]["response_times"]
    for index in bounded_tasks(values):
        releases = nonpreemptive_instant(tasks, index, 1 + 3 * values[index])
        assert released(tasks, NONPREEMPTIVE, releases).worst_of(index) == values[index]


@exact(*LIMITED)
def test_fixed_preemption_points_give_the_response_times(case):
    tasks = tasks_of(case)
    parts = parts_of(case)
    values = case["expected"]["response_times"]
    for index in bounded_tasks(values):
        longest = [replace(t, cost=max(p)) for t, p in zip(tasks, parts, strict=True)]
        releases = nonpreemptive_instant(longest, index, 1 + 3 * values[index])
        kept = [i for i, times in enumerate(releases) if times]
        responses = segmented(
            [tasks[i] for i in kept],
            [parts[i] for i in kept],
            NONPREEMPTIVE,
            [releases[i] for i in kept],
        )
        assert max(responses[index]) == values[index]


def parts_of(case):
    """Cut each task so that its longest part comes first and its last part has the given size."""
    parts = []
    for task in case["tasks"]:
        middle = task["C"] - task["max_segment"] - task["last_segment"]
        parts.append([task["max_segment"], *([middle] if middle else []), task["last_segment"]])
    return parts


@exact(*FLOATING)
def test_a_floating_section_is_a_job_just_above_the_blocked_task(case):
    tasks = tasks_of(case)
    values = case["expected"]["response_times"]
    sections = [task["max_np"] for task in case["tasks"]]
    for index in bounded_tasks(values):
        blocking = max(sections[index + 1 :], default=1) - 1
        span = 3 * values[index]
        above = [replace(task, priority=2 * task.priority + 1) for task in tasks[: index + 1]]
        releases = [list(range(0, span, task.period)) for task in above]
        if blocking:
            section = Task(cost=blocking, period=span, deadline=span, priority=2 * (index + 1))
            above.append(section)
            releases.append([0])
        assert released(above, Machine(), releases).worst[index] == values[index]


@exact("np-fp-overload")
def test_the_last_task_falls_behind_without_preemption(case):
    last_falls_behind(case, NONPREEMPTIVE)


@exact("lp-fp-overload", "fnps-fp-overload")
def test_the_last_task_falls_behind_with_preemption(case):
    last_falls_behind(case, Machine())


def last_falls_behind(case, machine):
    """The utilisation is above 1, so how a processor is shared decides only who falls behind."""
    tasks = tasks_of(case)
    span = hyperperiod(tasks)
    schedule = periodic(tasks, machine, 8 * span)
    values = case["expected"]["response_times"]
    assert [schedule.grows(i, span) for i in range(len(tasks))] == [v is None for v in values]


def exceed(case, count):
    """Return the tasks that random lanes let respond later than the published bounds."""
    tasks = tasks_of(case)
    lanes = random_lanes(case, tasks, count, full_cost=True)
    if case["id"] in LIMITED:
        responses = segmented(tasks, parts_of(case), NONPREEMPTIVE, lanes.releases)
        worst = [max(times) for times in responses]
    else:
        machine = Machine() if case["id"] in FLOATING else NONPREEMPTIVE
        worst = released(tasks, machine, lanes.releases).worst
    bounds = case["expected"].get("response_times") or case["expected"]["revised"]
    pairs = enumerate(zip(worst, bounds, strict=True))
    return [i for i, (seen, bound) in pairs if bound is not None and seen > bound]


BOUNDS = [*NONPREEMPTIVE_SETS, *LIMITED, *FLOATING, "can-davis2007-abc"]


@bounded(*BOUNDS)
def test_no_random_lane_exceeds_the_bounds(case):
    assert not exceed(case, 6)


@pytest.mark.slow
@bounded(*BOUNDS)
def test_no_lane_of_three_hundred_exceeds_the_bounds(case):
    assert not exceed(case, 300)


@exact("can-davis2007-abc")
def test_a_message_pushes_its_own_next_instance_past_the_deadline(case):
    tasks = tasks_of(case)
    schedule = periodic(tasks, NONPREEMPTIVE, 14_000)
    expected = case["expected"]
    assert schedule.responses[2] == [3000, 3500, 3000, 2500]
    assert schedule.worst[2] == expected["revised"][2]
    assert schedule.responses[2][0] == expected["single_instance"][2]
    assert (schedule.first_missed_deadline is None) is expected["schedulable_revised"]


@bounded("can-davis2007-abc")
def test_blocked_messages_come_within_a_tick_of_the_continuous_bounds(case):
    tasks = tasks_of(case)
    for index, bound in enumerate(case["expected"]["revised"][:2]):
        releases = nonpreemptive_instant(tasks, index, 14_000)
        assert released(tasks, NONPREEMPTIVE, releases).worst_of(index) == bound - 1


@bounded("can-broster2002-12")
def test_can_frames_come_within_a_tick_of_the_worst_transmission_times(case):
    """A frame occupies the bus for its bits and the inter-frame space, which delays only others.

    The published recurrence lets even the lowest message wait for an inter-frame space.
    """
    tasks = [
        Task(
            cost=(52 + 10 * message["bytes"]) * BIT + INTER_FRAME,
            period=message["T"] * 1_000_000,
            deadline=message["D"] * 1_000_000,
            priority=index + 1,
        )
        for index, message in enumerate(case["tasks"])
    ]
    bounds = [round(bound * 1_000_000) for bound in case["expected"]["wctt_ms"]]
    seen = []
    for index in range(len(tasks)):
        releases = nonpreemptive_instant(tasks, index, 5_000_000)
        seen.append(released(tasks, NONPREEMPTIVE, releases).worst_of(index) - INTER_FRAME)
    assert seen == [bound - 1 for bound in bounds[:-1]] + [bounds[-1] - INTER_FRAME]
