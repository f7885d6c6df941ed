"""Which release a job goes back to, so that the same work is found in two runs of one pipeline.

A job's index counts the releases of its task, and a stage that another one triggers is released
only when that one publishes: after one output less, every later index downstream means other data.
So a job is known by its *root*: the index of the job at the head of its triggers, where a timer, a
source or a synchronised set releases. The n-th output of a stage releases job n of every stage that
it triggers; that job's root is the root of the job that made the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.commands import Publish, Record, Vote
from avrt.model.records import JobRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.commands import Command
    from avrt.model.spec import PipelineSpec, StageSpec


class Lineage:
    """The roots of the jobs of one run, learned from the kernel's commands."""

    def __init__(self, spec: PipelineSpec) -> None:
        stages = {stage.name for stage in spec.stages}
        self._upstream = {
            task: _upstream(stage, stages) for stage in spec.stages for task in stage.task_names
        }
        self._published: dict[str, list[int]] = {stage: [] for stage in stages}
        self._known: dict[int, tuple[str, int]] = {}

    def take(self, commands: Iterable[Command]) -> None:
        """Take in what the kernel decided; before it publishes, a job ends or a vote is asked."""
        for command in commands:
            match command:
                case Record(record=JobRecord() as job):
                    self._known[job.activation] = job.stage, self.root(job.task, job.index)
                case Vote():
                    root = self.root(f"{command.stage}.0", command.index)
                    self._known[command.activation] = command.stage, root
                case Publish():
                    stage, root = self.origin(command.activation)
                    self._published[stage].append(root)
                case _:
                    pass

    def origin(self, activation: int) -> tuple[str, int]:
        """Return the stage and the root of an activation that has an outcome or a vote."""
        return self._known[activation]

    def root(self, task: str, index: int) -> int:
        """Return the root of a job that has been released."""
        upstream = self._upstream[task]
        return index if upstream is None else self._published[upstream][index]


def _upstream(stage: StageSpec, stages: set[str]) -> str | None:
    """Return the stage whose outputs release this one, or None."""
    trigger = stage.trigger_input
    return trigger.source if trigger is not None and trigger.source in stages else None
