"""A simulation beside the wall clock: the responses of every stage, from four sources.

* `simulated`: execution times drawn from a profile made here, one stage at a time;
* `simulated, as it ran`: every job takes what it took in the wall-clock run, so what differs from
  that run is the scheduling and the driver alone;
* `..., with hand-over`: the same, and starting a job costs what lay between the wall-clock run's
  computing and what its kernel saw, at the median: waking up, handing over, reporting;
* `wall clock`: the run itself.

Arrivals are those of the log in all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.api.profile import profile, write_profile
from avrt.api.scenario import Scenario
from avrt.drivers.verify import verify
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.api.report import Report

FIGURES = ("p50", "p95", "p99", "max")


def bench_reality(log: Path, pipeline: Path, loops: int) -> dict[str, object]:
    """Return the responses of every stage from each source, ms."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loaded = Pipeline.load(pipeline)
        profiled, _ = profile(loaded, log, loops=loops)
        write_profile(profiled, folder / "profile.yaml")
        run = folder / "wall.mcap"
        wall = loaded.replay(log, clock="wall", out=run, timing="measured")
        trace = f"trace: {{run: {run}}}"
        hand_over_ns = _hand_over_ns(wall)
        sources = {
            "simulated": _simulated(folder, log, pipeline, "histogram: {profile: profile.yaml}"),
            "simulated, as it ran": _simulated(folder, log, pipeline, trace),
            "simulated, as it ran, with hand-over": _simulated(
                folder, log, pipeline, trace, launch_ns=hand_over_ns
            ),
            "wall clock": wall,
        }
        return {
            "hand_over_ms": round(hand_over_ns / NS_PER_MS, 3),
            "verifies": verify(run).equal,
            "driver_late_ms": _ms(wall.data["wakeup_late_ns"]),
            "missed": {source: _missed(report) for source, report in sources.items()},
            "response_ms": _responses(sources),
            "computing_host_ms": {
                stage: _ms(found["host_execution_ns"])
                for stage, found in wall.data["stages"].items()
            },
        }


def _hand_over_ns(wall: Report) -> int:
    """Return how much longer a job takes for the kernel than its computing, the median stage's."""
    gaps = [
        found["execution_ns"]["p50"] - found["host_execution_ns"]["p50"]
        for found in wall.data["stages"].values()
        if found["host_execution_ns"]["p50"] is not None
    ]
    return max(1, round(median(gaps)))


def _simulated(
    folder: Path, log: Path, pipeline: Path, model: str, *, launch_ns: int = 0
) -> Report:
    spec = Pipeline.load(pipeline).spec
    execution = ", ".join(f"{stage.name}: {{{model}}}" for stage in spec.stages)
    arrivals = ", ".join(f"{source.name}: {{log: {log.resolve()}}}" for source in spec.sources)
    overheads = f"overheads: {{default: {{launch: {launch_ns} ns}}}}\n" if launch_ns else ""
    path = folder / "scenario.yaml"
    path.write_text(
        f"scenario: reality\npipeline: {pipeline.resolve()}\nduration: 1000 s\n"
        f"execution: {{{execution}}}\narrivals: {{{arrivals}}}\n{overheads}",
        encoding="utf-8",
    )
    return Scenario.load(path).run()[0]


def _missed(report: Report) -> str:
    jobs = report.data["jobs"]
    return f"{jobs['released'] - jobs['met']} of {jobs['released']}"


def _responses(sources: Mapping[str, Report]) -> dict[str, dict[str, str]]:
    stages = next(iter(sources.values())).data["stages"]
    return {
        stage: {
            source: _ms(report.data["stages"][stage]["response_ns"])
            for source, report in sources.items()
        }
        for stage in stages
    }


def _ms(summary: Mapping[str, int | None]) -> str:
    values = [summary[name] for name in FIGURES]
    shown = "/".join("-" if value is None else f"{value / NS_PER_MS:.2f}" for value in values)
    return f"{shown} n={summary['count']}"
