"""How many of the vehicles that the camera's network saw are tracks, by distance.

    python tools/score_fusion.py RUN [--within 30]

For every image of a run record: where a vehicle of the network is, the nearest quarter of the LiDAR
points in the middle third of its box says; it counts if that is within the distance. It is matched

* in space, when that place lies in the footprint of a confirmed track, moved on to the instant of
  the image and grown by MARGIN (a vehicle half hidden behind another one is matched too);
* in the image, when such a track's box, projected and clipped, overlaps it by at least IOU_MIN.

Images of the first WARM_UP_SECONDS are left out: nothing is confirmed before its third sweep.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from picture import Scene, scenes

from avrt.payload.footprint import contains
from avrt.payload.projection import box_corners, moved_box

if TYPE_CHECKING:
    from avrt.payload import Box

IOU_MIN = 0.3
MARGIN = 0.7  # metres
WARM_UP_SECONDS = 0.5
VEHICLES = ("car", "truck")
POINTS_MIN = 5
WILSON_Z = 1.96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("--within", type=float, default=30.0, help="metres")
    given = parser.parse_args()
    seen = in_space = in_image = images = 0
    missed: list[str] = []
    for index, scene in enumerate(scenes(given.record)):
        if scene.at_seconds < WARM_UP_SECONDS:
            continue
        images += 1
        tracks = [one for one in scene.tracks.objects if one.confirmed]
        placed = [moved_box(one, scene.tracks, scene.seconds_after) for one in tracks]
        drawn = [box for one in placed if (box := _drawn(one, scene)) is not None]
        for vehicle in _vehicles(scene):
            if math.hypot(vehicle.x, vehicle.y) > given.within:
                continue
            seen += 1
            is_there = any(contains(box, vehicle.x, vehicle.y, MARGIN) for box in placed)
            in_space += is_there
            in_image += max((_overlap(vehicle.box, box) for box in drawn), default=0) >= IOU_MIN
            if not is_there:
                pixels = " ".join(f"{v:.0f}" for v in vehicle.box)
                missed.append(f"image {index}: x {vehicle.x:.1f} y {vehicle.y:.1f} box {pixels}")
    print(
        json.dumps(
            {
                "images": images,
                "within_m": given.within,
                "vehicles_seen": seen,
                "in_space": _share(in_space, seen),
                "in_image": _share(in_image, seen),
                "missed": missed,
            },
            indent=2,
        )
    )


def _share(hits: int, count: int) -> dict[str, object]:
    low, high = wilson(hits, count)
    share = round(hits / count, 3) if count else None
    return {"matched": hits, "share": share, "wilson_95": [round(low, 3), round(high, 3)]}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return the Wilson score interval (1927) of a share, 95 %."""
    if not count:
        return 0.0, 1.0
    share, z2 = hits / count, WILSON_Z**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = share * (1 - share) / count + z2 / (4 * count**2)
    half = WILSON_Z * math.sqrt(spread) / (1 + z2 / count)
    return middle - half, middle + half


@dataclass(frozen=True)
class Vehicle:
    """A vehicle of the network: its box in pixels, and where it is, metres, tracks' frame."""

    box: list[float]
    x: float
    y: float


def _vehicles(scene: Scene) -> list[Vehicle]:
    """Return the network's vehicles that LiDAR points show the place of."""
    if scene.found is None:
        return []
    seen = scene.cloud @ scene.projection[:, :3].T + scene.projection[:, 3]
    ahead = seen[:, 2] > 1
    cloud, seen = scene.cloud[ahead], seen[ahead]
    u, v, depth = seen[:, 0] / seen[:, 2], seen[:, 1] / seen[:, 2], seen[:, 2]
    found = []
    for box, label in zip(scene.found.boxes.tolist(), scene.found.labels, strict=True):
        if label in VEHICLES:
            left, top, right, bottom = box
            wide, high = (right - left) / 3, (bottom - top) / 3
            inside = (u > left + wide) & (u < right - wide) & (v > top + high) & (v < bottom - high)
            if inside.sum() >= POINTS_MIN:
                nearest = np.argsort(depth[inside])[: max(1, inside.sum() // 4)]
                x, y, _ = np.median(cloud[inside][nearest], axis=0).tolist()
                found.append(Vehicle(box, x, y))
    return found


def _drawn(box: Box, scene: Scene) -> list[float] | None:
    """Return a box in the image (left, top, right, bottom), None if it is not all ahead."""
    seen = box_corners(box) @ scene.projection[:, :3].T + scene.projection[:, 3]
    if not (seen[:, 2] > 1).all():
        return None
    uv = np.clip(seen[:, :2] / seen[:, 2:], 0, scene.size)
    return [*uv.min(axis=0).tolist(), *uv.max(axis=0).tolist()]


def _overlap(a: list[float], b: list[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)


if __name__ == "__main__":
    main()
