"""Which declared devices this host has, what runs where it has not, and who gives a supply.

A stage of a GPU that is not here runs on the device's fallback, and is scheduled there; without a
fallback it keeps its declared slots and is computed on the processor. Both are told in the
conditions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.exec.places import CUDA
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.spec import DeviceSpec, PipelineSpec, RedundancySpec


def fit_to_host(spec: PipelineSpec) -> tuple[PipelineSpec, str]:
    """Return the pipeline as it can run here, and what is different; "" when nothing is."""
    here = {device.name: is_here(device) for device in spec.devices}
    places = {device.name: _place_of(spec, device, here) for device in spec.devices}
    told = []
    for device in spec.devices:
        if not here[device.name]:
            place = places[device.name]
            where = "computed on the processor" if place is device else f"on {place.name} instead"
            told.append(f"{device.name} ({device.type}) is not here: {where}")
    devices = tuple(
        device if here[device.name] else replace(device, type="cpu") for device in spec.devices
    )
    stages = tuple(
        replace(
            stage,
            device=places[stage.device].name,
            redundancy=_moved(stage.redundancy, places),
            segments=tuple(replace(s, device=places[s.device].name) for s in stage.segments),
        )
        for stage in spec.stages
    )
    return replace(spec, devices=devices, stages=stages), "; ".join(told)


def _moved(
    redundancy: RedundancySpec | None, places: Mapping[str, DeviceSpec]
) -> RedundancySpec | None:
    if redundancy is None:
        return None
    return replace(redundancy, devices=tuple(places[name].name for name in redundancy.devices))


def supplied_by_host(spec: PipelineSpec) -> tuple[PipelineSpec, str]:
    """Return the pipeline as the wall clock runs it, and what is different; "" when nothing is.

    There the operating system gives a device its supply, and nobody sees when.
    """
    told = [
        f"{device.name} gets {format_ns(supply.budget_ns)} of every {format_ns(supply.period_ns)}"
        for device in spec.devices
        if (supply := device.supply) is not None
    ]
    devices = tuple(
        device
        if device.supply is None
        else replace(device, supply=replace(device.supply, starts_ns=()))
        for device in spec.devices
    )
    if not told:
        return spec, ""
    what = "; ".join(told)
    return replace(spec, devices=devices), f"{what}: by the operating system, if at all; not seen"


def is_here(device: DeviceSpec) -> bool:
    """Return whether this host has a device."""
    if not device.type.startswith(CUDA):
        return True
    import torch  # noqa: PLC0415 - 1.4 s, for pipelines with a GPU only

    return int(device.type.partition(":")[2]) < torch.cuda.device_count()


def _place_of(spec: PipelineSpec, device: DeviceSpec, here: Mapping[str, bool]) -> DeviceSpec:
    """Return the first of a device and its fallbacks that is here, or the device itself."""
    return next((place for place in spec.places(device) if here[place.name]), device)
