"""The `arrivals` section of a scenario: how the messages of each source come.

    arrivals:
      velodyne: {jitter: 5 ms, drift: 100 ppm, drop: 1 %}
      front_camera: {sporadic: {min: 80 ms, mean: 110 ms}}

A source that nothing is said of is periodic at its declared rate, its latency after its captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, rate, section, text
from avrt.config.shares import above_zero, parts, percent, span, whole
from avrt.errors import did_you_mean
from avrt.model.scenario import ArrivalSpec

if TYPE_CHECKING:
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
    if kinds != ["log"]:
        fields["delay_ns"] = source.latency_ns
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
