"""What a campaign came to, in a sentence or two, before any figure.

`good`: all is as expected. `bad`: something is not. `unsure`: it is, and what was expected of a row
is a known gap or harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.campaign import HARMFUL
from avrt.report.page.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.metrics.campaign import CampaignResult, CleanResult, PairResult, RowResult
    from avrt.report.page.verdict import Standing

NAMED = 8
NO_HARM = "no silent corruption, hang or crash"


def verdict_of(result: CampaignResult) -> Verdict:
    """Return the verdict on everything that was asked for."""
    said = list(_sentences(result))
    doubtful = any(_is_doubtful(item) for item in result.rows)
    standing: Standing = "bad" if not result.is_met else "unsure" if doubtful else "good"
    return Verdict(standing, said[0], tuple(said[1:]))


def _sentences(result: CampaignResult) -> Iterator[str]:
    if result.rows:
        yield from _of_rows(result.rows)
    if result.pairs:
        yield _of_pairs(result.pairs)
    if result.clean is not None:
        yield _of_clean(result.clean)
    if not (result.rows or result.pairs or result.clean):
        yield "Nothing ran."


def _of_rows(rows: Sequence[RowResult]) -> Iterator[str]:
    failed = [item for item in rows if item.failure]
    gaps = [item for item in rows if item.row.gap and not item.failure]
    runs = _count(len(rows), "run")
    if failed:
        are = "is" if len(failed) == 1 else "are"
        yield f"{len(failed):,} of {runs} {are} not as expected: {_names(failed)}."
    else:
        what = "a known gap" if len(rows) == 1 else f"{len(gaps):,} of them known gaps"
        known = f", {what}: {_names(gaps)}" if gaps else ""
        all_runs = "The run is" if len(rows) == 1 else f"All {runs} are"
        yield f"{all_runs} as expected{known}."
    harmful = [item for item in rows if item.judged.outcome in HARMFUL]
    if harmful:
        words = sorted({word(item.judged.outcome) for item in harmful})
        yield f"{_count(len(harmful), 'run')} ended in {' or '.join(words)}: {_names(harmful)}."
    else:
        yield f"There was {NO_HARM}."
    if gaps and failed:
        yield f"{_count(len(gaps), 'known gap')}: {_names(gaps)}."


def _of_pairs(pairs: Sequence[PairResult]) -> str:
    harmful = sum(pair.is_harmful for pair in pairs)
    if harmful:
        return f"{harmful:,} of {_count(len(pairs), 'pair')} did harm."
    return f"None of {_count(len(pairs), 'pair')} did harm: there was {NO_HARM}."


def _of_clean(clean: CleanResult) -> str:
    seen = f"{_count(clean.frames, 'clean frame')} in {_count(clean.drives, 'drive')}"
    if clean.is_quiet:
        return f"{seen}: no alarm and no change of level."
    changes = "1 change" if clean.levels == 1 else f"{clean.levels:,} changes"
    return f"{seen}: {_count(len(clean.alarms), 'alarm')} and {changes} of level."


def _is_doubtful(item: RowResult) -> bool:
    return bool(item.row.gap) or item.judged.outcome in HARMFUL


def _names(rows: Iterable[RowResult]) -> str:
    names = list(dict.fromkeys(item.row.id for item in rows))
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def word(outcome: str) -> str:
    """Return a class as a person writes it."""
    return outcome.replace("_", " ")
