"""Execution times of a pipeline's stages on a recorded log, and the file that keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from avrt.errors import SpecError
from avrt.metrics.extremes import worst_case
from avrt.report.profile import Profile, StageProfile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from avrt.api.pipeline import Pipeline
    from avrt.api.report import Report

ENDLESS = 1 << 30


def profile(
    pipeline: Pipeline,
    log: str | Path,
    *,
    loops: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[Profile, Report]:
    """Replay a log under measured timing, one stage at a time; return what stages took.

    Raises:
        SpecError: the pipeline or an argument is wrong.
        InputError: the log cannot be used at all.
    """
    report = pipeline.replay(log, timing="measured", loops=loops, progress=progress)
    summary = report.summary
    stages: dict[str, StageProfile] = {}
    for spec in summary.pipeline.stages:
        figures = summary.figures.stages[spec.name]
        times = figures.host_execution
        stages[spec.name] = StageProfile(
            spec.device,
            spec.wcet_ns,
            figures.warm_ns,
            figures.first_ns,
            times,
            figures.host_execution_by_shape,
            worst_case(times.values),
            figures.first_fault,
        )
    damage = list(summary.damage)
    if summary.interrupted:
        damage.append("interrupted before the end of the log")
    return Profile(summary.pipeline.name, stages, summary.conditions, damage), report


def write_profile(found: Profile, path: Path) -> None:
    """Write a profile as YAML, one line a list.

    Raises:
        SpecError: it cannot be written.
    """
    text = yaml.safe_dump(
        found.data(), sort_keys=False, default_flow_style=None, width=ENDLESS, allow_unicode=True
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the profile {path}: {error.strerror}") from None
