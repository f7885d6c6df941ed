"""CPU time of response-time analysis: avrt's, and SchedCAT's on the same sets, their results equal.

Fixed priorities on one preemptive slot, rate monotonic; utilisation 0.8, split at random, periods
log-uniform from 10 to 1000 ms in whole us, deadlines equal to periods. Rounds are interleaved, and
all rounds take the same sets. `analyse` is what `avrt check` does with a set as a pipeline: every
test that holds there, not the one of the comparison alone.

SchedCAT (github.com/brandenburg/schedcat) is Python 2: what fixed priorities need of a checkout is
translated by lib2to3, which Python has up to 3.12, with one import of its own. It stops a set at
its first late task, so only sets without any are compared.
"""

from __future__ import annotations

import gc
import importlib
import math
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from bench_simulate import spread
from check_against_simso import pipeline

from avrt.analysis.response_time import fixed_priority_set, from_release
from avrt.analysis.schedulability import analyse
from avrt.analysis.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable

SETS = 100
TASKS = 50
UTILISATION = 0.8
US = 1_000
NEEDED = ("util/math.py", "util/iter.py", "model/tasks.py", "sched/fp/*.py")


def bench_analysis(schedcat: Path | None, rounds: int) -> dict[str, object]:
    """Return the time of a set in each, and how often SchedCAT's is ours."""
    sets = [random_set(number) for number in range(SETS)]
    sides: dict[str, Callable[[], list[list[int]]]] = {
        "avrt": lambda: [responses(tasks) for tasks in sets]
    }
    if schedcat is not None:
        sides["schedcat"] = _schedcat(schedcat, sets)
    spent: dict[str, list[float]] = {name: [] for name in sides}
    found = {}
    for _ in range(rounds):
        for name, run in sides.items():
            gc.collect()
            start_ns = time.process_time_ns()
            found[name] = run()
            spent[name].append((time.process_time_ns() - start_ns) / SETS / US)
    result: dict[str, object] = {"sets": SETS, "tasks": TASKS, "rounds": rounds}
    result |= {f"{name}_us_a_set": spread(values, 0) for name, values in spent.items()}
    if schedcat is not None:
        pairs = zip(found["avrt"], found["schedcat"], strict=True)
        result["sets_that_differ"] = sum(ours != theirs for ours, theirs in pairs)
        ratios = [t / o for o, t in zip(spent["avrt"], spent["schedcat"], strict=True)]
        result["schedcat_times_avrt"] = spread(ratios, 2)
    result["analyse_ms_a_set"] = spread([_analyse_ms(tasks) for tasks in sets[::10]], 1)
    return result


def random_set(seed: int) -> list[Task]:
    """Return a set, the most urgent first, in which no task is late."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    while True:
        shares = [rng.expovariate(1) for _ in range(TASKS)]
        periods = sorted(
            round(math.exp(rng.uniform(math.log(10_000), math.log(1_000_000))))
            for _ in range(TASKS)
        )
        tasks = [
            Task(
                name=f"t{place}",
                wcet_ns=max(1, round(UTILISATION * share / sum(shares) * period)) * US,
                period_ns=period * US,
                deadline_ns=period * US,
                priority=place,
            )
            for place, (share, period) in enumerate(zip(shares, periods, strict=True))
        ]
        worst = responses(tasks)
        if all(ns <= task.deadline_ns for ns, task in zip(worst, tasks, strict=True)):
            return tasks


def responses(tasks: list[Task]) -> list[int]:
    finishes = fixed_priority_set(tasks)
    return [from_release(task, found or ()) for task, found in zip(tasks, finishes, strict=True)]


def _analyse_ms(tasks: list[Task]) -> float:
    """Return what the whole analysis of a set as a pipeline takes."""
    spec = pipeline([(t.wcet_ns, t.period_ns, t.deadline_ns, 0) for t in tasks], 1, "rm")
    start_ns = time.process_time_ns()
    analyse(spec)
    return (time.process_time_ns() - start_ns) / US / 1000


def _schedcat(checkout: Path, sets: list[list[Task]]) -> Callable[[], list[list[int]]]:
    """Return what analyses all sets there; its tasks are made before."""
    with tempfile.TemporaryDirectory() as folder:
        _translate(checkout, Path(folder))
        sys.path.insert(0, folder)
        model = importlib.import_module("schedcat.model.tasks")
        fp = importlib.import_module("schedcat.sched.fp.rta")
        sys.path.remove(folder)
    systems = [
        model.TaskSystem(model.SporadicTask(t.wcet_ns, t.period_ns, t.deadline_ns) for t in tasks)
        for tasks in sets
    ]

    def run() -> list[list[int]]:
        for system in systems:
            assert fp.bound_response_times(1, system), "no set has a late task"
        return [[task.response_time for task in system] for system in systems]

    return run


def _translate(checkout: Path, folder: Path) -> None:
    """Write the modules that fixed priorities need as Python 3."""
    source = checkout / "schedcat"
    files = [path for pattern in NEEDED for path in sorted(source.glob(pattern))]
    if not files:
        raise SystemExit(f"no SchedCAT in {checkout}; clone github.com/brandenburg/schedcat there")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from lib2to3.refactor import RefactoringTool, get_fixers_from_package  # noqa: PLC0415

        tool = RefactoringTool(get_fixers_from_package("lib2to3.fixes"))
        for path in files:
            text = str(tool.refactor_string(f"{path.read_text()}\n", str(path)))
            target = folder / "schedcat" / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace("from fractions import gcd", "from math import gcd"))
