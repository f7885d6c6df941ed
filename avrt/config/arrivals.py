"""The `arrivals` and `faults` sections of a scenario: how messages come, and what goes wrong.

    arrivals:
      velodyne: {jitter: 5 ms, drift: 100 ppm, drop: 1 %}
      front_camera: {sporadic: {min: 80 ms, mean: 110 ms}}
    faults:
      - {at: 2 s, source_out: velodyne, for: 500 ms}
      - {at: 4 s, slow_device: cpu, factor: 2.5, for: 1 s}

A source that nothing is said of is periodic at its declared rate.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, duration, rate, section, text
from avrt.config.shares import above_zero, parts, percent, positive, span, whole
from avrt.errors import did_you_mean
from avrt.model.scenario import ArrivalSpec, FaultKind, FaultSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec, SourceSpec

DROPS_MAX = 10_000
BURST_MAX = 10_000
KINDS = ("rate", "sporadic", "burst", "log")


def read_arrivals(
    node: Node | None, root: Node, pipeline: PipelineSpec, folder: Path
) -> tuple[ArrivalSpec, ...]:
    """Return the arrivals of every source, in the order of the pipeline file."""
    given = {} if node is None else node.mapping("arrivals by source")
    known = [source.name for source in pipeline.sources]
    for key, child in given.items():
        if key not in known:
            raise child.fail(f"no such source; {did_you_mean(key, known)}")
    return tuple(_arrival(s, given.get(s.name), root, folder) for s in pipeline.sources)


def _arrival(source: SourceSpec, node: Node | None, root: Node, folder: Path) -> ArrivalSpec:
    values = {} if node is None else section(node, ARRIVAL_KEYS)
    kinds = [kind for kind in KINDS if kind in values]
    here = root if node is None else node
    if len(kinds) > 1:
        raise here.fail(f"{kinds[0]!r} and {kinds[1]!r} exclude each other; remove one")
    if "drift" in values and kinds not in ([], ["rate"]):
        raise here.fail(f"only periodic arrivals drift; remove 'drift' or {kinds[0]!r}")
    fields: dict[str, object] = {"source": source.name, "kind": "periodic"}
    fields.update({k: v for k, v in values.items() if k not in {*KINDS, "drift", "drop"}})
    fields["drift_ppb"] = values.get("drift", 0)
    drop = values.get("drop")
    if drop is not None:
        fields["drop_indices" if isinstance(drop, frozenset) else "drop_share"] = drop
    if not kinds or kinds == ["rate"]:
        fields["period_ns"] = values.get("rate", source.period_ns)
        if fields["period_ns"] is None:
            what = f"source {source.name!r} declares no rate; say how it comes under 'arrivals'"
            raise here.fail(what)
    elif kinds == ["log"]:
        fields.update(kind="log", log=str(folder / str(values["log"])))
    else:
        inner = values[kinds[0]]
        assert isinstance(inner, dict)
        fields.update(inner, kind=kinds[0])
    return build(ArrivalSpec, fields)


def _sporadic(node: Node) -> dict[str, object]:
    values = section(node, SPORADIC_KEYS)
    least_ns, mean_ns = values["distance_ns"], values["period_ns"]
    assert isinstance(least_ns, int)
    assert isinstance(mean_ns, int)
    if least_ns > mean_ns:
        raise node.fail("'min' is above 'mean'; the mean distance is at least the least")
    return values


def _burst(node: Node) -> dict[str, object]:
    values = section(node, BURST_KEYS)
    size, within_ns, every_ns = (values[k] for k in ("size", "distance_ns", "period_ns"))
    assert isinstance(size, int)
    assert isinstance(within_ns, int)
    assert isinstance(every_ns, int)
    if not 1 <= size <= BURST_MAX:
        raise node.fail(f"expected a size of 1 to {BURST_MAX}, found {size}")
    if (size - 1) * within_ns >= every_ns:
        raise node.fail("a burst lasts until the next one; make 'every' longer")
    return values


def _drop(node: Node) -> object:
    if not isinstance(node.value, tuple):
        return float(percent(node))
    if len(node.value) > DROPS_MAX:
        raise node.fail(f"expected at most {DROPS_MAX} indices, found {len(node.value)}")
    return frozenset(whole(item) for item in node.value)


def _frequency(node: Node) -> int:
    period_ns = rate(node)
    if period_ns <= 0:
        raise node.fail(f"expected a rate above 0, found {node.shown}")
    return period_ns


def read_faults(node: Node | None, pipeline: PipelineSpec) -> tuple[FaultSpec, ...]:
    """Return the faults in the order they are given; SpecError where they cannot come so."""
    items = () if node is None else node.items("a list of faults")
    faults = tuple(_fault(item, pipeline) for item in items)
    _check_order(items, faults)
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
    }


def _check_order(items: Iterable[Node], faults: Iterable[FaultSpec]) -> None:
    """Refuse to lose what is lost already, and to bring back what is not."""
    lost: dict[str, bool] = defaultdict(bool)
    changed_ns: dict[str, int] = {}
    by_time = sorted(zip(items, faults, strict=True), key=lambda pair: pair[1].at_ns)
    for node, fault in by_time:
        if fault.kind not in {"device_lost", "device_back", "stream_lost"}:
            continue
        target = f"{FAULT_TARGETS[fault.kind]} {fault.target!r}"
        if lost[target] != (fault.kind == "device_back"):
            raise node.fail(f"{target} is {'lost already' if lost[target] else 'not lost'} by then")
        if changed_ns.get(target) == fault.at_ns:
            raise node.fail(f"{target} is lost and back at the same time; leave out both")
        lost[target] = fault.kind != "device_back"
        changed_ns[target] = fault.at_ns


ARRIVAL_KEYS = (
    Key("rate", "rate", _frequency),
    Key("sporadic", "sporadic", _sporadic),
    Key("burst", "burst", _burst),
    Key("log", "log", text),
    Key("offset", "offset_ns", span),
    Key("delay", "delay_ns", span),
    Key("jitter", "jitter_ns", span),
    Key("drift", "drift", parts),
    Key("drop", "drop", _drop),
)
SPORADIC_KEYS = (
    Key("min", "distance_ns", above_zero, example="80 ms"),
    Key("mean", "period_ns", above_zero, example="100 ms"),
)
BURST_KEYS = (
    Key("size", "size", whole, example="5"),
    Key("distance", "distance_ns", span, example="1 ms"),
    Key("every", "period_ns", above_zero, example="500 ms"),
)
FAULT_TARGETS: dict[FaultKind, str] = {
    "source_out": "source",
    "slow_device": "device",
    "device_lost": "device",
    "device_back": "device",
    "clock_step": "source",
    "stream_lost": "stage",
}
_AT = Key("at", "at_ns", span, example="2 s")
_FOR = Key("for", "for", above_zero)
_FACTOR = Key("factor", "factor", positive, example="2.5")
_BY = Key("by", "step_ns", duration, example="200 ms")
FAULT_KEYS: dict[FaultKind, tuple[Key, ...]] = {
    "source_out": (_AT, _FOR),
    "slow_device": (_AT, _FOR, _FACTOR),
    "device_lost": (_AT,),
    "device_back": (_AT,),
    "clock_step": (_AT, _FOR, _BY),
    "stream_lost": (_AT,),
}
_FAULT_WORDS = {"at", "for", "factor", "by", *FAULT_TARGETS}
