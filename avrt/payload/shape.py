"""What a payload is and how large, in a word: execution times of one shape can be compared.

Where the size varies from message to message (points of a sweep, objects of a list), it is given
to within a factor of two, so that messages of about one size fall together.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from avrt.payload.image import Image


def shape_of(payload: object) -> str:
    """Return the class and the size of a payload: "Image 1242x375", "PointCloud 65536-131071".

    The size of an image is its own, or that of its camera; of anything else it is the length of its
    first array or tuple.
    """
    name = type(payload).__name__
    if isinstance(payload, Image):
        sized = payload if payload.width_px or payload.info is None else payload.info
        known = sized.width_px and sized.height_px
        return f"{name} {sized.width_px}x{sized.height_px}" if known else name
    count = _length(payload)
    if count is None:
        return name
    low = 1 << count.bit_length() >> 1
    return f"{name} {count}" if count <= 1 else f"{name} {low}-{2 * low - 1}"


def _length(payload: object) -> int | None:
    values = [payload]
    if is_dataclass(payload):
        values = [getattr(payload, field.name) for field in fields(payload)]
    for value in values:
        shape = getattr(value, "shape", None)
        if shape:
            return int(shape[0])
        if isinstance(value, tuple | list):
            return len(value)
    return None
