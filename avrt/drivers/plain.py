"""Plain task sets, simulated without the kernel and equal to it job for job.

For sweeps over thousands of task sets or seeds, where only release, start, end and outcome of each
job matter. A pipeline is *plain* if every stage is released by its timer or by a source, and
nothing else passes between stages: see `why_not`. Nothing is said of misses, budgets, windows or
publications, and no job may be endless.

The order of an instant and among jobs is the kernel's: completions, then deadlines that abort, then
releases in pipeline-file order, then one dispatch; `(key, running first, task, job)`. Two things
make it fast. A time with a task, and a place in the order of jobs, is one integer:

    release = time * tasks + task        place = (time + bias) * tasks + task

where the bias is the relative deadline under edf, that less the wcet under llf, zero under fifo,
and a multiple of the longest time under fixed priorities; so the releases of all tasks are one
sorted list of integers, and a job's place is its release plus a constant of its task. And a slot
is looked at once an instant, when all its releases are in: see `avrt.drivers.slots`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from operator import ge
from typing import TYPE_CHECKING

from avrt.drivers.slots import Slots, run_one_slot
from avrt.errors import SpecError
from avrt.kernel.ladder import modes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from avrt.drivers.draws import Draw
    from avrt.model.records import Outcome
    from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec


@dataclass(slots=True)
class PlainTask:
    """One task, and its jobs in release order as columns.

    Attributes:
        bias_ns: what a job's key is above its release time.
        cost_ns: execution time of each job.
        start_ns: first dispatch of each job, None for one that never ran.
        end_ns: completion, abort, skip or shed of each job.
        ended: outcomes by number of the jobs that are neither met nor late.
    """

    stage: StageSpec
    bias_ns: int
    release_ns: Sequence[int]
    cost_ns: Sequence[int]
    start_ns: list[int | None] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    ended: dict[int, Outcome] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[Outcome]:
        """How each job ended."""
        limit_ns = self.stage.deadline_ns
        found: list[Outcome] = [
            "met" if end_ns - release_ns <= limit_ns else "late"
            for release_ns, end_ns in zip(self.release_ns, self.end_ns, strict=True)
        ]
        for index, outcome in self.ended.items():
            found[index] = outcome
        return found

    @property
    def overflows(self) -> bool:
        """Whether some job came when its queue was full; all must have run, in release order."""
        later = islice(self.release_ns, self.stage.queue, None)
        starts = (start_ns for start_ns in self.start_ns if start_ns is not None)
        return any(map(ge, starts, later))

    def forget(self) -> None:
        """Let no job have run."""
        self.start_ns.clear()
        self.end_ns.clear()
        self.ended.clear()


class PlainSet:
    """A plain pipeline up to a time, ready to be run again and again with other execution times.

    Args:
        until_ns: releases happen before this time; what is open then finishes.
        arrivals: when each source speaks, in order; captured at that time.

    Raises:
        SpecError: the pipeline is not plain; says why.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        *,
        until_ns: int,
        arrivals: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        problem = why_not(spec)
        if problem:
            raise SpecError(f"no plain task set: {problem}; simulate it with the kernel")
        self.spec = spec
        self._releases = [_releases(stage, until_ns, arrivals or {}) for stage in spec.stages]
        self._biases = _biases(spec, max((t[-1] for t in self._releases if t), default=0) + 1)
        self._devices = [
            (device, places, self._merged(places))
            for device in spec.devices
            if (places := [i for i, s in enumerate(spec.stages) if s.device == device.name])
        ]

    def run(self, execution: Callable[[str, int], int] | None = None) -> dict[str, PlainTask]:
        """Run it; `execution` gives a job's time by task and index, the wcet if it is not given."""
        if execution is None:
            return self._run([[s.wcet_ns] * n for s, n in self._counts()])
        return self._run([[execution(s.name, i) for i in range(n)] for s, n in self._counts()])

    def run_seeds(self, seeds: Iterable[int], draw: Draw) -> Iterator[dict[str, PlainTask]]:
        """Run it once a seed; `draw(seed, task, count)` gives the times of a task's jobs in order.

        A draw knows nothing of the schedule, so runs of one seed under several policies, devices
        or deadlines have the same times.
        """
        for seed in seeds:
            yield self._run([draw(seed, stage.name, count) for stage, count in self._counts()])

    def _counts(self) -> Iterator[tuple[StageSpec, int]]:
        """Yield each stage with how many jobs it has."""
        return zip(self.spec.stages, map(len, self._releases), strict=True)

    def _run(self, costs: Sequence[Sequence[int]]) -> dict[str, PlainTask]:
        tasks: list[PlainTask] = []
        rows = zip(self.spec.stages, self._biases, self._releases, costs, strict=True)
        for stage, bias_ns, release_ns, cost_ns in rows:
            if min(cost_ns, default=1) < 1:
                raise ValueError(f"{stage.name}: a job takes at least 1 ns, found {min(cost_ns)}")
            tasks.append(PlainTask(stage, bias_ns, release_ns, cost_ns))
        for device, places, releases in self._devices:
            _run_device(device, [tasks[place] for place in places], releases)
        return {task.stage.name: task for task in tasks}

    def _merged(self, places: Sequence[int]) -> list[int]:
        """Return the releases of these stages in order, each as `time * stages + stage`."""
        count = len(places)
        merged: list[int] = []
        for index, place in enumerate(places):
            merged += [time * count + index for time in self._releases[place]]
        merged.sort()
        return merged


def why_not(spec: PipelineSpec) -> str:
    """Return why a pipeline is not plain, or "" if it is."""
    if spec.chains:
        return "it has chains"
    if spec.policy == "table":
        return "it executes a table"
    if spec.ladder is not None:
        return "it has a ladder"
    sources = {source.name for source in spec.sources}
    for stage in spec.stages:
        levels = {s.criticality for s in spec.stages if s.device == stage.device}
        for is_so, what in (
            (bool(stage.segments), "has segments"),
            (stage.redundancy is not None, "is redundant"),
            (len(stage.inputs) > 1, "has several inputs"),
            (bool(stage.inputs) and stage.period_ns is not None, "samples an input"),
            (not {item.source for item in stage.inputs} <= sources, "reads another stage"),
            (any(i.max_age_ns is not None for i in stage.inputs), "limits the age of an input"),
            (stage.every > 1, "leaves out messages"),
            (stage.on_overrun == "abort", "is aborted when it overruns"),
            (spec.device(stage.device).supply is not None, "is on a device with a supply"),
            (len(levels) > 1, "shares its device with other criticalities"),
            (spec.policy == "llf" and spec.device(stage.device).preemptive, "is preempted by llf"),
        ):
            if is_so:
                return f"stage {stage.name} {what}"
    return ""


def _releases(
    stage: StageSpec, until_ns: int, arrivals: Mapping[str, Sequence[int]]
) -> Sequence[int]:
    if stage.period_ns is not None:
        return range(stage.offset_ns, until_ns, stage.period_ns)
    return [time for time in arrivals.get(stage.inputs[0].source, ()) if time < until_ns]


def _biases(spec: PipelineSpec, span_ns: int) -> list[int]:
    """Return what the keys of each stage's jobs are above their release times; none is negative.

    All below `span_ns`, and that only their order counts lets all be moved alike.
    """
    match spec.policy:
        case "edf":
            return [stage.deadline_ns for stage in spec.stages]
        case "llf":
            laxities = [stage.deadline_ns - stage.wcet_ns for stage in spec.stages]
            return [laxity - min(0, *laxities) for laxity in laxities]
        case "fifo":
            return [0] * len(spec.stages)
        case _:
            (mode,) = modes_of(spec).values()
            priorities = [parameters.priority for parameters in mode.parameters]
            ranks = {priority: rank for rank, priority in enumerate(sorted(set(priorities)))}
            return [ranks[priority] * span_ns for priority in priorities]


def _run_device(device: DeviceSpec, tasks: list[PlainTask], releases: list[int]) -> None:
    if device.slots == 1 and all(task.stage.on_miss == "continue" for task in tasks):
        run_one_slot(tasks, releases, preemptive=device.preemptive)
        if not any(task.overflows for task in tasks):
            return
        for task in tasks:
            task.forget()
    Slots(tasks, device.slots, preemptive=device.preemptive).run(releases)
