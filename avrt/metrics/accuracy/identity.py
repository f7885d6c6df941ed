"""IDF1: the one track an object is given for the whole run, and how often it is right.

Ristani et al., "Performance measures and a data set for multi-target, multi-camera tracking", 2016;
computed as TrackEval does. Counts of sequences add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.metrics.accuracy.matching import THRESHOLD, Frame, best_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Identity:
    """Frames of objects with their one track, without it, and of tracks without their object."""

    right: int = 0
    missed: int = 0
    false: int = 0

    @property
    def idf1(self) -> float:
        return self.right / max(1.0, self.right + 0.5 * self.false + 0.5 * self.missed)

    def __add__(self, other: Identity) -> Identity:
        return Identity(
            self.right + other.right, self.missed + other.missed, self.false + other.false
        )


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """How often each object, each track, and each pair of them was there.

    Attributes:
        true, found: rows and columns by id.
        pairs: (T, F) float64: weight of the pair over all frames.
        true_count, found_count: (T,), (F,) float64: frames.
    """

    true: dict[int, int]
    found: dict[int, int]
    pairs: NDArray[np.float64]
    true_count: NDArray[np.float64]
    found_count: NDArray[np.float64]


def counted(frames: Sequence[Frame]) -> Numbers:
    """Return the ids of a sequence with their frames; pairs are zero yet."""
    true = {name: i for i, name in enumerate(sorted({n for f in frames for n in f.true_ids}))}
    found = {name: i for i, name in enumerate(sorted({n for f in frames for n in f.found_ids}))}
    numbers = Numbers(
        true, found, np.zeros((len(true), len(found))), np.zeros(len(true)), np.zeros(len(found))
    )
    for frame in frames:
        rows, columns = places(numbers, frame)
        numbers.true_count[rows] += 1
        numbers.found_count[columns] += 1
    return numbers


def places(numbers: Numbers, frame: Frame) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows and columns of a frame's ids."""
    rows = np.array([numbers.true[name] for name in frame.true_ids], np.intp)
    return rows, np.array([numbers.found[name] for name in frame.found_ids], np.intp)


def identity(frames: Sequence[Frame], threshold: float = THRESHOLD) -> Identity:
    """Return the counts of a sequence."""
    numbers = counted(frames)
    for frame in frames:
        rows, columns = places(numbers, frame)
        numbers.pairs[np.ix_(rows, columns)] += frame.similarity >= threshold
    total_true, total_found = int(numbers.true_count.sum()), int(numbers.found_count.sum())
    # Of all one-to-one assignments, that with the most right frames: the rest are errors.
    rows, columns = best_pairs(numbers.pairs)
    right = int(numbers.pairs[rows, columns].sum())
    return Identity(right, total_true - right, total_found - right)
