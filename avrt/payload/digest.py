"""A digest of payloads that is equal exactly when every number in them is.

Fields are taken in declaration order, arrays with their type and shape, floats by their bits.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


class PayloadDigest:
    """A running SHA-256 over published payloads."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, stage: str, sequence: int, digest: bytes) -> None:
        """Take in one published payload by its own digest."""
        self._hash.update(f"{stage},{sequence};".encode() + digest)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def digest_of(payload: object) -> bytes:
    """Return the digest of one payload.

    Raises:
        TypeError: it holds something that is neither plain data, an array nor a dataclass.
    """
    digest = hashlib.sha256()
    _update(digest, payload)
    return digest.digest()


def _update(digest: _Hash, value: object) -> None:  # noqa: C901, PLR0912 - one case a type
    match value:
        case None | bool() | int() | str() | bytes():
            digest.update(f"{type(value).__name__}:{value!r};".encode())
        case np.ndarray() if not value.dtype.hasobject:
            digest.update(f"array:{value.dtype.str}:{value.shape};".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        case np.generic():
            digest.update(f"scalar:{value.dtype.str};".encode() + value.tobytes())
        case float():
            digest.update(b"float:" + struct.pack("<d", value))
        case tuple() | list():
            digest.update(f"list:{len(value)};".encode())
            for item in value:
                _update(digest, item)
        case dict():
            _update_mapping(digest, value)
        case _ if is_dataclass(value):
            digest.update(f"{type(value).__name__};".encode())
            for field in fields(value):
                _update(digest, getattr(value, field.name))
        case _ if hasattr(value, "detach") and hasattr(value, "numpy"):
            _update(digest, value.detach().cpu().numpy())
        case _:
            raise TypeError(f"expected plain data, an array or a dataclass, found {type(value)}")


def _update_mapping(digest: _Hash, value: Mapping[object, object]) -> None:
    digest.update(f"dict:{len(value)};".encode())
    for key, item in value.items():
        _update(digest, key)
        _update(digest, item)
