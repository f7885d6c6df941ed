"""Whether what is said to exist with probability p exists so often: calibration.

The Brier score is the mean of (p - 1)^2 over what is real and p^2 over what is not (1950): 0 is
perfect, and saying the mean rate of everything gives the rate's own variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.accuracy.share import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """What was said with a probability from `low` on, below `low` + 0.1 (1 is in the last)."""

    low: float
    mean: float
    real: Share

    def data(self) -> dict[str, object]:
        return {"from": self.low, "to": self.low + 1 / BINS, "mean": self.mean, **self.real.data()}


def calibration(said: Sequence[tuple[float, bool]]) -> list[Bin]:
    """Return the bins that have something: pairs of a probability and whether it was real."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for p, real in said:
        bins.setdefault(min(BINS - 1, int(p * BINS)), []).append((p, real))
    return [
        Bin(
            place / BINS,
            sum(p for p, _ in items) / len(items),
            Share(sum(real for _, real in items), len(items)),
        )
        for place, items in sorted(bins.items())
    ]


def brier(said: Sequence[tuple[float, bool]]) -> float | None:
    """Return the Brier score; None of nothing."""
    if not said:
        return None
    return sum((p - real) ** 2 for p, real in said) / len(said)
