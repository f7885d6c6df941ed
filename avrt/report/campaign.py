"""A campaign as tables, and as the object that `--json` prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.metrics.campaign import coverage
from avrt.metrics.probability import CONFIDENCE
from avrt.model.campaign import HARMFUL, OUTCOMES
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from avrt.metrics.campaign import CampaignResult, CleanResult, PairResult, RowResult
    from avrt.metrics.injection import Judged
    from avrt.model.campaign import Injection

ALARMS_SHOWN = 8
PAIRS_SHOWN = 20


def render_campaign(result: CampaignResult) -> RenderableType:
    """Return everything for a terminal."""
    parts: list[RenderableType] = []
    if result.rows:
        parts += [_rows(result), *_coverage(result.rows)]
    if result.pairs:
        parts += _pairs(result.pairs)
    if result.clean is not None:
        parts += _clean(result.clean)
    return Group(*parts)


def _rows(result: CampaignResult) -> Table:
    table = Table(
        title=f"{result.name}, seed {result.seed}", title_justify="left", header_style="bold"
    )
    for name in ("row", "what", "outcome", "told by", "levels"):
        table.add_column(name)
    for name in ("after", "good after", "lost", "wrong", "gap"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for item in result.rows:
        judged = item.judged
        told = "nothing" if judged.detected is None else judged.detected.by
        table.add_row(
            Text(f"{item.row.id}{'*' if item.simulated else ''}"),
            Text(item.row.about),
            Text(judged.outcome, "red" if judged.outcome in HARMFUL else ""),
            told,
            Text(" > ".join(judged.levels) or "-"),
            _time(judged.detected_ns),
            "never" if judged.recovered_ns is None else format_ns(judged.recovered_ns),
            str(judged.lost),
            str(judged.incorrect),
            format_ns(judged.gap_ns),
            _verdict(item),
        )
    if any(item.simulated for item in result.rows):
        table.caption, table.caption_justify = "* breaks a device that is only simulated", "left"
    return table


def _verdict(item: RowResult) -> Text:
    if item.failure:
        return Text(item.failure, "red")
    return Text(f"known gap: {item.row.gap}", "yellow") if item.row.gap else Text("ok", "green")


def _time(ns: int | None) -> str:
    return "-" if ns is None else format_ns(ns)


def _coverage(rows: Sequence[RowResult]) -> Iterator[Text]:
    for item in coverage(rows):
        share = item.share
        least = f"{share.low:.1%} .. {share.high:.1%} at {CONFIDENCE:.0%}"
        yield Text(f"told by {item.by}: {item.detected} of {item.injected} ({least})")


def _pairs(pairs: Sequence[PairResult]) -> Iterator[Text]:
    counts = Counter(pair.judged.outcome for pair in pairs)
    told = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    yield Text(f"{len(pairs)} pairs: {told}")
    harmful = [pair for pair in pairs if pair.is_harmful]
    for pair in harmful[:PAIRS_SHOWN]:
        more = f" ({pair.judged.crash})" if pair.judged.crash else ""
        faults = "; ".join(describe(fault) for fault in pair.faults)
        rows = " and ".join(pair.rows)
        yield Text(f"{rows}: {pair.judged.outcome}{more}, of {faults}", "red")
    if len(harmful) > PAIRS_SHOWN:
        yield Text(f"... {len(harmful) - PAIRS_SHOWN} more")


def _clean(clean: CleanResult) -> Iterator[Text]:
    count = f"{len(clean.alarms)} alarms, {clean.levels} changes of level"
    drives = f"{clean.drives} drive{'' if clean.drives == 1 else 's'}"
    yield Text(f"{clean.frames} clean frames in {drives}: {count}")
    for seed, found in clean.alarms[:ALARMS_SHOWN]:
        yield Text(f"seed {seed}: {found.by} ({found.what}) at {format_ns(found.at_ns)}", "red")
    if len(clean.alarms) > ALARMS_SHOWN:
        yield Text(f"... {len(clean.alarms) - ALARMS_SHOWN} more")


def describe(fault: Injection) -> str:
    """Return a fault in words."""
    when = f"frame {fault.frame}" if fault.at_ns is None else f"at {format_ns(fault.at_ns)}"
    lasts = "" if fault.for_ns is None else f" for {format_ns(fault.for_ns)}"
    count = f" x {fault.count}" if fault.count > 1 else ""
    return f"{fault.where} {fault.kind} {when}{lasts}{count}"


def campaign_data(result: CampaignResult) -> dict[str, object]:
    """Return the campaign object: plain data, times in ns."""
    counts = Counter(pair.judged.outcome for pair in result.pairs)
    return {
        "campaign": result.name,
        "seed": result.seed,
        "met": result.is_met,
        "rows": [_row(item) for item in result.rows],
        "coverage": [
            {
                "by": item.by,
                "detected": item.detected,
                "injected": item.injected,
                "low": item.share.low,
                "high": item.share.high,
            }
            for item in coverage(result.rows)
        ],
        "pairs": {
            "count": len(result.pairs),
            "outcomes": {name: counts[name] for name in OUTCOMES},
            "harmful": [_pair(pair) for pair in result.pairs if pair.is_harmful],
        },
        "clean": None if result.clean is None else _clean_data(result.clean),
    }


def _row(item: RowResult) -> dict[str, object]:
    return {
        "id": item.row.id,
        "about": item.row.about,
        "seed": item.seed,
        "simulated": item.simulated,
        "faults": [asdict(fault) for fault in item.faults],
        **_judged(item.judged),
        "unmet": list(item.unmet),
        "gap": item.row.gap,
        "failure": item.failure,
    }


def _judged(judged: Judged) -> dict[str, object]:
    found = {item.name: getattr(judged, item.name) for item in fields(judged)}
    del found["course"]
    detected = None if judged.detected is None else asdict(judged.detected)
    return {**found, "levels": list(judged.levels), "detected": detected}


def _pair(pair: PairResult) -> dict[str, object]:
    faults = [asdict(fault) for fault in pair.faults]
    return {"rows": list(pair.rows), "faults": faults, **_judged(pair.judged)}


def _clean_data(clean: CleanResult) -> dict[str, object]:
    alarms = [{"seed": seed, **asdict(found)} for seed, found in clean.alarms]
    return {
        "frames": clean.frames,
        "drives": clean.drives,
        "alarms": alarms,
        "levels": clean.levels,
    }
