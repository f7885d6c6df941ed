"""Non-preemptive EDF run over some cycles, as a table: what policy edf does if all take their wcet.

Jobs start in the order of time; of those that could start at one time the one due first. No slot
stays idle while a job could run, so what comes out is no table where an urgent job needs a gap, or
where one cycle is not like the next (`avrt.analysis.table` judges that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.table import due_ns, published, release_of, releasers
from avrt.model.graph import release_periods
from avrt.model.spec import TableRow, TableSpec

if TYPE_CHECKING:
    from avrt.analysis.table import Moment
    from avrt.model.spec import PipelineSpec, StageSpec

CYCLES = 3  # the last one is taken: by then the beginning is forgotten, if it ever is


def list_schedule(spec: PipelineSpec, cycle_ns: int, sources: dict[str, list[Moment]]) -> TableSpec:
    """Return what the last cycle looks like; it may be wrong.

    Args:
        spec: a pipeline whose periods all divide the cycle.
        cycle_ns: length of a cycle.
        sources: what each source sends in all cycles, by name.
    """
    run = _Run(spec, cycle_ns, sources)
    while run.step():
        pass
    return run.table()


class _Run:
    def __init__(self, spec: PipelineSpec, cycle_ns: int, sources: dict[str, list[Moment]]) -> None:
        self._cycle_ns = cycle_ns
        self._outputs = {**sources, **{stage.name: [] for stage in spec.stages}}
        periods = release_periods(spec)
        self._counts = {s.name: cycle_ns // (periods[s.name] or cycle_ns) for s in spec.stages}
        self._open = list(spec.stages)
        self._releases: dict[str, Moment] = {}  # the next one of each stage, once it is known
        self._free_ns = {device.name: [0] * device.slots for device in spec.devices}
        self._starts: dict[str, list[int]] = {t: [] for s in spec.stages for t in s.task_names}
        self._ends_ns = dict.fromkeys(self._starts, 0)

    def step(self) -> bool:
        """Start the activation that can start first; return whether there was one."""
        best: tuple[int, int, int] | None = None
        for place, stage in enumerate(self._open):
            release = self._release(stage)
            if release is not None:
                start_ns = max(release.planned_ns, *self._ready_ns(stage))
                rank = (start_ns, due_ns(stage, release), place)
                best = rank if best is None else min(best, rank)
        if best is None:
            return False
        self._start(self._open[best[2]])
        return True

    def table(self) -> TableSpec:
        """Return the last cycle."""
        rows: list[TableRow] = []
        for task, starts in self._starts.items():
            last = starts[-(len(starts) // CYCLES) :]
            within = sorted({start_ns % self._cycle_ns for start_ns in last})
            rows.append(TableRow(task=task, starts_ns=tuple(within)))
        return TableSpec(cycle_ns=self._cycle_ns, rows=tuple(rows))

    def _release(self, stage: StageSpec) -> Moment | None:
        release = self._releases.get(stage.name)
        if release is None:
            release = self._next_release(stage)
            if release is not None:
                self._releases[stage.name] = release
        return release

    def _next_release(self, stage: StageSpec) -> Moment | None:
        index = len(self._outputs[stage.name])
        groups = [self._outputs[name] for name in releasers(stage)]
        if any(len(group) <= index for group in groups):
            return None
        return release_of(stage, index, [group[index] for group in groups], stage.jitter_ns)

    def _ready_ns(self, stage: StageSpec) -> tuple[int, int]:
        """Return when a slot and the first of the streams are free."""
        streams = min(self._ends_ns[task] for task in stage.task_names)
        return min(self._free_ns[stage.device]), streams

    def _start(self, stage: StageSpec) -> None:
        release = self._releases.pop(stage.name)
        starts: list[int] = []
        for task in stage.task_names:
            free_ns = self._free_ns[stage.device]
            start_ns = max(release.planned_ns, min(free_ns), self._ends_ns[task])
            free_ns[free_ns.index(min(free_ns))] = start_ns + stage.wcet_ns
            self._ends_ns[task] = start_ns + stage.wcet_ns
            self._starts[task].append(start_ns)
            starts.append(start_ns)
        outputs = self._outputs[stage.name]
        outputs.append(published(stage, release, starts))
        if len(outputs) == CYCLES * self._counts[stage.name]:
            self._open.remove(stage)
