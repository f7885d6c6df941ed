"""What must hold between the segments of a stage, and between stages that spin.

A segment that spins keeps the slot of the last one before it that does not: its *host*. Who keeps
a slot while waiting for another may wait for ever where others do so the other way round
(Coffman et al., "System deadlocks", 1971); so devices that are kept for each other in a ring are
refused, their fallbacks included.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.errors import SpecError
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.model.spec import PipelineSpec, SegmentSpec, StageSpec


def check_segments(stage: StageSpec) -> None:
    """Raise SpecError for the first thing that makes a stage's segments meaningless."""
    key = ("stages", stage.name, "segments")
    for place, segment in enumerate(stage.segments):
        if segment.wcet_ns < 1:
            what = f"expected more than 0, found {format_ns(segment.wcet_ns)}"
            raise SpecError(what, (*key, str(place), "wcet"))
    if stage.segments[0].wait == "spin":
        what = "the first segment has no slot before it to keep; drop 'wait: spin'"
        raise SpecError(what, (*key, "0", "wait"))
    if stage.device != stage.segments[0].device:
        what = f"expected the first segment's ({stage.segments[0].device}), found {stage.device}"
        raise SpecError(what, ("stages", stage.name, "device"))
    for place, host, segment in spinning(stage):
        if segment.device == host:
            what = f"it would keep a slot of {host} and wait for another; drop 'wait: spin'"
            raise SpecError(what, (*key, str(place), "wait"))
    if stage.wcet_ns < len(stage.segments):
        what = f"{len(stage.segments)} segments take 1 ns each at least, in a wcet of"
        raise SpecError(f"{what} {format_ns(stage.wcet_ns)}", ("stages", stage.name, "wcet"))
    whole_ns = sum(segment.wcet_ns for segment in stage.segments)
    if stage.wcet_ns > whole_ns:
        found = format_ns(stage.wcet_ns)
        what = f"expected at most the segments' sum {format_ns(whole_ns)}, found {found}"
        raise SpecError(what, ("stages", stage.name, "wcet"))


def check_keeping(spec: PipelineSpec) -> None:
    """Raise SpecError where devices are kept for each other in a ring."""
    waits: dict[str, dict[str, str]] = {}
    for stage in spec.stages:
        for _, host, segment in spinning(stage):
            for kept in spec.places(spec.device(host)):
                for wanted in spec.places(spec.device(segment.device)):
                    if kept is not wanted:
                        waits.setdefault(kept.name, {}).setdefault(wanted.name, stage.name)
    for first, others in waits.items():
        for name, stage_name in others.items():
            path = _path(waits, name, first)
            if path:
                ring = " -> ".join((first, *path))
                what = f"devices are kept by spinning for each other in a ring: {ring}"
                raise SpecError(what, ("stages", stage_name, "segments"))


def spinning(stage: StageSpec) -> Iterator[tuple[int, str, SegmentSpec]]:
    """Yield the place of each segment that spins, and the device whose slot it keeps."""
    host = stage.device
    for place, segment in enumerate(stage.segments):
        if segment.wait == "spin":
            yield place, host, segment
        else:
            host = segment.device


def with_wcet(stage: StageSpec, wcet_ns: int) -> StageSpec:
    """Return a stage with another wcet, of which each segment has the same share as before."""
    segments = tuple(
        replace(part, wcet_ns=-(-part.wcet_ns * wcet_ns // stage.wcet_ns))
        for part in stage.segments
    )
    return replace(stage, wcet_ns=wcet_ns, segments=segments)


def split(cost_ns: int, shares: Sequence[int]) -> list[int]:
    """Divide an execution time in proportion, each part 1 ns at least."""
    whole, upto = sum(shares), 0
    parts: list[int] = []
    for share in shares:
        from_ns, upto = cost_ns * upto // whole, upto + share
        parts.append(max(1, cost_ns * upto // whole - from_ns))
    return parts


def _path(waits: dict[str, dict[str, str]], start: str, goal: str) -> tuple[str, ...]:
    """Return the devices from one to another along who waits for whom, or () if there is no way."""
    todo: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while todo:
        path = todo.pop()
        if path[-1] == goal:
            return path
        for name in waits.get(path[-1], {}):
            if name not in seen:
                seen.add(name)
                todo.append((*path, name))
    return ()
