"""Scheduling anomalies as a table and as data: the cut, what then ends later, who ran instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.units import NS_PER_MS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from avrt.metrics.anomalies import Later

ROWS_SHOWN = 30


@dataclass(frozen=True, slots=True)
class AnomalyReport:
    """What a search for anomalies found.

    Attributes:
        subject: the run or the scenario.
        conditions: in words, what else was changed, or the seed.
        cuts: of each cut that was tried, what it was and the jobs that are worse off.
    """

    subject: str
    conditions: list[str]
    cuts: Sequence[tuple[str, Sequence[Later]]]

    def ranked(self) -> list[tuple[str, Later]]:
        """Return all jobs that are worse off with what was cut, the worst first."""
        found = [(what, job) for what, later in self.cuts for job in later]
        return sorted(found, key=lambda item: item[1].rank)

    def data(self) -> dict[str, object]:
        """Return the anomaly object: plain data, times in ns."""
        return {
            "subject": self.subject,
            "conditions": self.conditions,
            "cuts": [{"what": what, "later": len(later)} for what, later in self.cuts],
            "anomalies": [_anomaly(what, job) for what, job in self.ranked()],
        }

    def render(self) -> RenderableType:
        """Return everything for a terminal."""
        found = self.ranked()
        told = ", ".join([self.subject, *self.conditions])
        cuts = sum(bool(later) for _, later in self.cuts)
        lines = [f"anomalies: {told}"]
        if not found:
            lines.append(f"no job ends later with any of {len(self.cuts)} cuts of execution times")
            return Group(*(Text(line) for line in lines))
        lines.append(f"jobs end later with {cuts} of {len(self.cuts)} cuts of execution times")
        parts: list[RenderableType] = [*(Text(line) for line in lines), _table(found[:ROWS_SHOWN])]
        if len(found) > ROWS_SHOWN:
            parts.append(Text(f"... {len(found) - ROWS_SHOWN} more; --json has all"))
        return Group(*parts)


def _table(found: Sequence[tuple[str, Later]]) -> Table:
    table = Table(title="Jobs that end later", title_justify="left", header_style="bold")
    for name in ("job", "released", "ends later", "outcome", "when", "ran instead"):
        table.add_column(name, overflow="fold")
    for what, job in found:
        later_ns = job.later_ns
        table.add_row(
            Text(f"{job.task} {job.before.index}"),
            f"{job.before.release_ns / NS_PER_S:.3f} s",
            Text("no result", "red") if later_ns is None else f"{later_ns / NS_PER_MS:+.3f} ms",
            Text(_outcomes(job)),
            Text(what),
            Text(", ".join(f"{task} {index} ({format_ns(ns)})" for task, index, ns in job.instead)),
        )
    return table


def _outcomes(job: Later) -> str:
    before = job.before.outcome
    after = "not released" if job.after is None else job.after.outcome
    return before if before == after else f"{before} > {after}"


def _anomaly(what: str, job: Later) -> dict[str, object]:
    before, after = job.before, job.after
    return {
        "cut": what,
        "task": job.task,
        "root": job.root,
        "later_ns": job.later_ns,
        "before": {"index": before.index, "outcome": before.outcome, "end_ns": before.end_ns},
        "after": None
        if after is None
        else {"index": after.index, "outcome": after.outcome, "end_ns": after.end_ns},
        "instead": [{"task": task, "index": index, "ns": ns} for task, index, ns in job.instead],
    }
