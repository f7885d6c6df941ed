"""What a pipeline's stages take on a recorded log, how far their copies differ; and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from avrt.api.arguments import checked_loops, hang_timeout_ns
from avrt.api.replay import Playback, Replay
from avrt.errors import SpecError
from avrt.metrics.extremes import worst_case
from avrt.report.profile import CopiesProfile, Profile, StageProfile
from avrt.safety.calibration import MeasuringVoter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from avrt.api.pipeline import Pipeline
    from avrt.api.report import Report
    from avrt.model.spec import StageSpec
    from avrt.safety.calibration import Spread
    from avrt.safety.rules import Test

ENDLESS = 1 << 30


def profile(
    pipeline: Pipeline,
    log: str | Path,
    *,
    loops: int = 1,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[Profile, Report]:
    """Replay a log under measured timing, one stage at a time; return what stages took.

    Of stages with copies also how far the outputs of these lay apart; all of them are let agree.

    Raises:
        SpecError: the pipeline or an argument is wrong.
        InputError: the log cannot be used at all.
        DamagedInputError: the log is strict and damaged before its first message.
    """
    voters: dict[str, MeasuringVoter] = {}

    def made(stage: StageSpec, accept: Test | None) -> MeasuringVoter:
        voters[stage.name] = MeasuringVoter(stage, accept)
        return voters[stage.name]

    replay = Replay(
        pipeline, log, None, "measured", None, Playback(checked_loops(loops), 0, strict), voter=made
    )
    report = replay.run(hang_timeout_ns(None), progress, force=False)
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
            _copies(spec, voters[spec.name].spread) if spec.name in voters else None,
        )
    damage = list(summary.damage)
    if summary.interrupted:
        damage.append("interrupted before the end of the log")
    return Profile(summary.pipeline.name, stages, summary.conditions, damage), report


def _copies(stage: StageSpec, spread: Spread) -> CopiesProfile:
    assert stage.redundancy is not None
    runs = stage.redundancy.runs
    calibrated = {spread.by: spread.calibrated}
    return CopiesProfile(
        runs,
        spread.frames,
        spread.unlike,
        spread.largest,
        calibrated.get("tolerance"),
        calibrated.get("within"),
    )


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
