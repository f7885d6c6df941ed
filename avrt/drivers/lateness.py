"""When a driver was late and by how much, the last so many times: memory that is there at once."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lateness:
    """A ring of `(at_ns, late_ns)`, pipeline ns."""

    def __init__(self, size: int) -> None:
        self._at_ns = array("q", bytes(8 * size))
        self._late_ns = array("q", bytes(8 * size))
        self._count = 0

    def add(self, at_ns: int, late_ns: int) -> None:
        place = self._count % len(self._at_ns)
        self._at_ns[place], self._late_ns[place] = at_ns, late_ns
        self._count += 1

    def __len__(self) -> int:
        return min(self._count, len(self._at_ns))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield them, oldest first."""
        for number in range(self._count - len(self), self._count):
            place = number % len(self._at_ns)
            yield self._at_ns[place], self._late_ns[place]
