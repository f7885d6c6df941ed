"""The first job of a stage, or output of a chain, that took longer than a limit; what explains it.

The limits are what no run exceeds that keeps to what is declared. What was broken before the limit
passed explains that it did; where nothing was, nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.run import longest_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from avrt.metrics.broken import Broken
    from avrt.metrics.run import ChainFigures, RunFigures, StageFigures

    Limits = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Above:
    """The first job of a stage, or the first output of a chain, that took longer than its bound.

    Attributes:
        subject: the task, or the chain.
        index: of the job; of the output, the number of its activation.
        release_ns: of an output, when what it is counted from was captured.
        cause: the first assumption that was broken by then; None means that the model is.
    """

    subject: str
    index: int
    release_ns: int
    found_ns: int
    bound_ns: int
    cause: Broken | None

    @property
    def passed_ns(self) -> int:
        """When the bound passed."""
        return self.release_ns + self.bound_ns


def stages_above(figures: RunFigures, limits: Limits) -> dict[str, Above]:
    """Return the first job above its limit of every stage that has one."""
    broken = figures.assumptions.first_of_responses
    found = {name: _above(_jobs(s), limits[name], broken) for name, s in figures.stages.items()}
    return {name: above for name, above in found.items() if above is not None}


def chains_above(figures: RunFigures, limits: Limits) -> dict[str, Above]:
    """Return the first output above its limit of every chain that has one."""
    paths = {chain.name: chain.path for chain in figures.spec.chains}
    found = {
        name: _above(_outputs(chain), limits[name], figures.assumptions.first_along(paths[name]))
        for name, chain in figures.chains.items()
    }
    return {name: above for name, above in found.items() if above is not None}


def _jobs(stage: StageFigures) -> Iterator[tuple[str, int, int, int]]:
    for job in stage.highs:
        yield job.task, job.index, job.release_ns, job.response_ns


def _outputs(chain: ChainFigures) -> Iterator[tuple[str, int, int, int]]:
    for output in chain.highs:
        found_ns = longest_ns(output)
        yield output.chain, output.activation, output.at_ns - found_ns, found_ns


def _above(
    highs: Iterable[tuple[str, int, int, int]], limit_ns: int | None, broken: Broken | None
) -> Above | None:
    for subject, index, from_ns, found_ns in highs:
        if limit_ns is not None and found_ns > limit_ns:
            explains = broken is not None and broken.at_ns <= from_ns + limit_ns
            cause = broken if explains else None
            return Above(subject, index, from_ns, found_ns, limit_ns, cause)
    return None


# Many runs


@dataclass(slots=True)
class WorstOfRuns:
    """The longest that any of many runs showed of a stage or a chain.

    Attributes:
        observed_ns, seed: None where no run showed anything.
        runs_above, runs_unexplained: runs above the bound, and those of them that broke no
            assumption before: the model is broken.
        first: the seed of the first unexplained run, or else of the first above; what was above.
    """

    observed_ns: int | None = None
    seed: int | None = None
    runs_above: int = 0
    runs_unexplained: int = 0
    first: tuple[int, Above] | None = None


def worst_of_runs(
    runs: Iterable[tuple[int, Mapping[str, int | None], Mapping[str, Above]]],
) -> dict[str, WorstOfRuns]:
    """Return what runs showed together, of each the seed, the longest and what was above."""
    worst: dict[str, WorstOfRuns] = {}
    for seed, longest, above in runs:
        for name, ns in longest.items():
            item = worst.setdefault(name, WorstOfRuns())
            if ns is not None and (item.observed_ns is None or ns > item.observed_ns):
                item.observed_ns, item.seed = ns, seed
            if name in above:
                _add(item, seed, above[name])
    return worst


def _add(item: WorstOfRuns, seed: int, above: Above) -> None:
    is_first_unexplained = above.cause is None and not item.runs_unexplained
    if item.first is None or is_first_unexplained:
        item.first = (seed, above)
    item.runs_above += 1
    item.runs_unexplained += above.cause is None
