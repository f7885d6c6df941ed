"""What a value may look like, as JSON Schema: for editors, from the tables that also read it.

A shape is looser than its reader wherever JSON Schema cannot say the same: it never refuses what
the reader accepts. Patterns mean the same in Python and in ECMAScript. A key whose reader stands in
no list here brings its shape along (`Key.shape`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.reader import (
    NAME_PATTERN,
    RATIO_PATTERN,
    Key,
    Numbers,
    OneOf,
    Rows,
    Triple,
    Unavailable,
    angle,
    boolean,
    duration,
    integer,
    length,
    name,
    names,
    rate,
    ratio,
    text,
)
from avrt.units import NS_PER_UNIT, NUMBER_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from avrt.config.node import Node
    from avrt.config.reader import Shape

BLANKS = "[\\s\\u001c-\\u001f\\u0085]*"  # what str.strip takes away


def whole(pattern: str) -> Shape:
    """Return the shape of text that matches from end to end."""
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def quantity(*units: str, above_zero: bool = False) -> Shape:
    """Return the shape of `NUMBER UNIT`."""
    sign = "(?![^A-Za-z]*-)(?=[^A-Za-z]*[1-9])" if above_zero else ""
    return whole(f"{sign}{BLANKS}{NUMBER_PATTERN}[ \\t]*(?:{'|'.join(units)}){BLANKS}")


def list_of(item: Shape, *, least: int = 0, most: int | None = None) -> Shape:
    """Return the shape of a list."""
    limits: Shape = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": item, "minItems": least, **limits}


def by_name(item: Shape, names_shape: Shape | None = None) -> Shape:
    """Return the shape of a mapping whose keys the user chooses."""
    keys: Shape = {} if names_shape is None else {"propertyNames": names_shape}
    return {"type": "object", **keys, "additionalProperties": item}


def object_of(keys: Iterable[Key]) -> Shape:
    """Return the shape of a section that is read by this table."""
    table = tuple(keys)
    properties = {
        key.name: {"description": _about(key), **(key.shape or shape_of(key.read))} for key in table
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [key.name for key in table if key.example is not None],
        "additionalProperties": False,
    }


def shape_of(read: Callable[[Node], object]) -> Shape:
    """Return what a reader accepts."""
    match read:
        case OneOf(choices):
            return {"enum": list(choices)}
        case Triple(item):
            return list_of(shape_of(item), least=3, most=3)
        case Numbers(count):
            return list_of({"type": "number"}, least=count, most=count)
        case Rows(count, width):
            return list_of(shape_of(Numbers(width)), least=count, most=count)
        case Unavailable():
            return {"not": {}}
        case _:
            return SHAPES[read]


def _about(key: Key) -> str:
    assert key.about, f"{key.name} is not described"
    if isinstance(key.read, Unavailable):
        return f"{key.about} (not available in this version)"
    return f"{key.about}, such as {key.example}" if key.example else key.about


NAME = whole(NAME_PATTERN)
DURATION = quantity(*NS_PER_UNIT)
LASTING = quantity(*NS_PER_UNIT, above_zero=True)
RATE = quantity("Hz", *NS_PER_UNIT, above_zero=True)
TEXT: Shape = {"type": "string", "minLength": 1}
AT_LEAST_ONE: Shape = {"type": "integer", "minimum": 1}
NONE_OR_MORE: Shape = {"type": "integer", "minimum": 0}
SHAPES: Mapping[Callable[[Node], object], Shape] = {
    text: TEXT,
    name: NAME,
    names: list_of(NAME),
    integer: {"type": "integer"},
    boolean: {"type": "boolean"},
    duration: DURATION,
    rate: RATE,
    length: quantity("m"),
    angle: quantity("deg"),
    ratio: whole(RATIO_PATTERN),
}
