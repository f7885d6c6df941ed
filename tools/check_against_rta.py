"""Compare avrt's response times with pyRTA's (PyPI `response-time-analysis`) on random task sets.

    python tools/check_against_rta.py [SETS]

pyRTA implements the analyses that the Prosa project has proved; its code is not proved. Each set
is analysed under fixed priorities, EDF and FIFO, with full, no, floating and limited preemption,
and every task's bound is compared. Both count from the release, in discrete time. A difference
that is not one of these makes the exit code 1:

* replicas: equal tasks are one task to pyRTA (a frozen dataclass, and interferers are those with
  `t != task`), so copies of a task do not delay each other there. Every tenth set has some.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from avrt.analysis.response_time import (
    earliest_deadline_first,
    first_in_first_out,
    fixed_priority,
    from_release,
)
from avrt.analysis.tasks import Task

try:
    from response_time_analysis import edf, fifo, fp, model
except ImportError:
    sys.exit("pyRTA is not here; pip install response-time-analysis, then run this again")

HORIZON = 10**6
PREEMPTION = ("full", "none", "floating", "limited")
POLICIES = ("fp", "edf", "fifo")


def main(sets: int) -> int:
    """Compare that many sets; return 1 when a difference has no explanation."""
    counts: Counter[str] = Counter()
    for number in range(sets):
        rng = np.random.default_rng((2026, number))
        preemption = PREEMPTION[number % len(PREEMPTION)]
        tasks = random_set(rng, preemption, replicas=number % 10 == 9)
        theirs = [as_theirs(task, preemption) for task in tasks]
        for policy in POLICIES:
            for place, task in enumerate(tasks):
                ours, other = our_bound(policy, task, tasks), their_bound(policy, theirs, place)
                said = judge(ours, other, theirs, theirs[place])
                counts[said] += 1
                counts[f"{policy}, {preemption} preemption: {said}"] += 1
                if said == "unexplained":
                    print(f"set {number}, {policy}, {preemption}: {ours} here, {other} there")
                    print(f"    task {place} of {tasks}")
    for what in sorted(counts, key=lambda what: ("," not in what, what)):
        print(f"{counts[what]:6} {what}")
    return 1 if counts["unexplained"] else 0


def judge(ours: int | None, other: int | None, theirs: list[model.Task], task: model.Task) -> str:
    """Return how two bounds compare, or what explains that they do not."""
    if ours == other:
        return "equal" if ours is not None else "both without a bound"
    return "replicas" if theirs.count(task) > 1 else "unexplained"


def random_set(rng: np.random.Generator, preemption: str, *, replicas: bool) -> list[Task]:
    """Draw 2 to 6 tasks, of a utilisation of 0.4 to 1.1, the most urgent first."""
    count = int(rng.integers(2, 7))
    shares = rng.dirichlet(np.ones(count)) * rng.uniform(0.4, 1.1)
    tasks = []
    for place, share in enumerate(shares):
        period_ns = int(rng.integers(5, 120))
        wcet_ns = max(1, int(share * period_ns))
        longest_ns, last_ns = parts(rng, preemption, wcet_ns)
        jitter_ns = int(rng.integers(1, period_ns)) if rng.random() < 0.3 else 0
        tasks.append(
            Task(
                name=str(place),
                wcet_ns=wcet_ns,
                period_ns=period_ns,
                deadline_ns=int(rng.integers(wcet_ns, 2 * period_ns + 1)),
                jitter_ns=jitter_ns,
                priority=place,
                longest_ns=longest_ns,
                last_ns=last_ns,
            )
        )
    if replicas:
        tasks.append(replace(tasks[-1], name="copy"))
    return tasks


def parts(rng: np.random.Generator, preemption: str, wcet_ns: int) -> tuple[int, int]:
    """Return the longest and the last part of a job that cannot be preempted."""
    drawn_ns = int(rng.integers(1, wcet_ns + 1))
    match preemption:
        case "full":
            return 1, 1
        case "none":
            return wcet_ns, wcet_ns
        case "floating":
            return drawn_ns, 1
        case _:
            return drawn_ns, int(rng.integers(1, drawn_ns + 1))


def as_theirs(task: Task, preemption: str) -> model.Task:
    """Return the task as pyRTA knows it; its urgent tasks have the larger numbers."""
    wcet = model.WCET(task.wcet_ns)
    execution: model.PreemptionModel
    match preemption:
        case "full":
            execution = model.FullyPreemptive(wcet)
        case "none":
            execution = model.FullyNonPreemptive(wcet)
        case "floating":
            execution = model.FloatingNonPreemptive(wcet, task.longest_ns)
        case _:
            execution = model.LimitedPreemptive(wcet, task.longest_ns, task.last_ns)
    arrivals: model.ArrivalModel = model.Periodic(task.period_ns)
    if task.jitter_ns:
        arrivals = model.PeriodicWithJitter(task.period_ns, task.jitter_ns)
    deadline, priority = model.Deadline(task.deadline_ns), model.Priority(99 - task.priority)
    return model.Task(arrivals, execution, deadline, priority)


def our_bound(policy: str, task: Task, tasks: list[Task]) -> int | None:
    others = [other for other in tasks if other is not task]
    if policy == "edf":
        return earliest_deadline_first(task, others)
    if policy == "fifo":
        return first_in_first_out(task, others)
    higher = [other for other in others if other.priority <= task.priority]
    lower = [other for other in others if other.priority > task.priority]
    finishes = fixed_priority(task, higher, lower)
    return None if finishes is None else from_release(task, finishes)


def their_bound(policy: str, theirs: list[model.Task], place: int) -> int | None:
    tasks, supply = model.taskset(theirs), model.IdealProcessor()
    match policy:
        case "fp":
            found = fp.rta(tasks, theirs[place], supply, HORIZON)
        case "edf":
            found = edf.rta(tasks, theirs[place], supply, HORIZON)
        case _:
            found = fifo.rta(tasks, supply, HORIZON)
    return found.response_time_bound


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
