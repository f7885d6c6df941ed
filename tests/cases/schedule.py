"""Task sets of the cases as pipelines, and what a simulation of one showed, per task.

Task `i` is stage `t<i>`; a smaller index goes first where a policy leaves a tie. Released tasks
have a source each, `s<i>`, so that a schedule may be given release by release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from avrt.drivers.simulate import NO_OVERHEADS, simulate
from avrt.model.events import Arrived
from avrt.model.graph import check
from avrt.model.records import MissRecord
from avrt.model.spec import DeviceSpec, InputSpec, PipelineSpec, SourceSpec, StageSpec

UNBOUNDED = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of a case; times are in its units."""

    cost: int
    period: int
    deadline: int
    offset: int = 0
    jitter: int = 0
    priority: int = 0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What schedules the tasks."""

    policy: str = "fp"
    slots: int = 1
    preemptive: bool = True
    on_miss: str = "continue"


NONPREEMPTIVE = Machine(preemptive=False)
EDF = Machine(policy="edf")


class Schedule:
    """The records of a simulation, by task index."""

    def __init__(self, simulation, names):
        self.simulation = simulation
        self.jobs = [simulation.jobs_of(name) for name in names]

    @property
    def finishes(self):
        return [[job.end_ns for job in jobs] for jobs in self.jobs]

    @property
    def responses(self):
        return [[job.response_ns for job in jobs] for jobs in self.jobs]

    @property
    def worst(self):
        """The longest response of each task."""
        return [max(responses) for responses in self.responses]

    def worst_of(self, index):
        """The longest response of one task; others may have no job at all."""
        return max(self.responses[index])

    @property
    def outcomes(self):
        return [[job.outcome for job in jobs] for jobs in self.jobs]

    @property
    def first_missed_deadline(self):
        misses = [r.due_ns for r in self.simulation.records if isinstance(r, MissRecord)]
        return min(misses, default=None)

    def oldest_open(self, index, at_ns):
        """How long the oldest job of a task that is open at this instant has been so."""
        return max(min(j.end_ns, at_ns) - j.release_ns for j in self.jobs[index])

    def grows(self, index, span_ns):
        """Whether the task falls behind further and further as the time doubles."""
        ages = [self.oldest_open(index, span_ns * n) for n in (1, 2, 4, 8)]
        return all(before < after for before, after in pairwise(ages))


def tasks_of(case):
    """The tasks of a case in listed order, which is their priority order."""
    return [
        Task(
            cost=task["C"],
            period=task["T"],
            deadline=task["D"],
            offset=task.get("O", 0),
            jitter=task.get("J", 0),
            priority=index + 1,
        )
        for index, task in enumerate(case["tasks"])
    ]


def device_of(machine, name="processor"):
    return DeviceSpec(
        name=name, type="simulated", slots=machine.slots, preemptive=machine.preemptive
    )


def stage_of(task, machine, name, **keys):
    return StageSpec(
        name=name,
        **(
            {
                "device": "processor",
                "wcet_ns": task.cost,
                "deadline_ns": task.deadline,
                "priority": task.priority,
                "on_miss": machine.on_miss,
                "queue": UNBOUNDED,
            }
            | keys
        ),
    )


def periodic(tasks, machine, until, overheads=NO_OVERHEADS):
    """Schedule tasks that are released by their timers before `until`."""
    names = [f"t{index}" for index in range(len(tasks))]
    spec = PipelineSpec(
        name="case",
        policy=machine.policy,
        devices=(device_of(machine),),
        stages=tuple(
            stage_of(task, machine, name, period_ns=task.period, offset_ns=task.offset)
            for task, name in zip(tasks, names, strict=True)
        ),
    )
    check(spec)
    return Schedule(simulate(spec, until_ns=until, overheads=overheads), names)


def released(tasks, machine, releases, costs=None):
    """Schedule tasks that are released at these times, `releases[task][job]`."""
    names = [f"t{index}" for index in range(len(tasks))]
    spec = PipelineSpec(
        name="case",
        policy=machine.policy,
        devices=(device_of(machine),),
        sources=tuple(source_of(i, task.period) for i, task in enumerate(tasks)),
        stages=tuple(
            stage_of(task, machine, name, inputs=(reads(f"s{index}"),), trigger="in")
            for index, (task, name) in enumerate(zip(tasks, names, strict=True))
        ),
    )
    check(spec)
    execution = None if costs is None else lambda name, index: costs[int(name[1:])][index]
    return Schedule(play(spec, releases, execution), names)


def segmented(tasks, parts, machine, releases):
    """Schedule tasks with fixed preemption points: a stage per part, each triggering the next.

    Later parts of a task go before its earlier ones, so its jobs never overlap. The response of
    job `k` is the last part's end since release `k`.
    """
    stages = [
        stage_of(
            with_cost(task, cost),
            machine,
            f"t{i}_{k}",
            priority=(i + 1) * 100 - k,
            deadline_from="capture",
            inputs=(reads(f"t{i}_{k - 1}" if k else f"s{i}"),),
            trigger="in",
        )
        for i, task in enumerate(tasks)
        for k, cost in reversed(list(enumerate(parts[i])))
    ]
    spec = PipelineSpec(
        name="case",
        policy=machine.policy,
        devices=(device_of(machine),),
        sources=tuple(source_of(i, task.period) for i, task in enumerate(tasks)),
        stages=tuple(stages),
    )
    check(spec)
    last_parts = [f"t{i}_{len(part) - 1}" for i, part in enumerate(parts)]
    finishes = Schedule(play(spec, releases), last_parts).finishes
    return [
        [end - release for end, release in zip(ends, times, strict=True)]
        for ends, times in zip(finishes, releases, strict=True)
    ]


def play(spec, releases, execution=None, captures=None):
    """Simulate a pipeline whose source `s<i>` speaks at `releases[i]`, until all is done."""
    last_ns = max(times[-1] for times in releases if times)
    feed = arrivals(releases, captures or releases)
    return simulate(spec, until_ns=last_ns + 1, execution=execution, feed=feed)


def arrivals(releases, captures):
    """Feed the releases of each source in time order."""
    ordered = sorted(
        (at_ns, index, sequence)
        for index, times in enumerate(releases)
        for sequence, at_ns in enumerate(times)
    )
    for handle, (at_ns, index, sequence) in enumerate(ordered):
        capture_ns = captures[index][sequence]
        yield at_ns, Arrived(f"s{index}", sequence, capture_ns, at_ns, -1 - handle)


def source_of(index, period=None):
    return SourceSpec(name=f"s{index}", type="can", period_ns=period)


def reads(producer, name="in"):
    return InputSpec(name=name, source=producer)


def hyperperiod(tasks):
    return math.lcm(*(task.period for task in tasks))


def busy_period(tasks):
    """The length of the synchronous busy period; the utilisation must not be above 1."""
    length = sum(task.cost for task in tasks)
    while True:
        longer = sum(-(-length // task.period) * task.cost for task in tasks)
        if longer == length:
            return length
        length = longer


def with_cost(task, cost):
    return replace(task, cost=cost)
