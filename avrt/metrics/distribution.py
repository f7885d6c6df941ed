"""Exact percentiles of many integers in eight bytes each.

Percentiles are by nearest rank (the smallest value with at least that share of the values at or
below it), so every figure shown is one that was measured.
"""

from __future__ import annotations

from array import array
from math import ceil

PERCENTILES = (50, 95, 99)


class Distribution:
    """Values in ns, summarised as p50, p95, p99, max and count."""

    def __init__(self) -> None:
        self._values = array("q")

    def add(self, value: int) -> None:
        self._values.append(value)

    @property
    def values(self) -> tuple[int, ...]:
        """All values in the order in which they were added."""
        return tuple(self._values)

    def newest(self, count: int) -> tuple[int, ...]:
        """Return the values that were added last, at most so many."""
        return tuple(self._values[-count:])

    def __len__(self) -> int:
        return len(self._values)

    def summary(self) -> dict[str, int | None]:
        """Return `{"p50", "p95", "p99", "max", "count"}`; figures are None when there is none."""
        ordered = sorted(self._values)
        count = len(ordered)
        figures: dict[str, int | None] = {
            f"p{share}": ordered[ceil(count * share / 100) - 1] if count else None
            for share in PERCENTILES
        }
        figures["max"] = ordered[-1] if count else None
        figures["count"] = count
        return figures
