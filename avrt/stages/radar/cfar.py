"""Tell returns from noise at a constant rate of false alarms (CFAR).

A cell is detected when its power exceeds `alpha` times what the N reference cells around it show:
half of them nearer and half farther away, beyond some guard cells that the return itself may fill.
In noise of exponential power (a square-law receiver) the rate of false alarms then does not depend
on how strong the noise is. Two estimates of the noise:

* `ca`, cell averaging: the mean of the reference cells (Finn and Johnson, RCA Review 29, 1968),
      Pfa = (1 + alpha / N) ** -N,   so   alpha = N (Pfa ** (-1 / N) - 1);
* `os`, ordered statistic: the k-th smallest of them (Rohling, "Radar CFAR Thresholding in Clutter
  and Multiple Target Situations", IEEE Trans. AES 19, 1983), whose
      Pfa = product over i = 0 .. k-1 of (N - i) / (N - i + alpha)
  is solved for alpha. Other returns among the reference cells raise a mean and hide weak neighbours
  behind strong ones; the k-th smallest does not see them until there are more than N - k.

The ordered statistic needs no sorting: X > alpha X_(k) exactly when at least k reference cells lie
below X / alpha, so cells are compared and counted.

Where a full set of reference cells does not fit, at both ends of the range, nothing is detected.
Reference cells of an oversampled receiver are alike, so real rates lie above the design value.

Shape letters: R range cells, A azimuths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from avrt.stages.parameters import check_choice, check_probability, check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHODS = ("ca", "os")


@dataclass(frozen=True, slots=True)
class Cfar:
    """A detector along range.

    Attributes:
        method: one of METHODS.
        pfa: wanted rate of false alarms a cell.
        guard: cells left out on each side of the tested one.
        window: reference cells on each side, beyond the guard cells; N is twice as many.
    """

    method: str
    pfa: float
    guard: int
    window: int

    def __post_init__(self) -> None:
        check_choice(METHODS, method=self.method)
        check_probability(pfa=self.pfa)
        check_whole(guard=(self.guard, 0), window=(self.window, 1))

    @property
    def margin(self) -> int:
        """Cells at each end of the range that cannot be tested."""
        return self.guard + self.window

    @property
    def k(self) -> int:
        """The rank of the reference cell that `os` looks at: 3/4 of N, as Rohling recommends."""
        return 3 * 2 * self.window // 4

    def alpha(self) -> float:
        """Return the factor between noise estimate and threshold, of power."""
        count = 2 * self.window
        if self.method == "ca":
            return ca_factor(self.pfa, count)
        return os_factor(self.pfa, count, self.k)

    def detected(self, level_db: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which cells exceed their threshold.

        Args:
            level_db: (R, A) float32, dB of power, any zero; R is at least 2 `margin` + 1.
        """
        found = np.zeros(level_db.shape, np.bool_)
        tested = slice(self.margin, len(level_db) - self.margin)
        method = self._above_mean if self.method == "ca" else self._above_rank
        found[tested] = method(level_db)
        return found

    def _above_mean(self, level_db: NDArray[np.float32]) -> NDArray[np.bool_]:
        power = np.power(10.0, level_db.astype(np.float64) / 10)
        total = np.concatenate([np.zeros((1, power.shape[1])), np.cumsum(power, axis=0)])
        tested, width = len(power) - 2 * self.margin, self.window
        near = total[width : width + tested] - total[:tested]
        start = width + 2 * self.guard + 1
        far = total[start + width : start + width + tested] - total[start : start + tested]
        threshold = (near + far) * (self.alpha() / (2 * width))
        return np.asarray(power[self.margin : self.margin + tested] > threshold)

    def _above_rank(self, level_db: NDArray[np.float32]) -> NDArray[np.bool_]:
        tested = len(level_db) - 2 * self.margin
        alpha_db = np.float32(10 * math.log10(self.alpha()))
        limit = level_db[self.margin : self.margin + tested] - alpha_db
        below = np.zeros(limit.shape, np.uint16)
        for step in range(1, self.window + 1):
            apart = self.guard + step
            for start in (self.margin - apart, self.margin + apart):
                below += level_db[start : start + tested] < limit
        return below >= self.k


def ca_factor(pfa: float, count: int) -> float:
    """Return alpha of cell averaging over `count` reference cells."""
    return count * math.expm1(-math.log(pfa) / count)


def os_factor(pfa: float, count: int, k: int) -> float:
    """Return alpha of the k-th smallest of `count` reference cells, 1 <= k <= count."""
    left = count - np.arange(k, dtype=np.float64)

    def excess(alpha: float) -> float:
        return float(np.log(left / (left + alpha)).sum()) - math.log(pfa)

    highest = 2 * count * (1 / pfa - 1)  # the first factor alone is below pfa there
    return float(brentq(excess, 0.0, highest, xtol=1e-9, rtol=1e-12))
