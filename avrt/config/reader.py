"""Readers of single values, and tables of keys that say how each key of a section is read.

A reader takes a `Node` and returns a value, or raises a SpecError of one line that names the place,
what was expected, what was found and the remedy. A new key is one more line in a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from avrt.config.node import SHOWN_CHARS_MAX, Node, short
from avrt.errors import did_you_mean
from avrt.units import degrees, duration_ns, metres, period_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
N = TypeVar("N", int, float)

NOT_AVAILABLE = "is not available in this version; remove it"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_RATIO = re.compile(r"(\d{1,9})\s+of\s+(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section.

    Attributes:
        name: as the user writes it.
        field: the field of the specification it fills; an absent key leaves the field's default.
        read: the reader of its value.
        example: a value, shown when a required key is missing; None for an optional key.
    """

    name: str
    field: str
    read: Callable[[Node], object]
    example: str | None = None


def section(node: Node, keys: Iterable[Key]) -> dict[str, object]:
    """Read a mapping by its table of keys; return the values by field.

    Raises:
        SpecError: a key is unknown or missing, or a value is wrong.
    """
    known = {key.name: key for key in keys}
    found = node.mapping(f"a mapping with keys such as {', '.join(list(known)[:3])}")
    for name, child in found.items():
        if name not in known:
            where = Node(None, "", node.key, child.place)
            raise where.fail(f"unknown key {short(name)}; {did_you_mean(name, known)}")
    for name, key in known.items():
        if key.example is not None and name not in found:
            raise node.fail(f'{name!r} is missing; add it, such as "{name}: {key.example}"')
    return {known[name].field: known[name].read(child) for name, child in found.items()}


def build(kind: type[T], values: dict[str, object]) -> T:
    """Return a specification from its values by field, read by a table for this class."""
    make: type = kind
    item = make(**values)
    assert isinstance(item, kind)
    return item


def named(node: Node, example: str) -> dict[str, Node]:
    """Return the members of a section whose keys the user chooses, such as `stages`."""
    members = node.mapping(example)
    for name, child in members.items():
        if _NAME.fullmatch(name) is None:
            raise child.fail("expected a name of letters, digits, '_' and '-'")
    return members


def text(node: Node) -> str:
    """Return text; a number is no text unless it is quoted."""
    if not isinstance(node.value, str) or not node.value.isprintable() or not node.value:
        raise node.fail(f"expected text of one line, found {node.shown}")
    return node.value


def name(node: Node) -> str:
    """Return a name of letters, digits, `_` and `-`."""
    if not isinstance(node.value, str) or _NAME.fullmatch(node.value) is None:
        raise node.fail(f"expected a name of letters, digits, '_' and '-', found {node.shown}")
    return node.value


def names(node: Node) -> tuple[str, ...]:
    """Return a list of names."""
    return tuple(name(item) for item in node.items("a list of names"))


def integer(node: Node) -> int:
    """Return a whole number."""
    if type(node.value) is not int:
        raise node.fail(f"expected a whole number, found {node.shown}")
    return node.value


def boolean(node: Node) -> bool:
    """Return true or false; YAML's other words for them are refused."""
    if not isinstance(node.value, bool):
        raise node.fail(f"expected true or false, found {node.shown}")
    return node.value


def duration(node: Node) -> int:
    """Return a duration such as `25 ms` in ns."""
    return _quantity(node, duration_ns, 'a duration with its unit, such as "25 ms"')


def rate(node: Node) -> int:
    """Return the period in ns of a rate such as `10 Hz`, or of a duration."""
    return _quantity(node, period_ns, 'a rate with its unit, such as "10 Hz"')


def length(node: Node) -> float:
    """Return a length such as `0.6 m` in metres."""
    return _quantity(node, metres, 'a length with its unit, such as "0.6 m"')


def angle(node: Node) -> float:
    """Return an angle such as `-90 deg` in degrees."""
    return _quantity(node, degrees, 'an angle with its unit, such as "-90 deg"')


def triple(read: Callable[[Node], float]) -> Callable[[Node], tuple[float, ...]]:
    """Return a reader of a list of three such values."""

    def read_three(node: Node) -> tuple[float, ...]:
        items = node.items("a list of three")
        if len(items) != 3:
            raise node.fail(f"expected a list of three, found {len(items)}")
        return tuple(read(item) for item in items)

    return read_three


def numbers(count: int) -> Callable[[Node], tuple[float, ...]]:
    """Return a reader of a list of so many numbers."""

    def read(node: Node) -> tuple[float, ...]:
        items = node.items(f"{count} numbers")
        if len(items) != count or any(type(item.value) not in {int, float} for item in items):
            shown = ", ".join(item.shown for item in items[: count + 1])
            raise node.fail(f"expected {count} numbers, found {shown or 'none'}")
        return tuple(float(item.text) for item in items)

    return read


def rows(count: int, width: int) -> Callable[[Node], tuple[float, ...]]:
    """Return a reader of a matrix, row after row, as one tuple."""

    def read(node: Node) -> tuple[float, ...]:
        items = node.items(f"{count} rows of {width} numbers")
        if len(items) != count:
            raise node.fail(f"expected {count} rows of {width} numbers, found {len(items)} rows")
        return tuple(number for item in items for number in numbers(width)(item))

    return read


def ratio(node: Node) -> tuple[int, int]:
    """Return (m, k) of `m of k`."""
    match = _RATIO.fullmatch(node.text) if isinstance(node.value, str) else None
    if match is None:
        raise node.fail(f'expected misses and jobs, such as "1 of 10", found {node.shown}')
    return int(match[1]), int(match[2])


def one_of(*choices: str) -> Callable[[Node], str]:
    """Return a reader of one of these words."""

    def choose(node: Node) -> str:
        if isinstance(node.value, str) and node.value in choices:
            return node.value
        near = did_you_mean(node.text, choices)
        remedy = f"; {near}" if near.startswith("did") else ""
        raise node.fail(f"expected one of {', '.join(choices)}, found {node.shown}{remedy}")

    return choose


def not_available(what: str) -> Callable[[Node], object]:
    """Return a reader for what the design names and this version does not have."""

    def refuse(node: Node) -> object:
        raise node.fail(f"{what} {NOT_AVAILABLE}")

    return refuse


def _quantity(node: Node, convert: Callable[[str], N], expected: str) -> N:
    if type(node.value) not in {str, int, float} or len(node.text) > SHOWN_CHARS_MAX:
        raise node.fail(f"expected {expected}, found {node.shown}")
    try:
        return convert(node.text)
    except ValueError as error:
        raise node.fail(str(error)) from None
