"""Jobs per cpu-second of simulations: the kernel, the loop for plain task sets, and SimSo.

The same task sets in all three, job for job the same completions, rounds interleaved; processor
time of the simulation alone, its pipeline checked and its set made before. Periods are log-uniform
from 10 to 1000 ms, utilisation 0.7 a processor. SimSo runs in a fresh process each time: what one
run leaves behind makes the next one up to twice as slow.
"""

from __future__ import annotations

import gc
import math
import random
import time
from statistics import median
from typing import TYPE_CHECKING

from check_against_simso import Task, differences, kernel_ends, pipeline, plain_ends
from simso_peer import Simso, tied_apart

from avrt.drivers.plain import PlainSet
from avrt.drivers.simulate import simulate

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec

SIZES = (10, 50)
SLOTS = (1, 4)
POLICIES = ("edf", "rm")
UTILISATION = 0.7
MS = 1_000_000


def bench_simulate(python: str | None, jobs: int, rounds: int) -> dict[str, object]:
    """Return the rates of every size, number of slots and policy; SimSo's where it is given."""
    found: dict[str, object] = {}
    for size in SIZES:
        for slots in SLOTS:
            tasks = random_tasks(size, slots)
            until_ns = round(jobs / sum(1 / period for _, period, _, _ in tasks))
            for policy in POLICIES:
                name = f"{size} tasks, {slots} slots, {policy}"
                spec = pipeline(tasks, slots, policy)
                found[name] = _compare(spec, tasks, until_ns, rounds, python)
    return found


def random_tasks(size: int, slots: int) -> list[Task]:
    """Return `(wcet, period, deadline, offset)` of a set without ties, released together at 0."""
    rng = random.Random(f"{size}/{slots}")  # noqa: S311 - no secret
    shares = [rng.random() for _ in range(size)]
    scale = UTILISATION * slots / sum(shares)
    times = []
    for share in shares:
        period = round(math.exp(rng.uniform(math.log(10), math.log(1000))) * MS)
        times.append((max(1, round(min(share * scale, 1) * period)), period))
    return [(*times, 0) for times in tied_apart(size, times)]


def _compare(
    spec: PipelineSpec, tasks: list[Task], until_ns: int, rounds: int, python: str | None
) -> dict[str, object]:
    rates: dict[str, list[float]] = {"kernel": [], "plain": []}
    differ = 0
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        run = simulate(spec, until_ns=until_ns, digest=False)
        cpu_s = time.process_time() - start
        count = len(run.jobs)
        rates["kernel"].append(count / cpu_s)
        gc.collect()
        start = time.process_time()
        PlainSet(spec, until_ns=until_ns).run()
        rates["plain"].append(count / (time.process_time() - start))
        if python is not None:
            simso = Simso(python)
            ends, cpu_s = simso.run(tasks, spec.devices[0].slots, spec.policy, until_ns)
            simso.close()
            rates.setdefault("simso", []).append(count / cpu_s)
            differ += len(differences(kernel_ends(spec, until_ns), ends, until_ns))
    differ += plain_ends(spec, until_ns) != kernel_ends(spec, until_ns)
    found: dict[str, object] = {"jobs": count, "jobs_that_differ": differ, "rounds": rounds}
    for name, values in rates.items():
        found[f"{name}_jobs_per_cpu_s"] = spread(values, 0)
    for name in ("kernel", "plain"):
        if python is not None:
            pairs = zip(rates[name], rates["simso"], strict=True)
            found[f"{name}_times_simso"] = spread([ours / theirs for ours, theirs in pairs], 1)
    return found


def spread(values: list[float], digits: int) -> dict[str, float]:
    ordered = {"min": min(values), "median": median(values), "max": max(values)}
    return {name: round(value, digits) for name, value in ordered.items()}
