"""The table of a campaign: what was broken, what was to come of it, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.campaign import HARMFUL, OUTCOMES, Expected
from avrt.report.page.campaign.course import draw_course, legend, short
from avrt.report.page.campaign.verdict import word
from avrt.report.page.markup import Html, section, tag
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.metrics.campaign import RowResult
    from avrt.metrics.injection import Judged
    from avrt.model.campaign import Injection, Outcome

RUNS_MAX = 400
SYMBOLS: dict[Outcome, str] = {
    "masked": "\u2713", "recovered": "\u21ba", "degraded": "\u25bd", "safe_stop": "\u25a0",
    "silent_corruption": "\u2715", "hang": "\u2715", "crash": "\u2715",
}  # fmt: skip
TEXT_COLUMNS = ("row", "what is broken", "class", "expected", "told by")
NUMBERS = ("after", "good after", "lost", "wrong", "largest gap")
MORE_COLUMNS = ("levels", "verdict")
IN_TIMES = frozenset(("delay", "stamp", "jitter"))


def shown(rows: Sequence[RowResult]) -> list[RowResult]:
    """Return the runs that there is room for: those that are not as expected before others."""
    places = sorted(range(len(rows)), key=lambda place: (not rows[place].failure, place))
    return [rows[place] for place in sorted(places[:RUNS_MAX])]


def rows_section(rows: Sequence[RowResult]) -> Html:
    """Return the runs of the rows, each with its course; nothing where there are none."""
    if not rows:
        return Html("")
    listed = shown(rows)
    bodies = [_body(item, name) for item, name in zip(listed, anchors(listed), strict=True)]
    parts = [_filter(listed), legend(), runs_table(TEXT_COLUMNS, MORE_COLUMNS, bodies)]
    if any(item.simulated for item in listed):
        parts.append(tag("p", "* breaks a device that is only simulated", class_="quiet"))
    return section("page.rows", "Rows", *parts)


def runs_table(before: Iterable[str], after: Iterable[str], bodies: Iterable[Html]) -> Html:
    """Return a table of runs: columns of text, the numbers, and columns of text."""
    head = [
        *(tag("th", name, scope="col") for name in before),
        *(tag("th", name, scope="col", class_="number") for name in NUMBERS),
        *(tag("th", name, scope="col") for name in after),
    ]
    inner = tag("table", tag("thead", tag("tr", *head)), *bodies, class_="runs")
    return tag("div", inner, class_="table")


def anchors(rows: Iterable[RowResult]) -> Iterator[str]:
    """Yield the name of each run on the page: its row, and from the second run on its seed too."""
    known: set[str] = set()
    for item in rows:
        name = item.row.id
        yield f"{name}.{item.seed}" if name in known else name
        known.add(name)


def badge(outcome: Outcome) -> Html:
    """Return a class as a sign and a word."""
    sign = tag("span", SYMBOLS[outcome], aria_hidden="true")
    return tag("span", sign, word(outcome), class_=f"class {outcome}")


def _filter(rows: Sequence[RowResult]) -> Html:
    """Return buttons that show the runs of one kind; the script looks for it in `data-kinds`."""
    kinds = [kind for item in rows for kind in _kinds(item)]
    choices = [("", f"all {len(rows):,}")]
    for kind in (*OUTCOMES, "unexpected", "gap"):
        if count := kinds.count(kind):
            told = {"unexpected": "not as expected", "gap": "known gaps"}.get(kind, word(kind))
            choices.append((kind, f"{told} {count:,}"))
    buttons = [
        tag("button", text, type="button", data_kind=kind, aria_pressed=str(not kind).lower())
        for kind, text in choices
    ]
    return tag("div", *buttons, class_="filter", role="group", aria_label="Show runs")


def _kinds(item: RowResult) -> list[str]:
    more = {"unexpected": bool(item.failure), "gap": bool(item.row.gap)}
    return [item.judged.outcome, *(kind for kind, holds in more.items() if holds)]


def _body(item: RowResult, name: str) -> Html:
    columns = len(TEXT_COLUMNS) + len(NUMBERS) + len(MORE_COLUMNS)
    return tag(
        "tbody",
        tag("tr", *_cells(item, name)),
        over_time(item.judged, columns, _unlike(item)),
        id=name,
        class_="run",
        data_kinds=" ".join(_kinds(item)),
    )


def over_time(judged: Judged, columns: int, lines: Iterable[str] = ()) -> Html:
    """Return the row of a table below a run's figures: what there is to say, and its course."""
    said = [tag("div", line) for line in lines]
    above = [tag("div", *said, class_="found")] if said else []
    cell = tag("td", *above, draw_course(judged), colspan=str(columns))
    return tag("tr", cell, class_="over-time")


def _cells(item: RowResult, name: str) -> Iterator[Html]:
    judged, row = item.judged, item.row
    again = [] if name == row.id else [tag("div", f"seed {item.seed}", class_="quiet")]
    mark = "*" if item.simulated else ""
    yield tag("th", tag("a", row.id, href=f"#{name}"), mark, *again, scope="rowgroup")
    faults = [tag("code", written(fault)) for fault in item.faults]
    yield tag("td", tag("div", row.about, class_="about"), *faults, class_="what")
    yield tag("td", badge(judged.outcome))
    yield tag("td", "; ".join(expected(row.expect)), class_="asked")
    yield from found(judged)
    yield tag("td", _verdict(item))


def found(judged: Judged) -> Iterator[Html]:
    """Yield the cells of what told of a fault and what came of it."""
    yield tag("td", *_told(judged), class_="who")
    for cell in _numbers(judged):
        yield tag("td", cell, class_="number")
    yield tag("td", _path(judged.levels) or "-", class_="path")


def _told(judged: Judged) -> Iterator[Html | str]:
    if judged.detected is None:
        yield "nothing"
    else:
        yield tag("b", judged.detected.by)
        yield tag("div", judged.detected.what, class_="quiet")


def _numbers(judged: Judged) -> Iterator[str]:
    yield "-" if judged.detected_ns is None else short(judged.detected_ns)
    if judged.recovered_ns is None:
        yield "never"
    else:
        yield short(judged.recovered_ns) if judged.recovered_ns else "always"
    yield str(judged.lost)
    yield str(judged.incorrect)
    yield short(judged.gap_ns)


def _verdict(item: RowResult) -> Html:
    if item.failure:
        return tag("b", "not as expected", class_="bad")
    if item.row.gap:
        return tag("b", "known gap", class_="unsure")
    return tag("b", "as expected", class_="good")


def _unlike(item: RowResult) -> Iterator[str]:
    """Yield what is not as expected, and what is known to be missing."""
    lines = item.unmet or ((item.failure,) if item.failure else ())
    yield from (f"{line}." for line in lines)
    if item.row.gap:
        yield f"Missing: {item.row.gap}."
    crash = item.judged.crash
    if crash and not any(crash in line for line in lines):
        yield f"{crash}."


def _path(levels: Sequence[str]) -> str:
    return " \u2192 ".join(levels)


def written(fault: Injection) -> str:
    """Return a fault as a campaign file has it."""
    keys = {
        "where": fault.where,
        "what": fault.kind,
        "at": None if fault.at_ns is None else format_ns(fault.at_ns),
        "for": None if fault.for_ns is None else format_ns(fault.for_ns),
        "frame": fault.frame,
        "count": None if fault.count == 1 else fault.count,
        "by": _by(fault),
        "share": None if fault.share == 1 else f"{100 * fault.share:g} %",
        "factor": None if fault.factor == 1 else f"{fault.factor:g}",
        "up": format_ns(fault.up_ns) if fault.up_ns else None,
        "down": format_ns(fault.down_ns) if fault.down_ns else None,
    }
    return ", ".join(f"{key}: {value}" for key, value in keys.items() if value is not None)


def _by(fault: Injection) -> str | None:
    if not fault.by:
        return None
    return format_ns(round(fault.by)) if fault.kind in IN_TIMES else f"{fault.by:g}"


def expected(expect: Expected) -> Iterator[str]:
    """Yield what must come of a row."""
    if set(expect.outcomes) == set(OUTCOMES) - set(HARMFUL):
        yield "no silent corruption, hang or crash"
    else:
        yield " or ".join(word(outcome) for outcome in expect.outcomes)
    if expect.silent:
        yield "nothing tells of it"
    elif expect.is_detected:
        by = f" by {' or '.join(expect.detected_by)}" if expect.detected_by else ""
        within = "" if expect.detected_ns is None else f" within {format_ns(expect.detected_ns)}"
        yield f"told{by}{within}"
    if expect.levels is not None:
        yield f"levels: {_path(expect.levels) or 'none'}"
    counts = (("lost", expect.lost), ("wrong", expect.incorrect))
    for what, most in counts:
        if most is not None:
            yield f"at most {most} {what}" if most else f"none {what}"
    if expect.gap_ns is not None:
        yield f"gap at most {format_ns(expect.gap_ns)}"
    if expect.recover_ns is not None:
        yield f"all good within {format_ns(expect.recover_ns)}"
