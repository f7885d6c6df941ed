"""The `faults` section of a scenario: what goes wrong, and when.

    faults:
      - {at: 2 s, source_out: velodyne, for: 500 ms}
      - {at: 4 s, slow_device: cpu, factor: 2.5, for: 1 s}
      - {at: 6 s, device_lost: gpu}
      - {at: 7 s, device_back: gpu}

What is lost cannot be lost again, and what is there cannot come back: such a time line is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, section, text
from avrt.config.shares import above_zero, positive, shift, span
from avrt.errors import did_you_mean
from avrt.model.events import ORDERS
from avrt.model.scenario import FaultKind, FaultSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec


def read_faults(node: Node | None, pipeline: PipelineSpec) -> tuple[FaultSpec, ...]:
    """Return the faults in the order they are given; SpecError where they cannot come so."""
    items = () if node is None else node.items("a list of faults")
    faults = tuple(_fault(item, pipeline) for item in items)
    _check_order(items, faults, pipeline)
    return faults


def _fault(node: Node, pipeline: PipelineSpec) -> FaultSpec:
    members = node.mapping('a fault, such as "{at: 2 s, source_out: lidar, for: 500 ms}"')
    kinds = [kind for kind in FAULT_TARGETS if kind in members]
    if len(kinds) != 1:
        near = [did_you_mean(key, FAULT_TARGETS) for key in members if key not in _FAULT_WORDS]
        remedy = near[0] if near else f"known are {', '.join(FAULT_TARGETS)}"
        raise node.fail(f"expected one kind of fault, found {len(kinds)}; {remedy}")
    kind = kinds[0]
    values = section(node, (*FAULT_KEYS[kind], Key(kind, "target", text, example="NAME")))
    known = _names(pipeline)[FAULT_TARGETS[kind]]
    if values["target"] not in known:
        what = f"no such {FAULT_TARGETS[kind]}; {did_you_mean(str(values['target']), known)}"
        raise members[kind].fail(what)
    lasts_ns = values.pop("for", None)
    fault = build(FaultSpec, {"kind": kind, **values})
    if lasts_ns is None:
        return fault
    assert isinstance(lasts_ns, int)
    return replace(fault, end_ns=fault.at_ns + lasts_ns)


def _names(pipeline: PipelineSpec) -> Mapping[str, list[str]]:
    return {
        "source": [source.name for source in pipeline.sources],
        "device": [device.name for device in pipeline.devices],
        "stage": [stage.name for stage in pipeline.stages],
        "order": list(ORDERS),
    }


def _check_order(
    items: Iterable[Node], faults: Iterable[FaultSpec], pipeline: PipelineSpec
) -> None:
    """Refuse to lose what is lost already, and to bring back what is not."""
    resources = _Resources(pipeline)
    pairs = zip(items, faults, strict=True)
    for node, fault in sorted(pairs, key=lambda p: (p[1].at_ns, p[1].kind == "stream_lost")):
        problem = resources.change(fault)
        if problem:
            raise node.fail(problem)


class _Resources:
    """What is lost as time goes on, by the rules of the kernel.

    A stream is lost with the last device that it may run on, and is back with the first.
    """

    def __init__(self, pipeline: PipelineSpec) -> None:
        self._homes = {
            stage.name: [
                d.name for home in stage.homes for d in pipeline.places(pipeline.device(home))
            ]
            for stage in pipeline.stages
        }
        self._devices: set[str] = set()
        self._streams: set[str] = set()
        self._changed_ns: dict[str, int] = {}
        self._device_ns = -1

    def change(self, fault: FaultSpec) -> str:
        """Take in the next fault; return why it cannot come then, or nothing."""
        target = fault.target
        match fault.kind:
            case "device_lost" | "device_back":
                return self._device(fault, lost=fault.kind == "device_lost")
            case "stream_lost" if target in self._streams:
                return f"the stream of {target!r} is lost already by then; remove this"
            case "stream_lost" if fault.at_ns == self._device_ns:
                return "a device is lost or back at the same time; move this by 1 ns"
            case "stream_lost":
                self._streams.add(target)
            case _:
                pass
        return ""

    def _device(self, fault: FaultSpec, *, lost: bool) -> str:
        target = fault.target
        if lost == (target in self._devices):
            return f"device {target!r} is {'lost already' if lost else 'not lost'} by then"
        if self._changed_ns.get(target) == fault.at_ns:
            return f"device {target!r} is lost and back at the same time; leave out both"
        self._changed_ns[target] = self._device_ns = fault.at_ns
        self._devices.symmetric_difference_update({target})
        for stage, places in self._homes.items():
            alive = [place for place in places if place not in self._devices]
            if not alive:
                self._streams.add(stage)
            elif not lost and alive[0] == target:
                self._streams.discard(stage)
        return ""


FAULT_TARGETS: dict[FaultKind, str] = {
    "source_out": "source",
    "slow_device": "device",
    "device_lost": "device",
    "device_back": "device",
    "clock_step": "source",
    "stream_lost": "stage",
    "order": "order",
}
_AT = Key("at", "at_ns", span, example="2 s")
_FOR = Key("for", "for", above_zero)
_FACTOR = Key("factor", "factor", positive, example="2.5")
_BY = Key("by", "step_ns", shift, example="200 ms")
FAULT_KEYS: dict[FaultKind, tuple[Key, ...]] = {
    "source_out": (_AT, _FOR),
    "slow_device": (_AT, _FOR, _FACTOR),
    "device_lost": (_AT,),
    "device_back": (_AT,),
    "clock_step": (_AT, _FOR, _BY),
    "stream_lost": (_AT,),
    "order": (_AT,),
}
_FAULT_WORDS = {"at", "for", "factor", "by", *FAULT_TARGETS}
