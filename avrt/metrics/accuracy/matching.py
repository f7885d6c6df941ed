"""Which found thing is which true thing: one to one, the best sum over all pairs of a frame.

The similarity of two places on the ground is 1 - distance / REACH, and 0 beyond; pairs at half of
it or above, so within 2 m, may match. (Of boxes in an image it is their overlap, IoU.) Best sums
are the Hungarian method's (Kuhn 1955), as in TrackEval.

Shape letters: T true things, F found things of a frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REACH = 4.0  # metres
THRESHOLD = 0.5
EPSILON = float(np.finfo("float").eps)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One instant: who was there, what was found, and how alike they are.

    Attributes:
        true_ids, found_ids: each once; of tracks the same over time.
        similarity: (T, F) float64, 0 to 1.
    """

    true_ids: tuple[int, ...]
    found_ids: tuple[int, ...]
    similarity: NDArray[np.float64]


def best_pairs(score: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the pairs with the greatest sum."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - 0.2 s

    rows, columns = linear_sum_assignment(-score)
    return rows, columns


def matched(similarity: NDArray[np.float64], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """Return the pairs of one frame that match: (true, found)."""
    allowed = np.where(similarity >= threshold - EPSILON, similarity + 1.0, 0.0)
    rows, columns = best_pairs(allowed)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(t, f) for t, f in pairs if allowed[t, f] > 0]


def nearness(
    true: Sequence[tuple[float, float]], found: Sequence[tuple[float, float]]
) -> NDArray[np.float64]:
    """Return the (T, F) similarity of places on the ground, metres."""
    if not true or not found:
        return np.zeros((len(true), len(found)))
    apart = np.array(true)[:, np.newaxis] - np.array(found)[np.newaxis]
    near: NDArray[np.float64] = np.maximum(0.0, 1.0 - np.hypot(*np.moveaxis(apart, 2, 0)) / REACH)
    return near


def overlap(true: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (T, F) IoU of boxes in an image: rows of left, top, right, bottom."""
    low = np.maximum(true[:, np.newaxis, :2], found[np.newaxis, :, :2])
    high = np.minimum(true[:, np.newaxis, 2:], found[np.newaxis, :, 2:])
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    sizes = [np.clip(b[:, 2:] - b[:, :2], 0.0, None).prod(axis=1) for b in (true, found)]
    whole = sizes[0][:, np.newaxis] + sizes[1][np.newaxis] - shared
    iou: NDArray[np.float64] = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
    return iou
