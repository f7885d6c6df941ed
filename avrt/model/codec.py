"""Model objects as canonical JSON and back: what journals and run records hold.

* Any model object is written `["Completed", {"job": 3, "buffer": 7, "device_ns": 12}]`: its class
  and its fields in declaration order. A nested object whose class the field fixes has no tag.
* The same object always gives the same text: ASCII, no blanks, integers as integers, enum members
  by name, tuples as lists. `params` hold plain data only (see `PLAIN_DEPTH_MAX`), no nan or inf.
* Reading is strict: an unknown class, a missing or unknown field, a wrong type or value raises
  ValueError that names what was expected. A field with a default may be missing, so that a record
  written before the field existed still reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from avrt.model.commands import Command
from avrt.model.events import Event
from avrt.model.records import AnyRecord
from avrt.model.spec import PipelineSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

PLAIN_DEPTH_MAX = 32

_UNIONS = (UnionType, Union)
_JSON = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":"))
_NAMESPACE = {"AnyRecord": AnyRecord, "Mapping": Mapping}
_SCALARS = {int: "an integer", str: "text", bool: "true or false"}


def encode(item: object) -> list[object]:
    """Return an event, command, record or specification as plain data: `[class, fields]`.

    Raises:
        ValueError: `params` hold something that is no plain data.
    """
    kind: type = type(item)
    return [kind.__name__, _table(kind).encode(item)]


def decode(kind: type[T], data: object) -> T:
    """Return the object of exactly this class that `encode` turned into `data`.

    Raises:
        ValueError: it is not what `encode` writes; the text says what was expected.
    """
    item = _decode_tagged({kind.__name__: kind}, data)
    assert isinstance(item, kind)
    return item


def decode_event(data: object) -> Event:
    """Return the event that `encode` turned into `data`, or raise ValueError."""
    item = _decode_tagged(_tags(Event), data)
    assert isinstance(item, Event)
    return item


def decode_command(data: object) -> Command:
    """Return the command that `encode` turned into `data`, or raise ValueError."""
    item = _decode_tagged(_tags(Command), data)
    assert isinstance(item, Command)
    return item


def decode_record(data: object) -> AnyRecord:
    """Return the record that `encode` turned into `data`, or raise ValueError."""
    item = _decode_tagged(_tags(AnyRecord), data)
    assert isinstance(item, AnyRecord)
    return item


def decode_pipeline(data: object) -> PipelineSpec:
    """Return the pipeline that `encode` turned into `data`, or raise ValueError."""
    return decode(PipelineSpec, data)


def to_json(data: object) -> str:
    """Return plain data, such as `encode` gives, as canonical JSON text (ASCII, one line)."""
    return _JSON.encode(data)


def from_json(text: str | bytes) -> object:
    """Return the plain data of a JSON text, or raise ValueError that says what is wrong with it."""
    try:
        data: object = json.loads(text)
    except RecursionError:
        raise ValueError("expected JSON of bounded depth, found endless nesting") from None
    return data


@dataclass(frozen=True, slots=True)
class _Codec:
    """How values of one type are written and read; `plain` ones are written as they are."""

    encode: Callable[[object], object]
    decode: Callable[[object], object]
    plain: bool = False


class _Table:
    """The fields of one class, worked out once."""

    def __init__(self, kind: type) -> None:
        hints = get_type_hints(kind, localns=_NAMESPACE)
        self.kind = kind
        self.codecs = {f.name: _codec(hints[f.name]) for f in fields(kind)}
        self.names = tuple(self.codecs)
        self.required = frozenset(f.name for f in fields(kind) if _required(f))
        self.rich = [(name, c.encode) for name, c in self.codecs.items() if not c.plain]

    def encode(self, item: object) -> dict[str, object]:
        data: dict[str, object] = {name: getattr(item, name) for name in self.names}
        for name, encode_value in self.rich:
            data[name] = encode_value(data[name])
        return data

    def decode(self, data: object) -> object:
        if not isinstance(data, dict):
            raise _expected(f"the fields of {self.kind.__name__}", data)
        self._check_names(data)
        values: dict[str, object] = {}
        for name, value in data.items():
            try:
                values[name] = self.codecs[name].decode(value)
            except ValueError as error:
                raise ValueError(f"{self.kind.__name__}.{name}: {error}") from None
        item: object = self.kind(**values)
        return item

    def _check_names(self, data: Mapping[str, object]) -> None:
        if not data.keys() <= self.codecs.keys() or not self.required <= data.keys():
            names = ", ".join(self.names) or "none"
            found = ", ".join(map(str, data)) or "none"
            what = f"the fields of {self.kind.__name__} ({names})"
            raise ValueError(f"expected {what}, found {found}")


@cache
def _table(kind: type) -> _Table:
    if not is_dataclass(kind):
        raise ValueError(f"expected an object of avrt.model, found a {kind.__name__}")
    return _Table(kind)


@cache
def _tags(union: object) -> Mapping[str, type]:
    return {kind.__name__: kind for kind in get_args(union)}


@cache
def _codec(hint: object) -> _Codec:
    if isinstance(hint, type):
        return _class_codec(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choice(args)
    if origin is tuple:
        return _sequence(_codec(args[0]))
    if origin in _UNIONS and args[-1] is NoneType:
        return _optional(_codec(args[0]))
    if origin in _UNIONS:
        tags = _tags(hint)
        return _Codec(encode, lambda data: _decode_tagged(tags, data))
    assert origin is Mapping, f"no codec for {hint}"
    return _Codec(_plain_mapping, _plain_mapping)


def _class_codec(kind: type) -> _Codec:
    if kind in _SCALARS:
        return _scalar(kind)
    if kind is float:
        return _Codec(_finite, _finite, plain=True)
    if issubclass(kind, Enum):
        return _enum(kind)
    assert is_dataclass(kind), f"no codec for {kind}"
    table = _Table(kind)
    return _Codec(table.encode, table.decode)


def _decode_tagged(tags: Mapping[str, type], data: object) -> object:
    if not (isinstance(data, list) and len(data) == 2 and isinstance(data[0], str)):
        raise _expected(f"[class, fields] of {_one_of(tags)}", data)
    name, values = data
    if name not in tags:
        raise _expected(_one_of(tags), name)
    return _table(tags[name]).decode(values)


def _scalar(kind: type) -> _Codec:
    def check(data: object) -> object:
        if type(data) is not kind:
            raise _expected(_SCALARS[kind], data)
        return data

    return _Codec(check, check, plain=True)


def _finite(data: object) -> object:
    if type(data) is not float or not math.isfinite(data):
        raise _expected("a finite number with a decimal point", data)
    return data


def _enum(kind: type[Enum]) -> _Codec:
    members: dict[str, object] = dict(kind.__members__)

    def name_of(value: object) -> str:
        assert isinstance(value, Enum)
        return value.name

    def member(data: object) -> object:
        if not isinstance(data, str) or data not in members:
            raise _expected(_one_of(members), data)
        return members[data]

    return _Codec(name_of, member)


def _choice(choices: tuple[object, ...]) -> _Codec:
    def check(data: object) -> object:
        if not isinstance(data, str) or data not in choices:
            raise _expected(_one_of(map(str, choices)), data)
        return data

    return _Codec(check, check, plain=True)


def _sequence(item: _Codec) -> _Codec:
    def write(value: object) -> object:
        assert isinstance(value, tuple)
        return list(value) if item.plain else [item.encode(v) for v in value]

    def read(data: object) -> object:
        if not isinstance(data, list):
            raise _expected("a list", data)
        return tuple(item.decode(d) for d in data)

    return _Codec(write, read)


def _optional(item: _Codec) -> _Codec:
    def write(value: object) -> object:
        return None if value is None else item.encode(value)

    def read(data: object) -> object:
        return None if data is None else item.decode(data)

    return _Codec(write, read, plain=item.plain)


def _plain_mapping(value: object) -> object:
    if not isinstance(value, Mapping):
        raise _expected("names with values", value)
    return _plain(value, 0)


def _plain(value: object, depth: int) -> object:
    if depth > PLAIN_DEPTH_MAX:
        raise ValueError(f"expected at most {PLAIN_DEPTH_MAX} levels of nesting")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise _expected("a name", name)
        return {name: _plain(v, depth + 1) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, depth + 1) for v in value]
    if value is None or type(value) in {bool, int, str}:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise _expected("plain data (text, numbers, true, false, null, lists, mappings)", value)


def _required(item: Field[object]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _one_of(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)


def _expected(what: str, found: object) -> ValueError:
    text = repr(found)
    return ValueError(f"expected {what}, found {text[:80]}")
