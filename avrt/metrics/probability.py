"""How probable a miss is, from independent runs, with an interval that covers the truth.

* A run with any miss at all: runs are independent, so the interval is that of Clopper and Pearson
  (Biometrika 26, 1934): exact, it covers the truth at least as often as it says.
* The share of jobs that miss: jobs of one run are not independent, a late job delays the next. The
  run is a cluster: the interval is Clopper-Pearson's with the effective number of jobs of Korn and
  Graubard (Survey Methodology 24, 1998), `p (1 - p) / var`, where `var` is the variance of the
  share as the runs show it. It is at least the number of runs and at most that of jobs. Where no
  run or every run misses all alike, runs show no variance: the number of runs counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A probability with its interval at CONFIDENCE."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Probability:
    """How probable misses of one stage, or broken promises of one chain, are.

    Attributes:
        misses, jobs: over all runs.
        runs_with, runs: runs with any miss, and all.
        a_run: that a run has a miss.
        a_job: that a job misses; None where there was no job.
    """

    misses: int
    jobs: int
    runs_with: int
    runs: int
    a_run: Estimate
    a_job: Estimate | None


def miss_probability(counts: Sequence[tuple[int, int]]) -> Probability:
    """Return how probable a miss is; `counts` has (misses, jobs) of each run."""
    misses, jobs = (sum(count[part] for count in counts) for part in (0, 1))
    runs, runs_with = len(counts), sum(1 for count, _ in counts if count)
    return Probability(
        misses, jobs, runs_with, runs, exact_interval(runs_with, runs), _a_job(counts)
    )


def exact_interval(hits: float, trials: float) -> Estimate:
    """Return the Clopper-Pearson interval; counts may be effective ones and so no whole numbers."""
    from scipy.special import betaincinv  # noqa: PLC0415 - 0.16 s, and few commands need it

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if hits <= 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return Estimate(hits / trials, low, high)


def _a_job(counts: Sequence[tuple[int, int]]) -> Estimate | None:
    misses, jobs = (sum(count[part] for count in counts) for part in (0, 1))
    if not jobs:
        return None
    runs, share = len(counts), misses / jobs
    if runs == 1:
        return exact_interval(share, 1)
    # ratio estimate over clusters: Cochran, Sampling Techniques, section 2.11
    spread = sum((missed - share * released) ** 2 for missed, released in counts)
    variance = spread * runs / (runs - 1) / jobs**2
    effective = share * (1 - share) / variance if variance > 0 else float(runs)
    effective = min(float(jobs), max(float(runs), effective))
    return exact_interval(share * effective, effective)
