"""A payload that is handed over is not changed any more.

Whoever reads it may do so while its maker works on the next one. So its lists, mappings and
mutable dataclasses are copied when it is taken, and its arrays become read-only, together with the
memory they are views of: a stage that writes into what it returned, or into what it was given,
fails at that line instead of changing what others read. Tensors have no such flag.
"""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass
from typing import TypeVar, cast

import numpy as np

T = TypeVar("T")


def sealed(payload: T) -> T:
    """Return a payload that its maker cannot change: the same one where nothing in it could be."""
    return cast("T", _sealed(payload))


def _sealed(value: object) -> object:
    match value:
        case np.ndarray():
            _seal_array(value)
            return value
        case list():
            return [_sealed(item) for item in value]
        case dict():
            return {key: _sealed(item) for key, item in value.items()}
        case tuple():
            items = [_sealed(item) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(items)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _sealed_fields(value)
        case _:
            return value


def _sealed_fields(value: object) -> object:
    assert is_dataclass(value)
    found = {field.name: _sealed(getattr(value, field.name)) for field in fields(value)}
    is_frozen = getattr(type(value), "__dataclass_params__").frozen  # noqa: B009 - it has no type
    if is_frozen and all(item is getattr(value, name) for name, item in found.items()):
        return value
    taken = copy.copy(value)
    for name, item in found.items():
        object.__setattr__(taken, name, item)
    return taken


def _seal_array(array: object) -> None:
    while isinstance(array, np.ndarray):
        array.flags.writeable = False
        array = array.base
