"""Draw what the reference stages see: the camera image above the scene from the bird's eye.

    python tools/picture.py LOG OUT_FOLDER [--frames 0 8 17] [--calibration CALIB.txt]

`draw` is pure: arrays and payloads in, a picture out. Reading the log and running the stages is
`scenes`, so the same picture can be made from a run record. Colours: cars cyan, trucks orange,
people green, unknown grey; thin boxes are tentative; the arrow is the velocity over ground for one
second; the plan is white (its length is five seconds of driving), red where it brakes hard.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mcap.reader import make_reader
from PIL import Image as PillowImage
from PIL import ImageDraw
from rosbags.typesys import Stores, get_typestore

from avrt.model.message import Message, Stamp
from avrt.payload import CameraInfo, Image, Plan, PointCloud, Tracks
from avrt.stages.camera import Overlay, box_corners, projected_edges
from avrt.stages.fusion import Tracker
from avrt.stages.lidar import Detector
from avrt.stages.planning import Planner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

COLOURS = {
    "car": (0, 220, 255),
    "truck": (255, 150, 0),
    "pedestrian": (80, 255, 80),
    "cyclist": (80, 255, 80),
    "unknown": (170, 170, 170),
}
SCALE = 20.0  # pixels a metre in the bird's-eye view
FLOOR_SIZE = (1242, 760)  # pixels
ORIGIN = (20.0, 380.0)  # pixels: where the sensor is
ROAD = -1.73  # metres: z of the road under the sensor
CALIBRATION = Path("../shared/data/kitti_object_labelled/training/calib/000002.txt")


def draw(
    cloud_xyz: NDArray[np.float32],
    image_rgb: NDArray[np.uint8],
    tracks: Tracks,
    plan: Plan,
    projection: NDArray[np.float64],
) -> PillowImage.Image:
    """Return the picture.

    Args:
        cloud_xyz: (N, 3) float32, metres, LiDAR frame.
        image_rgb: (height, width, 3) uint8.
        tracks: in the LiDAR frame.
        plan: likewise.
        projection: (3, 4) float64, pixels, from the LiDAR frame to the image.
    """
    camera = _with_boxes(PillowImage.fromarray(image_rgb), tracks, plan, projection)
    floor = _floor(cloud_xyz, tracks, plan)
    whole = PillowImage.new("RGB", (FLOOR_SIZE[0], camera.height + FLOOR_SIZE[1]))
    whole.paste(camera, (0, 0))
    whole.paste(floor, (0, camera.height))
    return whole


def _with_boxes(
    camera: PillowImage.Image, tracks: Tracks, plan: Plan, projection: NDArray[np.float64]
) -> PillowImage.Image:
    pen = ImageDraw.Draw(camera)
    lane = np.concatenate([plan.xy, np.full((len(plan.xy), 1), ROAD)], axis=1)
    seen = lane @ projection[:, :3].T + projection[:, 3]
    seen = seen[seen[:, 2] > 1]
    pen.line([(float(u / w), float(v / w)) for u, v, w in seen], fill=(255, 255, 255), width=3)
    for one in tracks.objects:
        if not one.confirmed:
            continue
        colour = COLOURS[one.label]
        edges = projected_edges(box_corners(one.box)[None], projection)[0]
        for (u0, v0), (u1, v1) in edges[np.isfinite(edges).all(axis=(1, 2))].tolist():
            pen.line([(u0, v0), (u1, v1)], fill=colour, width=2)
        if np.isfinite(edges).any():
            u, v = np.nanmin(edges.reshape(-1, 2), axis=0).tolist()
            pen.text((max(0.0, u), max(0.0, v - 12)), f"{one.id} {one.label}", fill=colour)
    return camera


def _floor(cloud_xyz: NDArray[np.float32], tracks: Tracks, plan: Plan) -> PillowImage.Image:
    width, height = FLOOR_SIZE
    pixels = np.zeros((height, width, 3), np.uint8)
    u = (ORIGIN[0] + cloud_xyz[:, 0] * SCALE).astype(np.int64)
    v = (ORIGIN[1] - cloud_xyz[:, 1] * SCALE).astype(np.int64)
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    grey = np.clip(60 + (cloud_xyz[inside, 2] - ROAD) * 70, 40, 230).astype(np.uint8)
    pixels[v[inside], u[inside]] = grey[:, None]
    floor = PillowImage.fromarray(pixels)
    pen = ImageDraw.Draw(floor)
    hard = plan.kind in {"brake", "stop"}
    path = [_pixel(x, y) for x, y in plan.xy.tolist()]
    pen.line(path, fill=(255, 60, 60) if hard else (255, 255, 255), width=3)
    gap = "free" if plan.time_gap is None else f"gap {plan.time_gap:.1f} s"
    cause = "" if plan.cause is None else f" because of {plan.cause.track_id}"
    text = f"{plan.kind} {gap}{cause}  {plan.speed[0]:.1f} -> {plan.speed[-1]:.1f} m/s"
    pen.text((10, 10), text, fill=(255, 255, 255))
    for one in tracks.objects:
        colour = COLOURS[one.label]
        corners = [_pixel(x, y) for x, y, _ in box_corners(one.box)[:4].tolist()]
        pen.line([*corners, corners[0]], fill=colour, width=2 if one.confirmed else 1)
        tip = _pixel(one.box.x + one.vx, one.box.y + one.vy)
        pen.line([_pixel(one.box.x, one.box.y), tip], fill=(255, 255, 0), width=1)
        left = _pixel(one.box.x, one.box.y + 0.6)
        pen.text(left, f"{one.id} {one.existence:.2f} {one.misses or ''}", fill=colour)
    return floor


def _pixel(x: float, y: float) -> tuple[float, float]:
    return ORIGIN[0] + x * SCALE, ORIGIN[1] - y * SCALE


@dataclass(frozen=True)
class Scene:
    """One sweep, the image after it and what the stages made of them; times in ms."""

    cloud: PointCloud
    image: Image
    tracks: Tracks
    plan: Plan
    projection: NDArray[np.float64]
    milliseconds: tuple[float, float, float, float]


def scenes(log: Path, calibration: Path) -> Iterator[Scene]:
    """Run detector, tracker, planner and overlay over a log, one core, one after the other."""
    lidar_to_camera = camera_two(calibration)
    whole = np.vstack([lidar_to_camera, [0, 0, 0, 1]])
    detector, tracker, planner = Detector(), Tracker(ego_speed=1.1), Planner()
    overlay = Overlay(lidar_to_camera=lidar_to_camera.tolist())
    for index, (cloud, image, capture_ns) in enumerate(sweeps(log)):
        stamp = Stamp("picture", index, capture_ns, capture_ns, capture_ns, "velodyne")
        times = [time.perf_counter()]
        found = detector.process(Message(stamp, cloud))
        times.append(time.perf_counter())
        tracks = tracker.process(Message(stamp, found))
        times.append(time.perf_counter())
        plan = planner.process(Message(stamp, tracks))
        times.append(time.perf_counter())
        overlay.process(Message(stamp, image), Message(stamp, tracks))
        times.append(time.perf_counter())
        assert image.info is not None
        projection = image.info.projection @ whole
        first, second, third, fourth = (np.diff(times) * 1e3).tolist()
        yield Scene(cloud, image, tracks, plan, projection, (first, second, third, fourth))


def sweeps(log: Path) -> Iterator[tuple[PointCloud, Image, int]]:
    """Yield each sweep with the image that follows it and its capture stamp, ns."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    cloud, data, capture_ns, info = None, None, 0, None
    with log.open("rb") as file:
        for schema, _, raw in make_reader(file).iter_messages():
            assert schema is not None
            message = store.deserialize_cdr(raw.data, schema.name)
            if schema.name.endswith("PointCloud2"):
                rows = np.frombuffer(message.data.tobytes(), np.float32)
                rows = rows.reshape(-1, message.point_step // 4)
                cloud = PointCloud(rows[:, :3].copy(), rows[:, 3].copy())
                capture_ns = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
            elif schema.name.endswith("CameraInfo"):
                info = CameraInfo(message.width, message.height, message.p.reshape(3, 4))
            elif schema.name.endswith("CompressedImage"):
                data = message.data
            if cloud is not None and data is not None and info is not None:
                yield cloud, Image("jpeg", data, info=info), capture_ns
                cloud = data = None


def camera_two(calibration: Path) -> NDArray[np.float64]:
    """Return KITTI's transform from the LiDAR to the left colour camera's optical frame, (3, 4)."""
    rows = dict(line.split(":", 1) for line in calibration.read_text().splitlines() if ":" in line)
    number = {key: np.array(value.split(), np.float64) for key, value in rows.items()}
    left = number["P2"].reshape(3, 4)
    moved = np.linalg.solve(left[:, :3], left[:, 3])
    result = number["R0_rect"].reshape(3, 3) @ number["Tr_velo_to_cam"].reshape(3, 4)
    result[:, 3] += moved
    return np.asarray(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--frames", type=int, nargs="*", default=list(range(0, 78, 8)))
    parser.add_argument("--calibration", type=Path, default=CALIBRATION)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    spent = []
    for index, scene in enumerate(scenes(given.log, given.calibration)):
        spent.append(scene.milliseconds)
        if index in given.frames:
            picture = draw(
                scene.cloud.xyz, scene.image.pixels(), scene.tracks, scene.plan, scene.projection
            )
            picture.save(given.folder / f"scene_{index:04d}.png")
    table = np.array(spent)
    table = np.column_stack([table, table.sum(axis=1)])
    for name, column in zip(("detect", "track", "plan", "overlay", "all"), table.T, strict=True):
        ranks = np.percentile(column, [50, 95, 100])
        print(f"{name:8s} ms p50 {ranks[0]:6.2f} p95 {ranks[1]:6.2f} max {ranks[2]:6.2f}")
    print(f"{len(table)} sweeps, first included; {math.floor(1e3 / table[:, 4].mean())} a second")


if __name__ == "__main__":
    main()
