"""A run while it goes on, as a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.model.guard import IN_USE
from avrt.report.terminal import OUTCOME_STYLES
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from avrt.metrics.progress import Progress
    from avrt.model.spec import PipelineSpec

FIGURES = ("p50", "p95", "max")


def live_table(spec: PipelineSpec, progress: Progress) -> RenderableType:
    """Return outcomes and recent responses of each stage, and what is wrong."""
    table = Table(title=f"{spec.name}  {progress.at_ns / NS_PER_S:.1f} s", title_justify="left")
    table.add_column("stage")
    for outcome in ("jobs", *OUTCOME_STYLES):
        table.add_column(outcome, justify="right")
    table.add_column("reported late", justify="right")
    table.add_column("response, last 100 (ms)\np50/p95/max", justify="right")
    table.add_column("deadline", justify="right")
    for stage in spec.stages:
        found = progress.stages[stage.name]
        counts = [
            Text(str(found.jobs[outcome]), style=style if found.jobs[outcome] else "dim")
            for outcome, style in OUTCOME_STYLES.items()
        ]
        table.add_row(
            Text(stage.name),
            str(found.jobs["released"]),
            *counts,
            str(found.reported_late),
            _three(found.recent_ns),
            f"{stage.deadline_ns / NS_PER_MS:.1f}",
        )
    return Group(table, *_notes(progress))


def _notes(progress: Progress) -> list[Text]:
    late = _three(progress.driver_late_ns)
    notes = [Text(f"driver late at planned instants, last 100: {late} ms", style="dim")]
    notes += [Text(line, style="dim") for line in progress.host]
    for name, count in progress.dropped.items():
        notes.append(Text(f"{name}: {count} messages dropped", style="red"))
    notes += [Text(f"{name}: {told}", style="yellow") for name, told in progress.sets.items()]
    notes += [Text(f"{name} is lost", style="bold red") for name in progress.lost]
    for name, state in progress.sensors.items():
        style = "yellow" if state in IN_USE else "bold red"
        notes.append(Text(f"sensor {name} is {state}", style=style))
    for fault, count in progress.faults.items():
        notes.append(Text(f"fault {fault} ({count}x)", style="red"))
    return notes


def _three(figures: Mapping[str, int | None]) -> str:
    values = [figures[name] for name in FIGURES]
    return "/".join("-" if value is None else f"{value / NS_PER_MS:.1f}" for value in values)
