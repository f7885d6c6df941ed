"""Two runs side by side: outcomes, responses, execution times and chains, as tables and as data.

A stage or a chain that only one of the runs has is shown with what that run had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.metrics.run import ChainFigures, StageFigures
from avrt.report.terminal import OUTCOME_STYLES, four

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.metrics.distribution import Distribution
    from avrt.metrics.run import RunFigures


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of two runs, and what to call each of them."""

    first: RunFigures
    second: RunFigures
    names: tuple[str, str]

    def data(self) -> dict[str, object]:
        """Return `jobs`, `stages` and `chains`, each with the keys `names`; None if not there."""
        firsts, seconds = ((f.stages, f.chains) for f in (self.first, self.second))
        return {
            "jobs": self._both(self.first.jobs(), self.second.jobs()),
            "stages": {
                name: self._both(_stage(firsts[0].get(name)), _stage(seconds[0].get(name)))
                for name in _names(firsts[0], seconds[0])
            },
            "chains": {
                name: self._both(_chain(firsts[1].get(name)), _chain(seconds[1].get(name)))
                for name in _names(firsts[1], seconds[1])
            },
        }

    def stage_table(self) -> Table:
        """Return the stages, one row a run."""
        outcomes = [name for name in OUTCOME_STYLES if self._seen(name)]
        table = _table("Stages (ms)", ("stage", "run", "jobs", *outcomes, "(m,k) broken"))
        for heading in ("response p50/p95/p99/max", "execution p50/p95/p99/max"):
            table.add_column(heading, justify="right")
        for name in _names(self.first.stages, self.second.stages):
            for run, figures in zip(self.names, (self.first, self.second), strict=True):
                stage = figures.stages.get(name, StageFigures())
                jobs = stage.jobs()
                counts = [Text(str(jobs[n]), OUTCOME_STYLES[n] * bool(jobs[n])) for n in outcomes]
                table.add_row(
                    Text(name),
                    Text(run),
                    str(jobs["released"]),
                    *counts,
                    str(stage.violations),
                    four(stage.response),
                    four(stage.execution),
                )
        return table

    def chain_table(self) -> Table:
        """Return the chains, one row a run."""
        table = _table("Chains (ms)", ("chain", "run"))
        for heading in ("reaction p50/p95/p99/max", "age p50/p95/p99/max", "broken"):
            table.add_column(heading, justify="right")
        for name in _names(self.first.chains, self.second.chains):
            for run, figures in zip(self.names, (self.first, self.second), strict=True):
                chain = figures.chains.get(name, ChainFigures())
                broken = str(sum(chain.broken.values()))
                table.add_row(Text(name), Text(run), four(chain.reaction), four(chain.age), broken)
        return table

    def _both(self, first: object, second: object) -> dict[str, object]:
        return dict(zip(self.names, (first, second), strict=True))

    def _seen(self, outcome: str) -> bool:
        jobs = self.first.jobs()[outcome] + self.second.jobs()[outcome]
        return outcome in {"met", "late"} or jobs > 0


def _names(first: Mapping[str, object], second: Mapping[str, object]) -> Iterable[str]:
    return dict.fromkeys((*first, *second))


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < 2 else "right")
    return table


def _stage(stage: StageFigures | None) -> dict[str, object] | None:
    if stage is None:
        return None
    return {
        "jobs": stage.jobs(),
        "reasons": dict(sorted(stage.reasons.items())),
        "response_ns": stage.response.summary(),
        "execution_ns": stage.execution.summary(),
        "host_execution_ns": _if_any(stage.host_execution),
        "start_late_ns": _if_any(stage.start_late),
        "window_violations": stage.violations,
    }


def _chain(chain: ChainFigures | None) -> dict[str, object] | None:
    return None if chain is None else chain.summary()


def _if_any(figure: Distribution) -> dict[str, int | None] | None:
    return figure.summary() if len(figure) else None
