"""How well a camera network finds the road users of the built-in world, by kind and by height.

A box is right if it overlaps an object of its kind by half, one box an object, best score first. A
box that overlaps by half an object which does not count (`camera_images`), or of which half lies in
one, is neither right nor wrong. The average precision is the area under the curve of precision over
recall, made to fall (PASCAL VOC 2010). Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from camera_images import drives
from score_camera import IOU_MIN, figures, wilson

from avrt.model.message import Message, Stamp
from avrt.payload import Image
from avrt.stages.camera import Detector
from avrt.stages.camera.networks import Centre
from avrt.stages.camera.suppression import area, intersection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from camera_images import Objects
    from numpy.typing import NDArray

    from avrt.payload import ImageDetections

SCORE_LOWEST = 0.05
HEIGHTS = (8, 12, 16, 25, 50, 480)  # pixels: edges of the classes of height


class Tally:
    """Counts of one kind of road user: objects by height and score, boxes by score."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float]] = []  # height, and score of the box or 0
        self.boxes: list[tuple[float, bool]] = []  # score, and whether it is right

    def recall(self, score_min: float, low: float, high: float) -> dict[str, object]:
        scores = [score for height, score in self.found if low <= height < high]
        return share(sum(score >= score_min for score in scores), len(scores))

    def precision(self, score_min: float) -> dict[str, object]:
        right = [is_right for score, is_right in self.boxes if score >= score_min]
        return share(sum(right), len(right))

    def average_precision(self) -> float:
        right = np.array([is_right for _, is_right in sorted(self.boxes, key=lambda one: -one[0])])
        if not len(right) or not self.found:
            return 0.0
        hits = np.cumsum(right)
        precision = hits / np.arange(1, len(right) + 1)
        falling = np.maximum.accumulate(precision[::-1])[::-1]
        return round(float((falling * right).sum() / len(self.found)), 3)


def share(count: int, total: int) -> dict[str, object]:
    value = round(count / total, 3) if total else None
    return {"count": count, "of": total, "share": value, "wilson_95": wilson(count, total)}


def scored(weights: Path, seeds: Sequence[int], images: int) -> dict[str, object]:
    """Return the figures of weights on so many images of each scene and seed."""
    detector = Detector(model=str(weights), score_min=SCORE_LOWEST)
    detector.warm()
    tallies = {label: Tally() for label in Centre.labels}
    times_ms, count = [], 0
    for jpeg, objects in drives(seeds, images, varied=False):
        message = Message(Stamp("camera", 0, 0, 0, 0), Image("jpeg", np.frombuffer(jpeg, np.uint8)))
        start_ns = time.perf_counter_ns()
        found = detector.process(message)
        times_ms.append((time.perf_counter_ns() - start_ns) / 1e6)
        count += 1
        for label, tally in tallies.items():
            compare(found, objects, label, tally)
    both = Tally()
    both.found = list(itertools.chain(*(one.found for one in tallies.values())))
    both.boxes = list(itertools.chain(*(one.boxes for one in tallies.values())))
    kinds = {**tallies, "all": both}
    mean = statistics.fmean(one.average_precision() for one in tallies.values())
    return {
        "images": count,
        "score_min": Centre.score_min,
        "mean_average_precision": round(mean, 3),
        "kinds": {label: row(tally, Centre.score_min) for label, tally in kinds.items()},
        "best_score_min": best_limit(both),
        "image_ms": figures(times_ms),
    }


def row(tally: Tally, score_min: float) -> dict[str, object]:
    return {
        "average_precision": tally.average_precision(),
        "recall": tally.recall(score_min, 0, np.inf),
        "precision": tally.precision(score_min),
        "recall_by_height": {
            f"{low}-{high} px": tally.recall(score_min, low, high)
            for low, high in itertools.pairwise(HEIGHTS)
        },
    }


def best_limit(tally: Tally) -> float:
    """Return the limit on scores at which precision and recall are best together (F1)."""

    def f1(limit: float) -> float:
        right = sum(is_right for score, is_right in tally.boxes if score >= limit)
        return 2 * right / (sum(score >= limit for score, _ in tally.boxes) + len(tally.found))

    return max((round(limit, 2) for limit in np.arange(0.1, 0.7, 0.05).tolist()), key=f1)


def compare(found: ImageDetections, objects: Objects, label: str, tally: Tally) -> None:
    """Count what of one kind was found; boxes come best score first."""
    kind = Centre.labels.index(label)
    known = objects.taken((objects.kinds == kind) & objects.counts)
    others = objects.boxes[~objects.counts]
    best = np.zeros(len(known.boxes))
    for box, score, name in zip(found.boxes, found.scores.tolist(), found.labels, strict=True):
        if name != label:
            continue
        overlaps = overlap(box, known.boxes) * (best == 0)
        if len(best) and overlaps.max() >= IOU_MIN:
            best[int(overlaps.argmax())] = score
            tally.boxes.append((score, True))
        elif not (
            (overlap(box, others) >= IOU_MIN) | (intersection(box, others) >= area(box) / 2)
        ).any():
            tally.boxes.append((score, False))
    heights = known.boxes[:, 3] - known.boxes[:, 1]
    tally.found += list(zip(heights.tolist(), best.tolist(), strict=True))


def overlap(box: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    shared = intersection(box, others)
    return np.asarray(shared / (area(box) + area(others) - shared))
