"""The stream of a task: its stage and variants, with a place on each device that they may go to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.exec.places import places_of
from avrt.exec.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.config.binding import BoundStage
    from avrt.exec.scrub import ScrubPlan
    from avrt.model.spec import PipelineSpec, StageSpec
    from avrt.payload.digest import Digest


def stream_of(  # noqa: PLR0913 - all after the stages is optional and named
    spec: PipelineSpec,
    stage: StageSpec,
    task: str,
    stages: Mapping[str, BoundStage],
    *,
    prepare: Callable[[str], object] | None = None,
    only: str = "",
    digest: Digest | None = None,
    scrub: ScrubPlan | None = None,
    keeps: bool = False,
) -> Stream:
    """Return a new stream, its thread started.

    Args:
        spec: the pipeline.
        stage: as declared.
        task: of the stage.
        stages: what is called, for the task and each `task@variant`.
        prepare: sets the thread up.
        only: the one device on which all of it stays; "" for wherever the stage may go.
        digest: makes the digest that results carry of their payload; None for none.
        scrub: how weights are checked; None for not at all.
        keeps: whether checkpoints are kept.
    """
    places = places_of(spec, stage, task)
    variants = {
        variant.name: (stages[f"{task}@{variant.name}"], only or variant.device or stage.home(task))
        for variant in stage.variants
    }
    return Stream(
        f"{task} on {only}" if only else task,
        stages[task],
        prepare,
        {only: places[only]} if only else places,
        max(device.threads for device in spec.devices),
        variants=variants,
        digest=digest,
        scrub=scrub,
        keeps=keeps,
    )
