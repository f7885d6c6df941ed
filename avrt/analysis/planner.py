"""Computing a time-triggered table ahead of time.

The cycle is the least common multiple of all periods. First non-preemptive EDF is run over it (see
`list_schedule`). Where that is no right table, every job of a cycle gets the earliest gap on a slot
of its device, from when it is ready by plan, that holds its wcet; after what releases it and, in
each try, in this order: the earliest deadline first, where a deadline leaves room for what follows
along the triggers (Chetto et al. 1990). Gaps are left where a later, more urgent job needs them,
which no work-conserving scheduler could do. Jobs that did not fit go first in the next try (Joslin
& Clements 1999, "squeaky wheel" optimization); after some tries it begins anew with another order.
What comes out is judged by `avrt.analysis.table`, and nothing else is given out.

To find a table whenever there is one is NP-hard (Jeffay et al. 1991): "not found" is no proof.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING

from avrt.analysis.list_schedule import CYCLES, list_schedule
from avrt.analysis.table import (
    Moment,
    due_ns,
    lines_of,
    published,
    release_of,
    releasers,
    source_line,
    table_faults,
)
from avrt.errors import SpecError
from avrt.model.graph import release_periods, topological_order
from avrt.model.spec import TableRow, TableSpec
from avrt.model.table import CYCLE_MAX_NS
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from avrt.model.spec import PipelineSpec, StageSpec

    Job = tuple[int, int]  # place of the stage in the pipeline file, number in the cycle

JOBS_MAX = 10_000
STEPS_MAX = 200_000  # jobs times stages, for EDF
PERIODS_SHOWN = 4
TRIES_MAX = 60  # with each order
PLACED_MAX = 60_000  # jobs, over all tries with one order


def planned(spec: PipelineSpec) -> PipelineSpec:
    """Return a checked pipeline with the table that it executes; under other policies as it is.

    Raises:
        SpecError: its own table is wrong, or none is found.
    """
    if spec.policy != "table":
        return spec
    if spec.table is None:
        return replace(spec, table=find_table(spec))
    for task, what in table_faults(spec, spec.table):
        raise SpecError(what, ("table", "starts", task))
    return spec


def find_table(spec: PipelineSpec) -> TableSpec:
    """Return a right table for a checked pipeline.

    Raises:
        SpecError: a rate is not known, the cycle is too long, or no table is found.
    """
    cycle_ns = _cycle_ns(spec)
    _check_load(spec, cycle_ns)
    _check_sets(spec)
    table = _as_edf(spec, cycle_ns)
    if table is not None:
        return table
    search = _Search(spec, cycle_ns)
    for order in (search.deadline, search.room, search.length):
        table = search.run(order)
        if table is not None:
            return table
    task, times = search.misfits.most_common(1)[0]
    what = (
        f"no table found: not by non-preemptive EDF, nor in {search.tries} tries with earliest "
        "deadline, least room or longest wcet first, and what did not fit before all others in the "
        f"next try. This did not fit {times} times: give it a longer deadline or a shorter wcet, or"
        " choose another policy"
    )
    raise SpecError(what, ("stages", task))


def _as_edf(spec: PipelineSpec, cycle_ns: int) -> TableSpec | None:
    """Return what non-preemptive EDF makes of it, None if that is no right table."""
    if len(spec.stages) * sum(cycle_ns // p for p in _periods(spec).values()) > STEPS_MAX:
        return None
    sources: dict[str, list[Moment]] = {}
    for source in spec.sources:
        line = source_line(source, cycle_ns)
        sources[source.name] = [] if line is None else line.over(CYCLES, cycle_ns)
    table = list_schedule(spec, cycle_ns, sources)
    lines = lines_of(spec, table)
    is_known = None not in [lines[stage.name] for stage in spec.stages]
    return table if is_known and not table_faults(spec, table) else None


def _cycle_ns(spec: PipelineSpec) -> int:
    """Return the length of a cycle; SpecError if none is known, or it is too long."""
    known = _periods(spec).values()
    cycle_ns = lcm(*known)
    jobs = sum(cycle_ns // period_ns for period_ns in known)
    if jobs > JOBS_MAX or cycle_ns > CYCLE_MAX_NS:
        shown = ", ".join(f"{ns} ns" for ns in sorted(set(known))[:PERIODS_SHOWN])
        what = (
            f"periods of {shown} repeat only after {format_ns(cycle_ns)}, with {jobs} jobs; a table"
            f" repeats within a day and has {JOBS_MAX} at most. Choose periods that divide each"
            " other"
        )
        raise SpecError(what, ("policy",))
    return cycle_ns


def _periods(spec: PipelineSpec) -> dict[str, int]:
    """Return the periods of all stages; SpecError if one is not known."""
    known: dict[str, int] = {}
    periods = release_periods(spec)
    for stage in spec.stages:
        period_ns = periods[stage.name]
        if period_ns is None:
            what = "a table needs the rate of all that releases a stage; give its source a 'rate'"
            raise SpecError(what, ("stages", stage.name))
        known[stage.name] = period_ns
    return known


def _check_load(spec: PipelineSpec, cycle_ns: int) -> None:
    """Raise SpecError for what no table can mend."""
    for stage in spec.stages:
        if stage.wcet_ns > stage.deadline_ns:
            limit, wcet = format_ns(stage.deadline_ns), format_ns(stage.wcet_ns)
            what = f"no table can be right: wcet {wcet} is above the deadline {limit}"
            raise SpecError(what, ("stages", stage.name, "wcet"))
    periods = _periods(spec)
    for device in spec.devices:
        work_ns = sum(
            stage.wcet_ns * len(stage.task_names) * (cycle_ns // periods[stage.name])
            for stage in spec.stages
            if stage.device == device.name
        )
        if work_ns > cycle_ns * device.slots:
            asked = f"{work_ns / cycle_ns:.3g} of {device.slots_told} are asked for"
            what = f"no table can be right: {asked}"
            raise SpecError(what, ("devices", device.name))


def _check_sets(spec: PipelineSpec) -> None:
    """Raise SpecError for a set whose inputs do not come equally often."""
    periods = release_periods(spec)
    for stage in spec.stages:
        if len({periods[name] for name in releasers(stage)}) > 1:
            raise _incomplete(stage)


def _check_served(spec: PipelineSpec, table: TableSpec) -> None:
    """Raise SpecError for a stage of which a table does not say when it is released."""
    lines = lines_of(spec, table)
    for stage in spec.stages:
        if lines[stage.name] is None:
            raise _incomplete(stage)


def _incomplete(stage: StageSpec) -> SpecError:
    what = (
        "a table needs sets that are complete every time: inputs of one period, captured within the"
        " tolerance and there within the timeout. Change these, or release it with a 'period'"
    )
    return SpecError(what, ("stages", stage.name, "sync"))


class _Search:
    """Tries orders of the jobs of a cycle until all fit."""

    def __init__(self, spec: PipelineSpec, cycle_ns: int) -> None:
        self.tries = 0
        self.misfits: Counter[str] = Counter()
        self._spec = spec
        self._cycle_ns = cycle_ns
        self._reach_ns = _reaches(spec)
        self._periods = list(_periods(spec).values())
        self._jobs = [
            (place, index)
            for place, period_ns in enumerate(self._periods)
            for index in range(cycle_ns // period_ns)
        ]

    def deadline(self, job: Job) -> int:
        place, index = job
        stage = self._spec.stages[place]
        return stage.offset_ns + index * self._periods[place] + self._reach_ns[stage.name]

    def room(self, job: Job) -> int:
        stage = self._spec.stages[job[0]]
        return stage.deadline_ns - stage.wcet_ns

    def length(self, job: Job) -> int:
        return -self._spec.stages[job[0]].wcet_ns

    def run(self, order: Callable[[Job], int]) -> TableSpec | None:
        """Return a right table, None if none is found beginning with this order."""
        pushed: Counter[Job] = Counter()
        for _ in range(min(TRIES_MAX, 1 + PLACED_MAX // len(self._jobs))):
            self.tries += 1
            jobs = sorted(self._jobs, key=lambda j: (-pushed[j], order(j), self.deadline(j), j))
            attempt = _Attempt(self._spec, self._cycle_ns)
            misfits = [job for job in jobs if not attempt.place(job)]
            if not misfits:
                table = attempt.table()
                faults = {task for task, _ in table_faults(self._spec, table)}
                if not faults:
                    _check_served(self._spec, table)
                    return table
                misfits = [
                    job for job in jobs if faults & set(self._spec.stages[job[0]].task_names)
                ]
            pushed.update(misfits)
            self.misfits.update(self._spec.stages[place].name for place, _ in misfits)
        return None


class _Attempt:
    """Places jobs one after the other, each at the earliest gap that is left."""

    def __init__(self, spec: PipelineSpec, cycle_ns: int) -> None:
        self._spec = spec
        self._cycle_ns = cycle_ns
        self._places = {stage.name: place for place, stage in enumerate(spec.stages)}
        self._slots = {d.name: [_Ring(cycle_ns) for _ in range(d.slots)] for d in spec.devices}
        self._streams = {
            task: _Ring(cycle_ns) for stage in spec.stages for task in stage.task_names
        }
        self._sources = {source.name: source_line(source, cycle_ns) for source in spec.sources}
        self._outputs: dict[Job, Moment | None] = {}

    def place(self, job: Job) -> bool:
        """Give a job its start, and before it all that releases it; return whether it fits."""
        if job not in self._outputs:
            self._outputs[job] = self._place(self._spec.stages[job[0]], job[1])
        return self._outputs[job] is not None

    def table(self) -> TableSpec:
        """Return the starts of all jobs placed."""
        rows = (
            TableRow(task=task, starts_ns=tuple(start_ns for start_ns, _ in ring.busy))
            for task, ring in self._streams.items()
        )
        return TableSpec(cycle_ns=self._cycle_ns, rows=tuple(rows))

    def _place(self, stage: StageSpec, index: int) -> Moment | None:
        inputs = [self._message(name, index) for name in releasers(stage)]
        known = [message for message in inputs if message is not None]
        if len(known) < len(inputs):
            return None
        release = release_of(stage, index, known, stage.jitter_ns)
        starts: list[int] = []
        for task in stage.task_names:
            start_ns = self._fit(stage, task, release)
            if start_ns is None:
                return None
            starts.append(start_ns)
        return published(stage, release, starts)

    def _message(self, name: str, index: int) -> Moment | None:
        if name in self._places:
            job = self._places[name], index
            return self._outputs[job] if self.place(job) else None
        line = self._sources[name]
        return None if line is None else line.outputs[index]

    def _fit(self, stage: StageSpec, task: str, release: Moment) -> int | None:
        """Take the earliest gap of any slot in which the task's stream is idle too."""
        stream, latest_ns = self._streams[task], due_ns(stage, release) - stage.wcet_ns
        found: list[tuple[int, int]] = []
        slots = self._slots[stage.device]
        for place, slot in enumerate(slots):
            start_ns = _common_gap((slot, stream), release.planned_ns, stage.wcet_ns, latest_ns)
            if start_ns is not None:
                found.append((start_ns, place))
        if not found:
            return None
        start_ns, place = min(found)
        slots[place].take(start_ns, stage.wcet_ns)
        stream.take(start_ns, stage.wcet_ns)
        return start_ns


class _Ring:
    """What is busy within a cycle that repeats: disjoint (start, end), by start."""

    def __init__(self, cycle_ns: int) -> None:
        self.busy: list[tuple[int, int]] = []
        self._cycle_ns = cycle_ns

    def take(self, start_ns: int, length_ns: int) -> None:
        within_ns = start_ns % self._cycle_ns
        insort(self.busy, (within_ns, within_ns + length_ns))

    def gap_ns(self, from_ns: int, length_ns: int) -> int | None:
        """Return the earliest time from then on at which so much is free; None if never."""
        busy, cycle_ns = self.busy, self._cycle_ns
        if not busy:
            return from_ns if length_ns <= cycle_ns else None
        turn, within_ns = divmod(from_ns, cycle_ns)
        at_ns, place = within_ns, bisect_right(busy, (within_ns, cycle_ns << 1)) - 1
        for step in range(len(busy) + 1):
            round_ns = (place + step) // len(busy) * cycle_ns
            _, end_ns = busy[(place + step) % len(busy)]
            next_round_ns = (place + step + 1) // len(busy) * cycle_ns
            next_ns = busy[(place + step + 1) % len(busy)][0] + next_round_ns
            at_ns = max(at_ns, end_ns + round_ns)
            if at_ns + length_ns <= next_ns:
                return turn * cycle_ns + at_ns
        return None


def _common_gap(rings: Iterable[_Ring], from_ns: int, length_ns: int, latest_ns: int) -> int | None:
    """Return the earliest time, up to the latest, at which all of them are free for so long."""
    settled = False
    while not settled:
        settled = True
        for ring in rings:
            start_ns = ring.gap_ns(from_ns, length_ns)
            if start_ns is None or start_ns > latest_ns:
                return None
            settled = settled and start_ns == from_ns
            from_ns = start_ns
    return from_ns if from_ns <= latest_ns else None


def _reaches(spec: PipelineSpec) -> dict[str, int]:
    """Return for each stage how long after its root's arrival it must end for all to be in time."""
    order = topological_order(spec)
    reach_ns: dict[str, int] = {}
    for stage in order:
        before = [reach_ns[name] for name in releasers(stage) if name in reach_ns]
        from_capture = stage.deadline_from == "capture"
        reach_ns[stage.name] = stage.deadline_ns + (0 if from_capture else max(before, default=0))
    for stage in reversed(order):
        for name in releasers(stage):
            if name in reach_ns:
                limit_ns = reach_ns[stage.name] - stage.wcet_ns
                reach_ns[name] = min(reach_ns[name], limit_ns)
    return reach_ns
