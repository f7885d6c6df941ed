"""How right perception is, on labelled data: replays, scores, and writes docs/accuracy.md.

    python tools/accuracy.py --data ../shared/data --out docs/accuracy.md

Every drive of `DRIVES` is made, replayed in virtual time and scored with `avrt score`'s own code;
one more is one more row: a title, what makes the log, a pipeline. The tracker alone is scored on
KITTI's tracking labels, spoilt at three levels (`score_tracking.py` says how). What a drive needs
and is not there is told in the page.
"""

from __future__ import annotations

import argparse
import math
from contextlib import chdir
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import score_tracking

from avrt.api import Pipeline
from avrt.api.drive import write_drive
from avrt.drivers.conditions import read_conditions
from avrt.metrics.accuracy.clear import clear
from avrt.metrics.accuracy.existence import brier
from avrt.metrics.accuracy.hota import hota
from avrt.metrics.accuracy.identity import identity
from avrt.metrics.accuracy.matching import Frame, nearness
from avrt.metrics.accuracy.share import Share, spread
from avrt.report.score.detections import RANGES, DetectionScore
from avrt.report.score.images import HEIGHTS, ImageScore
from avrt.report.score.plans import PlanScore
from avrt.report.score.run import score_run
from avrt.report.score.tracks import TrackScore
from avrt.units import NS_PER_MS, NS_PER_S
from avrt.world import SCENES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from avrt.metrics.accuracy.share import Spread
    from avrt.report.score.run import RunScore, StageScore

ROOT = Path(__file__).parents[1]
SEEDS = 5


@dataclass(frozen=True)
class Drive:
    """One drive to score.

    Attributes:
        find: returns the log, given the data folder and one to write into.
        needs: folders of the data that it needs; the last one is where the stages find their files.
        what: what a reader must know to read the figures.
    """

    title: str
    find: Callable[[Path, Path], Path]
    pipeline: str
    needs: tuple[str, ...] = ()
    what: str = ""


def _kitti_object(data: Path, _folder: Path) -> Path:
    return data / "kitti_object_labelled"


WORLD_SEED, WORLD_SECONDS = 0, 20.0


def _world(scene: str) -> Drive:
    """Return a drive through a scene of the built-in world."""

    def make(_data: Path, folder: Path) -> Path:
        log = folder / "log.mcap"
        write_drive(log, scene, seed=WORLD_SEED, seconds=WORLD_SECONDS)
        return log

    what = f"{WORLD_SECONDS:g} s of the world, seed {WORLD_SEED}: `avrt demo --scene {scene}`."
    return Drive(f"World, {scene}", make, "pipelines/urban.yaml", what=what)


DRIVES = (
    *(_world(scene) for scene in SCENES),
    Drive(
        "KITTI object, LiDAR",
        _kitti_object,
        "pipelines/kitti_object.yaml",
        ("kitti_object_labelled",),
        "Five labelled frames of different drives. Only road users are labelled: walls, poles and "
        "hedges that are found count as false, and so does whatever was not labelled.",
    ),
    Drive(
        "KITTI object, camera",
        _kitti_object,
        "pipelines/kitti_object_camera.yaml",
        ("kitti_object_labelled", "models"),
        "The same frames, YOLOX-nano in three tiles. The outline of an object is its true 3D box "
        "projected, which is looser than a box drawn by hand.",
    ),
)


def score(drive: Drive, data: Path) -> RunScore:
    """Replay a drive and score the record."""
    with TemporaryDirectory() as folder, chdir(data / drive.needs[-1] if drive.needs else "."):
        log, run = drive.find(data, Path(folder)), Path(folder) / "run.mcap"
        Pipeline.load(ROOT / drive.pipeline).replay(log, out=run)
        return score_run(run)


# The page


def page(data: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    known = read_conditions()
    conditions = ", ".join(f"{name} {known[name]}" for name in ("avrt", "python", "torch"))
    made = (
        "Made by `python tools/accuracy.py`, which replays labelled drives and scores them as "
        "`avrt score` does; [report.md](report.md#a-score-avrt-score-run) says what counts and "
        f"what is right. Intervals are Wilson's, 95 %. Conditions: {conditions}."
    )
    yield from ("# Accuracy", "", made, "")
    for drive in DRIVES:
        yield f"## {drive.title}"
        yield ""
        missing = [name for name in drive.needs if not (data / name).is_dir()]
        if missing:
            yield from (f"Not scored: {', '.join(missing)} is not there.", "")
            continue
        found = score(drive, data)
        yield from (f"{drive.what} Pipeline: `{drive.pipeline}`.", "")
        for name, stage in found.stages.items():
            yield from _stage(name, stage)
        for name, why in found.unscored.items():
            yield from (f"`{name}` is not scored: {why}.", "")
    yield from _tracking(data / "kitti_tracking_text")


def _stage(name: str, stage: StageScore) -> Iterator[str]:
    match stage:
        case PlanScore():
            yield from _plans(name, stage)
        case TrackScore():
            yield from _tracks(name, stage)
        case DetectionScore():
            yield from _detections(name, stage)
        case ImageScore():
            yield from _images(name, stage)


def _tracks(name: str, one: TrackScore) -> Iterator[str]:
    sums = one.clear
    yield f"Tracks of `{name}`, {one.frames} frames:"
    rows = [
        ("HOTA / DetA / AssA / LocA", _figures(*_higher(one.hota))),
        ("MOTA / IDF1", _figures(sums.mota, one.identity.idf1)),
        ("objects found", _share(one.recall)),
        ("tracks that are objects", _share(one.precision)),
        ("identity switches / fragments", f"{sums.switches} / {sums.fragments}"),
        ("position, p50 / p95 / p99 / max m", _spread(one.position)),
        ("velocity, p50 / p95 / p99 / max m/s", _spread(one.velocity)),
        ("seen to tracked, p50 / p95 / p99 / max ms", _spread(one.latency, NS_PER_MS)),
        ("Brier score of existence", f"{brier(one.said) or 0.0:.3f} (n = {len(one.said)})"),
    ]
    yield from _table(("figure", "value"), rows)
    bins = [
        (f"{b.low:.1f} to {b.low + 0.1:.1f}", f"{b.mean:.3f}", _share(b.real)) for b in one.bins
    ]
    yield from _table(("existence said", "mean", "real"), bins)


def _detections(name: str, one: DetectionScore) -> Iterator[str]:
    alike = _share(one.labels)
    yield f"Detections of `{name}`, {one.frames} frames; of the object's class {alike}:"
    parts = [("all", one.whole)]
    parts += [(_bin(RANGES, i, "m"), counts) for i, counts in enumerate(one.by_range)]
    parts += [(label, one.by_class[label]) for label in sorted(one.by_class)]
    rows = [
        (title, _share(c.recall), _share(c.precision), _spread(spread(c.errors)))
        for title, c in parts
        if c.objects or c.detections
    ]
    heads = (
        "",
        "objects found",
        "detections that are objects",
        "position, p50 / p95 / p99 / max m",
    )
    yield from _table(heads, rows)


def _plans(name: str, one: PlanScore) -> Iterator[str]:
    if not one.entries:
        return
    yield f"Who came into the vehicle's way, and when `{name}` slowed down for it:"
    rows = [
        (
            f"{entry.label} {entry.id}",
            f"{entry.entered_ns / NS_PER_S:.2f} s",
            f"{entry.distance:.1f} m",
            "never" if entry.latency_ns is None else f"{entry.latency_ns / NS_PER_MS:.0f} ms",
        )
        for entry in one.entries
    ]
    yield from _table(("who", "came in at", "ahead", "slowed down after"), rows)


def _images(name: str, one: ImageScore) -> Iterator[str]:
    yield f"Boxes of `{name}` in {one.frames} images; that are objects {_share(one.precision)}:"
    rows = [("all", _share(one.recall))]
    for edges, unit, bins in ((HEIGHTS, "px", one.by_height), (RANGES, "m", one.by_range)):
        rows += [(_bin(edges, i, unit), _share(Share(*b))) for i, b in enumerate(bins) if b[1]]
    yield from _table(("", "objects found"), rows)


def _tracking(folder: Path) -> Iterator[str]:
    yield from ("## The tracker alone, KITTI tracking labels", "")
    if not folder.is_dir():
        yield from (f"Not scored: {folder.name} is not there.", "")
        return
    paths = sorted((folder / "label_02").glob("*.txt"))
    sequences = {path.stem: score_tracking.read_labels(path) for path in paths}
    count = sum(map(len, sequences.values()))
    yield (
        f"{len(sequences)} sequences, {count} frames, {SEEDS} seeds: labels with boxes left out, "
        "moved, and false ones among them, taken as detections. Every label counts."
    )
    rows = []
    for level in score_tracking.LEVELS:
        parts = [
            _tracked(frames, level, seed) for frames in sequences.values() for seed in range(SEEDS)
        ]
        sums, ids, higher = (reduce(add, part) for part in zip(*parts, strict=True))
        spoilt = f"{level.missed:.0%} missed, {level.sigma} m noise, {level.false} false a frame"
        figures = [f"{value:.3f}" for value in (sums.mota, ids.idf1, *_higher(higher))]
        rows.append((spoilt, *figures, f"{sums.motp_metres:.3f}", str(sums.switches)))
    heads = ("labels", "MOTA", "IDF1", "HOTA", "DetA", "AssA", "LocA", "MOTP, m", "switches")
    yield from _table(heads, rows)


def _tracked(frames: list[score_tracking.Frame], level: score_tracking.Level, seed: int) -> tuple:
    shown = score_tracking.ours(list(score_tracking.spoilt(frames, level, seed)))
    scored = []
    for true, found in zip(frames, shown, strict=True):
        places = [(box.x, box.y) for _, box in true.values()]
        scored.append(Frame(tuple(true), tuple(found), nearness(places, list(found.values()))))
    return clear(scored)[0], identity(scored), hota(scored)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _higher(one: object) -> tuple[float, ...]:
    return tuple(getattr(one, name) for name in ("hota", "det_a", "ass_a", "loc_a"))


def _figures(*values: float) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


def _share(share: Share) -> str:
    if not share.of:
        return "none"
    low, high = share.interval
    return f"{share.count} of {share.of}, {share.count / share.of:.2f} ({low:.2f} to {high:.2f})"


def _spread(one: Spread, unit: float = 1.0) -> str:
    values = (one.p50, one.p95, one.p99, one.max)
    told = " / ".join(f"{v / unit:.3g}" for v in values if v is not None)
    return f"{told} (n = {one.count})" if one.count else "-"


def _bin(edges: Sequence[float], place: int, unit: str) -> str:
    low, high = edges[place], edges[place + 1]
    return f"{low:g} {unit} and more" if math.isinf(high) else f"{low:g} to {high:g} {unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--out", type=Path, help="write the page here; by default it is printed")
    options = parser.parse_args()
    text = "\n".join(page(options.data.resolve())).rstrip() + "\n"
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
