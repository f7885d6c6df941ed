"""Compare avrt with SimSo over random task sets, job for job, and explain every difference.

    python tools/check_against_simso.py --simso PYTHON [--sets 1000] [--seed 1]

PYTHON is the interpreter of an environment with SimSo 0.8.5 (see `simso_peer`). Every set runs
three times: in SimSo, in the kernel, and in the loop for plain task sets. Policies edf and rm, one,
two and four processors, 2 to 12 tasks with offsets, utilisation from 0.3 to 1.2 a processor, so
overload too. A job agrees when it ends at the same nanosecond in all three; one that has not ended
by the end of SimSo's run must end later in the others. Exit 1 when a difference is not explained.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter

from simso_peer import Simso, tied_apart

from avrt.drivers.conditions import read_conditions
from avrt.drivers.plain import PlainSet
from avrt.drivers.simulate import simulate
from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec

UNTIL = 20_000
MISMATCHES_SHOWN = 5
Task = tuple[int, int, int, int]  # wcet, period, deadline, offset


def random_set(seed: int, number: int) -> tuple[list[Task], int, str]:
    """Return the tasks, slots and policy of one set."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - no secret
    slots, policy = rng.choice((1, 2, 4)), rng.choice(("edf", "rm"))
    count = rng.randint(max(2, slots), 12)
    shares = [rng.random() for _ in range(count)]
    scale = rng.uniform(0.3, 1.2) * slots / sum(shares)
    times = []
    for share in shares:
        period = round(math.exp(rng.uniform(math.log(20), math.log(2000))))
        times.append((max(1, round(min(share * scale, 1) * period)), period))
    return (
        [
            (wcet, period, deadline, rng.randrange(period) * count)
            for wcet, period, deadline in tied_apart(count, times)
        ],
        slots,
        policy,
    )


def pipeline(tasks: list[Task], slots: int, policy: str) -> PipelineSpec:
    """Return the set as a pipeline of timer stages whose queues have no bound that matters."""
    stages = tuple(
        StageSpec(
            name=f"t{number}",
            device="d",
            wcet_ns=wcet,
            period_ns=period,
            deadline_ns=deadline,
            offset_ns=offset,
            queue=1 << 30,
        )
        for number, (wcet, period, deadline, offset) in enumerate(tasks)
    )
    device = DeviceSpec(name="d", type="simulated", slots=slots, preemptive=True)
    return PipelineSpec(name="simso", policy=policy, devices=(device,), stages=stages)


def kernel_ends(spec: PipelineSpec, until: int) -> list[list[int]]:
    run = simulate(spec, until_ns=until, digest=False)
    ends: dict[str, list[tuple[int, int]]] = {stage.name: [] for stage in spec.stages}
    for job in run.jobs:
        ends[job.task].append((job.index, job.end_ns))
    return [[end for _, end in sorted(jobs)] for jobs in ends.values()]


def plain_ends(spec: PipelineSpec, until: int) -> list[list[int]]:
    return [task.end_ns for task in PlainSet(spec, until_ns=until).run().values()]


def differences(ours: list[list[int]], theirs: list[list[int | None]], until: int) -> list[str]:
    """Return one line a job that does not agree."""
    found = []
    for task, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if len(mine) != len(other):
            found.append(f"t{task}: {len(mine)} jobs here, {len(other)} in SimSo")
        found += [
            f"t{task} job {job}: ends at {end} here, at {seen} in SimSo"
            for job, (end, seen) in enumerate(zip(mine, other, strict=False))
            if (end < until or seen is not None) and end != seen
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simso", required=True, metavar="PYTHON")
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    simso = Simso(given.simso)
    counts: Counter[str] = Counter()
    shown: list[str] = []
    for number in range(given.sets):
        tasks, slots, policy = random_set(given.seed, number)
        spec = pipeline(tasks, slots, policy)
        theirs, _ = simso.run(tasks, slots, policy, UNTIL)
        ours = kernel_ends(spec, UNTIL)
        found = differences(ours, theirs, UNTIL)
        if plain_ends(spec, UNTIL) != ours:
            found.append("the loop for plain sets differs from the kernel")
        counts["sets"] += 1
        counts["sets that agree"] += not found
        counts["jobs"] += sum(map(len, ours))
        counts["jobs that differ"] += len(found)
        counts[f"{policy}, {slots} slots"] += 1
        late = any(
            end is not None and end > offset + job * period + deadline
            for (_, period, deadline, offset), ends in zip(tasks, theirs, strict=True)
            for job, end in enumerate(ends)
        )
        counts["sets with late jobs"] += late
        shown += [f"set {number} ({policy}, {slots} slots): {line}" for line in found[:1]]
    simso.close()
    result = {"seed": given.seed, **dict(sorted(counts.items()))}
    shown = shown[:MISMATCHES_SHOWN]
    print(json.dumps({"simso": result, "differences": shown, "conditions": read_conditions()},
                     indent=2))  # fmt: skip
    raise SystemExit(1 if shown else 0)


if __name__ == "__main__":
    main()
