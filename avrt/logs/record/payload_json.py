"""Payloads as JSON and back: the numbers of a run, for reports, scores and users.

A dataclass is an object with its class name under `$type`; an array has `$array` (its dtype),
`shape` and `data`; a float that JSON has no word for is `{"$float": "nan"}`. Numbers survive
exactly. Bulk arrays (points, pixels) keep dtype and shape only: they read back as NaN, or zero.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from avrt import payload
from avrt.model.message import Message, Origin, Stamp

KNOWN: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (*(getattr(payload, name) for name in payload.__all__), Message, Origin, Stamp)
}
BULK: Mapping[str, tuple[str, ...]] = {
    "PointCloud": ("xyz", "intensity", "seconds"),
    "Image": ("data",),
    "RoadMask": ("drivable", "lane"),
    "Detection": ("points",),
    "Track": ("points",),
}
DEPTH_MAX = 64


def to_json(value: object) -> str:
    """Return any payload, or message, as one line of JSON.

    Raises:
        TypeError: it holds something that is neither plain data, array nor dataclass.
    """
    return json.dumps(_plain(value, 0), allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> object:
    """Return what `to_json` was given; a dataclass that avrt does not know is a dict.

    Raises:
        ValueError: it is not what `to_json` writes.
    """
    try:
        return _rich(json.loads(text))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"expected a payload as JSON, found {text[:80]!r}: {error}") from None


def _plain(value: object, depth: int) -> object:
    if depth > DEPTH_MAX:
        raise TypeError(f"expected at most {DEPTH_MAX} levels of nesting")
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value, depth)
    if isinstance(value, Mapping):
        return {str(name): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, np.generic) or hasattr(value, "__array__"):
        return _plain_array(value, depth, bulk=False)
    raise TypeError(f"expected plain data, arrays or dataclasses, found {type(value).__name__}")


def _plain_fields(value: object, depth: int) -> object:
    assert is_dataclass(value)
    name = type(value).__name__
    plain: dict[str, object] = {"$type": name}
    for field in fields(value):
        if not field.metadata.get("recorded", True):
            continue
        item = getattr(value, field.name)
        if field.name in BULK.get(name, ()) and item is not None:
            plain[field.name] = _plain_array(item, depth, bulk=True)
        else:
            plain[field.name] = _plain(item, depth + 1)
    return plain


def _plain_array(value: object, depth: int, *, bulk: bool) -> object:
    array = np.asarray(value)
    plain: dict[str, object] = {"$array": array.dtype.name, "shape": list(array.shape)}
    if not bulk:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"expected an array of numbers, found dtype {array.dtype}")
        values = array.ravel().tolist()
        exact = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        plain["data"] = values if exact else [_plain(value, depth + 1) for value in values]
    return plain


def _rich(data: object) -> object:
    if isinstance(data, list):
        return tuple(_rich(item) for item in data)
    if not isinstance(data, dict):
        return data
    if "$float" in data:
        return float(data["$float"])
    if "$array" in data:
        return _rich_array(data)
    items = {name: _rich(item) for name, item in data.items() if name != "$type"}
    kind = KNOWN.get(data.get("$type", ""))
    if kind is None:
        return items if "$type" not in data else {"$type": data["$type"], **items}
    rich: object = kind(**items)
    return rich


def _rich_array(data: dict[str, object]) -> object:
    dtype, shape = np.dtype(str(data["$array"])), data["shape"]
    if dtype.kind not in "biuf" or not isinstance(shape, list):
        raise ValueError(f"expected an array of numbers with its shape, found {data!r:.80}")
    sizes = [int(size) for size in shape]
    if "data" not in data:
        return np.broadcast_to(np.array(np.nan if dtype.kind == "f" else 0, dtype), sizes)
    values = _rich(data["data"])
    return np.array(values, dtype).reshape(sizes)
