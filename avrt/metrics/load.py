"""What the declared figures alone already say about overload, before anything runs.

Not an analysis: necessary conditions only. A pipeline that passes may still miss deadlines.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.model.graph import release_periods
from avrt.model.segments import spinning
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.model.spec import PipelineSpec, StageSpec


def overload_warnings(spec: PipelineSpec) -> list[str]:
    """Return one line for each stage or device that cannot keep up with its declared figures."""
    periods = release_periods(spec)
    lines: list[str] = []
    for stage in spec.stages:
        wcet, period_ns = format_ns(stage.wcet_ns), periods[stage.name]
        if stage.wcet_ns > stage.deadline_ns:
            limit = format_ns(stage.deadline_ns)
            what = f"wcet {wcet} is above its deadline {limit}: every job will be late"
            lines.append(f"{stage.name}: {what}")
        if stage.profile_ns and stage.profile_ns[-1] > stage.wcet_ns:
            most = format_ns(stage.profile_ns[-1])
            lines.append(f"{stage.name}: its profile has jobs of {most}, above its wcet {wcet}")
        if period_ns is not None and stage.wcet_ns > period_ns:
            limit = format_ns(period_ns)
            lines.append(f"{stage.name}: wcet {wcet} is above its period {limit}: it falls behind")
    for device in spec.devices:
        load = sum(
            Fraction(time_ns, period_ns)
            for stage in spec.stages
            for name, time_ns in _held(stage)
            if name == device.name and (period_ns := periods[stage.name]) is not None
        )
        if load > device.capacity:
            what = device.slots_told
            if device.supply is not None:
                what = f"the {float(device.capacity):.2f} that its supply gives"
            lines.append(f"{device.name}: {float(load):.2f} of {what} are asked for: overload")
    return lines


def _held(stage: StageSpec) -> Iterator[tuple[str, int]]:
    """Yield for how long each job of a release holds a slot of which device at the worst."""
    if not stage.segments:
        for home in stage.homes:
            yield home, stage.wcet_ns
    for _ in stage.task_names:
        for segment in stage.segments:
            yield segment.device, segment.wcet_ns
        for _, host, segment in spinning(stage):
            yield host, segment.wcet_ns
