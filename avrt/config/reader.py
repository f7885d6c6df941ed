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

    Shape = dict[str, object]

T = TypeVar("T")
N = TypeVar("N", int, float)

NOT_AVAILABLE = "is not available in this version; remove it"

NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_-]{0,62}"
RATIO_PATTERN = "([0-9]{1,9})[ \\t]+of[ \\t]+([0-9]{1,9})"
_NAME = re.compile(NAME_PATTERN)
_RATIO = re.compile(RATIO_PATTERN)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section.

    Attributes:
        name: as the user writes it.
        field: the field of the specification it fills; an absent key leaves the field's default.
        read: the reader of its value.
        example: a value, shown when a required key is missing; None for an optional key.
        about: what it means, for the schema that editors show.
        shape: what it may look like as JSON Schema, where the reader alone does not tell.
    """

    name: str
    field: str
    read: Callable[[Node], object]
    example: str | None = None
    about: str = ""
    shape: Shape | None = None


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


def later(node: Node) -> Node:
    """Return what can only be read once more is known as it is."""
    return node


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


@dataclass(frozen=True, slots=True)
class Triple:
    """Reads a list of three such values."""

    read: Callable[[Node], float]

    def __call__(self, node: Node) -> tuple[float, ...]:
        items = node.items("a list of three")
        if len(items) != 3:
            raise node.fail(f"expected a list of three, found {len(items)}")
        return tuple(self.read(item) for item in items)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reads a list of so many numbers."""

    count: int

    def __call__(self, node: Node) -> tuple[float, ...]:
        items = node.items(f"{self.count} numbers")
        if len(items) != self.count or any(type(i.value) not in {int, float} for i in items):
            shown = ", ".join(item.shown for item in items[: self.count + 1])
            raise node.fail(f"expected {self.count} numbers, found {shown or 'none'}")
        return tuple(float(item.text) for item in items)


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads a matrix, row after row, as one tuple."""

    count: int
    width: int

    def __call__(self, node: Node) -> tuple[float, ...]:
        what = f"{self.count} rows of {self.width} numbers"
        items = node.items(what)
        if len(items) != self.count:
            raise node.fail(f"expected {what}, found {len(items)} rows")
        return tuple(number for item in items for number in Numbers(self.width)(item))


def ratio(node: Node) -> tuple[int, int]:
    """Return (m, k) of `m of k`."""
    match = _RATIO.fullmatch(node.text) if isinstance(node.value, str) else None
    if match is None:
        raise node.fail(f'expected misses and jobs, such as "1 of 10", found {node.shown}')
    return int(match[1]), int(match[2])


@dataclass(frozen=True, slots=True)
class OneOf:
    """Reads one of these words."""

    choices: tuple[str, ...]

    def __call__(self, node: Node) -> str:
        if isinstance(node.value, str) and node.value in self.choices:
            return node.value
        near = did_you_mean(node.text, self.choices)
        remedy = f"; {near}" if near.startswith("did") else ""
        told = f"expected one of {', '.join(self.choices)}, found {node.shown}{remedy}"
        raise node.fail(told)


def one_of(*choices: str) -> OneOf:
    """Return a reader of one of these words."""
    return OneOf(choices)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Refuses what the design names and this version does not have."""

    what: str

    def __call__(self, node: Node) -> object:
        raise node.fail(f"{self.what} {NOT_AVAILABLE}")


def _quantity(node: Node, convert: Callable[[str], N], expected: str) -> N:
    if type(node.value) not in {str, int, float} or len(node.text) > SHOWN_CHARS_MAX:
        raise node.fail(f"expected {expected}, found {node.shown}")
    try:
        return convert(node.text)
    except ValueError as error:
        raise node.fail(str(error)) from None
