"""One value of a pipeline file, or of a call in Python, with the place it stands at.

Both ways in become the same tree, so they go through the same readers and give the same messages;
only a file has a place (`file:line`). A scalar keeps its text as written for the messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH_MAX = 30
SHOWN_CHARS_MAX = 60


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping, a list or a scalar.

    Attributes:
        value: named nodes, a tuple of nodes, or a str, int, float, bool or None. A value from
            Python may be any other object; then every reader refuses it.
        text: the scalar as the user wrote it.
        key: path of keys from the top.
        place: `file:line`; None for a value from Python.
    """

    value: object
    text: str
    key: tuple[str, ...] = ()
    place: str | None = None

    def fail(self, what: str) -> SpecError:
        """Return a SpecError at this node; `what` holds the problem and its remedy."""
        key = tuple(part if part.isprintable() else repr(part) for part in self.key)
        return SpecError(what, key, self.place)

    def mapping(self, example: str = "names with values") -> dict[str, Node]:
        """Return the nodes by name, in the order they stand; SpecError for any other value."""
        if not isinstance(self.value, dict):
            raise self.fail(f"expected {example}, found {self.shown}")
        return self.value

    def items(self, example: str = "a list") -> tuple[Node, ...]:
        """Return the nodes of a list; SpecError for any other value."""
        if not isinstance(self.value, tuple):
            raise self.fail(f"expected {example}, found {self.shown}")
        return self.value

    @property
    def folder(self) -> Path:
        """The folder that paths of its file count from; of a value from Python, this one."""
        return Path() if self.place is None else Path(self.place.rpartition(":")[0]).parent

    @property
    def shown(self) -> str:
        """The value as a message shows it: one line of bounded length."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, tuple):
            return "a list"
        if self.value is None:
            return "nothing"
        return short(self.text)

    def nearest(self, key: tuple[str, ...]) -> Node:
        """Return the node at this path of keys, or its nearest ancestor that exists."""
        node = self
        for part in key:
            if not isinstance(node.value, dict) or part not in node.value:
                return node
            node = node.value[part]
        return node


def short(text: str) -> str:
    """Return a text in quotes as a message shows it: one line of bounded length."""
    return repr(text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}...")


def from_python(value: object, key: tuple[str, ...] = ()) -> Node:
    """Return the node of a Python value; SpecError if it is nested too deep or is nan or inf."""
    if len(key) > DEPTH_MAX:
        raise SpecError(f"nested deeper than {DEPTH_MAX} levels", key[:3])
    if isinstance(value, Mapping):
        return Node(dict(_named(value, key)), "", key)
    if isinstance(value, list | tuple):
        nodes = (from_python(item, (*key, str(index))) for index, item in enumerate(value))
        return Node(tuple(nodes), "", key)
    node = Node(value, str(value), key)
    if isinstance(value, float) and not math.isfinite(value):
        raise node.fail(f"expected a finite number, found {node.shown}")
    return node


def plain(node: Node) -> object:
    """Return the value as plain Python data; SpecError for an object that is no plain data."""
    if isinstance(node.value, dict):
        return {name: plain(child) for name, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(child) for child in node.value]
    if node.value is None or type(node.value) in {bool, int, float, str}:
        return node.value
    kind = type(node.value).__name__
    raise node.fail(f"expected text, a number, true, false, a list or a mapping, found a {kind}")


def _named(value: Mapping[object, object], key: tuple[str, ...]) -> Iterator[tuple[str, Node]]:
    for name, child in value.items():
        if not isinstance(name, str):
            raise SpecError(f"expected names as keys, found {name!r}", key)
        yield name, from_python(child, (*key, name))
