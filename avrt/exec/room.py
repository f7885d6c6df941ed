"""What a pipeline declares to need of the processor, beside what the host can give now.

Told, never decided: a host that is busy now may be idle when it matters. Cores of stages without a
known period are not counted, and are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.model.graph import release_periods

if TYPE_CHECKING:
    from avrt.device.samples import ResourceSample
    from avrt.model.spec import PipelineSpec, StageSpec


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pipeline declares to need.

    Attributes:
        cores: sum over the stages on processors of wcet over period.
        uncounted: such stages whose period is not known.
    """

    cores: Fraction
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """What the host can give now, cores that this process itself keeps busy included."""

    cores: float
    available_bytes: int | None = None


def declared_demand(spec: PipelineSpec) -> Demand:
    """Return what the stages on processors need by their declared figures."""
    processors = {device.name for device in spec.devices if device.type == "cpu"}
    periods = release_periods(spec)
    cores, uncounted = Fraction(0), []
    for stage in spec.stages:
        held_ns = _held_ns(stage, processors)
        period_ns = periods[stage.name]
        if held_ns and period_ns is None:
            uncounted.append(stage.name)
        elif period_ns is not None:
            cores += Fraction(held_ns, period_ns)
    return Demand(cores, tuple(uncounted))


def host_room(sample: ResourceSample, usable_cores: float | None = None) -> Room:
    """Return what is left of our cores, or of `usable_cores` of a quota, beside others' work."""
    taken = (sample.others_cores or 0.0) + (sample.steal_cores or 0.0)
    most = sample.cores - taken
    return Room(max(0.0, min(most, usable_cores or most)), sample.available_bytes)


def tell_room(demand: Demand, room: Room, need_bytes: int | None = None) -> str:
    """Return one line: asked for, there now, and whether it is enough."""
    enough = "enough" if demand.cores <= room.cores else "TOO LITTLE"
    told = f"{float(demand.cores):.2f} cores declared, {room.cores:.2f} free now: {enough}"
    if demand.uncounted:
        told += f" (not counted, no known period: {', '.join(demand.uncounted)})"
    if room.available_bytes is not None:
        told += f"; {_gib(room.available_bytes)} of memory free now"
    if need_bytes is not None and room.available_bytes is not None:
        fits = "enough" if need_bytes <= room.available_bytes else "TOO LITTLE"
        told += f" for {_gib(need_bytes)}: {fits}"
    return told


def _held_ns(stage: StageSpec, processors: set[str]) -> int:
    """Return how long all copies together hold a core for each release."""
    if not stage.segments:
        return stage.wcet_ns * sum(home in processors for home in stage.homes)
    held_ns = sum(part.wcet_ns for part in stage.segments if part.device in processors)
    return held_ns * len(stage.task_names)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
