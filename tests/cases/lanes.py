"""Release patterns: random ones, and those at which a response is the longest.

Lanes are independent runs one after the other on the same pipeline, each beginning when the one
before is surely over. Everything is drawn from a generator seeded with the case's id.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from cases.schedule import busy_period


@dataclass(frozen=True)
class Lanes:
    """`arrivals` are nominal; releases come up to the task's jitter later. All `[task][job]`."""

    arrivals: list[list[int]]
    releases: list[list[int]]
    costs: list[list[int]]

    def worst(self, schedule):
        """The longest response of each task, counted from the nominal arrival."""
        return [
            max(end - arrival for end, arrival in zip(ends, arrivals, strict=True))
            for ends, arrivals in zip(schedule.finishes, self.arrivals, strict=True)
        ]


def random_lanes(case, tasks, count, *, jobs_max=24, full_cost=False):
    """Draw offsets, jitters and execution times; a lane has up to about `jobs_max` jobs."""
    rng = np.random.default_rng(zlib.crc32(case["id"].encode()))
    drawn = Lanes([[] for _ in tasks], [[] for _ in tasks], [[] for _ in tasks])
    rate = sum(1 / task.period for task in tasks)
    span = max(1, min(2 * max(task.period for task in tasks), int(jobs_max / rate)))
    start = 0
    for lane in range(count):
        work = 0
        for index, task in enumerate(tasks):
            offset = int(rng.integers(min(task.period, span)))
            for arrival in range(start + offset, start + span, task.period):
                drawn.arrivals[index].append(arrival)
                drawn.releases[index].append(arrival + int(rng.integers(task.jitter + 1)))
                least = task.cost if full_cost or lane % 2 else (task.cost + 1) // 2
                cost = int(rng.integers(least, task.cost + 1))
                drawn.costs[index].append(cost)
                work += cost
        start += span + max(task.jitter for task in tasks) + work + 1
    return drawn


def nonpreemptive_instant(tasks, index, span):
    """Release the longest lower-priority task one unit before everything else.

    The critical instant of non-preemptive fixed priorities in discrete time: blocking is C - 1.
    """
    lower = range(index + 1, len(tasks))
    blocker = max(lower, key=lambda other: tasks[other].cost, default=None)
    return [
        list(range(0 if other == blocker else 1, span, task.period))
        if other <= index
        else [0] * (other == blocker)
        for other, task in enumerate(tasks)
    ]


@dataclass(frozen=True)
class Instant:
    """Where a task's worst EDF response lies.

    The other tasks are released together at 0 and the task under analysis has a job at `arrival`;
    `blocker` is a task with a later deadline that has just started, if there is one.
    """

    response: int
    arrival: int
    blocking: int
    blocker: int | None


def edf_instant(tasks, index, *, last=None, longest=None):
    """Find the worst deadline busy period of one task.

    Spuri 1996 (preemptive), George et al. 1996 (`last`: the task's last non-preemptable part;
    `longest[k]`: the longest non-preemptable part of each task, which blocks one unit less).
    """
    own = tasks[index]
    worst = Instant(0, 0, 0, None)
    for arrival in _edf_arrivals(tasks, index, every=last is not None):
        due = arrival + own.deadline
        later = [
            (longest[k] - 1, k)
            for k, other in enumerate(tasks)
            if longest is not None and k != index and other.deadline > due
        ]
        blocking, blocker = max(later, default=(0, None))
        tail = last or 0
        alone = blocking + (arrival // own.period + 1) * own.cost - tail
        end = alone
        while True:
            others = sum(
                min(
                    end // other.period + 1 if last else -(-end // other.period),
                    max(0, (due - other.deadline) // other.period + 1),
                )
                * other.cost
                for k, other in enumerate(tasks)
                if k != index
            )
            if alone + others <= end:
                break
            end = alone + others
        response = max(own.cost, end + tail - arrival)
        if response > worst.response:
            worst = Instant(response, arrival, blocking, blocker)
    return worst


def _edf_arrivals(tasks, index, *, every):
    span = busy_period(tasks)
    if every:
        return range(span)
    own = tasks[index]
    points = {
        due - own.deadline
        for other in tasks
        for due in range(other.deadline, span + own.deadline, other.period)
    }
    return sorted(point for point in points if 0 <= point < span)
