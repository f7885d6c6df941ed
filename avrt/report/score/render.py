"""A score as a person reads it: one table a kind of stage, and what they cannot say below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.metrics.accuracy.existence import brier
from avrt.metrics.accuracy.share import Share, spread
from avrt.report.score.detections import RANGES, DetectionScore
from avrt.report.score.images import HEIGHTS, ImageScore
from avrt.report.score.plans import PlanScore
from avrt.report.score.scenes import POINTS_MIN
from avrt.report.score.tracks import TrackScore
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from avrt.metrics.accuracy.share import Spread
    from avrt.report.score.run import RunScore

OBJECTS_SHOWN = 10


def render(score: RunScore) -> RenderableType:
    """Return everything that was scored."""
    return Group(*_parts(score))


def _parts(score: RunScore) -> Iterator[RenderableType]:
    yield from _head(score)
    for name, stage in score.stages.items():
        match stage:
            case TrackScore():
                yield from _tracks(name, stage)
            case DetectionScore():
                yield from _detections(name, stage)
            case ImageScore():
                yield from _images(name, stage)
            case PlanScore():
                yield from _plans(name, stage)
        if stage.without_truth:
            what = f"{stage.without_truth} messages are from times that the truth does not cover"
            yield Text(f"{name}: {what}", "yellow")
    if not score.stages:
        yield Text("no stage has an output that the truth can judge", "yellow")
    for name, why in score.unscored.items():
        yield Text(f"{name} is not scored: {why}", "yellow")
    for line in score.damage:
        yield Text(f"damaged: {line}", "red")


def _head(score: RunScore) -> Iterator[RenderableType]:
    seen = f"those with {POINTS_MIN} LiDAR points count" if score.sweeps else "every object counts"
    scenes = f"{score.scenes} scenes of {score.topic} in {score.truth}"
    yield Text(f"{score.record} against {scenes}; {seen}")
    if score.other_topics:
        yield Text(f"not looked at: ground truth of {', '.join(score.other_topics)}", "yellow")


def _tracks(name: str, score: TrackScore) -> Iterator[RenderableType]:
    sums, hota = score.clear, score.hota
    yield Text(f"{name}: tracks in {score.frames} frames")
    table = Table("figure", "value")
    rows = (
        ("HOTA / DetA / AssA / LocA", _figures(hota.hota, hota.det_a, hota.ass_a, hota.loc_a)),
        ("MOTA / IDF1", _figures(sums.mota, score.identity.idf1)),
        ("objects found", _share(score.recall)),
        ("tracks that are objects", _share(score.precision)),
        ("of the object's class", _share(score.labels)),
        ("identity switches / fragments", f"{sums.switches} / {sums.fragments}"),
        ("position m p50/p95/p99/max", _spread(score.position)),
        ("velocity m/s p50/p95/p99/max", _spread(score.velocity)),
        ("seen to tracked ms p50/p95/p99/max", _spread(score.latency, NS_PER_MS, 0)),
    )  # fmt: skip
    for row in rows:
        table.add_row(*row)
    yield table
    value = brier(score.said)
    told = "" if value is None else f", Brier score {value:.3f}"
    yield Text(f"{name}: existence of {len(score.said)} tracks, as it is said and as it is{told}")
    table = Table("said", "mean", "real (95 %)")
    for one in score.bins:
        table.add_row(f"{one.low:.1f} to {one.low + 0.1:.1f}", f"{one.mean:.3f}", _share(one.real))
    yield table
    never = [one for one in score.objects if one.first_tracked_ns is None]
    if never:
        told = ", ".join(f"{one.label} {one.id} ({one.frames})" for one in never[:OBJECTS_SHOWN])
        more = f" and {len(never) - OBJECTS_SHOWN} more" if len(never) > OBJECTS_SHOWN else ""
        yield Text(f"{name}: never tracked (frames in which it could be): {told}{more}")


def _detections(name: str, score: DetectionScore) -> Iterator[RenderableType]:
    yield Text(f"{name}: detections in {score.frames} frames")
    table = Table("", "found (95 %)", "right (95 %)", "position m p50/p95/p99/max")
    rows = [("all", score.whole)]
    rows += [(_bin(RANGES, i, "m"), counts) for i, counts in enumerate(score.by_range)]
    rows += [(label, score.by_class[label]) for label in sorted(score.by_class)]
    for title, counts in rows:
        if counts.objects or counts.detections:
            errors = _spread(spread(counts.errors))
            table.add_row(title, _share(counts.recall), _share(counts.precision), errors)
    yield table
    yield Text(f"{name}: of the object's class: {_share(score.labels)}")


def _images(name: str, score: ImageScore) -> Iterator[RenderableType]:
    yield Text(f"{name}: boxes in {score.frames} images")
    table = Table("", "found (95 %)")
    table.add_row("all", _share(score.recall))
    for edges, unit, bins in ((HEIGHTS, "px", score.by_height), (RANGES, "m", score.by_range)):
        for i, pair in enumerate(bins):
            if pair[1]:
                table.add_row(_bin(edges, i, unit), _share(Share(*pair)))
    yield table
    yield Text(f"{name}: boxes that are objects: {_share(score.precision)}")


def _plans(name: str, score: PlanScore) -> Iterator[RenderableType]:
    if not score.entries:
        yield Text(f"{name}: nobody who could be seen came into the way")
        return
    yield Text(f"{name}: who came into the way, and when the plan slowed down for it")
    table = Table("who", "came in at", "ahead", "slowed down after")
    for one in score.entries[:OBJECTS_SHOWN]:
        after = "never" if one.latency_ns is None else f"{one.latency_ns / NS_PER_MS:.0f} ms"
        at = f"{one.entered_ns / NS_PER_S:.2f} s"
        table.add_row(f"{one.label} {one.id}", at, f"{one.distance:.1f} m", after)
    yield table


def _bin(edges: tuple[float, ...], place: int, unit: str) -> str:
    low, high = edges[place], edges[place + 1]
    if math.isinf(high):
        return f"{low:g} {unit} and more"
    return f"{low:g} to {high:g} {unit}"


def _share(share: Share) -> str:
    if not share.of:
        return "none"
    low, high = share.interval
    return f"{share.count / share.of:.3f} ({low:.3f} to {high:.3f}), {share.count} of {share.of}"


def _spread(one: Spread, unit: float = 1.0, digits: int = 2) -> str:
    values = (one.p50, one.p95, one.p99, one.max)
    if not one.count:
        return "-"
    told = "/".join(f"{value / unit:.{digits}f}" for value in values if value is not None)
    return f"{told} (n = {one.count})"


def _figures(*values: float) -> str:
    return " / ".join(f"{value:.3f}" for value in values)
