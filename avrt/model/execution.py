"""How long jobs take in a scenario: each model is the quantile function of a distribution.

`cost_ns(share, index)` is the time that this share of all jobs stays below. So one uniform number
in [0, 1) decides a job, whatever the model is, and a job that draws a longer time under one model
draws a longer one under every other. Bounds truncate: what lies outside never happens, and the
rest keeps its proportions; nothing heaps up at the bound. No time is below 1 ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

STANDARD = NormalDist()
MASS_MIN = 1e-6
"""Bounds that hold less than this of a distribution are refused: they are a mistake."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Every job takes the same."""

    ns: int

    def cost_ns(self, share: float, index: int) -> int:
        del share, index
        return max(1, self.ns)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every whole ns from `low_ns` to `high_ns`, both included, is as likely as any other."""

    low_ns: int
    high_ns: int

    def cost_ns(self, share: float, index: int) -> int:
        del index
        width_ns = self.high_ns - self.low_ns
        return max(1, self.low_ns + min(width_ns, int(share * (width_ns + 1))))


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution, truncated to `low_ns` .. `high_ns`."""

    mean_ns: int
    deviation_ns: int
    low_ns: int
    high_ns: int

    @property
    def mass(self) -> float:
        """The share of the whole distribution that lies within the bounds."""
        low, high = self._limits()
        return high - low

    def cost_ns(self, share: float, index: int) -> int:
        del index
        place = _placed(share, *self._limits())
        ns = round(self.mean_ns + self.deviation_ns * place)
        return max(1, min(self.high_ns, max(self.low_ns, ns)))

    def _limits(self) -> tuple[float, float]:
        low, high = (
            STANDARD.cdf((bound - self.mean_ns) / self.deviation_ns)
            for bound in (self.low_ns, self.high_ns)
        )
        return low, high


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A time whose logarithm is normal with deviation `sigma`, truncated above `high_ns`."""

    median_ns: int
    sigma: float
    high_ns: int

    @property
    def mass(self) -> float:
        """The share of the whole distribution that lies within the bound."""
        return STANDARD.cdf(log(self.high_ns / self.median_ns) / self.sigma)

    def cost_ns(self, share: float, index: int) -> int:
        del index
        ns = round(self.median_ns * exp(self.sigma * _placed(share, 0.0, self.mass)))
        return max(1, min(self.high_ns, ns))


@dataclass(frozen=True, slots=True)
class Sampled:
    """One of the times measured elsewhere, each as likely as any other; `values_ns` ascend."""

    values_ns: tuple[int, ...]

    def cost_ns(self, share: float, index: int) -> int:
        del index
        return max(1, self.values_ns[int(share * len(self.values_ns))])


@dataclass(frozen=True, slots=True)
class Traced:
    """The times measured elsewhere in their order; after the last the first comes again."""

    values_ns: tuple[int, ...]

    def cost_ns(self, share: float, index: int) -> int:
        del share
        return max(1, self.values_ns[index % len(self.values_ns)])


@dataclass(frozen=True, slots=True)
class Recorded:
    """The times of a recorded run, before they are read.

    Attributes:
        run: path of the run record.
        stage: whose times there.
        in_order: a trace; otherwise they are drawn from.
    """

    run: str
    stage: str
    in_order: bool


@dataclass(frozen=True, slots=True)
class Mixture:
    """Each job takes after one of several models, chosen with these weights, which sum to 1."""

    weights: tuple[float, ...]
    models: tuple[ExecutionModel, ...]

    def cost_ns(self, share: float, index: int) -> int:
        """Return the time of a job: which model it takes after, and where in it, by one number."""
        below = 0.0
        for weight, model in zip(self.weights[:-1], self.models[:-1], strict=True):
            if share < below + weight:
                return _cost_ns(model, (share - below) / weight, index)
            below += weight
        within = (share - below) / (1.0 - below)
        return _cost_ns(self.models[-1], min(within, 1.0 - 2**-53), index)


@dataclass(frozen=True, slots=True)
class ByDevice:
    """A model for each device that a stage's jobs may start on.

    One number decides a job on whichever it starts, so a job that is long on one is long on all.
    """

    models: Mapping[str, ExecutionModel]


DrawnModel = Constant | Uniform | Normal | LogNormal | Sampled | Traced | Mixture
ExecutionModel = DrawnModel | Recorded
StageModel = ExecutionModel | ByDevice
"""What a scenario says of a stage: one model wherever it runs, or one a device."""


def _cost_ns(model: ExecutionModel, share: float, index: int) -> int:
    assert not isinstance(model, Recorded), "a recorded model is read before it is drawn from"
    return model.cost_ns(share, index)


def _placed(share: float, low: float, high: float) -> float:
    """Return the standard normal quantile of this share of what lies between two others."""
    within = low + share * (high - low)
    return STANDARD.inv_cdf(min(1.0 - 2**-53, max(2**-1000, within)))
