"""The keys of a stage, in a pipeline file or given to `@stage`, and their defaults.

Defaults that depend on other keys:
* `device` may be left out where the pipeline has only one;
* a single input is the trigger, unless a `period` or `sync` releases the stage;
* with `segments`, the device is the first one's, and the wcet their sum where it is not given;
* `guarantee` chooses `on_miss` where it is not given: firm aborts, all others continue.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.config.node import Node, from_python, plain
from avrt.config.profile import read_times
from avrt.config.reader import (
    Key,
    boolean,
    build,
    duration,
    integer,
    name,
    named,
    not_available,
    one_of,
    ratio,
    section,
)
from avrt.model.spec import Criticality, InputSpec, SegmentSpec, StageSpec, SyncSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GUARANTEES = {"hard": "continue", "firm": "abort", "soft": "continue", "best_effort": "continue"}

_REFERENCE = re.compile(r"[\w.]+:[A-Za-z_]\w*|[^:\n]+\.py:[A-Za-z_]\w*")


def stage_from_keys(
    stage_name: str, keys: Mapping[str, object], devices: Sequence[str] = ("cpu",)
) -> StageSpec:
    """Return one stage of Python values; `devices` are the names declared in its pipeline."""
    return read_stage(stage_name, from_python(keys, ("stages", stage_name)), devices)


def read_stage(stage_name: str, node: Node, devices: Sequence[str]) -> StageSpec:
    """Return the stage of a node; `devices` are the names declared in its pipeline."""
    is_segmented = isinstance(node.value, dict) and "segments" in node.value
    values = section(node, SEGMENTED_KEYS if is_segmented else STAGE_KEYS)
    values["name"] = stage_name
    segments = values.get("segments")
    if isinstance(segments, tuple):
        values.setdefault("device", segments[0].device)
        values.setdefault("wcet_ns", sum(segment.wcet_ns for segment in segments))
    if "device" not in values:
        values["device"] = _only_device(node, devices)
    inputs = values.get("inputs", ())
    if isinstance(inputs, tuple) and len(inputs) == 1 and not values.keys() & _RELEASES:
        values["trigger"] = inputs[0].name
    profile = values.get("profile_ns")
    if isinstance(profile, Node):
        device = str(values["device"])
        values["profile_ns"] = read_times(profile, stage_name, device, profile.folder)
    misses = values.pop("misses", None)
    if isinstance(misses, tuple):
        values["misses_max"], values["window_jobs"] = misses
    _apply_guarantee(node, values)
    return build(StageSpec, values)


def _only_device(node: Node, devices: Sequence[str]) -> str:
    if len(devices) != 1:
        what = f"several devices ({', '.join(devices)})" if devices else "no device is declared"
        raise node.fail(f"{what}; say which one with 'device'")
    return devices[0]


def _apply_guarantee(node: Node, values: dict[str, object]) -> None:
    guarantee = values.get("guarantee")
    if not isinstance(guarantee, str):
        return
    values.setdefault("on_miss", GUARANTEES[guarantee])
    for key in ("on_miss", "on_overrun"):
        if guarantee == "hard" and values.get(key) == "abort":
            what = "a stage with guarantee 'hard' is never aborted; choose 'firm', or drop 'abort'"
            raise node.mapping()[key].fail(what)


def _inputs(node: Node) -> tuple[InputSpec, ...]:
    return tuple(_input(key, child) for key, child in named(node, "inputs by name").items())


def _input(input_name: str, node: Node) -> InputSpec:
    if not input_name.isidentifier() or keyword.iskeyword(input_name):
        raise node.fail("an input is a parameter of the stage; expected a Python name")
    if not isinstance(node.value, dict):
        return InputSpec(name=input_name, source=name(node))
    return build(InputSpec, {"name": input_name, **section(node, INPUT_KEYS)})


def _sync(node: Node) -> SyncSpec:
    return build(SyncSpec, section(node, SYNC_KEYS))


def _segments(node: Node) -> tuple[SegmentSpec, ...]:
    items = node.items("a list of segments")
    if not items:
        raise node.fail("expected one segment at least, found none")
    return tuple(build(SegmentSpec, section(item, SEGMENT_KEYS)) for item in items)


def _criticality(node: Node) -> Criticality:
    label = one_of(*(level.label for level in Criticality))(node)
    return Criticality[label.replace("-", "_")]


def _reference(node: Node) -> str:
    if not isinstance(node.value, str) or _REFERENCE.fullmatch(node.value) is None:
        raise node.fail(f'expected "package.module:Name" or "file.py:Name", found {node.shown}')
    return node.value


def _as_it_is(node: Node) -> object:
    return node  # a profile is read once the device is known


def _params(node: Node) -> object:
    node.mapping("parameters by name")
    return plain(node)


_RELEASES = {"period_ns", "trigger", "sync"}
STAGE_KEYS = (
    Key("run", "run", _reference),
    Key("device", "device", name),
    Key("inputs", "inputs", _inputs),
    Key("trigger", "trigger", name),
    Key("sync", "sync", _sync),
    Key("period", "period_ns", duration),
    Key("offset", "offset_ns", duration),
    Key("wcet", "wcet_ns", duration, example="25 ms"),
    Key("bcet", "bcet_ns", duration),
    Key("jitter", "jitter_ns", duration),
    Key("deadline", "deadline_ns", duration, example="60 ms"),
    Key("deadline_from", "deadline_from", one_of("release", "capture")),
    Key("priority", "priority", integer),
    Key("criticality", "criticality", _criticality),
    Key("guarantee", "guarantee", one_of(*GUARANTEES)),
    Key("on_miss", "on_miss", one_of("continue", "abort", "skip_next")),
    Key("queue", "queue", integer),
    Key("budget", "budget_ns", duration),
    Key("on_overrun", "on_overrun", one_of("report", "abort")),
    Key("miss_at_most", "misses", ratio),
    Key("publish", "publish", one_of("asap", "at_deadline")),
    Key("params", "params", _params),
    Key("segments", "segments", _segments),
    Key("handler", "handler", not_available("a handler of misses")),
    Key("partition", "partition", not_available("a partition")),
    Key("profile", "profile_ns", _as_it_is),
    Key("redundancy", "redundancy", not_available("redundancy")),
)
SEGMENTED_KEYS = tuple(
    replace(key, example=None) if key.name == "wcet" else key for key in STAGE_KEYS
)
SEGMENT_KEYS = (
    Key("device", "device", name, example="gpu"),
    Key("wcet", "wcet_ns", duration, example="8 ms"),
    Key("wait", "wait", one_of("suspend", "spin")),
)
INPUT_KEYS = (
    Key("from", "source", name, example="front_camera"),
    Key("optional", "optional", boolean),
    Key("max_age", "max_age_ns", duration),
)
SYNC_KEYS = (
    Key("tolerance", "tolerance_ns", duration, example="5 ms"),
    Key("timeout", "timeout_ns", duration, example="40 ms"),
)
