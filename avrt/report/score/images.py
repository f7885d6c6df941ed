"""Boxes in images against the truth: its boxes projected, by their height and their range.

A box is right when it overlaps the outline of an object of its kind (vehicle, or person: pedestrian
and cyclist) by IoU 0.5, one to one. An object counts here if it could be seen (`scenes`), its
outline is at least 25 pixels high, KITTI's limit, and half of it lies in the image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import DataFault
from avrt.metrics.accuracy.matching import matched, overlap
from avrt.metrics.accuracy.share import Share, spread
from avrt.payload.projection import box_corners
from avrt.report.score.detections import RANGES, end_of, range_of
from avrt.report.score.scenes import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.message import Message
    from avrt.payload import ImageDetections
    from avrt.report.score.scenes import Array, Scenes

HEIGHT_MIN = 25.0
HEIGHTS = (HEIGHT_MIN, 50.0, 100.0, math.inf)
INSIDE_MIN = 0.5
DEPTH_MIN = 0.5  # metres in front of the camera
KINDS = {"car": "vehicle", "truck": "vehicle", "pedestrian": "person", "cyclist": "person"}


@dataclass(frozen=True, slots=True)
class Outline:
    """What a true object looks like: left, top, right, bottom in the image, pixels."""

    sides: tuple[float, float, float, float]
    kind: str
    distance: float
    counts: bool

    @property
    def height(self) -> float:
        return self.sides[3] - self.sides[1]


@dataclass(slots=True)
class ImageScore:
    """The score of one stage that finds boxes in images: (found, all) for each bin."""

    frames: int = 0
    without_truth: int = 0
    boxes: int = 0
    right: int = 0
    overlaps: list[float] = field(default_factory=list)
    by_height: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in HEIGHTS[1:]])
    by_range: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in RANGES[1:]])

    @property
    def recall(self) -> Share:
        return Share(sum(n for n, _ in self.by_height), sum(n for _, n in self.by_height))

    @property
    def precision(self) -> Share:
        return Share(self.right, self.boxes)

    def data(self) -> dict[str, object]:
        return {
            "kind": "images",
            "frames": self.frames,
            "without_truth": self.without_truth,
            "recall": self.recall.data(),
            "precision": self.precision.data(),
            "iou": spread(self.overlaps).data(),
            "by_height": [
                {"from_px": HEIGHTS[i], "to_px": end_of(HEIGHTS[i + 1]), **Share(*pair).data()}
                for i, pair in enumerate(self.by_height)
            ],
            "by_range": [
                {"from_m": RANGES[i], "to_m": end_of(RANGES[i + 1]), **Share(*pair).data()}
                for i, pair in enumerate(self.by_range)
            ],
        }

    def object(self, one: Outline, iou: float | None) -> None:
        height = next(i for i, end in enumerate(HEIGHTS[1:]) if one.height < end)
        for pair in (self.by_height[height], self.by_range[range_of(one.distance)]):
            pair[0] += iou is not None
            pair[1] += 1
        if iou is not None:
            self.overlaps.append(iou)


def score_images(messages: Iterable[Message[ImageDetections]], scenes: Scenes) -> ImageScore:
    """Return the score of a stage's output.

    Raises:
        DataFault: no transform leads to the camera, or its model is not known.
    """
    score = ImageScore()
    for message in messages:
        there = _outlines(message, scenes)
        if there is None:
            score.without_truth += 1
            continue
        score.frames += 1
        found = message.payload
        boxes = np.asarray(found.boxes, float).reshape(-1, 4)
        true = np.array([one.sides for one in there]).reshape(-1, 4)
        iou = overlap(true, boxes)
        alike = [
            [KINDS.get(label, "") == one.kind or not one.kind for label in found.labels]
            for one in there
        ]
        iou *= np.array(alike, float).reshape(iou.shape)
        pairs = dict(matched(iou))
        for place, one in enumerate(there):
            if one.counts:
                at = pairs.get(place)
                score.object(one, None if at is None else float(iou[place, at]))
        on_others = {f for t, f in pairs.items() if not there[t].counts}
        low = {f for f, box in enumerate(boxes) if box[3] - box[1] < HEIGHT_MIN}
        right = {f for t, f in pairs.items() if there[t].counts}
        score.right += len(right)
        score.boxes += len(right | (set(range(len(boxes))) - on_others - low))
    return score


def _outlines(message: Message[ImageDetections], scenes: Scenes) -> list[Outline] | None:
    stamp, found = message.stamp, message.payload
    if found.info is None:
        raise DataFault("no_model", "there is no model of its camera")
    there = scenes.at(stamp.capture_ns)
    if there is None:
        return None
    turn, shift = parts(scenes.matrix(stamp.frame))
    outlines: list[Outline] = []
    size = (found.width_px, found.height_px)
    for one in there:
        points = box_corners(one.object.box) @ turn.T + shift
        if points[:, 2].min() < DEPTH_MIN:
            continue
        sides, inside = _projected(points, found.info.projection, size)
        if inside <= 0:
            continue
        place = points.mean(axis=0)
        distance = math.hypot(place[0], place[2])
        counts = one.counts and inside >= INSIDE_MIN and sides[3] - sides[1] >= HEIGHT_MIN
        outlines.append(Outline(sides, KINDS.get(one.object.label, ""), distance, counts))
    return outlines


def _projected(
    points: Array, projection: Array, size: tuple[int, int]
) -> tuple[tuple[float, float, float, float], float]:
    """Return the outline of points in the image, and how much of it lies inside, 0 to 1."""
    uvw = points @ projection[:, :3].T + projection[:, 3]
    uv = uvw[:, :2] / uvw[:, 2:]
    low, high = uv.min(axis=0), uv.max(axis=0)
    kept_low, kept_high = np.maximum(low, 0.0), np.minimum(high, size)
    area = float(np.prod(np.maximum(high - low, 1e-9)))
    inside = float(np.prod(np.maximum(kept_high - kept_low, 0.0)))
    (left, top), (right, bottom) = kept_low.tolist(), kept_high.tolist()
    return (left, top, right, bottom), inside / area
