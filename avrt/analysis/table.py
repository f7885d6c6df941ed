"""A time-triggered table: does every planned start find its slot free, and its job in time?

A table repeats every cycle and starts jobs at fixed offsets in it (Kopetz 1997). It is right when
at no time more jobs are on their slots than there are, each taken as long as its wcet, and when
each job ends by its deadline after the last release that it can serve. The verdict is exact: the
table is what happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.analysis.tasks import Task


@dataclass(frozen=True, slots=True)
class Row:
    """The starts of one task within a cycle, ns from its beginning."""

    task: Task
    starts_ns: tuple[int, ...]


def table_faults(rows: Sequence[Row], cycle_ns: int, slots: int = 1) -> list[str]:
    """Return what is wrong with a table, in words; nothing when it is right."""
    return [*_outside(rows, cycle_ns), *_late(rows, cycle_ns), *_crowded(rows, cycle_ns, slots)]


def worst_response_ns(row: Row, cycle_ns: int) -> int | None:
    """Return the worst response of a task in a table; None where not every release has a start.

    Releases are periodic from 0 on; the cycle holds a whole number of periods.
    """
    releases = range(0, cycle_ns, row.task.period_ns)
    if cycle_ns % row.task.period_ns or len(releases) != len(row.starts_ns):
        return None
    waits = [start - at for start, at in zip(sorted(row.starts_ns), releases, strict=True)]
    return max(waits) + row.task.wcet_ns if min(waits) >= 0 else None


def _outside(rows: Sequence[Row], cycle_ns: int) -> Iterator[str]:
    for row in rows:
        for start_ns in row.starts_ns:
            if not 0 <= start_ns < cycle_ns:
                yield f"{row.task.name}: the start at {start_ns} ns is not within the cycle"


def _late(rows: Sequence[Row], cycle_ns: int) -> Iterator[str]:
    for row in rows:
        response_ns = worst_response_ns(row, cycle_ns)
        if response_ns is None:
            yield f"{row.task.name}: the starts do not serve one release each"
        elif response_ns > row.task.deadline_ns:
            limit_ns = row.task.deadline_ns
            yield f"{row.task.name}: done {response_ns} ns after its release, due {limit_ns} ns"


def _crowded(rows: Sequence[Row], cycle_ns: int, slots: int) -> Iterator[str]:
    changes: list[tuple[int, int, str]] = []
    for row in rows:
        for start_ns in row.starts_ns:
            for turn in (0, 1):  # what runs on over the end of a cycle meets the next one's start
                at_ns = start_ns + turn * cycle_ns
                changes.append((at_ns, 1, row.task.name))
                changes.append((at_ns + row.task.wcet_ns, -1, row.task.name))
    running = 0
    for at_ns, change, name in sorted(changes):
        running += change
        if running > slots and change > 0 and at_ns >= cycle_ns:
            yield f"{name}: no slot is free at {at_ns - cycle_ns} ns"
