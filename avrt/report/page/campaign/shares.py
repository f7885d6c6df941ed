"""What is counted over many runs: coverage with its intervals, pairs by class, clean drives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from avrt.metrics.campaign import coverage
from avrt.metrics.probability import CONFIDENCE
from avrt.model.campaign import OUTCOMES
from avrt.report.page.campaign.course import legend
from avrt.report.page.campaign.rows import (
    NUMBERS,
    badge,
    found,
    over_time,
    runs_table,
    written,
)
from avrt.report.page.markup import Html, section, table, tag
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.campaign import CleanResult, PairResult, RowResult
    from avrt.metrics.probability import Estimate

HARMFUL_MAX = 200
ALARMS_MAX = 200
PAIR_COLUMNS = ("rows", "faults", "class", "told by")


def coverage_section(rows: Sequence[RowResult]) -> Html:
    """Return how many injections were told of, by what was to tell."""
    counted = coverage(rows)
    if not counted:
        return Html("")
    what = (
        "Injections that something had to tell of, known gaps left aside, and of how many it did "
        f"in time. The line is the exact interval at {CONFIDENCE:.0%} (Clopper and Pearson): what "
        "so few runs prove."
    )
    head = [
        "to be told by",
        "told",
        "injected",
        "share",
        f"{CONFIDENCE:.0%} interval",
        "0 to 100 %",
    ]
    cells = [
        [
            tag("b", item.by),
            str(item.detected),
            str(item.injected),
            f"{item.share.value:.1%}",
            f"{item.share.low:.1%} \u2013 {item.share.high:.1%}",
            _interval(item.share),
        ]
        for item in counted
    ]
    return section("page.coverage", "Coverage", tag("p", what, class_="quiet"), table(head, cells))


def _interval(share: Estimate) -> Html:
    low, high = 100 * share.low, 100 * share.high
    return tag(
        "span",
        tag("i", style=f"left:{low:.2f}%;width:{high - low:.2f}%"),
        tag("b", style=f"left:{100 * share.value:.2f}%"),
        class_="interval",
        aria_hidden="true",
    )


def pairs_section(pairs: Sequence[PairResult]) -> Html:
    """Return the classes of pairs as one bar, and those that did harm."""
    if not pairs:
        return Html("")
    counts = Counter(pair.judged.outcome for pair in pairs)
    there = [name for name in OUTCOMES if counts[name]]
    bar = [tag("i", class_=name, style=f"flex-grow:{counts[name]}") for name in there]
    keys = [
        tag("li", badge(name), f" {counts[name]:,} ({counts[name] / len(pairs):.1%})")
        for name in there
    ]
    parts = [
        tag("p", "Two rows in one run, the second moved. None may do harm.", class_="quiet"),
        tag("div", *bar, class_="stacked", aria_hidden="true"),
        tag("ul", *keys, class_="legend"),
    ]
    harmful = [pair for pair in pairs if pair.is_harmful]
    if harmful:
        parts += _harmful(harmful[:HARMFUL_MAX])
    return section("page.pairs", "Pairs", *parts)


def _harmful(pairs: Sequence[PairResult]) -> list[Html]:
    columns = len(PAIR_COLUMNS) + len(NUMBERS) + 1
    bodies: list[Html] = []
    for pair in pairs:
        judged = pair.judged
        faults = [tag("code", written(fault)) for fault in pair.faults]
        cells = (
            tag("th", " and ".join(pair.rows), scope="rowgroup"),
            tag("td", *faults, class_="what"),
            tag("td", badge(judged.outcome)),
            *found(judged),
        )
        why = [f"{judged.crash}."] if judged.crash else []
        course = over_time(judged, columns, why)
        bodies.append(tag("tbody", tag("tr", *cells), course, class_="run"))
    return [legend(), runs_table(PAIR_COLUMNS, ("levels",), bodies)]


def clean_section(clean: CleanResult | None) -> Html:
    """Return what drives without faults showed."""
    if clean is None:
        return Html("")
    counts = {
        "clean frames": clean.frames,
        "drives": clean.drives,
        "alarms": len(clean.alarms),
        "changes of level": clean.levels,
    }
    figures = [tag("div", tag("dt", name), tag("dd", f"{n:,}")) for name, n in counts.items()]
    what = "Frames are messages of the source that has the fewest. Nothing may tell of a fault."
    parts = [tag("p", what, class_="quiet"), tag("dl", *figures, class_="figures")]
    if clean.alarms:
        cells = [
            [str(seed), f"{alarm.at_ns / NS_PER_S:.3f} s", alarm.by, alarm.what]
            for seed, alarm in clean.alarms[:ALARMS_MAX]
        ]
        parts.append(table(["seed of the drive", "at", "told by", "what"], cells, text_columns=4))
    return section("page.clean", "Clean drives", *parts)
