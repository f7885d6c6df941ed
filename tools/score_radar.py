"""Score radar targets of RADIATE's tiny_foggy against its annotated vehicles.

    tools/score_radar.py LOG ANNOTATIONS                   methods and rates of false alarms
    tools/score_radar.py LOG ANNOTATIONS --pictures DIR    and pictures of some scans
    tools/score_radar.py LOG ANNOTATIONS --timed ROUNDS    only how long a scan takes
    tools/score_radar.py RUN ANNOTATIONS --stage NAME      what a stage of a run gave
    tools/score_radar.py RUN ANNOTATIONS --tracks NAME     which vehicles the tracks of a run are

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
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw
from scipy.spatial import cKDTree

from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.record.recorded import read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.model.frames import Frames
from avrt.model.message import Message, Stamp
from avrt.model.spec import SourceSpec
from avrt.payload import EgoMotion, Image, Targets, Tracks
from avrt.payload.projection import moved_box
from avrt.stages.mounting import Mount
from avrt.stages.radar.detector import CfarDetector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SOURCE = SourceSpec(name="radar", type="radar", topic="/radar/navtech/polar/compressed")
PIXEL = 0.17361  # metres
CENTRE = 575.5  # pixels
RANGE_MAX = 99.0  # metres: nothing is measured at the very end
MARGIN = 0.5  # metres
ROAD = ((-40.0, 40.0), (-7.0, 2.0))  # metres: x and y; it bends away beyond
AGAIN = 1.0  # metres
SCAN_SECONDS = 0.25
FOLLOWED = 1.5  # metres: how far beside its annotated box a vehicle's track may be
NEAR_NS = 120_000_000  # between a scan and the tracks compared with it
DRIVEN = EgoMotion(0.0, 0.0, 0.0, 9.8, -0.025, np.zeros((2, 2)), ("gnss",))  # the log's mean
RATES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
CELLS = (1, 4, 6)
DRAWN = (0, 9, 17)


@dataclass(frozen=True)
class Boxes:
    """Annotated vehicles of one scan, B of them, in the radar's frame.

    `centre` and `size` (along the box's axes) are (B, 2) metres; `yaw` is (B,) radians; `things`
    are the vehicles' places in the file.
    """

    centre: NDArray[np.float64]
    size: NDArray[np.float64]
    yaw: NDArray[np.float64]
    things: tuple[int, ...]

    def hold(self, xy: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return (B, N): which box holds which target."""
        apart = xy[None, :, :] - self.centre[:, None, :]
        cos, sin = np.cos(self.yaw)[:, None], np.sin(self.yaw)[:, None]
        along = np.abs(apart[..., 0] * cos + apart[..., 1] * sin)
        across = np.abs(apart[..., 1] * cos - apart[..., 0] * sin)
        half = self.size / 2 + MARGIN
        return (along <= half[:, :1]) & (across <= half[:, 1:])

    @property
    def seconds_before_end(self) -> NDArray[np.float64]:
        """How long before the end of the scan the radar looked at each, (B,)."""
        turned = -np.arctan2(self.centre[:, 1], self.centre[:, 0]) % (2 * np.pi)
        return np.asarray((1 - turned / (2 * np.pi)) * SCAN_SECONDS)

    def moved_on(self, ego: EgoMotion) -> Boxes:
        """Return the boxes as they stand at the end of the scan, moved as its targets are."""
        return replace(self, centre=Mount().moved_on(self.centre, self.seconds_before_end, ego))


def annotated(path: Path, scan: int) -> Boxes:
    """Return the boxes within range of one scan."""
    rows, things = [], []
    for number, thing in enumerate(json.loads(path.read_text())):
        box = thing["bboxes"][scan]
        if not box:
            continue
        left, top, width, height = box["position"]
        x = (CENTRE - top - height / 2) * PIXEL
        y = (CENTRE - left - width / 2) * PIXEL
        if math.hypot(x, y) < RANGE_MAX:
            rows.append((x, y, height * PIXEL, width * PIXEL, math.radians(box["rotation"])))
            things.append(number)
    table = np.array(rows, np.float64).reshape(-1, 5)
    return Boxes(table[:, :2], table[:, 2:4], table[:, 4], tuple(things))


def scans(log: Path, sources: Sequence[SourceSpec] = (SOURCE,)) -> list[Message[Image]]:
    """Return the radar's pictures of a log or run, in order; times count from its first message."""
    found = []
    with open_log(log) as reader:
        for item in MergedLog(reader, sources):
            if item.raw.topic != SOURCE.topic:
                continue
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
        spec = read_pipeline(record, run)
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
    pictures = scans(run, spec.sources)
    for index, one in enumerate(pictures):
        at_ns = one.stamp.capture_ns
        if at_ns in given:
            near = min(motions, key=lambda m: abs(m.stamp.capture_ns - at_ns), default=None)
            drawn = annotated(annotations, index)
            found.append(given[at_ns])
            boxes.append(drawn.moved_on(near.payload) if near else drawn)
    yield f"scans with targets: {len(found)} of {len(pictures)}"
    for name, mark in zip(("recall", "in boxes", "on the road"), scored(found, boxes), strict=True):
        yield f"{name}: {share(*mark)}"


def followed(run: Path, annotations: Path, stage: str) -> Iterator[str]:
    """Yield, for each annotated vehicle, what supported the tracks that stood in its place.

    A track is a vehicle's when it is confirmed and its centre, moved on from the nearest tracks to
    the instant when the radar looked that way, lies in the annotated box, FOLLOWED wider on each
    side. Scans without tracks within NEAR_NS of that instant do not count.
    """
    with RunFile(run) as record:
        spec = read_pipeline(record, run)
        outputs = [m for m in record.outputs(stage) if isinstance(m.payload, Tracks)]
    pictures = scans(run, spec.sources)
    frames = Frames(spec.transforms)
    mount = Mount.of(frames.between(pictures[0].stamp.frame, outputs[0].stamp.frame))
    counts: dict[int, Counter[str]] = {}
    ranges: dict[int, list[float]] = {}
    for index, one in enumerate(pictures):
        boxes = annotated(annotations, index)
        for place, vehicle in enumerate(boxes.things):
            at_ns = one.stamp.capture_ns - round(boxes.seconds_before_end[place] * 1e9)
            near = min(outputs, key=lambda m: abs(m.stamp.capture_ns - at_ns))
            later = (at_ns - near.stamp.capture_ns) / 1e9
            if abs(later) * 1e9 > NEAR_NS:
                continue
            names = _supporters(near.payload, later, mount, boxes, place)
            counts.setdefault(vehicle, Counter())[names] += 1
            ranges.setdefault(vehicle, []).append(float(np.hypot(*boxes.centre[place])))
    for vehicle, seen in sorted(counts.items()):
        shown = ", ".join(f"{name} {count}" for name, count in seen.most_common())
        far, near_by = max(ranges[vehicle]), min(ranges[vehicle])
        yield f"vehicle {vehicle}, {near_by:.0f} to {far:.0f} m, {seen.total()} scans: {shown}"


def _supporters(tracks: Tracks, later: float, mount: Mount, boxes: Boxes, place: int) -> str:
    """Return the inputs that supported the confirmed tracks in one box, joined by plus signs."""
    confirmed = [track for track in tracks.objects if track.confirmed]
    moved = [moved_box(track, tracks, later) for track in confirmed]
    centres = np.array([(box.x, box.y) for box in moved]).reshape(-1, 2)
    wider = replace(boxes, size=boxes.size + 2 * (FOLLOWED - MARGIN))
    held = wider.hold(mount.taken(centres).astype(np.float32))[place]
    seen_by = {name for i in np.nonzero(held)[0] for name in confirmed[i].sensors}
    return "+".join(sorted(seen_by)) or ("predicted only" if held.any() else "no track")


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
    parser.add_argument("--tracks", help="tell which vehicles this stage of a run followed")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of some scans")
    parser.add_argument(
        "--timed", type=int, help="only time the default detector, in so many rounds"
    )
    given = parser.parse_args()
    if given.timed:
        print(timed(given.log, given.timed))
        return
    if given.tracks:
        lines = followed(given.log, given.annotations, given.tracks)
    elif given.stage:
        lines = run_score(given.log, given.annotations, given.stage)
    else:
        lines = table(given.log, given.annotations)
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
