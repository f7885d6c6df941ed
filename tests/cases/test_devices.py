"""Several devices: stages that trigger each other across processors, a bus and a GPU."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from avrt.model.graph import check
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, PipelineSpec
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


@exact("gpu-suspend-prio", "gpu-suspend-fifo")
def test_a_suspended_task_is_a_stage_before_and_one_after_the_gpu(case):
    """Later stages of a task go before its first; equal priorities make the GPU's queue FIFO."""
    by_priority = case["policy"]["gpu_queue"] == "prio"
    stages = []
    for index, task in enumerate(case["tasks"]):
        for part, (device, cost) in enumerate(task["segments"]):
            urgency = (index + 1) * 10 - part
            if device == "G" and not by_priority:
                urgency = 1
            work = Task(cost=cost, period=task["T"], deadline=task["D"], priority=urgency)
            stages.append(
                stage_of(
                    work,
                    CPU,
                    f"t{index}_{part}",
                    device=device,
                    inputs=(reads(f"t{index}_{part - 1}" if part else f"s{index}"),),
                    trigger="in",
                )
            )
    spec = PipelineSpec(
        name="gpu",
        policy="fp",
        devices=(device_of(CPU, "C"), device_of(NONPREEMPTIVE, "G")),
        sources=tuple(source_of(index) for index in range(2)),
        stages=tuple(stages),
    )
    check(spec)
    simulation = play(spec, [list(range(0, 20, task["T"])) for task in case["tasks"]])
    assert Schedule(simulation, ["t0_2", "t1_2"]).finishes == case["expected"]["finish"]


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
