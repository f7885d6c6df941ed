"""Shares with their interval, and how values spread."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with Wilson's 95 % interval (JASA 22, 1927).

    It takes the trials for independent. Frames of one drive are not: the true interval is wider.
    """

    count: int
    of: int

    @property
    def value(self) -> float | None:
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 1.0
        p, z2 = self.count / self.of, NORMAL_95**2
        middle = p + z2 / (2 * self.of)
        half = NORMAL_95 * sqrt((p * (1 - p) + z2 / (4 * self.of)) / self.of)
        low, high = ((middle + sign * half) / (1 + z2 / self.of) for sign in (-1, 1))
        return max(0.0, low), min(1.0, high)

    def data(self) -> dict[str, object]:
        low, high = self.interval
        return {
            "count": self.count,
            "of": self.of,
            "share": self.value,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles by nearest rank, and the largest of `count` values; None where there is none."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    count: int

    def data(self) -> dict[str, object]:
        return {
            "p50": self.p50,
            "p95": self.p95,
            "p99": self.p99,
            "max": self.max,
            "count": self.count,
        }


def spread(values: Iterable[float]) -> Spread:
    """Return how values spread."""
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        return Spread(None, None, None, None, 0)
    p50, p95, p99 = (ordered[ceil(count * share / 100) - 1] for share in (50, 95, 99))
    return Spread(p50, p95, p99, ordered[-1], count)
