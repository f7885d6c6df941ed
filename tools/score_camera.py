"""How much the camera networks find on labelled KITTI frames, and how long an image takes.

    python tools/score_camera.py KITTI_TRAINING NETWORK.onnx... [--tiles 1 3] [--repeats 20]

KITTI_TRAINING holds `image_2` and `label_2`. An object counts if it is a road user of at least 25
pixels height; it is found if a box of its kind (vehicle, or person: pedestrian and cyclist)
overlaps it by at least half, one box an object, best score first. Boxes that lie in a DontCare
region, or are lower than 25 pixels, or show an object that does not count, are neither right nor
wrong. Intervals are Wilson's, 95 % (JASA 22, 1927): the objects of five frames are few. Prints one
JSON object; times are those of `Detector.process`, decoding included, after its warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from avrt.model.message import Message, Stamp
from avrt.payload import Image
from avrt.stages.camera.overlay import Detector
from avrt.stages.camera.suppression import area, intersection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.payload import ImageDetections

KINDS = {
    "Car": "vehicle",
    "Van": "vehicle",
    "Truck": "vehicle",
    "Tram": "vehicle",
    "Pedestrian": "person",
    "Person_sitting": "person",
    "Cyclist": "person",
    "car": "vehicle",
    "truck": "vehicle",
    "pedestrian": "person",
    "cyclist": "person",
}
HEIGHT_MIN = 25.0  # pixels: KITTI's limit of "moderate" and "hard"
IOU_MIN = 0.5
NORMAL_95 = 1.96


@dataclass(frozen=True)
class Truth:
    """The labels of one frame: boxes of a kind, and regions in which nothing is scored."""

    boxes: NDArray[np.float32]
    kinds: list[str]
    ignored: NDArray[np.float32]


def truth(path: Path) -> Truth:
    boxes, kinds, ignored = [], [], []
    for line in path.read_text().splitlines():
        label, *values = line.split()
        box = [float(value) for value in values[3:7]]
        if label in KINDS:
            boxes.append(box)
            kinds.append(KINDS[label])
        else:
            ignored.append(box)
    return Truth(_boxes(boxes), kinds, _boxes(ignored))


def matches(found: ImageDetections, known: Truth) -> tuple[int, int, int, int]:
    """Return how many objects were found of how many, and how many boxes are right of how many."""
    heights = known.boxes[:, 3] - known.boxes[:, 1]
    free = set(range(len(known.kinds)))
    hits = right = wrong = 0
    for box, label in zip(found.boxes, found.labels, strict=True):
        shared = intersection(box, known.boxes)
        iou = shared / (area(box) + area(known.boxes) - shared)
        fits = [i for i in free if known.kinds[i] == KINDS[label] and iou[i] >= IOU_MIN]
        if fits:
            best = max(fits, key=lambda i: iou[i])
            free.remove(best)
            hits += heights[best] >= HEIGHT_MIN
            right += heights[best] >= HEIGHT_MIN
        elif box[3] - box[1] >= HEIGHT_MIN and not _ignored(box, known.ignored):
            wrong += 1
    return hits, int((heights >= HEIGHT_MIN).sum()), right, right + wrong


def wilson(count: int, total: int) -> list[float]:
    """Return the 95 % interval of a proportion."""
    if total == 0:
        return [0.0, 1.0]
    p, z2 = count / total, NORMAL_95**2
    middle = p + z2 / (2 * total)
    half = NORMAL_95 * ((p * (1 - p) + z2 / (4 * total)) / total) ** 0.5
    return [round((middle + sign * half) / (1 + z2 / total), 3) for sign in (-1, 1)]


def score(folder: Path, model: Path, tiles: int, repeats: int) -> dict[str, object]:
    detector = Detector(model=str(model), tiles=tiles)
    detector.warm()
    totals, times_ms = np.zeros(4, int), []
    for path in sorted((folder / "image_2").glob("*.png")):
        message = Message(Stamp("camera", 0, 0, 0, 0), Image("png", np.fromfile(path, np.uint8)))
        known = truth(folder / "label_2" / f"{path.stem}.txt")
        totals += matches(detector.process(message), known)
        for _ in range(repeats):
            start_ns = time.perf_counter_ns()
            detector.process(message)
            times_ms.append((time.perf_counter_ns() - start_ns) / 1e6)
    hits, objects, right, boxes = totals.tolist()
    return {
        "network": detector.network.name,
        "tiles": tiles,
        "score_min": detector.score_min,
        "recall": _share(hits, objects),
        "precision": _share(right, boxes),
        "image_ms": figures(times_ms),
    }


def figures(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    found = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values)}
    return {**{name: round(value, 2) for name, value in found.items()}, "n": len(values)}


def _share(count: int, total: int) -> dict[str, object]:
    value = round(count / total, 3) if total else None
    return {"count": count, "of": total, "share": value, "wilson_95": wilson(count, total)}


def _ignored(box: NDArray[np.float32], regions: NDArray[np.float32]) -> bool:
    return bool((intersection(box, regions) >= IOU_MIN * area(box)).any())


def _boxes(rows: list[list[float]]) -> NDArray[np.float32]:
    return np.array(rows, np.float32).reshape(-1, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--tiles", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    rows = [
        score(given.folder, model, tiles, given.repeats)
        for model in given.models
        for tiles in given.tiles
    ]
    conditions = {
        "frames": len(list((given.folder / "image_2").glob("*.png"))),
        "threads": 1,
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "onnxruntime": version("onnxruntime"),
    }
    print(json.dumps({"rows": rows, "conditions": conditions}, indent=1))


if __name__ == "__main__":
    main()
