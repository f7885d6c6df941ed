"""The faults of a campaign's row: where, what, when, and how much.

    faults:
      - {where: source.radar, what: drop, frame: 40, count: 5}
      - {where: stage.plan.1, what: wrong, by: 3, frame: 60}
      - {where: device.gpu0, what: flap, at: 2 s, up: 6 s, down: 1 s, count: 5}

`at` goes with `for` and `frame` with `count`: a device has no frames. `KINDS` says what can be
broken where and which of the other keys it takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, one_of, section, text
from avrt.config.shape import AT_LEAST_ONE, DURATION, LASTING, NONE_OR_MORE, TEXT, whole
from avrt.config.shares import FACTOR_MAX, above_zero, percent, positive, shift, span
from avrt.config.shares import whole as count_of
from avrt.errors import did_you_mean
from avrt.model.campaign import Injection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.config.node import Node
    from avrt.model.spec import PipelineSpec

COUNT_MAX = 1_000_000
AWAY_MAX = 1000.0
"""Metres: of a place from the vehicle."""
KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "source": {
        "drop": (),
        "repeat": (),
        "duplicate": (),
        "swap": (),
        "delay": ("by",),
        "stamp": ("by",),
        "drift": ("by",),
        "jitter": ("by",),
        "counter": (),
        "twice": ("by",),
        "second": ("by",),
        "frame_id": (),
        "cross": ("with",),
        "fill": ("by",),
        "cover": ("share",),
        "shrink": (),
        "points": ("by",),
        "edge": ("by",),
        "turn": ("by",),
        "sector": ("share",),
        "shuffle": (),
        "underflow": ("share",),
        "ghosts": ("by",),
        "nan": ("share",),
        "flip": (),
    },
    "bus": {"flip": ()},
    "stage": {
        "raise": (),
        "voter": (),
        "memory": (),
        "no_memory": (),
        "never": (),
        "wrong": ("by",),
        "nan": ("share",),
        "repeat": (),
        "flip": (),
        "slow": ("factor",),
        "weights": ("bit",),
        "ghost": ("by", "aside"),
        "miss": ("by", "aside"),
        "swerve": ("by",),
    },
    "device": {"lost": (), "slow": ("factor",), "flap": ("up", "down"), "wrong": ("by",)},
}
ONLY_OF: Mapping[str, str] = {
    "fill": "camera",
    "cover": "camera",
    "shrink": "camera",
    "points": "lidar",
    "edge": "lidar",
    "turn": "lidar",
    "sector": "lidar",
    "shuffle": "lidar",
    "underflow": "lidar",
    "ghosts": "radar",
}
"""What can go wrong with one kind of sensor only."""
NUMBERS: Mapping[str, tuple[float, float]] = {
    "wrong": (-math.inf, math.inf),
    "drift": (-1000, 1000),
    "fill": (0, 255),
    "points": (0, 10_000_000),
    "edge": (0, 1000),
    "turn": (-180, 180),
    "ghosts": (1, 100_000),
    "ghost": (-AWAY_MAX, AWAY_MAX),
    "miss": (-AWAY_MAX, AWAY_MAX),
    "swerve": (-10, 10),
}
"""Where `by` is a number and no time, and from where to where."""


def read_injections(node: Node, pipeline: PipelineSpec) -> tuple[Injection, ...]:
    """Return the faults of a row; SpecError where one means nothing."""
    items = node.items("a list of faults")
    if not items:
        raise node.fail("a row without a fault tells nothing; give at least one")
    return tuple(_injection(item, pipeline) for item in items)


def _injection(node: Node, pipeline: PipelineSpec) -> Injection:
    given = node.mapping('a fault, such as "{where: source.radar, what: drop, frame: 40}"')
    values = section(node, FAULT_KEYS)
    place, _, target = str(values.pop("where")).partition(".")
    if place not in KINDS:
        raise given["where"].fail(f"no such place {place!r}; {did_you_mean(place, KINDS)}")
    known = _targets(pipeline)[place]
    if target not in known:
        raise given["where"].fail(f"no {place} named {target!r}; {did_you_mean(target, known)}")
    kind = str(values["kind"])
    if kind not in KINDS[place]:
        what = f"nothing of a {place} can {kind!r}; known are {', '.join(KINDS[place])}"
        raise given["what"].fail(what)
    if ONLY_OF.get(kind, own := _sensor(pipeline, place, target)) != own:
        what = f"only a {ONLY_OF[kind]} can {kind!r}, and {target} is a {own}"
        raise given["what"].fail(what)
    if kind == "voter" and target not in _voted(pipeline):
        raise given["where"].fail(f"nobody votes on {target}; name a stage with a redundancy")
    _check_when(node, given, place, kind)
    _check_amounts(node, given, KINDS[place][kind])
    if "with" in given and values["other"] not in set(known) - {target}:
        others = [name for name in known if name != target]
        found = f"no other source named {values['other']!r}"
        raise given["with"].fail(f"{found}; {did_you_mean(str(values['other']), others)}")
    if "by" in given:
        values["by"] = _amount(given["by"], kind)
    return build(Injection, {"place": place, "target": target, **values})


def _targets(pipeline: PipelineSpec) -> Mapping[str, list[str]]:
    stages = [stage.name for stage in pipeline.stages]
    copies = [task for stage in pipeline.stages for task in stage.task_names]
    sources = [source.name for source in pipeline.sources]
    return {
        "source": sources,
        "bus": [*sources, *stages],
        "stage": list(dict.fromkeys([*stages, *copies])),
        "device": [device.name for device in pipeline.devices],
    }


def _check_when(node: Node, given: Mapping[str, Node], place: str, kind: str) -> None:
    """Refuse what has no beginning or two, or an end of the other kind."""
    if ("at" in given) == ("frame" in given):
        raise node.fail("say when it begins: either 'at', a time, or 'frame', a number")
    if place == "device" and "frame" in given:
        raise given["frame"].fail("a device has no frames; say 'at'")
    if "for" in given and ("frame" in given or kind == "flap"):
        raise given["for"].fail("say 'count' here: how many of them")
    if "count" in given and "at" in given and kind != "flap":
        raise given["count"].fail("'count' goes with 'frame'; with 'at' say 'for'")


def _check_amounts(node: Node, given: Mapping[str, Node], wanted: tuple[str, ...]) -> None:
    for name in AMOUNTS:
        if name in given and name not in wanted:
            raise given[name].fail(f"it takes no {name!r} here; remove it")
        if name in wanted and name not in given and name not in MAY_LACK:
            raise node.fail(f'{name!r} is missing; add it, such as "{name}: {AMOUNTS[name]}"')


def _voted(pipeline: PipelineSpec) -> set[str]:
    return {stage.name for stage in pipeline.stages if stage.redundancy is not None}


def _sensor(pipeline: PipelineSpec, place: str, target: str) -> str:
    """Return what kind of sensor a place is; "" where it is none."""
    if place != "source":
        return ""
    return next(source.type for source in pipeline.sources if source.name == target)


def _amount(node: Node, kind: str) -> float:
    """Return how far: a number for a value, ns for a time."""
    if kind not in NUMBERS:
        return float(shift(node) if kind == "stamp" else above_zero(node))
    return _number(node, *NUMBERS[kind])


def _number(node: Node, least: float, most: float) -> float:
    found = float(node.text) if type(node.value) in {int, float} else math.nan
    if not least <= found <= most:
        ends = "" if least == -math.inf else f" from {least:g} to {most:,.0f}"
        raise node.fail(f'expected a number{ends}, such as "3", found {node.shown}')
    return found


def _aside(node: Node) -> float:
    """Return how far to the left, metres."""
    return _number(node, -AWAY_MAX, AWAY_MAX)


def _value(node: Node) -> object:
    return node.value  # read once the kind of fault is known


def _share(node: Node) -> float:
    return float(percent(node))


def _count(node: Node) -> int:
    """Return how many; at least one."""
    count = count_of(node)
    if not 1 <= count <= COUNT_MAX:
        raise node.fail(f"expected 1 to {COUNT_MAX}, found {node.shown}")
    return count


def _bit(node: Node) -> int:
    """Return the number of a bit."""
    bit = count_of(node)
    if bit >= BITS_MAX:
        raise node.fail(f"expected 0 to {BITS_MAX - 1}, found {node.shown}")
    return bit


AMOUNTS: Mapping[str, str] = {
    "by": "3", "aside": "3", "with": "radar", "share": "2 %", "factor": "3", "bit": "0",
    "up": "6 s", "down": "1 s",
}  # fmt: skip
MAY_LACK = frozenset(("aside", "share", "bit"))
BITS_MAX = 64
KIND_NAMES = tuple(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))
FAULT_KEYS = (
    Key(
        "where",
        "where",
        text,
        example="source.radar",
        about="source.NAME, bus.NAME (what travels from a source or a stage), stage.NAME (all "
        "copies), stage.NAME.COPY or device.NAME",
        shape=whole("(?:source|bus|stage|device)\\..+"),
    ),
    Key("what", "kind", one_of(*KIND_NAMES), example="drop", about="what goes wrong there"),
    Key("at", "at_ns", span, about="from this pipeline time on", shape=DURATION),
    Key("for", "for_ns", above_zero, about="so long; to the end without it", shape=LASTING),
    Key(
        "frame",
        "frame",
        count_of,
        about="from this message or job on, counted from 0",
        shape=NONE_OR_MORE,
    ),
    Key("count", "count", _count, about="so many of them, 1 unless given", shape=AT_LEAST_ONE),
    Key(
        "by",
        "by",
        _value,
        about="how far: a time; or a number: added to a wrong value, a grey level, metres, a count",
        shape={"anyOf": [DURATION, {"type": "number"}]},
    ),
    Key("with", "other", text, about="the source whose messages come in place of its own"),
    Key(
        "aside",
        "aside",
        _aside,
        about="of a place `by` metres ahead: how far to the left, metres; 0 unless given",
        shape={"type": "number", "minimum": -AWAY_MAX, "maximum": AWAY_MAX},
    ),
    Key("share", "share", _share, about="which part of the numbers", shape=TEXT),
    Key(
        "factor",
        "factor",
        positive,
        about="how many times as long a job takes",
        shape={"type": "number", "exclusiveMinimum": 0, "maximum": FACTOR_MAX},
    ),
    Key(
        "bit",
        "bit",
        _bit,
        about="which bit of an element, counted from the lowest; one of its sign and exponent is "
        "drawn unless given",
        shape={"type": "integer", "minimum": 0, "maximum": BITS_MAX - 1},
    ),
    Key("up", "up_ns", above_zero, about="of a flap: how long it is there", shape=LASTING),
    Key("down", "down_ns", above_zero, about="of a flap: how long away", shape=LASTING),
)
