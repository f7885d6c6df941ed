"""Job sets whose releases and costs are intervals: every scenario finishes within the exact ones.

Each job is a stage with a source of its own. "Ties by task id, then job id" make the priorities
distinct. Scenarios run one after the other on one pipeline, each when the one before is over;
deadlines count from the scenario's start, which is given as the capture time.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass

import numpy as np
import pytest

from avrt.model.graph import check
from avrt.model.spec import PipelineSpec, SyncSpec
from cases.reference import bounded, exact
from cases.schedule import (
    NONPREEMPTIVE,
    Machine,
    Schedule,
    Task,
    device_of,
    play,
    reads,
    source_of,
    stage_of,
)

SMALL = [
    "sag-find-all-next",
    "sag-large-interval",
    "sag-priorities",
    "sag-jitter",
    "sag-eager",
    "sag-eager-short",
    "sag-cascade-continue",
    "sag-ecrts18-fig1",
    "np-rm-nasri-fig1",
    "np-edf-nasri-fig2b",
]
MANY = [
    "sag-rtss17-fig1a",
    "sag-rtss17-fig1c",
    "sag-rtss17-fig1a-m2",
    "sag-rtss17-fig1a-prec",
]
ENORMOUS = ["sag-equal-prio", "sag-equal-simultaneous"]
SCENARIOS_MAX = 3000


@dataclass(frozen=True)
class Interval:
    """One job of a set; both ends of release and cost are inclusive."""

    name: str
    release: tuple[int, int]
    cost: tuple[int, int]
    deadline: int
    rank: int


def intervals_of(case):
    """The jobs in the order of their priorities, ties broken as the case says."""
    ordered = sorted(case["jobs"], key=lambda job: (job["priority"], job["task"], job["job"]))
    return [
        Interval(
            name=f"T{job['task']}J{job['job']}",
            release=tuple(job["release"]),
            cost=tuple(job["cost"]),
            deadline=job["deadline"],
            rank=rank,
        )
        for rank, job in enumerate(ordered)
    ]


def run(case, scenarios, machine=None):
    """Play scenarios, each a (release, cost) for every job; return jobs, finishes, outcomes."""
    jobs = intervals_of(case)
    span = max(j.release[1] for j in jobs) + sum(j.cost[1] for j in jobs) + 1
    starts = [2 * span * number for number in range(len(scenarios))]
    machine = machine or Machine(preemptive=False, slots=case["policy"]["processors"])
    spec = PipelineSpec(
        name="jobs",
        policy=machine.policy,
        devices=(device_of(machine),),
        sources=tuple(source_of(index) for index in range(len(jobs))),
        stages=tuple(job_stages(case, jobs, machine, span)),
    )
    check(spec)
    releases = [
        [start + scenario[index][0] for start, scenario in zip(starts, scenarios, strict=True)]
        for index in range(len(jobs))
    ]
    captures = [starts] * len(jobs)
    simulation = play(spec, releases, lambda name, k: scenarios[k][int(name[1:])][1], captures)
    schedule = Schedule(simulation, [stage.name for stage in spec.stages])
    finishes = {
        job.name: [end - start for end, start in zip(ends, starts, strict=True)]
        for job, ends in zip(jobs, schedule.finishes, strict=True)
    }
    outcomes = {job.name: set(seen) for job, seen in zip(jobs, schedule.outcomes, strict=True)}
    return jobs, finishes, outcomes


def job_stages(case, jobs, machine, span):
    """One stage a job; one with predecessors needs their outputs and its own release."""
    before = predecessors(case)
    numbers = {job.name: index for index, job in enumerate(jobs)}
    for index, job in enumerate(jobs):
        release = {"inputs": (reads(f"s{index}"),), "trigger": "in"}
        if job.name in before:
            feeds = [reads(f"j{numbers[name]}", f"after_{name}") for name in before[job.name]]
            sync = SyncSpec(tolerance_ns=0, timeout_ns=span)
            release = {"inputs": (reads(f"s{index}"), *feeds), "sync": sync}
        yield stage_of(
            Task(cost=1, period=1, deadline=job.deadline, priority=job.rank),
            machine,
            f"j{index}",
            deadline_from="capture",
            on_miss="abort" if job.name in case.get("aborts", {}) else "continue",
            **release,
        )


def predecessors(case):
    before = {}
    for first, second in case.get("precedence", ()):
        before.setdefault(second, []).append(first)
    return before


def every_scenario(case):
    ranges = [
        [range(job.release[0], job.release[1] + 1), range(job.cost[0], job.cost[1] + 1)]
        for job in intervals_of(case)
    ]
    return combinations(ranges)


def corner_scenarios(case):
    """Ends of every interval, and the release just before the last one: who comes first flips."""

    def ends(job):
        first, last = job.release
        return [sorted({first, max(first, last - 1), last}), sorted(set(job.cost))]

    return combinations([ends(job) for job in intervals_of(case)])


def combinations(ranges):
    return list(itertools.product(*(tuple(itertools.product(*pair)) for pair in ranges)))


def drawn_scenarios(case, count):
    """All least, all most, and seeded random scenarios in between."""
    rng = np.random.default_rng(zlib.crc32(case["id"].encode()))
    jobs = intervals_of(case)

    def draw(interval):
        return int(rng.integers(interval[0], interval[1] + 1))

    least = tuple((job.release[0], job.cost[0]) for job in jobs)
    most = tuple((job.release[1], job.cost[1]) for job in jobs)
    drawn = [tuple((draw(j.release), draw(j.cost)) for j in jobs) for _ in range(count)]
    return [least, most, *drawn]


def assert_exact(case, scenarios):
    """The intervals of these scenarios' finishes are the published ones, ends included."""
    jobs, finishes, outcomes = run(case, scenarios)
    expected = case["expected"]
    for name, ends in expected["finish"].items():
        assert [min(finishes[name]), max(finishes[name])] == ends, name
    late = [job.name for job in jobs if max(finishes[job.name]) > job.deadline]
    assert late == [name for name, seen in outcomes.items() if "late" in seen]
    assert (not late) is expected["schedulable"]


@exact(*SMALL)
def test_all_scenarios_together_make_the_exact_intervals(case):
    assert_exact(case, every_scenario(case))


@pytest.mark.slow
@exact(*MANY)
def test_thousands_of_scenarios_together_make_the_exact_intervals(case):
    scenarios = every_scenario(case)
    assert len(scenarios) <= SCENARIOS_MAX
    assert_exact(case, scenarios)


@exact(*ENORMOUS)
def test_corners_make_the_exact_intervals(case):
    assert_exact(case, corner_scenarios(case))


@bounded(*MANY, *ENORMOUS)
def test_no_drawn_scenario_leaves_the_exact_intervals(case):
    _, finishes, outcomes = run(case, drawn_scenarios(case, 30))
    expected = case["expected"]
    for name, (least, most) in expected["finish"].items():
        assert least <= min(finishes[name])
        assert max(finishes[name]) <= most
    if expected["schedulable"]:
        assert set.union(*outcomes.values()) == {"met"}


@exact("sag-rtss17-fig1a")
def test_the_ends_of_each_interval_are_reached_by_corners(case):
    """The three jobs of the first busy period decide, with the others all least or all most."""
    jobs = intervals_of(case)
    first = [index for index, job in enumerate(jobs) if job.release == (0, 0)]
    scenarios = []
    for end in (0, 1):
        for ends in itertools.product((0, 1), repeat=len(first)):
            chosen = dict(zip(first, ends, strict=True))
            scenarios.append(
                tuple((j.release[0], j.cost[chosen.get(i, end)]) for i, j in enumerate(jobs))
            )
    assert_exact(case, scenarios)


@exact("sag-cascade-abort")
def test_an_abort_at_the_deadline_stops_the_cascade(case):
    """Aborted work stops at once on a preemptive device only.

    These four jobs run in the order of their releases in every scenario, so FIFO, under which
    nothing is ever preempted, is the same schedule there.
    """
    machine = Machine(policy="fifo", preemptive=True)
    _, finishes, outcomes = run(case, every_scenario(case), machine)
    expected = case["expected"]
    for name, ends in expected["finish"].items():
        assert [min(finishes[name]), max(finishes[name])] == ends, name
    aborted = {name for name, seen in outcomes.items() if "aborted" in seen}
    assert aborted == set(case["aborts"])
    late = [name for name, seen in outcomes.items() if "late" in seen]
    assert (not late) is expected["schedulable"]


@exact("sag-cascade-abort")
def test_aborted_work_that_keeps_its_slot_does_not_stop_the_cascade(case):
    """Without preemption the computation runs to its end, as if no job were aborted."""
    _, finishes, _ = run(case, every_scenario(case), NONPREEMPTIVE)
    assert [min(finishes["T3J1"]), max(finishes["T3J1"])] == [19, 25]
