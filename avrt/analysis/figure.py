"""A number of an analysis, how far it can be trusted, and where it comes from.

* exact: some legal run attains it, to within the one ns by which ties are decided;
* bound: no legal run exceeds it, and perhaps none attains it;
* unknown: no test that applies gives a number. An answer too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Label = Literal["exact", "bound", "unknown"]
Verdict = Literal["meets", "misses", "unknown"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A time in ns, None when unknown."""

    ns: int | None
    label: Label
    source: str


def unknown(why: str) -> Figure:
    return Figure(None, "unknown", why)
