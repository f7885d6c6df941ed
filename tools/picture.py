"""Draw what a run saw: the camera image above the scene from the bird's eye.

    python tools/picture.py RUN OUT_FOLDER [--every 8]

Colours: cars cyan, trucks orange, people green, unknown grey; thin boxes are tentative; the arrow
is the velocity over ground for one second; letters say which inputs support a track now; radar
targets and boxes of the camera's network are magenta; the plan is white (its length is five seconds
of driving), red where it brakes hard.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.record.recorded import read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.model.frames import Frames
from avrt.model.message import Message
from avrt.payload import Image, ImageDetections, Plan, PointCloud, Targets, Tracks
from avrt.payload.projection import box_corners, moved, moved_box, projected_edges, seen_from
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from avrt.logs.merge import SourceMessage


T = TypeVar("T")

COLOURS = {
    "car": (0, 220, 255),
    "truck": (255, 150, 0),
    "pedestrian": (80, 255, 80),
    "cyclist": (80, 255, 80),
    "unknown": (170, 170, 170),
}
SCALE = 20.0  # pixels a metre in the bird's-eye view
FLOOR_SIZE = (1242, 500)  # pixels
ORIGIN = (20.0, 250.0)  # pixels: where the sensor is
ROAD = -1.73  # metres: z of the road under the sensor


def draw(scene: Scene, image_rgb: NDArray[np.uint8]) -> PillowImage.Image:
    """Return the picture; `image_rgb` is (height, width, 3) uint8."""
    camera = _with_boxes(PillowImage.fromarray(image_rgb), scene)
    height = camera.height * FLOOR_SIZE[0] // camera.width
    camera = camera.resize((FLOOR_SIZE[0], height))
    floor = _floor(scene)
    whole = PillowImage.new("RGB", (FLOOR_SIZE[0], camera.height + FLOOR_SIZE[1]))
    whole.paste(camera, (0, 0))
    whole.paste(floor, (0, camera.height))
    return whole


def _with_boxes(camera: PillowImage.Image, scene: Scene) -> PillowImage.Image:
    pen = ImageDraw.Draw(camera)
    projection, plan = scene.projection, scene.plan
    lane = np.concatenate([plan.xy, np.full((len(plan.xy), 1), ROAD)], axis=1)
    seen = lane @ projection[:, :3].T + projection[:, 3]
    seen = seen[seen[:, 2] > 1]
    pen.line([(float(u / w), float(v / w)) for u, v, w in seen], fill=(255, 255, 255), width=3)
    for box in [] if scene.found is None else scene.found.boxes.tolist():
        pen.rectangle(box, outline=(255, 60, 255))
    for one in scene.tracks.objects:
        if not one.confirmed:
            continue
        colour = COLOURS[one.label]
        box = moved_box(one, scene.tracks, scene.seconds_after)
        edges = projected_edges(box_corners(box)[None], projection)[0]
        for (u0, v0), (u1, v1) in edges[np.isfinite(edges).all(axis=(1, 2))].tolist():
            pen.line([(u0, v0), (u1, v1)], fill=colour, width=2)
        if np.isfinite(edges).any():
            u, v = np.nanmin(edges.reshape(-1, 2), axis=0).tolist()
            pen.text((max(0.0, u), max(0.0, v - 12)), f"{one.id} {one.label}", fill=colour)
    return camera


def _floor(scene: Scene) -> PillowImage.Image:
    cloud_xyz, tracks, plan = scene.cloud, scene.tracks, scene.plan
    width, height = FLOOR_SIZE
    pixels = np.zeros((height, width, 3), np.uint8)
    u = (ORIGIN[0] + cloud_xyz[:, 0] * SCALE).astype(np.int64)
    v = (ORIGIN[1] - cloud_xyz[:, 1] * SCALE).astype(np.int64)
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    grey = np.clip(60 + (cloud_xyz[inside, 2] - ROAD) * 70, 40, 230).astype(np.uint8)
    pixels[v[inside], u[inside]] = grey[:, None]
    floor = PillowImage.fromarray(pixels)
    pen = ImageDraw.Draw(floor)
    for x, y, _ in scene.targets.tolist():
        u0, v0 = _pixel(x, y)
        pen.ellipse([u0 - 2, v0 - 2, u0 + 2, v0 + 2], outline=(255, 60, 255))
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
        seen_by = "".join(name[0] for name in one.sensors)
        pen.text(left, f"{one.id} {one.existence:.2f} {seen_by}", fill=colour)
    return floor


def _pixel(x: float, y: float) -> tuple[float, float]:
    return ORIGIN[0] + x * SCALE, ORIGIN[1] - y * SCALE


@dataclass(frozen=True)
class Scene:
    """One image of a run with the newest sweep, targets, tracks and plan published before it.

    `cloud` and `targets` are in the frame of the tracks, (N, 3) metres; `found` is what the
    camera's network made of this image, which was taken `seconds_after` the tracks' sweep,
    `at_seconds` of pipeline time.
    """

    cloud: NDArray[np.float32]
    targets: NDArray[np.float32]
    image: Image
    found: ImageDetections | None
    tracks: Tracks
    plan: Plan
    projection: NDArray[np.float64]
    seconds_after: float
    at_seconds: float

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the image, pixels."""
        if self.found is not None:
            return self.found.width_px, self.found.height_px
        height, width, _ = self.image.pixels().shape
        return width, height


def scenes(record: Path) -> Iterator[Scene]:
    """Yield every image of a run record for which there is a plan already."""
    with RunFile(record) as run:
        spec = read_pipeline(run, record)
        outputs = [message for name in run.stages() for message in run.outputs(name)]
    tracks, plans = Newest(outputs, Tracks), Newest(outputs, Plan)
    targets, seen = Newest(outputs, Targets), Newest(outputs, ImageDetections)
    frames = Frames(spec.transforms)
    newest: SourceMessage | None = None
    with open_log(record) as log:
        for item in MergedLog(log, spec.sources):  # all of them: the first one is time zero
            if isinstance(item.payload, PointCloud):
                newest = item
            if not isinstance(item.payload, Image) or item.payload.info is None:
                continue
            scene, plan = tracks.at(item.log_ns), plans.at(item.log_ns)
            if newest is None or scene is None or plan is None:
                continue
            frame = scene.stamp.frame
            yield Scene(
                cloud=moved(newest.payload.xyz, frames.between(newest.frame, frame)),
                targets=_placed(targets.at(item.log_ns), frames, frame),
                image=item.payload,
                found=seen.of(item.capture_ns),
                tracks=scene.payload,
                plan=plan.payload,
                projection=seen_from(
                    item.payload.info.projection, frames.between(frame, item.frame)
                ),
                seconds_after=(item.capture_ns - scene.stamp.capture_ns) / NS_PER_S,
                at_seconds=item.log_ns / NS_PER_S,
            )


def _placed(targets: Message[Targets] | None, frames: Frames, frame: str) -> NDArray[np.float32]:
    """Return where radar targets are in a frame, (N, 3) metres."""
    if targets is None:
        return np.zeros((0, 3), np.float32)
    xyz = np.concatenate([targets.payload.xy, np.zeros((targets.payload.count, 1), np.float32)], 1)
    return moved(xyz, frames.between(targets.stamp.frame, frame))


class Newest(Generic[T]):
    """The outputs of one payload class, asked for by time."""

    def __init__(self, outputs: list[Message[object]], kind: type[T]) -> None:
        found = [
            Message(m.stamp, m.payload, m.origins) for m in outputs if isinstance(m.payload, kind)
        ]
        self._messages = sorted(found, key=lambda message: message.stamp.publish_ns)
        self._times = [message.stamp.publish_ns for message in self._messages]

    def of(self, capture_ns: int) -> T | None:
        """Return what was made of the message captured then."""
        return next((m.payload for m in self._messages if m.stamp.capture_ns == capture_ns), None)

    def at(self, at_ns: int) -> Message[T] | None:
        """Return what was published last at or before this pipeline time."""
        place = bisect_right(self._times, at_ns)
        return self._messages[place - 1] if place else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=8, help="one picture in so many images")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for index, scene in enumerate(scenes(given.record)):
        if index % given.every == 0:
            pixels = scene.image.pixels()
            picture = draw(scene, pixels)
            picture.save(given.folder / f"scene_{index:04d}.png")


if __name__ == "__main__":
    main()
