"""Late measurements, exactly: what was believed is kept for a while and computed anew from there.

A measurement belongs to the time it was taken at. One that comes late is put in its place among
those that are kept, and every state from there on is computed again, so the newest state is what
it would have been had all come in order (Bar-Shalom, "Update with out-of-sequence measurements in
tracking: exact solution", IEEE TAES 38(3), 2002, has a closed form for one linear filter; with
assignment, births and existence only computing again is exact). The kept time is bounded; what is
older is for the caller to leave out, and to count.

States and measurements are immutable; so is a history.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

StateT = TypeVar("StateT")
LookT = TypeVar("LookT")

Key = tuple[int, int, int]
"""Capture time in ns, rank of the sensor, sequence: a total order that no arrival changes."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[StateT, LookT]):
    """One measurement and what was believed after it."""

    key: Key
    look: LookT
    after: StateT


@dataclass(frozen=True, slots=True)
class History(Generic[StateT, LookT]):
    """The kept measurements, by their keys.

    Attributes:
        base: what was believed before the first of them.
    """

    base: StateT
    entries: tuple[Entry[StateT, LookT], ...] = ()

    @property
    def newest(self) -> StateT:
        return self.entries[-1].after if self.entries else self.base

    @property
    def newest_ns(self) -> int | None:
        return self.entries[-1].key[0] if self.entries else None

    def holds(self, key: Key) -> bool:
        at = bisect_left(self._keys, key)
        return at < len(self.entries) and self.entries[at].key == key

    def at(self, at_ns: int) -> StateT:
        """Return what was believed after everything captured up to `at_ns`, inclusive."""
        place = bisect_right([key[0] for key in self._keys], at_ns)
        return self.entries[place - 1].after if place else self.base

    def with_looks(
        self, looks: Iterable[tuple[Key, LookT]], step: Callable[[StateT, Key, LookT], StateT]
    ) -> History[StateT, LookT]:
        """Return the history with these measurements in their places."""
        added = sorted(looks, key=lambda one: one[0])
        if not added:
            return self
        place = bisect_left(self._keys, added[0][0])
        kept = self.entries[:place]
        later = [*added, *((one.key, one.look) for one in self.entries[place:])]
        state = kept[-1].after if kept else self.base
        made: list[Entry[StateT, LookT]] = []
        for key, look in sorted(later, key=lambda one: one[0]):
            state = step(state, key, look)
            made.append(Entry(key, look, state))
        return History(self.base, kept + tuple(made))

    def rebased(
        self, base: StateT, step: Callable[[StateT, Key, LookT], StateT]
    ) -> History[StateT, LookT]:
        """Return the history of the same measurements from another beginning."""
        looks = [(one.key, one.look) for one in self.entries]
        begun: History[StateT, LookT] = History(base)
        return begun.with_looks(looks, step)

    def without(self, before_ns: int) -> History[StateT, LookT]:
        """Return the history with what was captured before `before_ns` made its base."""
        place = bisect_left([key[0] for key in self._keys], before_ns)
        if place == 0:
            return self
        return History(self.entries[place - 1].after, self.entries[place:])

    @property
    def _keys(self) -> list[Key]:
        return [one.key for one in self.entries]
