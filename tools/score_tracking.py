"""Score the tracker on labelled traffic: MOTA, IDF1 and HOTA, beside a published tracker.

The input is made from the 3D labels of KITTI tracking sequences (Geiger et al., CVPR 2012): boxes
thinned at random, moved by noise, with false ones among them, seeded. Both trackers get the same.
A track counts as an object when their centres are within 2 m on the ground (HOTA takes the mean
over thresholds from 0.2 to 3.8 m, its similarity is 1 - distance / 4 m). Metrics are TrackEval's
(Luiten et al., IJCV 2021); the other tracker is Norfair's Kalman filter on the same points, with
the best of a grid of its settings at each level, chosen on the scored data itself.

    python tools/score_tracking.py ../shared/data/kitti_tracking_text

needs `pip install --no-deps trackeval norfair filterpy` in an environment of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from avrt.logs.kitti.labels import TO_LEVEL, read_tracks, truth_of
from avrt.model.message import Message, Stamp
from avrt.payload import Box, Detection, Detections
from avrt.stages.fusion.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PERIOD_NS = 100_000_000  # KITTI's rate is 10 Hz
REACH = 4.0  # metres at which the similarity is 0; at half of it CLEAR and Identity match
AREA = (2.0, 60.0, 30.0)  # metres: false boxes lie within x from, x to, +-y
NO_POINTS = np.zeros((0, 3), np.float32)

Frame = dict[int, tuple[str, Box]]
Points = dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Level:
    """How the labels are spoilt.

    Attributes:
        missed: share of the boxes left out.
        sigma: of the centre along x and y, metres.
        false: boxes that are no object, mean number a frame.
    """

    name: str
    missed: float
    sigma: float
    false: float


LEVELS = (
    Level("low", 0.1, 0.1, 0.5),
    Level("middle", 0.2, 0.25, 2.0),
    Level("high", 0.35, 0.4, 5.0),
)


def read_labels(path: Path) -> list[Frame]:
    """Return the boxes by track id of each frame: x forward, y left, z up, from the camera.

    A sequence ends with its last box.
    """
    labelled = read_tracks(path)
    last = max((frame for frame, labels in labelled.items() if labels), default=-1)
    truths = [truth_of(labelled.get(frame, ()), TO_LEVEL) for frame in range(last + 1)]
    return [
        {one.id: (one.label, one.box) for one in truth.objects if one.label != "unknown"}
        for truth in truths
    ]


def spoilt(frames: list[Frame], level: Level, seed: int) -> Iterator[list[Detection]]:
    """Yield what a detector might find of each frame."""
    rng = np.random.default_rng(seed)
    for frame in frames:
        found = []
        for label, box in frame.values():
            missed = rng.random() < level.missed
            dx, dy, turn = rng.normal(0, [level.sigma, level.sigma, 0.1])
            if not missed:
                found.append(_detection(label, box, box.x + dx, box.y + dy, box.yaw + turn))
        for _ in range(rng.poisson(level.false)):
            x, y, yaw = rng.uniform([AREA[0], -AREA[2], -math.pi], [AREA[1], AREA[2], math.pi])
            found.append(_detection("car", Box(x, y, -1.0, 4.2, 1.75, 1.5, yaw), x, y, yaw))
        yield found


def _detection(label: str, box: Box, x: float, y: float, yaw: float) -> Detection:
    moved = Box(x, y, box.z, box.length, box.width, box.height, math.remainder(yaw, 2 * math.pi))
    return Detection(moved, label, 0.8, NO_POINTS, 50, x - box.length / 2)


def ours(found: list[list[Detection]]) -> list[Points]:
    """Return the confirmed tracks of each frame that were seen lately."""
    tracker, result = Tracker(), []
    for k, objects in enumerate(found):
        stamp = Stamp("labels", k, k * PERIOD_NS, k * PERIOD_NS, k * PERIOD_NS, "camera")
        tracks = tracker.process(Message(stamp, Detections(tuple(objects))))
        shown = [one for one in tracks.objects if one.confirmed and one.existence > 0.5]
        result.append({one.id: (one.box.x, one.box.y) for one in shown})
    return result


def norfair_tracker(
    found: list[list[Detection]], reach: float, delay: int, kept: int
) -> list[Points]:
    """Return what Norfair makes of the same input."""
    norfair = needed("norfair")
    tracker = norfair.Tracker(
        distance_function="euclidean",
        distance_threshold=reach,
        initialization_delay=delay,
        hit_counter_max=kept,
    )
    result = []
    for objects in found:
        points = [norfair.Detection(np.array([[one.box.x, one.box.y]])) for one in objects]
        result.append({one.id: tuple(one.estimate[0]) for one in tracker.update(points)})
    return result


def score(truth: list[Points], tracks: list[Points]) -> Mapping[str, object]:
    """Return TrackEval's sequence results of CLEAR, Identity and HOTA."""
    metrics = needed("trackeval").metrics
    known, shown = _numbers(truth), _numbers(tracks)
    similarity = [
        np.array([[_similar(a, b) for b in now.values()] for a in then.values()]).reshape(
            len(then), len(now)
        )
        for then, now in zip(truth, tracks, strict=True)
    ]
    data = {
        "num_timesteps": len(truth),
        "num_gt_ids": len(known),
        "num_tracker_ids": len(shown),
        "num_gt_dets": sum(map(len, truth)),
        "num_tracker_dets": sum(map(len, tracks)),
        "gt_ids": [np.array([known[i] for i in frame], int) for frame in truth],
        "tracker_ids": [np.array([shown[i] for i in frame], int) for frame in tracks],
        "similarity_scores": similarity,
    }
    quiet = {"PRINT_CONFIG": False}
    made = {
        "CLEAR": metrics.CLEAR(quiet),
        "Identity": metrics.Identity(quiet),
        "HOTA": metrics.HOTA(),
    }
    return {name: metric.eval_sequence(data) for name, metric in made.items()}


def combined(results: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """Return the figures of several sequences taken together."""
    metrics = needed("trackeval").metrics
    quiet = {"PRINT_CONFIG": False}
    clear = metrics.CLEAR(quiet).combine_sequences({k: r["CLEAR"] for k, r in results.items()})
    identity = metrics.Identity(quiet).combine_sequences(
        {k: r["Identity"] for k, r in results.items()}
    )
    hota = metrics.HOTA().combine_sequences({k: r["HOTA"] for k, r in results.items()})
    return {
        "MOTA": float(clear["MOTA"]),
        "IDF1": float(identity["IDF1"]),
        "HOTA": float(np.mean(hota["HOTA"])),
        "MOTP": REACH * (1 - float(clear["MOTP"])),
        "switches": int(clear["IDSW"]),
        "missed": int(clear["CLR_FN"]),
        "false": int(clear["CLR_FP"]),
    }


def needed(name: str) -> object:
    """Return a library that only this tool needs."""
    try:
        return __import__(name)
    except ImportError as error:
        raise SystemExit(
            f"needs {name}: pip install --no-deps trackeval norfair filterpy ({error})"
        ) from error


def _similar(a: tuple[float, float], b: tuple[float, float]) -> float:
    return max(0.0, 1 - math.dist(a, b) / REACH)


def _numbers(frames: list[Points]) -> dict[int, int]:
    return {name: i for i, name in enumerate(sorted({name for frame in frames for name in frame}))}


def _places(frames: list[Frame]) -> list[Points]:
    return [{i: (box.x, box.y) for i, (_, box) in frame.items()} for frame in frames]


GRID = tuple(itertools.product((1.5, 2.5, 4.0), (1, 2, 3), (4, 8, 15)))


def scored(
    sequences: Mapping[str, list[Frame]],
    level: Level,
    seeds: int,
    track: Callable[[list[list[Detection]]], list[Points]],
) -> dict[str, float]:
    """Return the figures of a tracker over all sequences and seeds."""
    results = {}
    for name, frames in sequences.items():
        for seed in range(seeds):
            found = list(spoilt(frames, level, seed))
            results[f"{name}/{seed}"] = score(_places(frames), track(found))
    return combined(results)


def recorded(folder: Path, sequences: Mapping[str, list[Frame]]) -> dict[str, float]:
    """Return the figures of the recorded results, of cars only: their detector saw the sensor."""
    results = {}
    for name, frames in sequences.items():
        cars = [{i: one for i, one in f.items() if one[0] == "car"} for f in frames]
        tracks = read_labels(folder / "tracker_results" / f"{name}.txt")
        tracks = (tracks + [{}] * len(frames))[: len(frames)]
        results[name] = score(_places(cars), _places(tracks))
    return combined(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with label_02/ and tracker_results/")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    paths = sorted((options.folder / "label_02").glob("*.txt"))
    sequences = {path.stem: read_labels(path) for path in paths}
    rows: list[dict[str, object]] = []
    for level in LEVELS:
        spoil = f"{level.missed:.0%} missed, sigma {level.sigma} m, {level.false} false a frame"
        found = scored(sequences, level, options.seeds, ours)
        rows.append({"level": level.name, "input": spoil, "tracker": "avrt", **found})
        best = max(
            (scored(sequences, level, 1, lambda f, g=g: norfair_tracker(f, *g))["HOTA"], g)
            for g in GRID
        )[1]
        found = scored(sequences, level, options.seeds, lambda f, g=best: norfair_tracker(f, *g))
        rows.append({"level": level.name, "input": spoil, "tracker": f"norfair {best}", **found})
    real = recorded(options.folder, sequences)
    rows.append({"level": "recorded", "input": "its own, cars", "tracker": "recorded", **real})
    frames, objects = (sum(map(f, sequences.values())) for f in (len, lambda s: sum(map(len, s))))
    if options.json:
        print(
            json.dumps({"frames": frames, "boxes": objects, "seeds": options.seeds, "rows": rows})
        )
        return
    print(f"{len(sequences)} sequences, {frames} frames, {objects} boxes, {options.seeds} seeds")
    heads = ("level", "tracker", "MOTA", "IDF1", "HOTA", "MOTP m", "IDSW", "FN", "FP")
    print("{:9}{:24}{:>7}{:>7}{:>7}{:>8}{:>6}{:>7}{:>7}".format(*heads))
    for row in rows:
        print(
            f"{row['level']:9}{row['tracker']:24}{row['MOTA']:7.3f}{row['IDF1']:7.3f}"
            f"{row['HOTA']:7.3f}{row['MOTP']:8.3f}{row['switches']:6}{row['missed']:7}{row['false']:7}"
        )


if __name__ == "__main__":
    main()
