"""Many runs of one scenario, each with a seed of its own: how probable is a miss?

Runs are independent, so they go on side by side in processes, one a core; what comes back is small
and in the order of the seeds, so the figures do not depend on how the work was divided. Processes
are spawned, not forked: nothing of this one's threads goes into them.
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from avrt.analysis.bounds import bounds
from avrt.drivers.scenario import run_unrecorded
from avrt.metrics.bounds import chains_above, stages_above, worst_of_runs
from avrt.metrics.probability import Probability, miss_probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.analysis.bounds import Bounds
    from avrt.drivers.scenario import Prepared
    from avrt.metrics.bounds import Above, WorstOfRuns
    from avrt.metrics.run import RunFigures
    from avrt.model.scenario import Expectation
    from avrt.model.spec import PipelineSpec

SPAWN_FROM_JOBS = 20_000
"""Less work than this is over before other processes have begun."""
CHUNKS_A_PROCESS = 4


@dataclass(frozen=True, slots=True)
class RunCounts:
    """One run in numbers.

    Attributes:
        stages: by stage, (jobs not met, jobs released).
        chains: by chain, (promises broken, promises).
        unmet: by index of the expectation, the sentence that says why it was not met.
        stages_worst, chains_worst: the longest response; the longest reaction or age.
        stages_above, chains_above: the first job or output above its bound.
    """

    seed: int
    stages: Mapping[str, tuple[int, int]]
    chains: Mapping[str, tuple[int, int]]
    unmet: Mapping[int, str]
    stages_worst: Mapping[str, int | None]
    chains_worst: Mapping[str, int | None]
    stages_above: Mapping[str, Above]
    chains_above: Mapping[str, Above]


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that some runs did not meet: how many, and the first of them."""

    expectation: Expectation
    runs: int
    seed: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ManyRuns:
    """What many runs showed.

    Attributes:
        stages, chains: how probable a miss, or a broken promise, is.
        bounds: of every stage and chain.
        stages_worst, chains_worst: the longest observations.
    """

    first_seed: int
    count: int
    stages: Mapping[str, Probability]
    chains: Mapping[str, Probability]
    failures: tuple[Failure, ...]
    bounds: Bounds
    stages_worst: Mapping[str, WorstOfRuns]
    chains_worst: Mapping[str, WorstOfRuns]


def run_many(prepared: Prepared, first_seed: int, count: int) -> ManyRuns:
    """Run a scenario with the seeds `first_seed`, `first_seed + 1`, ..., `count` of them."""
    spec = prepared.spec
    known = bounds(spec.pipeline, spec.overheads)
    runs = _run_all(prepared, range(first_seed, first_seed + count), known)
    return ManyRuns(
        first_seed,
        count,
        {s.name: miss_probability([r.stages[s.name] for r in runs]) for s in spec.pipeline.stages},
        {c.name: miss_probability([r.chains[c.name] for r in runs]) for c in spec.pipeline.chains},
        tuple(_failures(spec.expect, runs)),
        known,
        worst_of_runs((run.seed, run.stages_worst, run.stages_above) for run in runs),
        worst_of_runs((run.seed, run.chains_worst, run.chains_above) for run in runs),
    )


def run_counts(prepared: Prepared, seed: int, known: Bounds) -> RunCounts:
    """Run a scenario once and count; what is above a bound is looked for in a second, watched run.

    So runs that stay below all of them, the rule, take no longer.
    """
    result = run_unrecorded(prepared, seed)
    figures = result.figures
    limits = [{name: f.ns for name, f in group.items()} for group in (known.stages, known.chains)]
    if stages_above(figures, limits[0]) or chains_above(figures, limits[1]):
        figures = run_unrecorded(prepared, seed, watched=True).figures
    order = {id(item): index for index, item in enumerate(prepared.spec.expect)}
    return RunCounts(
        seed,
        {name: (stage.not_met, stage.released) for name, stage in result.figures.stages.items()},
        _chains(prepared.spec.pipeline, result.figures),
        {order[id(item.expectation)]: item.sentence for item in result.unmet},
        {name: stage.worst_ns for name, stage in figures.stages.items()},
        {name: chain.worst_ns for name, chain in figures.chains.items()},
        stages_above(figures, limits[0]),
        chains_above(figures, limits[1]),
    )


def processes() -> int:
    """Return how many processes work side by side: one a core that this one may use."""
    return len(os.sched_getaffinity(0))


def _run_all(prepared: Prepared, seeds: Sequence[int], known: Bounds) -> list[RunCounts]:
    """Return the counts of every seed in order; the first tells how much work the others are."""
    work = partial(run_counts, prepared, known=known)
    first, others = work(seeds[0]), seeds[1:]
    jobs = sum(released for _, released in first.stages.values())
    workers = min(processes(), len(others))
    if workers <= 1 or jobs * len(others) < SPAWN_FROM_JOBS:
        return [first, *(work(seed) for seed in others)]
    chunk = max(1, len(others) // (workers * CHUNKS_A_PROCESS))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        try:
            with _interrupts_left():
                found = pool.map(work, others, chunksize=chunk)
            runs = [first, *found]
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return runs


@contextmanager
def _interrupts_left() -> Iterator[None]:
    """Let processes that begin meanwhile leave Ctrl-C to this one, from their first moment on.

    An ignored signal stays ignored in a process that is spawned. Only the main thread gets signals,
    and only it may say so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _chains(pipeline: PipelineSpec, figures: RunFigures) -> dict[str, tuple[int, int]]:
    """Return (promises broken, promises) by chain: each output has to keep each limit.

    While nothing comes out a promise may be broken too, so there are at least as many as broken.
    """
    counts: dict[str, tuple[int, int]] = {}
    for spec in pipeline.chains:
        chain = figures.chains[spec.name]
        limits = sum(limit is not None for limit in (spec.reaction_ns, spec.age_ns))
        broken = sum(chain.broken.values())
        counts[spec.name] = (broken, max(broken, limits * len(chain.path)))
    return counts


def _failures(expect: Sequence[Expectation], runs: Iterable[RunCounts]) -> Iterable[Failure]:
    told: dict[int, list[tuple[int, str]]] = {}
    for run in runs:
        for index, sentence in run.unmet.items():
            told.setdefault(index, []).append((run.seed, sentence))
    for index, found in sorted(told.items()):
        seed, sentence = found[0]
        yield Failure(expect[index], len(found), seed, sentence)
