"""Keeps so many items of a series of any length: all of them, or every second, every fourth, ...

What is kept depends on the series only, never on a drawn number, so the same run gives the same
page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class Sieve(Generic[T]):
    """At most `most` items, evenly spread over all that came, in their order."""

    def __init__(self, most: int, items: Iterable[T] = ()) -> None:
        self._most = most
        self._kept: list[tuple[int, T]] = []
        self.step = 1
        self.seen = 0
        for item in items:
            self.add(item)

    def add(self, item: T) -> bool:
        """Take in one item; tell whether it is kept for now."""
        index = self.seen
        self.seen += 1
        if index % self.step:
            return False
        self._kept.append((index, item))
        while len(self._kept) > self._most:
            self.thin()
        return index % self.step == 0

    def thin(self) -> None:
        """Keep every second of what is kept, of this and of what comes."""
        self.step *= 2
        self._kept = [(i, kept) for i, kept in self._kept if i % self.step == 0]

    def thin_to(self, most: int, size: Callable[[T], int]) -> None:
        """Thin until the sizes of what is kept sum to no more than `most`, or one is left."""
        while len(self._kept) > 1 and sum(size(item) for item in self.items) > most:
            self.thin()

    @property
    def items(self) -> list[T]:
        """What is kept."""
        return [item for _, item in self._kept]

    @property
    def left_out(self) -> int:
        """How many were seen and are not kept."""
        return self.seen - len(self._kept)


def step_for(count: int, most: int) -> int:
    """Return the least step at which one in so many of `count` items are no more than `most`."""
    return max(1, -(-count // most))
