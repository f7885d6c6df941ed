"""A YAML text as nodes: a strict subset of YAML, without its surprises.

Refused, each at its line and with a remedy: duplicate keys, anchors, aliases, merge keys, tags,
several documents, and the plain words and numbers that YAML 1.1 and 1.2 read differently (`yes`,
`on`, `True`, `010`, `1_000`, `12:30`). What is left means the same in both. Integers have at most
18 digits.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import yaml
from yaml.reader import ReaderError

from avrt.config.node import DEPTH_MAX, Node, short
from avrt.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_BYTES_MAX = 1 << 18

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_AMBIGUOUS = re.compile(
    r"[-+]?(0[0-9xob][0-9a-fA-F_]*|[0-9][0-9_]*_[0-9_.]*|[0-9]+(:[0-9.]+)+|[0-9]{19,})"
)
_NO_NUMBER = {".inf", "-.inf", "+.inf", ".nan"}
_BOOLEANS = dict.fromkeys(("yes", "on", "true"), "true") | dict.fromkeys(
    ("no", "off", "false"), "false"
)
_NOTHING = {"", "~", "null"}


def read_text(path: Path, what: str = "pipeline") -> str:
    """Return the text of a file of this kind; SpecError when there is none or it is no UTF-8."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SpecError(_no_such_file(path), place=str(path)) from None
    except IsADirectoryError:
        raise SpecError(f"is a folder; give the {what} file in it", place=str(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(f"cannot be read: {reason}", place=str(path)) from None
    if data.startswith(b"\x89MCAP"):
        raise SpecError(f"is an MCAP log; a {what} file is YAML text", place=str(path))
    if len(data) > FILE_BYTES_MAX:
        told = f"is {len(data)} bytes long; a {what} file has at most {FILE_BYTES_MAX}"
        raise SpecError(told, place=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        told = f"is not UTF-8 (byte 0x{data[error.start]:02x}); save it as UTF-8"
        raise SpecError(told, place=f"{path}:{line}") from None


def read_yaml(text: str, name: str, what: str = "pipeline") -> Node:
    """Return the tree of one YAML document; `name` stands for the file in the messages.

    `what` is the kind of file and the key that it starts with.

    Raises:
        SpecError: it is no YAML, or uses what is refused here.
    """
    events = _Events(text, name)
    events.skip(yaml.StreamStartEvent)
    if events.at(yaml.StreamEndEvent):
        told = f'is empty; a {what} starts with "{what}: NAME"'
        raise SpecError(told, place=f"{name}:1")
    events.skip(yaml.DocumentStartEvent)
    root = _node(events, ())
    events.skip(yaml.DocumentEndEvent)
    if not events.at(yaml.StreamEndEvent):
        raise SpecError(f"holds a second document; one file is one {what}", place=events.place)
    return root


class _Events:
    """The parser's events one by one, its errors as SpecError."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.line = 1
        self._events = self._checked(text)
        self._next: yaml.Event = next(self._events)

    @property
    def place(self) -> str:
        return f"{self.name}:{_line(self._next.start_mark)}"

    def at(self, kind: type[yaml.Event]) -> bool:
        return isinstance(self._next, kind)

    def take(self) -> yaml.Event:
        event = self._next
        self._next = next(self._events, event)
        return event

    def skip(self, kind: type[yaml.Event]) -> None:
        assert self.at(kind)
        self.take()

    def _checked(self, text: str) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = _line(error.problem_mark)
            raise SpecError(_syntax(error), place=f"{self.name}:{line}") from None
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            what = f"not valid YAML: character U+{error.character:04X} is not allowed; remove it"
            raise SpecError(what, place=f"{self.name}:{line}") from None


def _node(events: _Events, key: tuple[str, ...], place: str | None = None) -> Node:
    place = place or events.place
    if len(key) > DEPTH_MAX:
        raise SpecError(f"nested deeper than {DEPTH_MAX} levels", key[:3], place)
    event = events.take()
    assert isinstance(event, yaml.NodeEvent)
    if event.anchor is not None:
        raise SpecError("anchors and aliases are not used; write the value out", key, place)
    assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
    if event.tag is not None:
        raise SpecError(f"tags such as {short(event.tag)} are not used; drop it", key, place)
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, key, place)
    if isinstance(event, yaml.SequenceStartEvent):
        return _list(events, key, place)
    assert isinstance(event, yaml.ScalarEvent)
    value = event.value if event.style else _scalar(event.value, key, place)
    return Node(value, event.value, key, place)


def _mapping(events: _Events, key: tuple[str, ...], place: str) -> Node:
    children: dict[str, Node] = {}
    while not events.at(yaml.MappingEndEvent):
        here = events.place
        if events.at(yaml.CollectionStartEvent):
            raise SpecError("expected a name as key, found a list or a mapping", key, here)
        name_node = _node(events, key)
        name = name_node.text
        if not isinstance(name_node.value, str):
            raise SpecError(f"expected a name as key, found {name_node.shown}", key, here)
        if name == "<<":
            raise SpecError("merge keys are not used; write the values out", key, here)
        if name in children:
            first = children[name].place or ""
            what = f"key {short(name)} is given twice, first in line {first.rpartition(':')[2]}"
            raise SpecError(what, key, here)
        children[name] = _node(events, (*key, name), here)
    events.take()
    return Node(children, "", key, place)


def _list(events: _Events, key: tuple[str, ...], place: str) -> Node:
    items: list[Node] = []
    while not events.at(yaml.SequenceEndEvent):
        items.append(_node(events, (*key, str(len(items)))))
    events.take()
    return Node(tuple(items), "", key, place)


def _scalar(text: str, key: tuple[str, ...], place: str) -> str | int | float | bool | None:
    lower = text.lower()
    if text in {"true", "false"}:
        return text == "true"
    if lower in _NOTHING:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if lower in _BOOLEANS:
        remedy = f"write {_BOOLEANS[lower]}, or put it in quotes if it is text"
        raise SpecError(f"{text!r} is not used; {remedy}", key, place)
    if _AMBIGUOUS.fullmatch(text):
        remedy = "write a plain decimal number, or put it in quotes if it is text"
        raise SpecError(f"{text!r} is ambiguous; {remedy}", key, place)
    is_float = _FLOAT.fullmatch(text) is not None
    if lower in _NO_NUMBER or (is_float and not math.isfinite(float(text))):
        raise SpecError(f"expected a finite number, found {text!r}", key, place)
    return float(text) if is_float else text


def _line(mark: object) -> int:
    assert isinstance(mark, yaml.Mark)
    return mark.line + 1


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = " ".join(str(error.problem).split())
    if r"'\t'" in problem:
        return "not valid YAML: a tab cannot indent; use spaces"
    return f"not valid YAML: {problem}; check indentation, colons and brackets here and just above"


def _no_such_file(path: Path) -> str:
    folder = path.parent
    names = sorted(p.name for p in folder.glob("*.y*ml")) if folder.is_dir() else []
    return f"no such file; {did_you_mean(path.name, names)}" if names else "no such file"
