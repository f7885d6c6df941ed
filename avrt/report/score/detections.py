"""Detections against the truth: what is found, what is false, and how far off, by range and class.

A detection is right when its centre is within 2 m of an object's on the ground, one to one. Recall
counts objects, by the range and the class of the object; precision counts detections, by their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.metrics.accuracy.matching import matched, nearness
from avrt.metrics.accuracy.share import Share, spread
from avrt.report.score.scenes import on_others

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.message import Message
    from avrt.payload import Detection, Detections
    from avrt.report.score.scenes import Present, Scenes

RANGES = (0.0, 10.0, 20.0, 30.0, 40.0, 60.0, math.inf)


@dataclass(slots=True)
class Counts:
    """Objects that were found, detections that were right, and how far off those are, metres."""

    objects: int = 0
    found: int = 0
    detections: int = 0
    right: int = 0
    errors: list[float] = field(default_factory=list)

    @property
    def recall(self) -> Share:
        return Share(self.found, self.objects)

    @property
    def precision(self) -> Share:
        return Share(self.right, self.detections)

    def data(self) -> dict[str, object]:
        return {
            "recall": self.recall.data(),
            "precision": self.precision.data(),
            "position_m": spread(self.errors).data(),
        }


@dataclass(slots=True)
class DetectionScore:
    """The score of one stage that detects; `same_label` are right ones of the object's class."""

    frames: int = 0
    without_truth: int = 0
    same_label: int = 0
    whole: Counts = field(default_factory=Counts)
    by_range: list[Counts] = field(default_factory=lambda: [Counts() for _ in RANGES[1:]])
    by_class: dict[str, Counts] = field(default_factory=dict)

    @property
    def labels(self) -> Share:
        return Share(self.same_label, self.whole.found)

    def data(self) -> dict[str, object]:
        return {
            "kind": "detections",
            "frames": self.frames,
            "without_truth": self.without_truth,
            **self.whole.data(),
            "labels": self.labels.data(),
            "by_range": [
                {"from_m": RANGES[i], "to_m": end_of(RANGES[i + 1]), **counts.data()}
                for i, counts in enumerate(self.by_range)
            ],
            "by_class": {name: self.by_class[name].data() for name in sorted(self.by_class)},
        }

    def object(self, one: Present, error: float | None) -> None:
        for counts in self._counts(one.distance, one.object.label):
            counts.objects += 1
            if error is not None:
                counts.found += 1
                counts.errors.append(error)

    def detection(self, one: Detection, *, right: bool) -> None:
        for counts in self._counts(math.hypot(one.box.x, one.box.y), one.label):
            counts.detections += 1
            counts.right += right

    def _counts(self, distance: float, label: str) -> tuple[Counts, Counts, Counts]:
        return (
            self.whole,
            self.by_range[range_of(distance)],
            self.by_class.setdefault(label, Counts()),
        )


def score_detections(messages: Iterable[Message[Detections]], scenes: Scenes) -> DetectionScore:
    """Return the score of a stage's output; raises DataFault where no transform leads there."""
    score = DetectionScore()
    for message in messages:
        stamp, found = message.stamp, message.payload.objects
        there = scenes.in_frame(stamp.capture_ns, stamp.frame)
        if there is None:
            score.without_truth += 1
            continue
        score.frames += 1
        places = [(one.box.x, one.box.y) for one in found]
        pairs = matched(nearness([one.place for one in there], places))
        error_of = {t: math.dist(there[t].place, places[f]) for t, f in pairs}
        true_of = {f: there[t] for t, f in pairs}
        others = on_others(there, places, pairs)
        for place, one in enumerate(there):
            if one.counts:
                score.object(one, error_of.get(place))
        for place, detection in enumerate(found):
            if place in others:
                continue
            true = true_of.get(place)
            score.detection(detection, right=true is not None)
            if true is not None:
                score.same_label += true.object.label == detection.label
    return score


def range_of(distance: float) -> int:
    """Return which of RANGES a distance lies in; what is no number lies in the last."""
    last = len(RANGES) - 2
    return next((i for i, end in enumerate(RANGES[1:]) if distance < end), last)


def end_of(value: float) -> float | None:
    """Return the upper edge of a bin, None for one that is open."""
    return value if math.isfinite(value) else None
