"""What must hold of a time-triggered table and of the pipeline that one runs.

Only what would make it meaningless. Whether every start finds its slot free and its job in time is
a matter of the declared figures, and judged by `avrt.analysis.table`.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from avrt.errors import SpecError, did_you_mean
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.spec import PipelineSpec, TableSpec

CYCLE_MAX_NS = 24 * 3600 * 10**9


def next_start_ns(starts_ns: Sequence[int], cycle_ns: int, from_ns: int) -> int:
    """Return the first of the starts from that time on, which belong to every cycle."""
    cycle, within_ns = divmod(from_ns, cycle_ns)
    place = bisect_left(starts_ns, within_ns)
    if place == len(starts_ns):
        cycle, place = cycle + 1, 0
    return cycle * cycle_ns + starts_ns[place]


def check_table(spec: PipelineSpec) -> None:
    """Raise SpecError for the first thing that makes a table, or its pipeline, meaningless.

    Under policy "table" a pipeline without one is sound: it is computed later.
    """
    if spec.policy == "table":
        _check_pipeline(spec)
    elif spec.table is not None:
        what = f"policy {spec.policy} executes no table; choose policy: table, or remove it"
        raise SpecError(what, ("table",))
    if spec.table is not None:
        _check_rows(spec, spec.table)
        for row in spec.table.rows:
            _check_starts(row.task, row.starts_ns, spec.table.cycle_ns)


def _check_pipeline(spec: PipelineSpec) -> None:
    for device in spec.devices:
        if device.preemptive:
            what = "what a table starts runs to its end; drop 'preemptive' or choose policy: edf"
            raise SpecError(what, ("devices", device.name, "preemptive"))
        if device.supply is not None:
            what = "what a table starts needs its device; drop 'supply' or choose policy: edf"
            raise SpecError(what, ("devices", device.name, "supply"))
    for stage in spec.stages:
        if stage.segments:
            what = "a table starts whole jobs; drop 'segments' or choose policy: edf"
            raise SpecError(what, ("stages", stage.name, "segments"))
        if stage.redundancy is not None and stage.redundancy.spare:
            what = "a table starts all copies; drop 'spare' or choose policy: edf"
            raise SpecError(what, ("stages", stage.name, "redundancy", "spare"))
        if len(set(stage.homes)) > 1:
            what = "a table starts all copies on one device; drop 'devices' or choose policy: edf"
            raise SpecError(what, ("stages", stage.name, "redundancy", "devices"))
        if stage.every > 1:
            what = "a table starts a job for each message; drop 'every' or choose policy: edf"
            raise SpecError(what, ("stages", stage.name, "every"))


def _check_rows(spec: PipelineSpec, table: TableSpec) -> None:
    tasks = [name for stage in spec.stages for name in stage.task_names]
    seen: set[str] = set()
    for row in table.rows:
        key = ("table", "starts", row.task)
        if row.task not in tasks:
            what = f"no stage named {row.task!r}; {did_you_mean(row.task, tasks)}"
            raise SpecError(what, key)
        if row.task in seen:
            raise SpecError("given twice; a stage has one row", key)
        seen.add(row.task)
    for task in tasks:
        if task not in seen:
            what = f"{task!r} has no starts and would never run; add a row for it"
            raise SpecError(what, ("table", "starts"))


def _check_starts(task: str, starts_ns: tuple[int, ...], cycle_ns: int) -> None:
    key = ("table", "starts", task)
    if not 0 < cycle_ns <= CYCLE_MAX_NS:
        what = f"expected more than 0 and at most a day, found {format_ns(cycle_ns)}"
        raise SpecError(what, ("table", "cycle"))
    if not starts_ns:
        raise SpecError("expected one start at least, found none", key)
    for start_ns in starts_ns:
        if not 0 <= start_ns < cycle_ns:
            cycle = format_ns(cycle_ns)
            what = f"the start at {format_ns(start_ns)} is not within the cycle of {cycle}"
            raise SpecError(what, key)
    for before_ns, start_ns in pairwise(starts_ns):
        if start_ns <= before_ns:
            order = f"{format_ns(start_ns)} after {format_ns(before_ns)}"
            raise SpecError(f"expected ascending starts, found {order}", key)
