"""What is written never replaces what it is made from, nor another output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable


def keep_apart(what: str, out: str | Path, others: Iterable[str | Path | None]) -> None:
    """Refuse an output, "the page" or another, that is one of these files under any name.

    Raises:
        SpecError: it is.
    """
    for other in others:
        if other is not None and _is_same(Path(out), Path(other)):
            raise SpecError(f"{what} would overwrite {other}; give another path")


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()
