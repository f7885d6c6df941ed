"""Several devices: stages that trigger each other across processors, a bus and a GPU."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from avrt.drivers.simulate import simulate
from avrt.model.graph import check
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, PipelineSpec, SegmentSpec
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

CPU = Machine()
NO_DEADLINE = 1 << 40


WAITING = Machine(slots=100, preemptive=False)
KINDS = {"C": CPU, "G": NONPREEMPTIVE, "W": WAITING}


@exact("gpu-suspend-prio", "gpu-suspend-fifo", "gpu-busy-prio", "gpu-busy-fifo")
def test_processor_segments_with_a_gpu_segment_between_them(case):
    """Two tasks: never do two wait for the GPU at once, so its queue's order decides nothing."""
    tasks = [(task["T"], task["D"], task["segments"]) for task in case["tasks"]]
    assert len(tasks) == 2
    schedule = with_segments(tasks, {"busy": "spin"}.get(case["policy"]["wait"], "suspend"), 20)
    assert schedule.finishes == case["expected"]["finish"]


def with_segments(tasks, wait, until, last_offset=0):
    """Schedule tasks `(T, D, [(device, cost), ...])` by fixed priorities, most urgent first."""
    spec = PipelineSpec(
        name="segments",
        policy="fp",
        devices=tuple(device_of(machine, name) for name, machine in KINDS.items()),
        stages=tuple(
            stage_of(
                Task(cost=sum(n for _, n in parts), period=period, deadline=due, priority=index),
                CPU,
                f"t{index}",
                device=parts[0][0],
                period_ns=period,
                offset_ns=last_offset if index == len(tasks) else 0,
                segments=tuple(
                    SegmentSpec(device=d, wcet_ns=n, wait="suspend" if d == "C" else wait)
                    for d, n in parts
                ),
            )
            for index, (period, due, parts) in enumerate(tasks, 1)
        ),
    )
    check(spec)
    return Schedule(simulate(spec, until_ns=until), [stage.name for stage in spec.stages])


@bounded("fp-susp-5")
def test_a_task_that_suspends_itself_wherever_it_does_and_whenever_the_last_one_comes(case):
    """The case has no bound for the last task within its period; 10 is the longest seen here."""
    first, second, third = case["tasks"]
    bounds = case["expected"]["response_times"]
    seen = []
    for before in range(1, second["C"]):
        parts = [("C", before), ("W", second["suspend"]), ("C", second["C"] - before)]
        tasks = [
            (task["T"], task["D"], parts if task is second else [("C", task["C"])])
            for task in (first, second, third)
        ]
        seen += [with_segments(tasks, "suspend", 100, offset).worst for offset in range(0, 20, 4)]
    worst = [max(responses) for responses in zip(*seen, strict=True)]
    assert worst[0] == bounds[0]
    assert worst[1] <= bounds[1]
    assert (bounds[2], worst[2]) == (None, 10)


def resources(case):
    """Build the pipeline of a pyCPA example; its paths are chains, counted from activation."""
    tasks = case["tasks"]
    names = list(dict.fromkeys(task["cpu"] for task in tasks))
    heads = [task["name"] for task in tasks if "after" not in task]
    after = {task["after"]: task["name"] for task in tasks if "after" in task}
    chains = []
    for number, head in enumerate(heads):
        path = [f"s{number}", head]
        while path[-1] in after:
            path.append(after[path[-1]])
        chains.append(ChainSpec(name=f"P{number + 1}", path=tuple(path)))
    spec = PipelineSpec(
        name="resources",
        policy="fp",
        devices=tuple(device_of(NONPREEMPTIVE if n == "BUS" else CPU, n) for n in names),
        sources=tuple(source_of(number) for number in range(len(heads))),
        stages=tuple(
            stage_of(
                Task(cost=task["C"], period=1, deadline=NO_DEADLINE, priority=task["prio"]),
                CPU,
                task["name"],
                device=task["cpu"],
                inputs=(reads(task.get("after") or f"s{heads.index(task['name'])}"),),
                trigger="in",
            )
            for task in tasks
        ),
        chains=tuple(chains),
    )
    check(spec)
    return spec, [task for task in tasks if "after" not in task]


def drawn(case, count):
    """Play random offsets, jitters and execution times, the longest ones more often."""
    spec, heads = resources(case)
    rng = np.random.default_rng(zlib.crc32(case["id"].encode()))
    releases = [[] for _ in heads]
    for lane in range(count):
        for times, head in zip(releases, heads, strict=True):
            arrivals = range(
                1000 * lane + int(rng.integers(head["P"])), 1000 * lane + 90, head["P"]
            )
            jitters = [
                int(rng.choice([0, head["J"], rng.integers(head["J"] + 1)])) for _ in arrivals
            ]
            times.extend(at + jitter for at, jitter in zip(arrivals, jitters, strict=True))
    costs = {
        task["name"]: [
            task["C"] if rng.random() < 0.5 else int(rng.integers(task["bcet"], task["C"] + 1))
            for _ in range(max(map(len, releases)))
        ]
        for task in case["tasks"]
    }
    simulation = play(spec, releases, lambda name, index: costs[name][index])
    names = [task["name"] for task in case["tasks"]]
    return simulation, dict(zip(names, Schedule(simulation, names).worst, strict=True))


def assert_bounded(case, count):
    simulation, worst = drawn(case, count)
    bounds = case["expected"]["wcrt"]
    assert not {name: (seen, bounds[name]) for name, seen in worst.items() if seen > bounds[name]}
    for name in ("P1", "P2"):
        limits = case["expected"].get(f"path_{name}")
        if limits is not None:
            chain = [r for r in simulation.records if isinstance(r, ChainRecord)]
            seen = [record.path_ns for record in chain if record.chain == name]
            assert limits[0] <= min(seen)
            assert max(seen) <= limits[1]
    return worst


@bounded("cpa-spp-2cpu", "cpa-tutorial-step1")
def test_responses_along_resources_stay_below_the_bounds(case):
    assert_bounded(case, 15)


@pytest.mark.slow
@bounded("cpa-spp-2cpu", "cpa-tutorial-step1")
def test_responses_of_a_thousand_lanes_along_resources_stay_below_the_bounds(case):
    worst = assert_bounded(case, 1000)
    assert worst["T11"] == case["expected"]["wcrt"]["T11"]
    assert worst["T12"] == case["expected"]["wcrt"]["T12"]
