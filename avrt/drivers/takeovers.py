"""Who takes over whose state: replicas that were wrong, and copies that a level lets run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.levels import copies_at, first_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.config.binding import BoundStage
    from avrt.exec.stream import Stream
    from avrt.model.spec import PipelineSpec


class Takeovers:
    """Hands states from one stream to another.

    Args:
        spec: the pipeline.
        stages: by task.
        streams: by task, as they are at any time.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        stages: Mapping[str, BoundStage],
        streams: Mapping[str, Stream],
    ) -> None:
        self._spec = spec
        self._streams = streams
        self._made_of = {task: type(stages[task]) for task in streams}
        self._copies = {stage.name: 0 for stage in spec.stages}
        self._copies |= {s.name: len(s.task_names) for s in first_level(spec).stages}

    def restore(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Let each target take over the state of its source; one of other code begins anew."""
        for target, source in pairs:
            if self._made_of[source] is self._made_of[target]:
                self._streams[target].adopt(self._streams[source].state())
            else:
                self._streams[target].begin_anew()

    def entered(self, mode: str) -> None:
        """Let copies that begin to run at a level follow the first one, which did all the time."""
        for stage in self._spec.stages:
            ran, runs = self._copies[stage.name], copies_at(self._spec, stage, mode)
            if 0 < ran < runs:
                first = stage.task_names[0]
                self.restore((task, first) for task in stage.task_names[ran:runs])
            self._copies[stage.name] = runs or ran
