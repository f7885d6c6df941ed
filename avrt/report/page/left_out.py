"""Says exactly what a page leaves out of its record, and how it chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.report.page.files import Page, Run
    from avrt.report.page.history import History


def left_out(runs: Sequence[Run], page: Page) -> list[str]:
    """Return a line for everything that is in a record and not on the page."""
    lines: list[str] = []
    for run in runs:
        name = f"{run.name}: " if len(runs) > 1 else ""
        lines += [f"{name}{line}" for line in _of_history(run.history)]
        if run.scene is not None:
            lines += run.scene.notes
    if len(page.changed) > len(page.changes):
        left = len(page.changed) - len(page.changes)
        lines.append(f"changed misses: {left:,} of {len(page.changed):,}, the last by release")
    return list(dict.fromkeys(lines))


def _of_history(history: History) -> Iterator[str]:
    for what, sieve in (("met", history.met), ("not met", history.missed)):
        if sieve.left_out:
            yield (
                f"jobs {what}: 1 in {sieve.step} of {sieve.seen:,} is drawn one by one, the longest"
                " response of each stage in any case; figures and the density behind them count all"
            )
    for name, messages in history.messages.items():
        if messages.times.left_out:
            times = messages.times
            yield f"messages of {name}: 1 in {times.step} of {times.seen:,} is drawn"
        gaps = messages.gaps()
        if gaps.left_out:
            yield f"gaps of {name}: 1 in {gaps.step} of {gaps.seen:,} is drawn"
    for name, outputs in history.chains.items():
        if outputs.left_out:
            yield f"outputs of chain {name}: 1 in {outputs.step} of {outputs.seen:,} is drawn"
    if history.marks.left_out:
        marks = history.marks
        yield f"marks on the timeline: 1 in {marks.step} of {marks.seen:,} is drawn"
    if history.broken.left_out:
        broken = history.broken
        yield f"passed chain limits: 1 in {broken.step} of {broken.seen:,} is drawn"
