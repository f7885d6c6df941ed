"""Score radar targets of RADIATE's tiny_foggy against its annotated vehicles.

    tools/score_radar.py LOG ANNOTATIONS                   methods and rates of false alarms
    tools/score_radar.py LOG ANNOTATIONS --pictures DIR    and pictures of some scans
    tools/score_radar.py LOG ANNOTATIONS --timed ROUNDS    only how long a scan takes
    tools/score_radar.py RUN ANNOTATIONS --stage NAME      what a stage of a run gave

`annotations.json` has rotated boxes in the pixels of the 1152 x 1152 picture from above: 0.17361 m
each, the radar in the middle, ahead is up. Entry i of an object belongs to the i-th scan (scoring
against entries one later finds 25 of 43 boxes instead of 42 of 42). It has vehicles only, no
buildings, fences, trees or kerbs, so most targets lie in no box however right they are:

* recall: boxes within range that hold a target, MARGIN wider on each side;
* in boxes: share of the targets that lie in one; a lower bound of precision, mostly of the street;
* on the road: the same for targets where the vehicle's own street is, ROAD, chosen by eye;
* seen again: share of the targets with a target of the next scan within AGAIN of where they must
  be then if they stand still; left and right swapped for what chance gives. Real structure comes
  again, noise does not, so this judges what the boxes cannot.

Brackets are 95 % intervals (Wilson 1927); they take boxes as independent, and the same few vehicles
are in many scans.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw
from scipy.spatial import cKDTree

from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.run_file import RunFile
from avrt.model.message import Message, Stamp
from avrt.model.spec import SourceSpec
from avrt.payload import EgoMotion, Image, Targets
from avrt.stages.mounting import Mount
from avrt.stages.radar import CfarDetector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

TOPIC = "/radar/navtech/polar/compressed"
PIXEL = 0.17361  # metres
CENTRE = 575.5  # pixels
RANGE_MAX = 99.0  # metres: nothing is measured at the very end
MARGIN = 0.5  # metres
ROAD = ((-40.0, 40.0), (-7.0, 2.0))  # metres: x and y; it bends away beyond
AGAIN = 1.0  # metres
DRIVEN = EgoMotion(0.0, 0.0, 0.0, 9.8, -0.025, np.zeros((2, 2)), ("gnss",))  # the log's mean
RATES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
CELLS = (1, 4, 6)
DRAWN = (0, 9, 17)


@dataclass(frozen=True)
class Boxes:
    """Annotated vehicles of one scan, B of them, in the radar's frame.

    `centre` and `size` (along the box's axes) are (B, 2) metres; `yaw` is (B,) radians.
    """

    centre: NDArray[np.float64]
    size: NDArray[np.float64]
    yaw: NDArray[np.float64]

    def hold(self, xy: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return (B, N): which box holds which target."""
        apart = xy[None, :, :] - self.centre[:, None, :]
        cos, sin = np.cos(self.yaw)[:, None], np.sin(self.yaw)[:, None]
        along = np.abs(apart[..., 0] * cos + apart[..., 1] * sin)
        across = np.abs(apart[..., 1] * cos - apart[..., 0] * sin)
        half = self.size / 2 + MARGIN
        return (along <= half[:, :1]) & (across <= half[:, 1:])

    def moved_on(self, ego: EgoMotion) -> Boxes:
        """Return the boxes as they stand at the end of the scan, moved as its targets are."""
        turned = -np.arctan2(self.centre[:, 1], self.centre[:, 0]) % (2 * np.pi)
        seconds = (1 - turned / (2 * np.pi)) * 0.25
        return Boxes(Mount().moved_on(self.centre, seconds, ego), self.size, self.yaw)


def annotated(path: Path, scan: int) -> Boxes:
    """Return the boxes within range of one scan."""
    rows = []
    for thing in json.loads(path.read_text()):
        box = thing["bboxes"][scan]
        if not box:
            continue
        left, top, width, height = box["position"]
        x = (CENTRE - top - height / 2) * PIXEL
        y = (CENTRE - left - width / 2) * PIXEL
        if math.hypot(x, y) < RANGE_MAX:
            rows.append((x, y, height * PIXEL, width * PIXEL, math.radians(box["rotation"])))
    table = np.array(rows, np.float64).reshape(-1, 5)
    return Boxes(table[:, :2], table[:, 2:4], table[:, 4])


def scans(log: Path) -> list[Message[Image]]:
    """Return the radar's pictures of a log or run, in order."""
    source = SourceSpec(name="radar", type="camera", topic=TOPIC)  # they are images to a log
    found = []
    with open_log(log) as reader:
        for item in MergedLog(reader, [source]):
            assert isinstance(item.payload, Image)
            at = item.capture_ns
            stamp = Stamp("radar", item.sequence, at, at, item.log_ns, item.frame)
            found.append(Message(stamp, item.payload))
    return found


def again(found: Sequence[Targets], times_ns: Sequence[int], mirror: float) -> tuple[int, int]:
    """Return how many targets came again in the next scan, of how many; mirror is 1 or -1."""
    hits, count = 0, 0
    for now, later, at, then in zip(found, found[1:], times_ns, times_ns[1:], strict=False):
        seconds = np.full(now.count, (then - at) / 1e9)
        xy = Mount().moved_on(now.xy.astype(np.float64), seconds, DRIVEN)
        xy = xy[np.hypot(*xy.T) < RANGE_MAX - 4]
        near, _ = cKDTree(later.xy).query(xy * [1, mirror])
        hits += int(np.count_nonzero(near < AGAIN))
        count += len(xy)
    return hits, count


def scored(found: Sequence[Targets], boxes: Sequence[Boxes]) -> list[tuple[int, int]]:
    """Return (hits, of how many) for recall, in boxes, on the road."""
    recall, inside, road = np.zeros(2, int), np.zeros(2, int), np.zeros(2, int)
    for targets, given in zip(found, boxes, strict=True):
        held = given.hold(targets.xy)
        recall += held.any(axis=1).sum(), len(held)
        taken = held.any(axis=0)
        inside += taken.sum(), targets.count
        (x_min, x_max), (y_min, y_max) = ROAD
        x, y = targets.xy.T
        on = (x > x_min) & (x < x_max) & (y > y_min) & (y < y_max)
        road += (taken & on).sum(), on.sum()
    return [(int(a), int(b)) for a, b in (recall, inside, road)]


def share(hits: int, count: int) -> str:
    """Return a share with its Wilson interval."""
    if not count:
        return "none"
    z, p = 1.96, hits / count
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(p * (1 - p) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    return f"{hits}/{count} {p:.3f} [{middle - half:.3f}, {middle + half:.3f}]"


def table(log: Path, annotations: Path) -> Iterator[str]:
    """Yield the table, a row for each method, false alarm rate and size of a target."""
    pictures = scans(log)
    times_ns = [one.stamp.capture_ns for one in pictures]
    boxes = [annotated(annotations, i) for i in range(len(pictures))]
    ego = Message(pictures[0].stamp, DRIVEN)
    names = "method", "pfa", "cells", "recall", "in boxes", "on the road", "seen again", "swapped"
    yield f"| {' | '.join(names)} | a scan |"
    yield "|---" * (len(names) + 1) + "|"
    for method in ("ca", "os"):
        for pfa in RATES:
            for cells in CELLS:
                detector = CfarDetector(method=method, pfa=pfa, cells_min=cells, targets_max=10**6)
                found = [detector.process(one) for one in pictures]
                moved = [detector.process(one, ego) for one in pictures]
                marks = [share(*mark) for mark in scored(found, boxes)]
                marks += [share(*again(moved, times_ns, mirror)) for mirror in (1, -1)]
                count = sum(one.count for one in found) / len(found)
                yield f"| {method} | {pfa:g} | {cells} | {' | '.join(marks)} | {count:.0f} |"


def timed(log: Path, rounds: int) -> str:
    """Return how long the default detector takes, its first scan apart."""
    pictures = scans(log)
    detector = CfarDetector()
    detector.warm()
    took = []
    for _ in range(rounds):
        for one in pictures:
            start = perf_counter()
            detector.process(one)
            took.append((perf_counter() - start) * 1e3)
    p50, p95, p99 = np.percentile(took[1:], [50, 95, 99])
    rest = f"p50 {p50:.1f} p95 {p95:.1f} p99 {p99:.1f} max {max(took[1:]):.1f} ms"
    return f"a scan: {rest} (n = {len(took) - 1}); the first {took[0]:.1f} ms"


def run_score(run: Path, annotations: Path, stage: str) -> Iterator[str]:
    """Yield the scores of a stage's outputs; boxes move with the run's ego motion, if it has one.

    Outputs are matched to scans by capture time, so a scan without an output counts as lost.
    """
    with RunFile(run) as record:
        given = {
            message.stamp.capture_ns: message.payload
            for message in record.outputs(stage)
            if isinstance(message.payload, Targets)
        }
        motions = [
            message
            for name in record.stages()
            for message in record.outputs(name)
            if isinstance(message.payload, EgoMotion)
        ]
    found, boxes = [], []
    for index, one in enumerate(scans(run)):
        at_ns = one.stamp.capture_ns
        if at_ns in given:
            near = min(motions, key=lambda m: abs(m.stamp.capture_ns - at_ns), default=None)
            drawn = annotated(annotations, index)
            found.append(given[at_ns])
            boxes.append(drawn.moved_on(near.payload) if near else drawn)
    yield f"scans with targets: {len(found)} of {len(scans(run))}"
    for name, mark in zip(("recall", "in boxes", "on the road"), scored(found, boxes), strict=True):
        yield f"{name}: {share(*mark)}"


def draw(one: Message[Image], targets: Targets, boxes: Boxes) -> PillowImage.Image:
    """Return the scan from above, brightened, with targets (green) and annotated boxes (red)."""
    level = one.payload.pixels()[..., 0]
    v, u = np.mgrid[0:1600, 0:1600] / 2 + CENTRE - 400
    right, ahead = u - CENTRE, CENTRE - v
    row = np.clip(np.hypot(right, ahead).astype(int), 0, level.shape[0] - 1)
    column = (np.arctan2(right, ahead) % (2 * np.pi) / (2 * np.pi) * level.shape[1]).astype(int)
    seen = level[row, column % level.shape[1]].astype(float)
    grey = np.clip(seen * 1.5, 0, 255).astype(np.uint8)
    picture = PillowImage.fromarray(np.repeat(grey[..., None], 3, axis=2))
    pen = ImageDraw.Draw(picture)
    for x, y in targets.xy.tolist():
        place = _pixel(x, y)
        pen.ellipse([place[0] - 4, place[1] - 4, place[0] + 4, place[1] + 4], outline=(0, 255, 0))
    for centre, size, yaw in zip(boxes.centre, boxes.size, boxes.yaw, strict=True):
        corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]) * size / 2
        cos, sin = math.cos(yaw), math.sin(yaw)
        turned = corners @ np.array([[cos, sin], [-sin, cos]]) + centre
        pen.line([_pixel(x, y) for x, y in turned.tolist()], fill=(255, 60, 60), width=2)
    return picture


def _pixel(x: float, y: float) -> tuple[float, float]:
    return 800 - 2 * y / PIXEL, 800 - 2 * x / PIXEL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("annotations", type=Path)
    parser.add_argument("--stage", help="score the outputs of this stage of a run")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of some scans")
    parser.add_argument(
        "--timed", type=int, help="only time the default detector, in so many rounds"
    )
    given = parser.parse_args()
    if given.timed:
        print(timed(given.log, given.timed))
        return
    lines = (
        run_score(given.log, given.annotations, given.stage)
        if given.stage
        else table(given.log, given.annotations)
    )
    for line in lines:
        print(line, flush=True)
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
        detector = CfarDetector()
        for index, one in enumerate(scans(given.log)):
            if index in DRAWN:
                picture = draw(one, detector.process(one), annotated(given.annotations, index))
                picture.save(given.pictures / f"scan_{index:02d}.png")


if __name__ == "__main__":
    main()
