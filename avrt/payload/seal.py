"""A payload that is handed over is not changed any more.

Whoever reads it may do so while its maker works on the next one, so its arrays become read-only,
together with the memory they are views of: a stage that writes into what it returned, or into what
it was given, fails at that line instead of changing what others read. Tensors have no such flag.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np


def seal(payload: object) -> None:
    """Make every array of a payload read-only."""
    match payload:
        case np.ndarray():
            _seal_array(payload)
        case tuple() | list():
            for item in payload:
                seal(item)
        case dict():
            for item in payload.values():
                seal(item)
        case _ if is_dataclass(payload) and not isinstance(payload, type):
            for field in fields(payload):
                seal(getattr(payload, field.name))
        case _:
            pass


def _seal_array(array: object) -> None:
    while isinstance(array, np.ndarray) and array.flags.writeable:
        array.flags.writeable = False
        array = array.base
