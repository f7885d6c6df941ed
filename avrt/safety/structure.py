"""How far two payloads lie apart, and whether all of their numbers are finite.

Payloads are walked as they are built: dataclasses, lists, mappings, arrays, tensors, plain values.
Two payloads of different build lie infinitely far apart. Floating-point numbers may differ by a
share of the largest magnitude of their own array: healthy runs of one network in single precision
differ by 5e-7 of it with other thread counts or kernels, but by up to 3e-4 of the number itself
where that is near zero, so each number's own magnitude says nothing. Everything else must be equal.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from avrt.payload.digest import no_payload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]  # or of any other type


class _Tensor(Protocol):
    """What is asked of a torch tensor, which this module does not import."""

    def detach(self) -> _Tensor: ...
    def cpu(self) -> _Tensor: ...
    def numpy(self) -> Array: ...


def apart(  # noqa: PLR0911 - one case a type
    a: object, b: object, share: float, absolute: float
) -> float:
    """Return the largest difference in units of what is allowed: 1 is just allowed.

    Args:
        a: one payload.
        b: another one.
        share: of the largest magnitude in an array, or of a number.
        absolute: allowed whatever the magnitude.

    Raises:
        TypeError: something in them is no payload.
    """
    if type(a) is not type(b):
        return math.inf
    match a:
        case None | bool() | int() | str() | bytes():
            return 0.0 if a == b else math.inf
        case float():
            assert isinstance(b, float)
            return in_units(abs(a - b), max(abs(a), abs(b)), share, absolute)
        case np.ndarray() | np.generic():
            return _arrays_apart(np.asarray(a), np.asarray(b), share, absolute)
        case dict():
            return _mappings_apart(a, cast("dict[object, object]", b), share, absolute)
        case list() | tuple():
            return _sequences_apart(a, cast("list[object]", b), share, absolute)
        case _ if is_dataclass(a):
            return _sequences_apart(_values(a), _values(b), share, absolute)
        case _ if hasattr(a, "detach"):
            return _arrays_apart(_from_tensor(a), _from_tensor(b), share, absolute)
        case _:
            raise TypeError(no_payload(a))


def is_finite(payload: object) -> bool:  # noqa: PLR0911 - one case a type
    """Return whether no floating-point number in a payload is infinite or not a number."""
    match payload:
        case float():
            return math.isfinite(payload)
        case np.ndarray() | np.generic():
            return _is_finite_array(np.asarray(payload))
        case dict():
            return all(map(is_finite, payload.values()))
        case list() | tuple():
            return all(map(is_finite, payload))
        case _ if is_dataclass(payload):
            return all(map(is_finite, _values(payload)))
        case _ if hasattr(payload, "detach"):
            return _is_finite_array(_from_tensor(payload))
        case _:
            return True


def _arrays_apart(a: Array, b: Array, share: float, absolute: float) -> float:
    if a.dtype != b.dtype or a.shape != b.shape:
        return math.inf
    if not np.issubdtype(a.dtype, np.inexact):
        return 0.0 if np.array_equal(a, b) else math.inf
    if not a.size:
        return 0.0
    top = max(float(np.abs(a).max()), float(np.abs(b).max()))
    return in_units(float(np.abs(a - b).max()), top, share, absolute)


def in_units(difference: float, top: float, share: float, absolute: float) -> float:
    """Return a difference in units of what is allowed beside a magnitude of at most `top`."""
    if math.isnan(difference):
        return math.inf
    allowed = max(absolute, share * top)
    return difference / allowed if allowed else (0.0 if difference == 0 else math.inf)


def _sequences_apart(
    a: list[object] | tuple[object, ...],
    b: list[object] | tuple[object, ...],
    share: float,
    absolute: float,
) -> float:
    if len(a) != len(b):
        return math.inf
    found = (apart(x, y, share, absolute) for x, y in zip(a, b, strict=True))
    return max(found, default=0.0)


def _mappings_apart(
    a: dict[object, object], b: dict[object, object], share: float, absolute: float
) -> float:
    if a.keys() != b.keys():
        return math.inf
    return max((apart(a[key], b[key], share, absolute) for key in a), default=0.0)


def _is_finite_array(array: Array) -> bool:
    if not np.issubdtype(array.dtype, np.inexact) or not array.size:
        return True
    return bool(np.isfinite(array.min()) and np.isfinite(array.max()))  # both pass NaN on


def _values(item: object) -> list[object]:
    assert is_dataclass(item)
    return [getattr(item, field.name) for field in fields(item)]


def _from_tensor(tensor: object) -> Array:
    return cast("_Tensor", tensor).detach().cpu().numpy()
