"""A probabilistic worst-case execution time, or the reason why there is none.

Measurement-based probabilistic timing analysis (Cucu-Grosjean et al., "Measurement-based
probabilistic timing analysis for multi-path programs", ECRTS 2012) extrapolates the largest
measured times by extreme value theory. That holds only for measurements that are independent and
identically distributed, so both are tested first and a failed test is a refusal:

* independence: Ljung and Box (Biometrika 65, 1978) on ranks, over LAGS lags;
* identical distribution: two-sample Kolmogorov-Smirnov, first half against second half.

The times above the 90 % quantile then follow a generalised Pareto distribution (Pickands, Annals of
Statistics 3, 1975). It is fitted by probability-weighted moments (Hosking and Wallis, Technometrics
29, 1987), which exist for shapes below 1/2 only, and its fit is tested by a parametric bootstrap of
the Kolmogorov-Smirnov distance. Whatever passes is still an estimate that holds for this input on
this host, never a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_JOBS = 500
LAGS = 10
SIGNIFICANCE = 0.05
TAIL_SHARE = 0.1
SHAPE_MAX = 0.5
RESAMPLES = 400
PROBABILITIES = (1e-3, 1e-4, 1e-6)


@dataclass(frozen=True, slots=True)
class Tail:
    """The fitted tail: how often a job exceeds the threshold, and by how much then.

    Attributes:
        share: of the jobs above the threshold.
        scale_ns, shape: of the generalised Pareto distribution of what is above it.
    """

    threshold_ns: float
    share: float
    scale_ns: float
    shape: float

    def exceeded_ns(self, probability: float) -> float:
        """Return the time that a job exceeds with this probability, at most `share`."""
        ratio = self.share / probability
        if abs(self.shape) < 1e-9:
            return self.threshold_ns + self.scale_ns * float(np.log(ratio))
        growth = float(ratio**self.shape - 1) / self.shape
        return self.threshold_ns + self.scale_ns * growth


@dataclass(frozen=True, slots=True)
class WorstCase:
    """A probabilistic worst case, or why there is none.

    Attributes:
        refused: the reason; "" when there is one.
        p_values: of every test that was made, by its name.
        tail: the fit, None when refused.
        estimates_ns: by the probability that one job takes longer; never below what was measured.
    """

    refused: str
    p_values: dict[str, float]
    tail: Tail | None
    estimates_ns: dict[float, int]


def worst_case(values_ns: Sequence[int], seed: int = 0) -> WorstCase:
    """Return the probabilistic worst case of execution times in the order they were measured."""
    p_values: dict[str, float] = {}
    if len(values_ns) < LEAST_JOBS:
        what = f"expected {LEAST_JOBS} jobs at least, found {len(values_ns)}"
        return WorstCase(what, p_values, None, {})
    values = np.asarray(values_ns, np.float64)
    if values.min() == values.max():
        return WorstCase("all times are equal: there is no tail", p_values, None, {})
    p_values["independence"] = independence(values)
    p_values["identical_distribution"] = identical_distribution(values)
    for name, p_value in p_values.items():
        if p_value < SIGNIFICANCE:
            what = f"{_ASSUMPTIONS[name]} (p = {p_value:.2g}, below {SIGNIFICANCE})"
            return WorstCase(what, p_values, None, {})
    tail, excess = fit_tail(values)
    if tail is None or tail.shape >= SHAPE_MAX:
        return WorstCase(_too_heavy(tail), p_values, None, {})
    p_values["fit"] = fit_quality(tail, excess, np.random.default_rng(seed))
    if p_values["fit"] < SIGNIFICANCE:
        what = f"the tail is no generalised Pareto one (p = {p_values['fit']:.2g})"
        return WorstCase(what, p_values, None, {})
    high_ns = int(values.max())
    estimates = {p: max(high_ns, round(tail.exceeded_ns(p))) for p in PROBABILITIES}
    return WorstCase("", p_values, tail, estimates)


def independence(values: Array) -> float:
    """Return the p-value of the Ljung-Box test on ranks: small when a time depends on earlier."""
    ranks = stats.rankdata(values)
    centred = ranks - ranks.mean()
    count, power = len(centred), float(centred @ centred)
    lags = range(1, LAGS + 1)
    terms = [(float(centred[lag:] @ centred[:-lag]) / power) ** 2 / (count - lag) for lag in lags]
    return float(stats.chi2.sf(count * (count + 2) * sum(terms), LAGS))


def identical_distribution(values: Array) -> float:
    """Return the p-value of a two-sample Kolmogorov-Smirnov test between the halves."""
    half = len(values) // 2
    return float(stats.ks_2samp(values[:half], values[half:]).pvalue)


def fit_tail(values: Array) -> tuple[Tail | None, Array]:
    """Return the tail above the quantile, None if moments do not give one, and the excesses."""
    threshold_ns = float(np.quantile(values, 1 - TAIL_SHARE))
    excess = np.sort(values[values > threshold_ns]) - threshold_ns
    if len(excess) < 2:
        return None, excess
    scale_ns, shape = _moments(excess[None, :])
    if not scale_ns[0] > 0:
        return None, excess
    share = len(excess) / len(values)
    return Tail(threshold_ns, share, float(scale_ns[0]), float(shape[0])), excess


def fit_quality(tail: Tail, excess: Array, generator: np.random.Generator) -> float:
    """Return the p-value of the fit: the share of samples of the fitted tail that fit no better."""
    count = len(excess)
    own = float(_distances(excess[None, :])[0])
    uniform = generator.random((RESAMPLES, count))
    drawn = stats.genpareto.ppf(uniform, tail.shape, scale=tail.scale_ns)
    others = _distances(np.sort(drawn, axis=1))
    return (1 + int(np.count_nonzero(others >= own))) / (1 + RESAMPLES)


def _moments(excess: Array) -> tuple[Array, Array]:
    """Return (scale, shape) of each row of sorted excesses, (rows, count)."""
    count = excess.shape[1]
    weights = (count - np.arange(1, count + 1)) / (count - 1)
    first, second = excess.mean(axis=1), (excess * weights).mean(axis=1)
    gap = first - 2 * second
    return 2 * first * second / gap, 2 - first / gap


def _distances(excess: Array) -> Array:
    """Return the Kolmogorov-Smirnov distance of each sorted row from its own fit."""
    count = excess.shape[1]
    scale_ns, shape = _moments(excess)
    model = stats.genpareto.cdf(excess, shape[:, None], scale=scale_ns[:, None])
    steps = np.arange(count + 1) / count
    above, below = steps[1:] - model, model - steps[:-1]
    distances: Array = np.maximum(above, below).max(axis=1)
    return distances


def _too_heavy(tail: Tail | None) -> str:
    if tail is None:
        return "too few different times are in the tail"
    above = format_ns(round(tail.threshold_ns))
    return f"the tail above {above} is too heavy (shape {tail.shape:.2f}, {SHAPE_MAX} or more)"


_ASSUMPTIONS = {
    "independence": "times depend on earlier ones",
    "identical_distribution": "the two halves are distributed differently",
}
