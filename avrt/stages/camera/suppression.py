"""Keep one box for each object: what a network, or two views of a picture, found several times.

*Suppression* is greedy, as in Dalal and Triggs (CVPR 2005): boxes are taken from the best score
down, and one that overlaps a box already taken by more than a limit is dropped. Boxes of different
groups never suppress each other. Ties are broken by position, so the order of the input says
nothing.

*Views.* A box that ends at the border between two views may show a part of its object. If both
neighbours cut it, at the same height, the two parts are joined. A cut box is taken after all others
and dropped if most of it lies in one that is there, whatever else the other box covers: the union
in the usual measure would let a half pass as another object.

Shape letters: N, K boxes; left, top, right, bottom in pixels of the picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HEIGHTS_ALIKE = 0.6  # overlap of the vertical extents of two parts, over their union
INSIDE = 0.7  # part of a cut box that lies in another one


@dataclass(frozen=True, slots=True)
class Candidates:
    """Boxes that compete.

    Attributes:
        boxes: (N, 4) float32.
        scores: (N,) float32.
        classes: (N,) int64, what each box shows.
        cut: (N, 2) bool, the left and the right edge is a border between views.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    classes: NDArray[np.int64]
    cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.boxes)

    def taken(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Candidates:
        """Return some of them, in the order of the index."""
        return Candidates(
            self.boxes[index], self.scores[index], self.classes[index], self.cut[index]
        )


def together(parts: Sequence[Candidates]) -> Candidates:
    """Return the candidates of one or more parts as one."""
    return Candidates(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.classes for part in parts]),
        np.concatenate([part.cut for part in parts]),
    )


def suppressed(found: Candidates, groups: NDArray[np.int64], iou_max: float) -> Candidates:
    """Return the candidates that remain, best score first, then from left to right.

    Args:
        found: the candidates, in any order.
        groups: (C,) int64, the group of each class; only boxes of one group compete.
        iou_max: two boxes of a group overlap by no more, intersection over union.
    """
    found = found.taken(_order(found))
    cut = np.asarray(found.cut.any(axis=1))
    limit = np.where(cut, INSIDE, iou_max)
    group = groups[found.classes]
    alive = np.ones(len(found), np.bool_)
    for i in range(len(found)):
        if alive[i]:
            shared = intersection(found.boxes[i], found.boxes[i + 1 :])
            own = area(found.boxes[i + 1 :])
            whole = np.where(cut[i + 1 :], own, own + area(found.boxes[i]) - shared)
            covered = shared > limit[i + 1 :] * whole
            alive[i + 1 :] &= ~(covered & (group[i + 1 :] == group[i]))
    kept = found.taken(alive)
    return kept.taken(_by_score(kept))


def joined(views: Sequence[Candidates], groups: NDArray[np.int64]) -> Candidates:
    """Return the candidates of all views, from left to right; parts of one object become one."""
    done: list[Candidates] = []
    before = views[0]
    for view in views[1:]:
        left = np.nonzero(before.cut[:, 1])[0]
        right = np.nonzero(view.cut[:, 0])[0]
        pairs = _pairs(before.taken(left), view.taken(right), groups)
        gone = np.ones(len(before), np.bool_)
        gone[left[pairs[:, 0]]] = False
        done.append(before.taken(gone))
        before = _united(before, view, np.stack([left[pairs[:, 0]], right[pairs[:, 1]]], axis=1))
    return together([*done, before])


def _pairs(left: Candidates, right: Candidates, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which part continues which, (K, 2) int64; the parts most alike find each other."""
    top = np.maximum(left.boxes[:, None, 1], right.boxes[None, :, 1])
    bottom = np.minimum(left.boxes[:, None, 3], right.boxes[None, :, 3])
    heights = (left.boxes[:, 3] - left.boxes[:, 1])[:, None]
    heights = heights + (right.boxes[:, 3] - right.boxes[:, 1])[None, :]
    shared = np.maximum(bottom - top, 0)
    alike = shared / np.maximum(heights - shared, 1e-6)
    alike[groups[left.classes][:, None] != groups[right.classes][None, :]] = 0
    pairs = []
    for _ in range(min(alike.shape)):
        i, j = np.unravel_index(int(alike.argmax()), alike.shape)
        if alike[i, j] < HEIGHTS_ALIKE:
            break
        pairs.append((i, j))
        alike[i, :], alike[:, j] = 0, 0
    return np.array(pairs, np.int64).reshape(-1, 2)


def _united(before: Candidates, view: Candidates, pairs: NDArray[np.int64]) -> Candidates:
    """Return a view's candidates with each right part replaced by the union with its left part."""
    i, j = pairs.T
    boxes, scores = view.boxes.copy(), view.scores.copy()
    classes, cut = view.classes.copy(), view.cut.copy()
    boxes[j, :2] = np.minimum(before.boxes[i, :2], view.boxes[j, :2])
    boxes[j, 2:] = np.maximum(before.boxes[i, 2:], view.boxes[j, 2:])
    better = before.scores[i] > view.scores[j]
    scores[j] = np.maximum(before.scores[i], view.scores[j])
    classes[j] = np.where(better, before.classes[i], view.classes[j])
    cut[j, 0] = before.cut[i, 0]
    return Candidates(boxes, scores, classes, cut)


def area(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the area of boxes, (..., 4) to (...), square pixels."""
    return np.asarray((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))


def intersection(one: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the area that a box, (4,), shares with each of others, (N, 4), square pixels."""
    sides = np.minimum(one[2:], others[:, 2:]) - np.maximum(one[:2], others[:, :2])
    return np.asarray(np.maximum(sides, 0).prod(axis=1))


def _order(found: Candidates) -> NDArray[np.int64]:
    """Return the order in which candidates are taken: whole ones first, then by score."""
    cut = found.cut.any(axis=1)
    keys = (*found.boxes.T[::-1], found.classes, -found.scores, cut)
    return np.lexsort(keys).astype(np.int64)


def _by_score(found: Candidates) -> NDArray[np.int64]:
    keys = (found.classes, *found.boxes.T[::-1], -found.scores)
    return np.lexsort(keys).astype(np.int64)
