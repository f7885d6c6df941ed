"""What must hold of the weights of stages before a run begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import WEIGHTS, SoftwareFault, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.config.binding import BoundStage
    from avrt.exec.stream import Stream
    from avrt.model.spec import PipelineSpec


def check_weights(
    spec: PipelineSpec, stages: Mapping[str, BoundStage], streams: Mapping[str, Stream]
) -> None:
    """Check the weights that stages have after their warm-up.

    Copies of one class have the same: where they have not, one of them was not made as it should
    be, and it may be most of them that are wrong.

    Args:
        spec: the pipeline.
        stages: by task.
        streams: by task.

    Raises:
        SpecError: copies of one class differ, or a stage that is to be scrubbed has no weights.
    """
    for stage in spec.stages:
        first: dict[type, str] = {}
        for task in stage.task_names:
            known = first.setdefault(type(stages[task]), task)
            found, expected = streams[task].scrub.crc32s, streams[known].scrub.crc32s
            if found != expected:
                told = f"{streams[known].scrub.told or 'none'} and {streams[task].scrub.told}"
                what = f"{known} and {task} run the same code with different weights: {told}"
                raise SpecError(what, ("stages", stage.name))
        if stage.scrub_ns is not None and not any(
            streams[t].scrub.crc32s for t in stage.task_names
        ):
            what = "it has no weights to check: Stage.weights of what it runs gives none"
            raise SpecError(what, ("stages", stage.name, "scrub"))


def other_weights(made: Stream, before: Stream) -> SoftwareFault | None:
    """Return a fault if a stage that was made anew has other weights than it had."""
    if made.scrub.crc32s == before.scrub.crc32s:
        return None
    what = f"made anew with {made.scrub.told or 'none'}, before {before.scrub.told or 'none'}"
    return SoftwareFault(WEIGHTS, what)
