"""Says exactly what a page leaves out of its record, and how it chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from avrt.report.page.rows import host_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.report.host import Host
    from avrt.report.page.history import History
    from avrt.report.page.run import Page, Run
    from avrt.report.page.sieve import Sieve

T = TypeVar("T")


def left_out(runs: Sequence[Run], page: Page) -> list[str]:
    """Return a line for everything that is in a record and not on the page."""
    lines: list[str] = []
    for run in runs:
        name = f"{run.name}: " if len(runs) > 1 else ""
        lines += [f"{name}{line}" for line in _of_history(run.history)]
        lines += [f"{name}{line}" for line in _of_host(run.host)]
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
                f"jobs {what}: 1 in {sieve.step} of {sieve.seen:,} is drawn one by one, besides "
                "those around misses and the longest response of each stage; figures, and the "
                "shade behind the bars, count all"
            )
    if history.met.left_out and history.near_left_out:
        yield f"jobs around misses: {history.near_left_out:,} more are thinned as the others are"
    for name, messages in history.messages.items():
        yield from _thinned(f"messages of {name}", messages.times)
        yield from _thinned(f"gaps of {name}", messages.gaps())
    for name, outputs in history.chains.items():
        yield from _thinned(f"outputs of chain {name}", outputs)
    yield from _thinned("marks on the timeline", history.marks)
    yield from _thinned("passed chain limits", history.broken)


def _of_host(host: Host) -> Iterator[str]:
    if (step := host_step(host)) > 1:
        yield f"samples of the host: {step} of {len(host.samples):,} make one step of its charts"
    if host.unusable:
        yield f"samples of the host: {host.unusable:,} cannot be used"


def _thinned(what: str, kept: Sieve[T]) -> Iterator[str]:
    if kept.left_out:
        yield f"{what}: 1 in {kept.step} of {kept.seen:,} is drawn"
