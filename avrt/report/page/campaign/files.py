"""Writes the page of a fault campaign."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.model.campaign import OUTCOMES
from avrt.report.page import sections
from avrt.report.page.assembly import CAMPAIGN, assemble, write
from avrt.report.page.campaign.rows import rows_section, shown
from avrt.report.page.campaign.shares import (
    ALARMS_MAX,
    HARMFUL_MAX,
    clean_section,
    coverage_section,
    pairs_section,
)
from avrt.report.page.campaign.verdict import verdict_of, word
from avrt.report.page.markup import Html, joined, section, tag
from avrt.report.page.tables import entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.metrics.campaign import CampaignResult


def write_campaign_page(
    out: str | Path, result: CampaignResult, conditions: Mapping[str, str]
) -> None:
    """Write what came of a campaign.

    Args:
        out: where; the file is overwritten.
        result: what came of it.
        conditions: under which it was run.

    Raises:
        SpecError: the page cannot be written.
    """
    told = [
        coverage_section(result.rows),
        pairs_section(result.pairs),
        clean_section(result.clean),
        rows_section(result.rows),
        section("page.conditions", "Conditions", entries(conditions)),
        _left_out(list(_lines(result))),
    ]
    made = (f"avrt {conditions.get('avrt', '')}", result.name, conditions.get("date", ""))
    texts = {
        "title": f"{result.name} - avrt",
        "header": sections.header(f"{result.name}: faults", verdict_of(result), _figures(result)),
        "sections": joined(told),
        "footer": tag("p", " \u00b7 ".join(part for part in made if part), class_="quiet"),
    }
    write(Path(out), assemble(CAMPAIGN, texts))


def _figures(result: CampaignResult) -> list[tuple[str, str]]:
    found = [("seed", str(result.seed))]
    if result.rows:
        counts = Counter(item.judged.outcome for item in result.rows)
        failed = sum(bool(item.failure) for item in result.rows)
        gaps = sum(bool(item.row.gap) for item in result.rows)
        found.insert(0, ("runs", f"{len(result.rows):,}"))
        found.append(("not as expected", f"{failed:,}"))
        found += [("known gaps", f"{gaps:,}")] if gaps else []
        found += [(word(name), f"{counts[name]:,}") for name in OUTCOMES if counts[name]]
    if result.pairs:
        harmful = sum(pair.is_harmful for pair in result.pairs)
        found = [("pairs", f"{len(result.pairs):,}"), *found, ("did harm", f"{harmful:,}")]
    return found


def _lines(result: CampaignResult) -> Iterator[str]:
    """Yield what there is no room for."""
    listed = len(shown(result.rows))
    if listed < len(result.rows):
        what = "all that are not as expected are here, as far as there is room"
        yield f"{len(result.rows) - listed:,} of {len(result.rows):,} runs; {what}"
    harmful = sum(pair.is_harmful for pair in result.pairs)
    if harmful > HARMFUL_MAX:
        yield f"{harmful - HARMFUL_MAX:,} of {harmful:,} pairs that did harm"
    alarms = 0 if result.clean is None else len(result.clean.alarms)
    if alarms > ALARMS_MAX:
        yield f"{alarms - ALARMS_MAX:,} of {alarms:,} alarms"


def _left_out(lines: list[str]) -> Html:
    if not lines:
        return Html("")
    items = tag("ul", *(tag("li", line) for line in lines), class_="lines")
    return section("page.left-out", "What this page leaves out", items)
