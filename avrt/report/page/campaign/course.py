"""A run with faults over time: what became of each output, the levels, the fault and who told.

An output is a tick where it was published, or was to be. Its height and thickness say what became
of it, not its colour alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.metrics.observed import QUALITIES
from avrt.report.page.markup import Html, joined, tag
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.metrics.injection import Judged
    from avrt.metrics.observed import Course, Quality

TICKS: Mapping[Quality, tuple[float, float]] = {
    "good": (5, 11), "other": (8.5, 11), "less": (2, 11), "wrong": (0, 13), "lost": (1, 12),
}  # fmt: skip
"""From where to where a tick goes, in a lane of LANE units; `wrong` is thick, `lost` is dashed."""
LANE = 14
WIDTH = 2000
"""Places along a lane: two ticks at the same one are drawn once."""
AXIS_STEPS = 10
LABEL_TURNS = 60.0
"""Percent of the width: what is further right is written to the left of its place."""
MEANINGS: Mapping[Quality, str] = {
    "good": "good",
    "other": "made in another way at this level, not compared",
    "less": "says that it is less",
    "wrong": "wrong",
    "lost": "lost",
}


def draw_course(judged: Judged) -> Html:
    """Return a run over time."""
    course, end_ns = judged.course, _end_ns(judged)
    names = [tag("span", name, title=name) for name in course.outputs]
    counts = [tag("span", _bad(own)) for own in course.outputs.values()]
    height = LANE * len(course.outputs)
    lanes = tag(
        "svg",
        *_ticks(course, end_ns),
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        style=f"height:{height}px",
        role="img",
        aria_label="; ".join(f"{name}: {_told(own)}" for name, own in course.outputs.items()),
    )
    levels = Html("")
    if course.levels:
        names.append(tag("span", "level"))
        levels = tag("div", *_levels(judged, end_ns), class_="levels")
    grid, moments = _axis(end_ns), _moments(judged, end_ns)
    track = tag("div", *grid, lanes, levels, *moments, class_="track")
    parts = (
        tag("div", *names, class_="names"),
        tag("div", tag("div", _label(judged, end_ns), class_="said"), track),
        tag("div", *counts, class_="counts"),
    )
    return tag("div", *parts, class_="course")


def legend() -> Html:
    """Return what the ticks and lines mean."""
    parts: list[Html] = []
    for quality in QUALITIES:
        top, bottom = TICKS[quality]
        path = tag(
            "path", class_=quality, d=f"M3 {top}V{bottom}M9 {top}V{bottom}M15 {top}V{bottom}"
        )
        key = tag("svg", path, viewBox=f"0 0 18 {LANE}", aria_hidden="true")
        parts.append(tag("li", key, MEANINGS[quality]))
    for name, what in (("fault", "first fault"), ("told", "told"), ("again", "all good again")):
        parts.append(tag("li", tag("i", class_=name), what))
    return tag("ul", *parts, class_="legend ticks")


def _end_ns(judged: Judged) -> int:
    times = [at for own in judged.course.outputs.values() for q in own.values() for at in q]
    begun_ns = judged.injected_ns or 0
    moments = [judged.course.end_ns, *times, begun_ns, begun_ns + (judged.detected_ns or 0)]
    return max(1, *moments)


def _ticks(course: Course, end_ns: int) -> Iterator[Html]:
    """Yield the ticks of all lanes, one path a quality: what is wrong is drawn last."""
    for quality, (top, bottom) in TICKS.items():
        moves: list[str] = []
        for lane, own in enumerate(course.outputs.values()):
            places = sorted({round(WIDTH * at_ns / end_ns) for at_ns in own[quality]})
            moves += [f"M{x} {lane * LANE + top:g}v{bottom - top:g}" for x in places]
        if moves:
            yield tag("path", class_=quality, d="".join(moves))


def _levels(judged: Judged, end_ns: int) -> Iterator[Html]:
    levels = judged.course.levels
    ends_ns = [at_ns for at_ns, _ in levels[1:]] + [end_ns]
    for (from_ns, name), to_ns in zip(levels, ends_ns, strict=True):
        ends = {levels[0][1]: "first", judged.course.last: "last"}
        kind = ends.get(name, "between")
        where = f"left:{_percent(from_ns, end_ns)};width:{_percent(to_ns - from_ns, end_ns)}"
        told = f"{name}, {_seconds(from_ns)} to {_seconds(to_ns)}"
        yield tag("span", name, class_=kind, style=where, title=told)


def _moments(judged: Judged, end_ns: int) -> Iterator[Html]:
    """Yield upright lines: the first fault, who told first, and when all was good again."""
    begun_ns = judged.injected_ns
    if begun_ns is None:
        return
    after = {"fault": 0, "told": judged.detected_ns, "again": judged.recovered_ns or None}
    for kind, took_ns in after.items():
        if took_ns is not None:
            left = _percent(begun_ns + took_ns, end_ns)
            yield tag("i", class_=kind, style=f"left:{left}")


def _label(judged: Judged, end_ns: int) -> Html:
    begun_ns = judged.injected_ns
    if begun_ns is None:
        return tag("span", "no fault hit anything")
    at = 100 * begun_ns / end_ns
    where = f"right:{100 - at:.2f}%" if at > LABEL_TURNS else f"left:{at:.2f}%"
    return tag("span", ", ".join(_story(judged, begun_ns)), style=where)


def _story(judged: Judged, begun_ns: int) -> Iterator[str]:
    yield f"fault at {_seconds(begun_ns)}"
    if judged.detected is None or judged.detected_ns is None:
        yield "nothing told"
    else:
        yield f"{judged.detected.by} told after {short(judged.detected_ns)}"
    if judged.recovered_ns:
        yield f"all good again after {short(judged.recovered_ns)}"


def _axis(end_ns: int) -> Iterator[Html]:
    step_ns = _round_step(end_ns / AXIS_STEPS)
    for number in range(int(end_ns / step_ns) + 1):
        at_ns = number * step_ns
        text = f"{at_ns / NS_PER_S:g}" + ("" if number else " s")
        yield tag("span", text, class_="at", style=f"left:{_percent(at_ns, end_ns)}")


def _round_step(rough: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 ... that is not smaller."""
    power = 10.0 ** (len(str(max(1, int(rough)))) - 1)
    return next(part * power for part in (1, 2, 5, 10) if part * power >= rough)


def _percent(part_ns: float, whole_ns: int) -> str:
    return f"{100 * part_ns / whole_ns:.2f}%"


def _told(own: Mapping[Quality, Sequence[int]]) -> str:
    return ", ".join(f"{len(own[q])} {MEANINGS[q]}" for q in QUALITIES if own[q]) or "no output"


def _bad(own: Mapping[Quality, Sequence[int]]) -> Html:
    """Return how many outputs are not good, by what became of them."""
    qualities: Iterable[Quality] = ("less", "wrong", "lost")
    return joined(tag("b", f"{len(own[q])} {q} ", class_=q) for q in qualities if own[q])


def _seconds(ns: int) -> str:
    return f"{ns / NS_PER_S:.3f} s"


def short(ns: int) -> str:
    """Return a time to four digits, as `format_ns` does to six."""
    digits = max(0, len(str(abs(ns))) - 4)
    return format_ns(round(ns, -digits))
