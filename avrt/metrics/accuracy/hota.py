"""HOTA: how well things are detected and how well they keep their track, in one figure.

Luiten et al., "HOTA: a higher order metric for evaluating multi-object tracking", IJCV 129, 2021,
computed as TrackEval does. For each threshold alpha of 0.05 to 0.95, HOTA is the geometric mean of
DetA (hits against all hits, misses and false ones) and AssA (mean over hits: frames in which this
object has this track, against all frames of either); LocA is the mean similarity of a hit. The
figures are means over all alphas. Sums of sequences add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from avrt.metrics.accuracy.identity import Numbers, counted, places
from avrt.metrics.accuracy.matching import EPSILON, Frame, best_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ALPHAS = np.arange(0.05, 0.99, 0.05)
TINY = 1e-10


def _zeros() -> NDArray[np.float64]:
    return np.zeros(len(ALPHAS))


@dataclass(frozen=True, slots=True, eq=False)
class Hota:
    """Sums over one sequence, or several, (19,) float64 each: one value for each alpha.

    Attributes:
        together: over hits, the share of frames that its object and its track have together.
        similar: over hits, their similarity.
    """

    hits: NDArray[np.float64] = field(default_factory=_zeros)
    missed: NDArray[np.float64] = field(default_factory=_zeros)
    false: NDArray[np.float64] = field(default_factory=_zeros)
    together: NDArray[np.float64] = field(default_factory=_zeros)
    similar: NDArray[np.float64] = field(default_factory=_zeros)

    @property
    def det_a(self) -> float:
        return float(np.mean(self._det_a))

    @property
    def ass_a(self) -> float:
        return float(np.mean(self._ass_a))

    @property
    def loc_a(self) -> float:
        return float(np.mean(np.maximum(TINY, self.similar) / np.maximum(TINY, self.hits)))

    @property
    def hota(self) -> float:
        return float(np.mean(np.sqrt(self._det_a * self._ass_a)))

    @property
    def _det_a(self) -> NDArray[np.float64]:
        return self.hits / np.maximum(1.0, self.hits + self.missed + self.false)

    @property
    def _ass_a(self) -> NDArray[np.float64]:
        return self.together / np.maximum(1.0, self.hits)

    def __add__(self, other: Hota) -> Hota:
        return Hota(
            self.hits + other.hits,
            self.missed + other.missed,
            self.false + other.false,
            self.together + other.together,
            self.similar + other.similar,
        )


def hota(frames: Sequence[Frame]) -> Hota:
    """Return the sums of a sequence."""
    numbers = counted(frames)
    alignment = _alignment(frames, numbers)
    total = Hota()
    matches = np.zeros((len(ALPHAS), *numbers.pairs.shape))
    for frame in frames:
        rows, columns = places(numbers, frame)
        score = alignment[np.ix_(rows, columns)] * frame.similarity
        true, found = best_pairs(score)
        alike = frame.similarity[true, found]
        hit = alike[np.newaxis] >= ALPHAS[:, np.newaxis] - EPSILON
        hits = hit.sum(axis=1)
        matches[:, rows[true], columns[found]] += hit
        total += Hota(
            hits, len(rows) - hits, len(columns) - hits, _zeros(), (hit * alike).sum(axis=1)
        )
    whole = numbers.true_count[:, np.newaxis] + numbers.found_count[np.newaxis]
    together = (matches * matches / np.maximum(1.0, whole - matches)).sum(axis=(1, 2))
    return total + Hota(together=together)


def _alignment(frames: Sequence[Frame], numbers: Numbers) -> NDArray[np.float64]:
    """Return how much each object and each track are together over the whole sequence, 0 to 1."""
    pairs = numbers.pairs
    for frame in frames:
        rows, columns = places(numbers, frame)
        alike = frame.similarity
        whole = alike.sum(axis=0)[np.newaxis] + alike.sum(axis=1)[:, np.newaxis] - alike
        share = np.divide(alike, whole, out=np.zeros_like(alike), where=whole > EPSILON)
        pairs[np.ix_(rows, columns)] += share
    whole = numbers.true_count[:, np.newaxis] + numbers.found_count[np.newaxis] - pairs
    return np.divide(pairs, whole, out=np.zeros_like(pairs), where=whole > 0)
