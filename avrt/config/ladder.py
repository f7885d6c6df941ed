"""The section `ladder` of a pipeline file: its levels, and what each changes of the stages.

ladder:
  devices: [gpu0, gpu1]
  max_age: 300 ms
  levels:
    full: {devices: 2}
    half: {devices: 1, without: [show], stages: {detect: {variant: small, every: 2}}}
    stop: {without: [show, detect], stages: {plan: {variant: stop}}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.reader import (
    Key,
    build,
    duration,
    integer,
    name,
    named,
    names,
    rate,
    section,
)
from avrt.config.shape import AT_LEAST_ONE, LASTING, NAME, NONE_OR_MORE, by_name, list_of, object_of
from avrt.model.ladder import LadderSpec, LevelSpec, StageLevel

if TYPE_CHECKING:
    from avrt.config.node import Node


def ladder(node: Node) -> LadderSpec:
    """Return the ladder of a pipeline; `avrt.model.levels` checks it against its stages."""
    return build(LadderSpec, section(node, LADDER_KEYS))


def _some_names(node: Node) -> tuple[str, ...]:
    found = names(node)
    if not found:
        raise node.fail("expected one stage at least, found none")
    return found


def _levels(node: Node) -> tuple[LevelSpec, ...]:
    members = named(node, "levels by name, the best first")
    return tuple(
        build(LevelSpec, {"name": key, **section(child, LEVEL_KEYS)})
        for key, child in members.items()
    )


def _stages(node: Node) -> tuple[StageLevel, ...]:
    members = named(node, "changes by stage")
    return tuple(
        build(StageLevel, {"stage": key, **section(child, STAGE_LEVEL_KEYS)})
        for key, child in members.items()
    )


STAGE_LEVEL_KEYS = (
    Key("variant", "variant", name, about="which of its variants runs; as declared unless given"),
    Key("rate", "period_ns", rate, about="of a timer stage, in place of its period"),
    Key(
        "every",
        "every",
        integer,
        about="of a triggered stage, it takes each n-th message",
        shape=AT_LEAST_ONE,
    ),
    Key(
        "copies",
        "copies",
        integer,
        about="of a redundant stage, how many run; a single one is not voted on",
        shape=AT_LEAST_ONE,
    ),
)
LEVEL_KEYS = (
    Key(
        "devices",
        "devices",
        integer,
        about="how many healthy ones of the ladder's devices it needs; 0 unless given",
        shape=NONE_OR_MORE,
    ),
    Key("without", "without", names, about="stages that do not run"),
    Key(
        "stages",
        "stages",
        _stages,
        about="what it changes of stages, by name",
        shape=by_name(object_of(STAGE_LEVEL_KEYS), NAME),
    ),
)
LADDER_KEYS = (
    Key("devices", "devices", names, about="devices that levels count; none unless given"),
    Key(
        "critical",
        "critical",
        _some_names,
        about="stages whose misses, votes and outputs decide; those above QM unless given",
        shape=list_of(NAME, least=1),
    ),
    Key(
        "max_age",
        "age_ns_max",
        duration,
        about="how old the last accepted output of a critical stage may become; 300 ms unless "
        "given",
        shape=LASTING,
    ),
    Key(
        "levels",
        "levels",
        _levels,
        "{full: {}, stop: {without: [detect]}}",
        "the levels from the best to the minimal-risk plan, by name",
        shape=by_name(object_of(LEVEL_KEYS), NAME),
    ),
)
