"""A what-if as tables and as data: the run as it was, as it would be, and which misses changed.

A miss that appears is explained where it would happen: who ran while the job waited.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.metrics.changes import CHANGE_KINDS
from avrt.report.bounds import check_bounds
from avrt.report.side_by_side import Pair
from avrt.report.terminal import bound_cells, late_starts, spent_time
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from avrt.metrics.changes import JobChange
    from avrt.metrics.run import RunFigures
    from avrt.model.records import JobRecord, MissRecord
    from avrt.report.bounds import BoundsCheck

NAMES = ("before", "after")
ROWS_SHOWN = 30
STYLES = {"appears": "red", "vanishes": "green", "moves": "yellow"}


@dataclass(frozen=True)
class Side:
    """One run: its figures and its decisions."""

    figures: RunFigures
    decisions: str

    @cached_property
    def bounds(self) -> BoundsCheck:
        """The run against what the analyses promise."""
        return check_bounds(self.figures)


@dataclass(frozen=True, slots=True)
class WhatIfReport:
    """What a what-if showed.

    Attributes:
        record: the recorded run.
        changes: what was changed, in words; none when nothing was.
        reproduced: whether the run with nothing changed makes the recorded decisions.
        assumed: jobs whose work the record does not hold to its end; they took the worst known.
        misses: the jobs whose miss appears, vanishes or moves.
        out: the record of the changed run, if one was written.
    """

    record: str
    changes: list[str]
    reproduced: bool
    before: Side
    after: Side
    assumed: int
    misses: list[JobChange]
    out: str | None = None

    def data(self) -> dict[str, object]:
        """Return the what-if object: plain data, times in ns."""
        return {
            "record": self.record,
            "changes": self.changes,
            "reproduced": self.reproduced,
            "decisions": {"before": self.before.decisions, "after": self.after.decisions},
            "assumed": self.assumed,
            **self._pair().data(),
            "bounds": {
                "before": self.before.bounds.data(),
                "after": self.after.bounds.data(),
            },
            "counts": self.counts(),
            "misses": [_change(change) for change in self.misses],
            "out": self.out,
        }

    def counts(self) -> dict[str, int]:
        """Return how many misses appear, vanish and move."""
        found = Counter(change.kind for change in self.misses)
        return {kind: found[kind] for kind in CHANGE_KINDS}

    def render(self) -> RenderableType:
        """Return everything for a terminal."""
        pair = self._pair()
        parts: list[RenderableType] = [Text(line) for line in self._headline()]
        sides = list(zip(NAMES, (self.before, self.after), strict=True))
        for name, side in sides:
            parts += [Text(f"{name}: {line}", "bold red") for line in side.bounds.alarms()]
        parts.append(pair.stage_table())
        if self.before.figures.chains:
            parts.append(pair.chain_table())
        parts.append(self._bound_table())
        for name, side in sides:
            parts += [Text(f"{name}: {line}", "yellow") for line in side.bounds.notes()]
        if self.misses:
            parts.append(self._miss_table())
        parts += list(self._notes())
        return Group(*parts)

    def _pair(self) -> Pair:
        return Pair(self.before.figures, self.after.figures, NAMES)

    def _headline(self) -> list[str]:
        changes = ", ".join(self.changes) or "nothing changed"
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts().items())
        return [f"what if: {changes}", f"misses: {counts}"]

    def _bound_table(self) -> Table:
        """Return the longest observation and the bound of every stage and chain in both runs."""
        table = Table(title="Observed and bound (ms)", title_justify="left", header_style="bold")
        table.add_column("stage or chain")
        for name in NAMES:
            table.add_column(f"{name}: observed", justify="right")
            table.add_column("bound", justify="right")
        before, after = self.before.bounds, self.after.bounds
        for old, new in ((before.stages, after.stages), (before.chains, after.chains)):
            for name in dict.fromkeys((*old, *new)):
                cells = [cell for side in (old, new) for cell in bound_cells(side.get(name))]
                table.add_row(Text(name), *cells)
        return table

    def _miss_table(self) -> Table:
        table = Table(title="Misses that change", title_justify="left", header_style="bold")
        for name in ("miss", "job", "released", "before", "after", "why"):
            table.add_column(name, overflow="fold")
        for change in self.misses[:ROWS_SHOWN]:
            known = change.before or change.after
            assert known is not None
            table.add_row(
                Text(change.kind, STYLES[change.kind]),
                Text(f"{change.task} {known.index}"),
                f"{known.release_ns / NS_PER_S:.3f} s",
                ended(change.before),
                ended(change.after),
                Text(why(change)),
            )
        return table

    def _notes(self) -> Iterator[Text]:
        if len(self.misses) > ROWS_SHOWN:
            yield Text(f"... {len(self.misses) - ROWS_SHOWN} more changed misses; --json has all")
        for name, stage in self.after.figures.stages.items():
            yield from late_starts(name, stage)
        if self.assumed:
            what = "jobs did not run to their end in the record and take the worst known of them"
            yield Text(f"{self.assumed} {what}", style="yellow")
        if not self.reproduced:
            what = "the run with nothing changed is not reproduced exactly: figures are estimates"
            yield Text(what, style="bold red")
        if self.before.decisions == self.after.decisions:
            yield Text(f"decisions equal: {self.after.decisions}")
        else:
            pair = f"{self.before.decisions[:16]}, would be {self.after.decisions[:16]}"
            yield Text(f"decisions {pair}", style="dim")
        if self.out is not None:
            yield Text(f"record {self.out}", style="dim")


def ended(job: JobRecord | None) -> Text:
    """Return how a job ended, and by how much it was early or late."""
    if job is None:
        return Text("not released")
    if job.reason:
        return Text(f"{job.outcome}: {job.reason}")
    return Text(f"{job.outcome} {job.lateness_ns / NS_PER_MS:+.1f} ms")


def why(change: JobChange) -> str:
    if change.kind == "vanishes" or change.after is None:
        return ""
    return change.after.reason if change.miss is None else spent_time(change.miss)


def _change(change: JobChange) -> dict[str, object]:
    return {
        "kind": change.kind,
        "task": change.task,
        "root": change.root,
        "before": _job(change.before),
        "after": _job(change.after),
        "why": _intervals(change.miss),
    }


def _job(job: JobRecord | None) -> dict[str, object] | None:
    if job is None:
        return None
    return {
        "index": job.index,
        "outcome": job.outcome,
        "reason": job.reason,
        "release_ns": job.release_ns,
        "due_ns": job.due_ns,
        "end_ns": job.end_ns,
    }


def _intervals(miss: MissRecord | None) -> list[dict[str, object]]:
    intervals = () if miss is None else miss.intervals
    return [{"kind": i.kind, "by": i.by, "job": i.job, "ns": i.duration_ns} for i in intervals]
