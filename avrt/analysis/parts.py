"""The parts of a task: one for every segment of its jobs, each a task of its own device.

A job that leaves a device for another suspends itself there. It is not enough to add that time to
its wcet, or to drop it (Chen et al. 2019, "Many suspensions, many problems", has the treatments
that were shown to be wrong). Here every segment is a task that the end of the one before releases,
so what the earlier ones vary by is its release jitter (Tindell & Clark 1994), and each is blocked,
and blocks, by itself.

* Where all segments are on one device there is nothing to suspend for: the job is one task that can
  be preempted at fixed points, where one segment ends and the next begins (Burns 1994).
* Spinning is execution: a part that keeps its slot for others takes its own time and all that
  those take to respond on their devices. Preempted meanwhile, it holds its slot for less.
* All this is for jobs that are done before the next one of their task comes. Where the bounds grow
  beyond that nothing is said.
* A segment takes 1 ns at the least; how a job's bcet is divided is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.analysis.arrivals import Arrival
    from avrt.model.spec import StageSpec


@dataclass(frozen=True, slots=True)
class Part:
    """One part of every job of a task.

    Attributes:
        name: the task's where it is the only part.
        task: whose part it is.
        place: how many segments come before it.
        wcet_ns: of its own.
        spun: the parts on other devices for which it keeps its slot.
        is_spun: some part before keeps its slot for it.
        is_last: its jobs are done when it is, with what it spins for.
        sections_ns: the last and the longest stretch that cannot be preempted where the device is
            not preemptive; None where that is all of it.
    """

    name: str
    task: str
    place: int
    device: str
    wcet_ns: int
    spun: tuple[str, ...] = ()
    is_spun: bool = False
    is_last: bool = True
    sections_ns: tuple[int, int] | None = None


def parts_of(stage: StageSpec, task: str) -> tuple[Part, ...]:
    """Return the parts of one task of a stage, in their order."""
    times = [segment.wcet_ns for segment in stage.segments]
    if len({segment.device for segment in stage.segments}) <= 1:
        sections_ns = (times[-1], max(times)) if times else None
        home = stage.home(task)
        return (Part(task, task, 0, home, stage.wcet_ns, sections_ns=sections_ns),)
    parts: list[Part] = []
    host = 0
    for place, segment in enumerate(stage.segments):
        name, spins = f"{task}/{place}", segment.wait == "spin"
        if spins:
            parts[host] = replace(parts[host], spun=(*parts[host].spun, name))
        else:
            host = place
        made = Part(name, task, place, segment.device, segment.wcet_ns, (), spins, is_last=False)
        parts.append(made)
    parts[host] = replace(parts[host], is_last=True)
    return tuple(parts)


def placed(
    parts: tuple[Part, ...], release: Arrival, responses: Mapping[str, int | None]
) -> Iterator[tuple[Part, Arrival, int]]:
    """Yield each part with its releases and with the time it holds its slot, as far as is known.

    What is spun ends where the part that spins for it does, at the latest; until responses have
    settled that may seem to be before its release.
    """
    at = release
    spun_from_ns = 0
    for part in parts:
        earliest_ns = release.earliest_ns + part.place
        gap_ns = len(parts) if part.place else release.gap_ns
        at = replace(at, earliest_ns=earliest_ns, gap_ns=gap_ns)
        if part.is_spun:
            own_ns = responses[part.name]
            assert own_ns is not None
            yield part, replace(at, latest_ns=max(earliest_ns, spun_from_ns)), part.wcet_ns
            spun_from_ns += own_ns
            continue
        waits = [responses[name] for name in part.spun]
        known = [ns for ns in waits if ns is not None]
        if len(known) < len(waits):
            return
        held_ns = part.wcet_ns + sum(known)
        yield part, at, held_ns
        response_ns = responses[part.name]
        if response_ns is None:
            return
        spun_from_ns = at.latest_ns + response_ns - sum(known)
        at = replace(at, latest_ns=at.latest_ns + response_ns)
