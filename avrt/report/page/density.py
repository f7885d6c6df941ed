"""How many jobs of each task ended how, by slice of the run: counted over all jobs, kept or not.

So what a thinned timeline cannot show one by one is still seen where it happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.records import JobRecord
    from avrt.model.spec import PipelineSpec

BINS = 400


class Density:
    """Counts of jobs by task and slice of time, by the time of their release.

    Args:
        end_ns: where the last slice ends.
        begin_ns: where the first begins. What lies outside is counted in the nearest slice.
    """

    def __init__(self, spec: PipelineSpec, end_ns: int, begin_ns: int = 0) -> None:
        self._begin_ns = begin_ns
        self.bin_ns = max(1, -(-max(1, end_ns - begin_ns) // BINS))
        tasks = [task for stage in spec.stages for task in stage.task_names]
        self._met = {task: [0] * BINS for task in tasks}
        self._missed = {task: [0] * BINS for task in tasks}
        self._worst = {task: [0] * BINS for task in tasks}

    def job(self, record: JobRecord) -> None:
        """Count one job that has ended."""
        place = min(BINS - 1, max(0, (record.release_ns - self._begin_ns) // self.bin_ns))
        counts = self._met if record.outcome == "met" else self._missed
        counts[record.task][place] += 1
        if record.outcome in {"met", "late"}:
            worst = self._worst[record.task]
            worst[place] = max(worst[place], record.response_ns)

    def data(self) -> dict[str, object]:
        """Return by task the jobs met and not met, and the longest response, a slice each."""
        return {
            "begin_ns": self._begin_ns,
            "bin_ns": self.bin_ns,
            "tasks": {
                task: {"met": met, "missed": self._missed[task], "worst_ns": self._worst[task]}
                for task, met in self._met.items()
            },
        }
