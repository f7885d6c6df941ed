"""Many runs of a scenario as a table, and as the object that `--json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.metrics.probability import CONFIDENCE
from avrt.report.bounds import Comparison
from avrt.report.terminal import bound_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from avrt.analysis.figure import Figure
    from avrt.metrics.bounds import WorstOfRuns
    from avrt.metrics.probability import Estimate, Probability


def render_probabilities(
    title: str, stages: Mapping[str, Probability], chains: Mapping[str, Probability]
) -> RenderableType:
    """Return a table of the stages and one of the chains, where there are any."""
    parts: list[RenderableType] = [Text(title, style="bold"), _table("stage", "misses", stages)]
    if chains:
        parts.append(_table("chain", "broken", chains))
    return Group(*parts)


def render_worst(known: Mapping[str, Figure], worst: Mapping[str, WorstOfRuns]) -> Table:
    """Return the longest observation of many runs beside its bound, by stage or chain."""
    table = Table(title_justify="left", header_style="bold")
    table.add_column("longest, ms")
    for name in ("observed", "seed", "bound", "runs above", "unexplained"):
        table.add_column(name, justify="right")
    for name, item in worst.items():
        seed = "-" if item.seed is None else str(item.seed)
        counts = (str(item.runs_above), str(item.runs_unexplained))
        above = None if item.first is None else item.first[1]
        observed, bound = bound_cells(Comparison(item.observed_ns, known[name], above))
        table.add_row(Text(name), observed, seed, bound, *counts)
    return table


def probabilities_data(group: Mapping[str, Probability]) -> dict[str, object]:
    """Return plain data by stage or chain."""
    return {name: asdict(probability) for name, probability in group.items()}


def _table(who: str, what: str, group: Mapping[str, Probability]) -> Table:
    table = Table(title_justify="left", header_style="bold")
    table.add_column(who)
    level = f"{CONFIDENCE * 100:g} %"
    of = "jobs" if who == "stage" else "promises"
    for name in (what, of, f"of {of}, {level}", "runs with any", f"of runs, {level}"):
        table.add_column(name, justify="right")
    for name, found in group.items():
        table.add_row(
            Text(name),
            str(found.misses),
            str(found.jobs),
            "-" if found.a_job is None else _told(found.a_job),
            f"{found.runs_with} of {found.runs}",
            _told(found.a_run),
        )
    return table


def _told(estimate: Estimate) -> str:
    value, low, high = (
        f"{100 * part:.3g}" for part in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} % ({low} .. {high})"
