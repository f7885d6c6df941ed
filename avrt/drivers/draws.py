"""Random numbers that do not depend on the schedule: one stream a seed and task, one number a job.

The number of a job depends on seed, task and index alone: not on the schedule, the policy, the
devices, how many jobs are asked for, or any other task. So two runs of one seed differ only by
what was changed between them (common random numbers: Glasserman, Yao, "Some guidelines and
guarantees for common random numbers", 1992), and lanes may run in any order.

The generator is Philox, a function of key and counter (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", 2011); its key is the seed and a hash of the task's name.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.model.spec import PipelineSpec

    Draw = Callable[[int, str, int], Sequence[int]]

KEY_BYTES = 8
FIRST_COUNT = 64


def generator(seed: int, task: str) -> np.random.Generator:
    """Return the stream of a task in the run of a seed; take one number a job, in job order."""
    name = hashlib.blake2b(task.encode(), digest_size=KEY_BYTES).digest()
    key = [seed % (1 << 64), int.from_bytes(name, "little")]
    return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))


def uniform(spec: PipelineSpec) -> Draw:
    """Return draws between bcet and wcet of each stage, both included; without a bcet, the wcet."""
    limits = {
        task: (stage.wcet_ns if stage.bcet_ns is None else stage.bcet_ns, stage.wcet_ns)
        for stage in spec.stages
        for task in stage.task_names
    }

    def draw(seed: int, task: str, count: int) -> Sequence[int]:
        low_ns, high_ns = limits[task]
        shares = generator(seed, task).random(count)
        times: list[int] = (low_ns + (shares * (high_ns - low_ns + 1)).astype(np.int64)).tolist()
        return times

    return draw


def by_job(draw: Draw, seed: int) -> Callable[[str, int], int]:
    """Return the same draws one job at a time, as a simulation of the kernel asks for them."""
    drawn: dict[str, Sequence[int]] = {}

    def execution(task: str, index: int) -> int:
        times = drawn.get(task, ())
        if index >= len(times):
            times = drawn[task] = draw(seed, task, max(FIRST_COUNT, 2 * index))
        return times[index]

    return execution


class Draws:
    """Uniform numbers in [0, 1) of one seed, by what they are for and an index."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: dict[str, Sequence[float]] = {}

    def uniform(self, purpose: str, index: int) -> float:
        """Return the number of this purpose (such as a task's name) and index."""
        drawn = self._drawn.get(purpose, ())
        if index >= len(drawn):
            count = max(FIRST_COUNT, 2 * index)
            drawn = self._drawn[purpose] = generator(self._seed, purpose).random(count).tolist()
        return drawn[index]
