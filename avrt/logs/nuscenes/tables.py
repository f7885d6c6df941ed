"""The tables of nuScenes: JSON files with a list of records, each known by its token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray


class Row:
    """One record, whose values are what they should be or raise `InputError`."""

    def __init__(self, values: Mapping[str, object], place: str) -> None:
        self._values = values
        self._place = place

    def text(self, key: str) -> str:
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self._error(key, "a text")
        return value

    def whole(self, key: str, largest: int) -> int:
        """Return a whole number from 0 to `largest`."""
        value = self._values.get(key)
        if not isinstance(value, int) or not 0 <= value <= largest:
            raise self._error(key, f"a whole number from 0 to {largest}")
        return value

    def flag(self, key: str) -> bool:
        return bool(self._values.get(key))

    def numbers(self, key: str, *shape: int) -> NDArray[np.float64]:
        """Return numbers as an array of this shape."""
        try:
            found = np.array(self._values.get(key), float)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != shape or not np.isfinite(found).all():
            raise self._error(key, f"{shape} numbers")
        return found

    def _error(self, key: str, expected: str) -> InputError:
        found = f"{self._values.get(key)!r:.60}"
        token = f"{self._values.get('token')!r:.40}"
        return InputError(
            f"expected {key} to be {expected}, found {found}", f"{self._place}, {token}"
        )


class Tables:
    """The tables of one version, each read when it is asked for and not kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(
        self, name: str, wanted: Callable[[Mapping[str, object]], bool] = lambda _values: True
    ) -> Iterator[Row]:
        """Yield the records of a table, those that are wanted.

        Raises:
            InputError: it is missing or no list of records.
        """
        path = self._folder / f"{name}.json"
        try:
            records: object = json.loads(read_bytes(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected JSON: {error}", str(path)) from None
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise InputError("expected a list of records", str(path))
        return (Row(one, str(path)) for one in records if wanted(one))

    def by_token(self, name: str, tokens: set[str] | None = None) -> dict[str, Row]:
        """Return the records of a table by token, those of some tokens or all.

        Raises:
            InputError: it is missing or no list of records, or one of the tokens is not in it.
        """
        found = {
            row.text("token"): row
            for row in self.rows(name, lambda one: tokens is None or one.get("token") in tokens)
        }
        for token in sorted((tokens or set()) - found.keys()):
            what = f"expected a record {token!r}, which others name, found none"
            raise InputError(what, str(self._folder / f"{name}.json"))
        return found


def one_of(table: Mapping[str, Row], token: str, name: str) -> Row:
    """Return a record that another one names.

    Raises:
        InputError: it is not there.
    """
    if token not in table:
        raise InputError(f"expected a record {token!r}, which others name, found none", name)
    return table[token]
