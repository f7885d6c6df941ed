"""How much memory a payload takes, about."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np

REST_BYTES = 64
"""For everything that is no array."""


def size_bytes(payload: object) -> int:
    """Return the bytes of the arrays in a payload, and a little for the rest."""
    match payload:
        case np.ndarray():
            return payload.nbytes
        case bytes():
            return len(payload)
        case list() | tuple():
            return sum(map(size_bytes, payload))
        case dict():
            return sum(map(size_bytes, payload.values()))
        case _ if is_dataclass(payload):
            return sum(size_bytes(getattr(payload, field.name)) for field in fields(payload))
        case _:
            return REST_BYTES
