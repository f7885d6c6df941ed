"""Exact schedules: what an abort leaves, three miss policies, and scheduling anomalies."""

from __future__ import annotations

import pytest

from avrt.model.graph import check
from avrt.model.scenario import OverheadSpec
from avrt.model.spec import PipelineSpec
from cases.reference import exact
from cases.schedule import (
    NONPREEMPTIVE,
    Machine,
    Schedule,
    Task,
    device_of,
    periodic,
    play,
    reads,
    released,
    source_of,
    stage_of,
    tasks_of,
)


@exact("abort-at-deadline-1", "abort-at-deadline-2")
def test_execution_received_until_the_abort_at_the_deadline(case):
    policy = "rm" if case["policy"]["priorities"] == "rate monotonic" else "fp"
    schedule = periodic(tasks_of(case), Machine(policy=policy, on_miss="abort"), 77)
    executed = [[job.executed_ns for job in jobs] for jobs in schedule.jobs]
    assert executed == case["expected"]["executed"]


@exact("miss-policies-3")
@pytest.mark.parametrize("on_miss", ["continue", "abort", "skip_next"])
def test_one_overload_under_three_miss_policies(case, on_miss):
    schedule = periodic(tasks_of(case), Machine(on_miss=on_miss), 24)
    expected = case["expected"][on_miss]
    assert set(schedule.outcomes[0]) == {"met"}
    assert schedule.outcomes[1] == expected["task2_states"]
    finishes = [job.end_ns if job.outcome == "late" else None for job in schedule.jobs[1]]
    assert finishes == expected["task2_finish"]


@exact("cs-cost-sim")
def test_a_context_switch_is_paid_at_the_start_and_at_every_resume(case):
    """The case counts a switch a start: none of its jobs is preempted."""
    costs = {"processor": OverheadSpec(switch_ns=case["policy"]["context_switch"])}
    schedule = periodic(tasks_of(case), Machine(), 30, costs)
    assert schedule.finishes == case["expected"]["finish"]
    work = sum(job.executed_ns for jobs in schedule.jobs for job in jobs)
    costs_of_jobs = sum(t["C"] * len(j) for t, j in zip(case["tasks"], schedule.jobs, strict=True))
    assert work - costs_of_jobs == case["expected"]["switches"]


@exact("np-anomaly")
@pytest.mark.parametrize("cost", [8, 7])
def test_a_job_that_ends_earlier_makes_another_miss(case, cost):
    jobs = case["jobs"]
    tasks = [
        Task(
            cost=cost if index == 0 else job["cost"],
            period=100,
            deadline=job["deadline"] - job["release"],
            priority=job["priority"],
        )
        for index, job in enumerate(jobs)
    ]
    schedule = released(tasks, NONPREEMPTIVE, [[job["release"]] for job in jobs])
    expected = case["expected"][f"C1_{cost}"]
    assert [ends[0] for ends in schedule.finishes] == expected["finish"]
    late = [index + 1 for index, ends in enumerate(schedule.outcomes) if ends == ["late"]]
    assert late == expected["late"]


def list_schedule(durations, edges, slots):
    """Schedule a graph, each node triggered by its only predecessor; return when all is done."""
    before = {second: first for first, second in edges}
    assert len(before) == len(edges)
    machine = Machine(slots=slots, preemptive=False)
    names = {node: f"t{node}" for node in durations}
    spec = PipelineSpec(
        name="graph",
        policy="fp",
        devices=(device_of(machine),),
        sources=(source_of(0),),
        stages=tuple(
            stage_of(
                Task(cost=duration, period=1000, deadline=1000, priority=node),
                machine,
                names[node],
                inputs=(reads(names[before[node]] if node in before else "s0"),),
                trigger="in",
            )
            for node, duration in durations.items()
        ),
    )
    check(spec)
    return max(end for (end,) in Schedule(play(spec, [[0]]), names.values()).finishes)


@exact("graham-anomalies")
def test_more_processors_shorter_jobs_or_fewer_edges_take_longer(case):
    durations, edges = case["dag"]["durations"], case["dag"]["edges"]
    shorter = {node: duration - 1 for node, duration in durations.items()}
    fewer = [edge for edge in edges if edge not in ([4, 5], [4, 6])]
    assert {
        "m3": list_schedule(durations, edges, 3),
        "m4": list_schedule(durations, edges, 4),
        "m3_all_one_shorter": list_schedule(shorter, edges, 3),
        "m3_without_4_5_and_4_6": list_schedule(durations, fewer, 3),
    } == case["expected"]
