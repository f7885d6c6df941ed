"""Payloads with wrong numbers in them, of any class: what a fault makes of a message or an output.

A payload is walked as it is built and made anew, so nobody else's numbers change. What is drawn is
drawn from the generator that is given.

* A flipped bit is one of the sign and the exponent of one floating-point number (of one integer's
  low byte where there is none): flips below change less than voters and detectors tell apart.
* NaN goes into a share of the elements of each floating-point array, and into single numbers.
"""

from __future__ import annotations

import math
import struct
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]  # or of any other type
    Leaf: TypeAlias = float | int | Array
    Alter: TypeAlias = Callable[[Leaf], Leaf]

LOW_BITS = 8
EXPONENT_FROM = {2: 10, 4: 23, 8: 52}
"""By bytes of a floating-point number, its lowest exponent bit."""


def with_added(payload: object, by: float) -> object:
    """Return a payload with something added to every floating-point number."""
    return _altered(payload, lambda leaf: leaf + by if _is_float(leaf) else leaf)


def with_nan(payload: object, share: float, rng: np.random.Generator) -> object:
    """Return a payload in which a share of the floating-point numbers is none."""

    def alter(leaf: Leaf) -> Leaf:
        if not _is_float(leaf):
            return leaf
        if not isinstance(leaf, np.ndarray):
            return math.nan if rng.random() < share else leaf
        made = leaf.copy()
        made[rng.random(leaf.shape) < share] = math.nan
        return made

    return _altered(payload, alter)


def with_flip(payload: object, rng: np.random.Generator) -> object:
    """Return a payload with one bit flipped; the same one where it holds no number."""
    leaves: list[Leaf] = []

    def collect(leaf: Leaf) -> Leaf:
        leaves.append(leaf)
        return leaf

    _altered(payload, collect)
    counts = [_size(leaf) if _is_float(leaf) else 0 for leaf in leaves]
    if not any(counts):
        counts = [_size(leaf) for leaf in leaves]
    total = sum(counts)
    if not total:
        return payload
    place = int(rng.integers(total))
    bit = float(rng.random())
    seen = iter(range(len(leaves)))
    before = np.cumsum([0, *counts])

    def alter(leaf: Leaf) -> Leaf:
        index = next(seen)
        element = place - int(before[index])
        return _flipped(leaf, element, bit) if 0 <= element < counts[index] else leaf

    return _altered(payload, alter)


def _altered(value: object, alter: Alter) -> object:  # noqa: PLR0911 - one case a type
    """Return a payload with every number and array altered, in the order of its fields."""
    match value:
        case bool() | str() | bytes() | None:
            return value
        case int() | float() | np.ndarray():
            return alter(value)
        case dict():
            return {key: _altered(item, alter) for key, item in value.items()}
        case list():
            return [_altered(item, alter) for item in value]
        case tuple():
            return tuple(_altered(item, alter) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            changes = {f.name: _altered(getattr(value, f.name), alter) for f in fields(value)}
            return replace(value, **changes)
        case _:
            return value


def _is_float(leaf: Leaf) -> bool:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind == "f" and leaf.size > 0
    return isinstance(leaf, float)


def _size(leaf: Leaf) -> int:
    return leaf.size if isinstance(leaf, np.ndarray) else 1


def _flipped(leaf: Leaf, element: int, bit: float) -> Leaf:
    """Return a number, or an array, with one bit of one element flipped."""
    if isinstance(leaf, np.ndarray):
        made = leaf.copy()
        words = made.reshape(-1).view(f"u{made.itemsize}")
        words[element] ^= words.dtype.type(1 << _bit(made.itemsize, bit, is_float=_is_float(leaf)))
        return words.view(made.dtype).reshape(made.shape)
    if isinstance(leaf, float):
        (word,) = struct.unpack("<Q", struct.pack("<d", leaf))
        word ^= 1 << _bit(8, bit, is_float=True)
        (found,) = struct.unpack("<d", struct.pack("<Q", word))
        return float(found)
    return leaf ^ 1 << _bit(1, bit, is_float=False)


def _bit(size_bytes: int, bit: float, *, is_float: bool) -> int:
    """Return the number of the bit that a share of 0 to 1 chooses."""
    if not is_float:
        return int(bit * LOW_BITS)
    low = EXPONENT_FROM[size_bytes]
    return low + int(bit * (8 * size_bytes - low))
