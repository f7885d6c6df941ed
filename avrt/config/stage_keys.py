"""The keys of a stage, in a pipeline file or given to `@stage`, and their defaults.

Defaults that depend on other keys:
* `device` may be left out where the pipeline has only one;
* a single input is the trigger, unless a `period` or `sync` releases the stage;
* with `segments`, the device is the first one's, and the wcet their sum where it is not given;
* `guarantee` chooses `on_miss` where it is not given: firm aborts, all others continue.
"""

from __future__ import annotations

import keyword
from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.config.node import Node, from_python, plain
from avrt.config.profile import read_times
from avrt.config.reader import (
    Key,
    Unavailable,
    boolean,
    build,
    duration,
    integer,
    later,
    name,
    named,
    one_of,
    ratio,
    section,
)
from avrt.config.redundancy import REDUNDANCY_KEYS, homes_of, redundancy
from avrt.config.reference import reference
from avrt.config.shape import AT_LEAST_ONE, LASTING, NAME, TEXT, by_name, list_of, object_of, whole
from avrt.model.ladder import VariantSpec
from avrt.model.spec import Criticality, InputSpec, SegmentSpec, StageSpec, SyncSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GUARANTEES = {"hard": "continue", "firm": "abort", "soft": "continue", "best_effort": "continue"}


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
    copies = values.get("redundancy")
    if isinstance(copies, Node) and (homes := homes_of(copies)):
        values.setdefault("device", homes[0])
    if "device" not in values:
        values["device"] = _only_device(node, devices)
    inputs = values.get("inputs", ())
    if isinstance(inputs, tuple) and len(inputs) == 1 and not values.keys() & _RELEASES:
        values["trigger"] = inputs[0].name
    profile = values.get("profile_ns")
    if isinstance(profile, Node):
        device = str(values["device"])
        values["profile_ns"] = read_times(profile, stage_name, device, profile.folder)
    if isinstance(copies, Node):
        values["redundancy"] = redundancy(copies, stage_name, str(values["device"]))
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


def _variants(node: Node) -> tuple[VariantSpec, ...]:
    members = named(node, "variants by name")
    return tuple(
        build(VariantSpec, {"name": key, **section(child, VARIANT_KEYS)})
        for key, child in members.items()
    )


def _criticality(node: Node) -> Criticality:
    label = one_of(*(level.label for level in Criticality))(node)
    return Criticality[label.replace("-", "_")]


def parameters(node: Node) -> object:
    node.mapping("parameters by name")
    return plain(node)


_RELEASES = {"period_ns", "trigger", "sync"}
INPUT_KEYS = (
    Key("from", "source", name, "front_camera", "the source or stage that it reads"),
    Key("optional", "optional", boolean, about="a job may run without it; false unless given"),
    Key(
        "max_age", "max_age_ns", duration, about="an older message counts as missing", shape=LASTING
    ),
)
SYNC_KEYS = (
    Key("tolerance", "tolerance_ns", duration, "5 ms", "how far capture times may lie apart"),
    Key("timeout", "timeout_ns", duration, "40 ms", "how long a set is waited for"),
)
SEGMENT_KEYS = (
    Key("device", "device", name, "gpu", "where this part runs"),
    Key("wcet", "wcet_ns", duration, "8 ms", "its worst execution time", shape=LASTING),
    Key(
        "wait",
        "wait",
        one_of("suspend", "spin"),
        about="whether the slot of the part before is kept until this one has ended",
    ),
)
VARIANT_KEYS = (
    Key(
        "run",
        "run",
        reference,
        about="what it runs; the stage's run unless given",
        shape=whole(r"[^\n]+:[^:\n]+"),
    ),
    Key("device", "device", name, about="where it runs; the stage's device unless given"),
    Key("wcet", "wcet_ns", duration, about="its worst execution time", shape=LASTING),
    Key(
        "params",
        "params",
        parameters,
        about="of its constructor; without a run of its own they go over the stage's",
        shape={"type": "object"},
    ),
)
STAGE_KEYS = (
    Key(
        "run",
        "run",
        reference,
        about="package.module:Name, or file.py:Name beside this file",
        shape=whole(r"[^\n]+:[^:\n]+"),
    ),
    Key("device", "device", name, about="where it runs; the only device unless given"),
    Key(
        "inputs",
        "inputs",
        _inputs,
        about="what it reads, by the name of the stage's parameter",
        shape=by_name(
            {"anyOf": [NAME, object_of(INPUT_KEYS)]}, {**NAME, "not": {"enum": keyword.kwlist}}
        ),
    ),
    Key("trigger", "trigger", name, about="the input that releases a job; a single one does so"),
    Key(
        "sync",
        "sync",
        _sync,
        about="all inputs together release a job",
        shape=object_of(SYNC_KEYS),
    ),
    Key("period", "period_ns", duration, about="it is released by a timer", shape=LASTING),
    Key("offset", "offset_ns", duration, about="when the timer releases first; 0 unless given"),
    Key("wcet", "wcet_ns", duration, "25 ms", "worst execution time", shape=LASTING),
    Key("bcet", "bcet_ns", duration, about="best execution time", shape=LASTING),
    Key("jitter", "jitter_ns", duration, about="release jitter, for analyses; 0 unless given"),
    Key("deadline", "deadline_ns", duration, "60 ms", "relative to its release", shape=LASTING),
    Key(
        "deadline_from",
        "deadline_from",
        one_of("release", "capture"),
        about="what the deadline counts from; the release unless given",
    ),
    Key("priority", "priority", integer, about="for policy fp; 1 is the most urgent"),
    Key(
        "criticality",
        "criticality",
        _criticality,
        about="on the last free slot a job gives way to a more critical one; QM unless given",
        shape={"enum": [level.label for level in Criticality]},
    ),
    Key("guarantee", "guarantee", one_of(*GUARANTEES), about="chooses on_miss"),
    Key(
        "on_miss",
        "on_miss",
        one_of("continue", "abort", "skip_next"),
        about="what a miss does: finish late (the default), discard, or drop the new release",
    ),
    Key(
        "queue",
        "queue",
        integer,
        about="how many jobs wait; the oldest is shed when another comes; 4 unless given",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "budget",
        "budget_ns",
        duration,
        about="execution allowed; the wcet unless given",
        shape=LASTING,
    ),
    Key(
        "on_overrun",
        "on_overrun",
        one_of("report", "abort"),
        about="what becomes of a job above its budget; report unless given",
    ),
    Key(
        "every",
        "every",
        integer,
        about="of the messages of its trigger it takes each n-th; all of them unless given",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "variants",
        "variants",
        _variants,
        about="other ways to do the same, by name, for levels of the ladder",
        shape=by_name(object_of(VARIANT_KEYS), NAME),
    ),
    Key(
        "scrub",
        "scrub_ns",
        duration,
        about="weights are checked behind its jobs, and a change of them is told within this time",
        shape=LASTING,
    ),
    Key("miss_at_most", "misses", ratio, about="weakly-hard promise, such as 1 of 10"),
    Key(
        "publish",
        "publish",
        one_of("asap", "at_deadline"),
        about="when consumers may read the output; asap unless given",
    ),
    Key(
        "params",
        "params",
        parameters,
        about="parameters of the class's constructor",
        shape={"type": "object"},
    ),
    Key(
        "segments",
        "segments",
        _segments,
        about="parts of every job, each on a device of its own, one after the other",
        shape=list_of(object_of(SEGMENT_KEYS), least=1),
    ),
    Key("handler", "handler", Unavailable("a handler of misses"), about="told of misses"),
    Key("partition", "partition", Unavailable("a partition"), about="its own process"),
    Key(
        "profile",
        "profile_ns",
        later,
        about="file of avrt profile -o, whose times are taken in place of the wcet",
        shape=TEXT,
    ),
    Key(
        "redundancy",
        "redundancy",
        later,
        about="runs several times for each release, and one decision is made over the outputs",
        shape=object_of(REDUNDANCY_KEYS),
    ),
)
SEGMENTED_KEYS = tuple(
    replace(key, example=None) if key.name == "wcet" else key for key in STAGE_KEYS
)
STAGE_SHAPE = {
    **object_of(SEGMENTED_KEYS),
    "anyOf": [{"required": ["wcet"]}, {"required": ["segments"]}],
    "not": {
        "anyOf": [
            {"required": ["period", "trigger"]},
            {"required": ["period", "sync"]},
            {"required": ["trigger", "sync"]},
        ]
    },
}
