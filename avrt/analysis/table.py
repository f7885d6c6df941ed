"""A time-triggered table: when its jobs run, and what is wrong with it.

A table repeats every cycle and starts jobs at fixed offsets in it (Kopetz 1997). Sources are taken
to send in phase with it: message k at k periods from time 0 on, up to the declared jitter later.
Then everything is known: job k of a stage is released by its timer, or by message k of its trigger,
and takes the first start of its row from when it is ready by plan that job k - 1 has not taken
(`avrt.kernel.table`). After the first cycles that repeats, and no later cycle is better.

A table is right when at no time more jobs are on their slots than there are, each taken as long
as its wcet, when every release of a cycle has a start, and when each job ends in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from avrt.model.graph import release_periods, topological_order
from avrt.model.table import next_start_ns
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from avrt.model.spec import DeviceSpec, PipelineSpec, SourceSpec, StageSpec, TableSpec


@dataclass(frozen=True, slots=True)
class Moment:
    """A release or a publication, ns from the beginning of the cycle that its root arrives in.

    Attributes:
        earliest_ns: when it is if all before it takes its best case.
        planned_ns: when it is by plan: if all before it takes its wcet.
        capture_ns: of the data.
    """

    earliest_ns: int
    planned_ns: int
    capture_ns: int

    def later(self, ns: int) -> Moment:
        return Moment(self.earliest_ns + ns, self.planned_ns + ns, self.capture_ns + ns)


@dataclass(frozen=True, slots=True)
class Line:
    """What one stage, or source, does in a cycle of a table, job by job.

    Attributes:
        root: the source or timer that begins it; "" for a synchronised set.
        nominal_ns: when its root arrives; of a set its earliest capture.
        starts_ns: by task.
        is_whole: every job publishes; else what waits for several messages is released by a
            timeout at times, and nothing is known of it.
    """

    root: str
    nominal_ns: tuple[int, ...]
    releases: tuple[Moment, ...]
    starts_ns: Mapping[str, tuple[int, ...]]
    outputs: tuple[Moment, ...]
    is_whole: bool = True

    def over(self, cycles: int, cycle_ns: int) -> list[Moment]:
        """Return the outputs of that many cycles in a row."""
        return [moment.later(n * cycle_ns) for n in range(cycles) for moment in self.outputs]


Lines = dict[str, "Line | None"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The worst of a stage in a table.

    Attributes:
        response_ns: from release to completion.
        slack_ns: from completion to due.
        fixed: no declared jitter can let a job start sooner than that.
    """

    response_ns: int
    slack_ns: int
    fixed: bool


def table_faults(spec: PipelineSpec, table: TableSpec) -> list[tuple[str, str]]:
    """Return the tasks and what is wrong with their rows, in words; nothing when it is right.

    Where a rate is not known nothing is said about releases.
    """
    lines = lines_of(spec, table)
    return [
        *_unserved(spec, table),
        *(fault for device in spec.devices for fault in _crowded(spec, device, table)),
        *_late(spec, table, lines),
    ]


def lines_of(spec: PipelineSpec, table: TableSpec, *, jitter: bool = True) -> Lines:
    """Return what every source and stage does; None where it is not known, or not served."""
    lines: Lines = {source.name: source_line(source, table.cycle_ns) for source in spec.sources}
    for stage in topological_order(spec):
        releases = released(stage, lines, table.cycle_ns, jitter=jitter)
        lines[stage.name] = None if releases is None else _run(stage, releases, table, lines)
    return lines


def outcomes(spec: PipelineSpec, table: TableSpec) -> dict[str, Outcome | None]:
    """Return the worst of every stage; None where it is not known, or not served."""
    latest, soonest = (lines_of(spec, table, jitter=jitter) for jitter in (True, False))
    found: dict[str, Outcome | None] = {}
    for stage in spec.stages:
        late, soon = latest[stage.name], soonest[stage.name]
        known = late is not None and soon is not None
        found[stage.name] = _outcome(stage, late, soon) if known else None  # type: ignore[arg-type]
    return found


# What happens when


def source_line(source: SourceSpec, cycle_ns: int) -> Line | None:
    """Return what a source sends, in phase with the table; None if not a whole number a cycle."""
    period_ns, late_ns = source.period_ns, source.latency_ns
    if period_ns is None or cycle_ns % period_ns:
        return None
    times = tuple(range(0, cycle_ns, period_ns))
    moments = tuple(Moment(at + late_ns, at + late_ns, at) for at in times)
    return Line(source.name, times, (), {}, moments)


def released(
    stage: StageSpec, lines: Mapping[str, Line | None], cycle_ns: int, *, jitter: bool = True
) -> tuple[Moment, ...] | None:
    """Return the releases of a stage in a cycle; None where they are not known."""
    jitter_ns = stage.jitter_ns if jitter else 0
    if stage.period_ns is not None:
        if cycle_ns % stage.period_ns:
            return None
        return tuple(
            release_of(stage, index, (), jitter_ns) for index in range(cycle_ns // stage.period_ns)
        )
    names = releasers(stage)
    known = [line for name in names if (line := lines[name]) is not None]
    groups = [line.outputs for line in known if line.is_whole or stage.sync is None]
    if len(groups) < len(names) or len({len(group) for group in groups}) > 1:
        return None
    moments = enumerate(zip(*groups, strict=True))
    found = tuple(release_of(stage, index, inputs, jitter_ns) for index, inputs in moments)
    is_set = stage.sync is None or _is_complete(stage, groups, found, cycle_ns)
    return found if is_set else None


def releasers(stage: StageSpec) -> tuple[str, ...]:
    """Return the names of what releases a stage with its messages."""
    if stage.sync is not None:
        return tuple(item.source for item in stage.inputs)
    trigger = stage.trigger_input
    return () if trigger is None else (trigger.source,)


def release_of(stage: StageSpec, index: int, inputs: Sequence[Moment], jitter_ns: int) -> Moment:
    """Return release number `index` of a cycle, by these messages or by a timer."""
    if stage.period_ns is not None:
        at_ns = stage.offset_ns + index * stage.period_ns
        return Moment(at_ns, at_ns + jitter_ns, at_ns)
    return Moment(
        max(moment.earliest_ns for moment in inputs),
        max(moment.planned_ns for moment in inputs) + jitter_ns,
        min(moment.capture_ns for moment in inputs),
    )


def published(stage: StageSpec, release: Moment, starts_ns: Sequence[int]) -> Moment:
    """Return the output of an activation whose jobs start then."""
    earliest_ns = max(starts_ns) + (stage.bcet_ns or 1)
    planned_ns = max(starts_ns) + stage.wcet_ns
    capture_ns = release.capture_ns
    if stage.publish == "at_deadline":
        from_capture = stage.deadline_from == "capture"
        base = (
            (capture_ns, capture_ns) if from_capture else (release.earliest_ns, release.planned_ns)
        )
        earliest_ns = max(earliest_ns, base[0] + stage.deadline_ns)
        planned_ns = max(planned_ns, base[1] + stage.deadline_ns)
    elif stage.period_ns is not None and stage.redundancy is None:
        capture_ns = max(starts_ns)  # it reads its inputs when it starts
    return Moment(earliest_ns, planned_ns, capture_ns)


def due_ns(stage: StageSpec, release: Moment) -> int:
    """Return when a job is due that is released as early as can be."""
    from_capture = stage.deadline_from == "capture"
    return stage.deadline_ns + (release.capture_ns if from_capture else release.earliest_ns)


def _run(
    stage: StageSpec, releases: tuple[Moment, ...], table: TableSpec, lines: Lines
) -> Line | None:
    starts: dict[str, tuple[int, ...]] = {}
    for task in stage.task_names:
        row = table.starts_ns(task)
        if len(row) < len(releases):
            return None
        starts[task] = _taken(row, table.cycle_ns, [release.planned_ns for release in releases])
    together = zip(*starts.values(), strict=True)
    outputs = tuple(published(stage, *pair) for pair in zip(releases, together, strict=True))
    is_whole = not _loses_jobs(stage, releases, starts, table.cycle_ns)
    if stage.period_ns is None:
        made = [lines[name] for name in releasers(stage)]
        is_whole = is_whole and all(line is not None and line.is_whole for line in made)
    if stage.trigger_input is None:
        root = "" if stage.period_ns is None else stage.name
        nominal_ns = tuple(release.capture_ns for release in releases)
        return Line(root, nominal_ns, releases, starts, outputs, is_whole)
    before = lines[stage.trigger_input.source]
    assert before is not None
    return Line(before.root, before.nominal_ns, releases, starts, outputs, is_whole)


def _loses_jobs(
    stage: StageSpec,
    releases: Sequence[Moment],
    starts: Mapping[str, Sequence[int]],
    cycle_ns: int,
) -> bool:
    """Whether a job may be stopped by its budget, or be skipped or shed because another waits."""
    if stage.is_cut:
        return True
    lasts: list[int] = [max(together) for together in zip(*starts.values(), strict=True)]
    pairs = zip(lasts, releases, strict=True)
    open_ns = max(last + stage.wcet_ns - release.earliest_ns for last, release in pairs)
    times = [release.earliest_ns for release in releases]
    apart_ns = min(b - a for a, b in pairwise((*times, times[0] + cycle_ns)))
    waiting_max = 1 if stage.on_miss == "skip_next" else stage.queue
    return open_ns > apart_ns * waiting_max


def _taken(row: Sequence[int], cycle_ns: int, ready_ns: Sequence[int]) -> tuple[int, ...]:
    """Return the starts that the jobs of a cycle take; the one before has settled all."""
    found: list[int] = []
    for at_ns in (*(ns - cycle_ns for ns in ready_ns), *ready_ns):
        from_ns = max(at_ns, found[-1] + 1) if found else at_ns
        found.append(next_start_ns(row, cycle_ns, from_ns))
    return tuple(found[len(ready_ns) :])


def _is_complete(
    stage: StageSpec,
    groups: Sequence[Sequence[Moment]],
    found: Sequence[Moment],
    cycle_ns: int,
) -> bool:
    """Whether messages number k of all inputs make a set, in time, and no others do."""
    assert stage.sync is not None
    tolerance_ns, timeout_ns = stage.sync.tolerance_ns, stage.sync.timeout_ns
    period_ns = cycle_ns // len(found)
    for moments, moment in zip(zip(*groups, strict=True), found, strict=True):
        captures = [m.capture_ns for m in moments]
        spread_ns = max(captures) - min(captures)
        if spread_ns > tolerance_ns or moment.planned_ns > moment.capture_ns + timeout_ns:
            return False
        if spread_ns + tolerance_ns >= period_ns:
            return False
    return True


def _outcome(stage: StageSpec, late: Line, soon: Line) -> Outcome:
    ends = [max(starts) + stage.wcet_ns for starts in zip(*late.starts_ns.values(), strict=True)]
    pairs = list(zip(ends, soon.releases, strict=True))
    return Outcome(
        max(end_ns - release.earliest_ns for end_ns, release in pairs),
        min(due_ns(stage, release) - end_ns for end_ns, release in pairs),
        late.starts_ns == soon.starts_ns,
    )


# What is wrong


def _unserved(spec: PipelineSpec, table: TableSpec) -> Iterator[tuple[str, str]]:
    periods, cycle = release_periods(spec), format_ns(table.cycle_ns)
    for stage in spec.stages:
        period_ns = periods[stage.name]
        if period_ns is None:
            continue
        count, rest_ns = divmod(table.cycle_ns, period_ns)
        for task in stage.task_names:
            starts = len(table.starts_ns(task))
            if rest_ns:
                what = f"its period of {format_ns(period_ns)} does not divide the cycle of {cycle}"
                yield task, what
            elif starts < count:
                yield task, f"{count} releases a cycle have {starts} of the starts they need"


def _late(spec: PipelineSpec, table: TableSpec, lines: Lines) -> Iterator[tuple[str, str]]:
    found = outcomes(spec, table)
    for stage in spec.stages:
        outcome, line = found[stage.name], lines[stage.name]
        if outcome is not None and line is not None and outcome.slack_ns < 0:
            limit_ns = outcome.response_ns + outcome.slack_ns
            response = format_ns(outcome.response_ns)
            last = max(line.starts_ns, key=lambda task: max(line.starts_ns[task]))
            yield last, f"done up to {response} after its release, due {format_ns(limit_ns)} after"


def _crowded(spec: PipelineSpec, device: DeviceSpec, table: TableSpec) -> Iterator[tuple[str, str]]:
    """Yield the starts that find no slot, or their own predecessor still running."""
    cycle_ns = table.cycle_ns
    changes: list[tuple[int, int, str]] = []
    for stage in spec.stages:
        for task in stage.task_names if stage.device == device.name else ():
            row = table.starts_ns(task)
            following = (*row[1:], row[0] + cycle_ns)
            for start_ns, next_ns in zip(row, following, strict=True):
                if next_ns < start_ns + stage.wcet_ns:
                    at = format_ns(next_ns % cycle_ns)
                    yield task, f"its start at {at} comes before the job before it has ended"
                for turn in (0, 1):  # what runs on over the end of a cycle meets the next start
                    at_ns = start_ns + turn * cycle_ns
                    changes.append((at_ns, 1, task))
                    changes.append((at_ns + stage.wcet_ns, -1, task))
    running = 0
    for at_ns, change, task in sorted(changes):
        running += change
        if running > device.slots and change > 0 and at_ns >= cycle_ns:
            yield task, f"no slot of {device.name} is free at {format_ns(at_ns - cycle_ns)}"
