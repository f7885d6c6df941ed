"""Percentiles of many integers in bounded memory.

Percentiles are by nearest rank (the smallest value with at least that share of the values at or
below it). Up to KEPT_MAX values every figure shown is one that was measured. Of more, older ones
are kept as counts of values rounded up to SIGNIFICANT_BITS binary digits: percentiles are then at
most 0.4 % too high, and the maximum stays exact. All counts are there at once, 57 KiB: a dictionary
of those that occur was smaller and grew by some MiB an hour, as rarer and rarer values came.
"""

from __future__ import annotations

from array import array
from heapq import merge
from itertools import chain, repeat
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PERCENTILES = (50, 95, 99)
KEPT_MAX = 8_192
BLOCK = 1024  # values: one array that grows by copying itself leaves holes of its former sizes
SIGNIFICANT_BITS = 9
HALF = 1 << (SIGNIFICANT_BITS - 1)
PLACES = HALF * (66 - SIGNIFICANT_BITS)  # of whole numbers up to 2**63


class Distribution:
    """Values in ns, summarised as p50, p95, p99, max and count."""

    def __init__(self) -> None:
        self._full: list[array[int]] = []
        self._newest = array("q")
        self._rounded: _Counts | None = None
        self._max_before: int | None = None

    def add(self, value: int) -> None:
        self._newest.append(value)
        if len(self._newest) == BLOCK:
            self._full.append(self._newest)
            self._newest = array("q")
        if len(self._newest) + BLOCK * len(self._full) >= KEPT_MAX:
            self._round_off()

    @property
    def values(self) -> tuple[int, ...]:
        """All values, the rounded ones first, then in the order in which they were added."""
        rounded = () if self._rounded is None else self._rounded.items()
        return (*(v for value, n in rounded for v in repeat(value, n)), *self._exact())

    def newest(self, count: int) -> tuple[int, ...]:
        """Return the values that were added last, at most so many and at most BLOCK."""
        before = self._full[-1] if self._full else array("q")
        return tuple((before + self._newest)[-count:])

    def __len__(self) -> int:
        before = 0 if self._rounded is None else self._rounded.total
        return before + BLOCK * len(self._full) + len(self._newest)

    def summary(self) -> dict[str, int | None]:
        """Return `{"p50", "p95", "p99", "max", "count"}`; figures are None when there is none."""
        count = len(self)
        if self._rounded is None:
            ordered = sorted(self._exact())
            figures = {share: _ranked(ordered, share) for share in PERCENTILES}
        else:
            exact = ((value, 1) for value in sorted(self._exact()))
            figures = _weighted(merge(self._rounded.items(), exact), count)
        summary: dict[str, int | None] = {f"p{share}": figures[share] for share in PERCENTILES}
        summary["max"] = max((*self._exact(), *self._greatest), default=None)
        summary["count"] = count
        return summary

    @property
    def _greatest(self) -> tuple[int, ...]:
        return () if self._max_before is None else (self._max_before,)

    def _exact(self) -> Iterator[int]:
        """Yield the values that are not rounded, oldest first."""
        return chain(*self._full, self._newest)

    def _round_off(self) -> None:
        """Keep counts of rounded values instead of the values."""
        self._max_before = max((*self._exact(), *self._greatest))
        self._rounded = self._rounded or _Counts()
        for value in self._exact():
            self._rounded.add(_rounded(value))
        self._full.clear()
        self._newest = array("q")


def _ranked(ordered: list[int], share: int) -> int | None:
    return ordered[ceil(len(ordered) * share / 100) - 1] if ordered else None


def _weighted(counts: Iterable[tuple[int, int]], total: int) -> dict[int, int | None]:
    """Return the percentiles of counted values, which come in ascending order."""
    found: dict[int, int | None] = {}
    shares = [(ceil(total * share / 100), share) for share in PERCENTILES]
    seen = 0
    for value, count in counts:
        seen += count
        while shares and seen >= shares[0][0]:
            found[shares.pop(0)[1]] = value
    return found


class _Counts:
    """How often each rounded value came."""

    def __init__(self) -> None:
        self.total = 0
        self._above = _zeros()
        self._below: array[int] | None = None  # of magnitudes of negative values

    def add(self, rounded: int) -> None:
        self.total += 1
        if rounded >= 0:
            self._above[_place(rounded)] += 1
        else:
            self._below = self._below or _zeros()
            self._below[_place(-rounded)] += 1

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield each value and its count, ascending."""
        if self._below is not None:
            for place in reversed(range(PLACES)):
                if self._below[place]:
                    yield -_value(place), self._below[place]
        for place, count in enumerate(self._above):
            if count:
                yield _value(place), count


def _zeros() -> array[int]:
    return array("I", bytes(array("I").itemsize * PLACES))


def _place(rounded: int) -> int:
    """Return the number of a rounded value among all of them: the digits, then the power of two."""
    shift = max(0, rounded.bit_length() - SIGNIFICANT_BITS)
    return (rounded >> shift) + HALF * shift


def _value(place: int) -> int:
    shift = max(0, place // HALF - 1)
    return (place - HALF * shift) << shift


def _rounded(value: int) -> int:
    """Round up to so many binary digits."""
    shift = max(0, value.bit_length() - SIGNIFICANT_BITS)
    return -(-value >> shift) << shift
