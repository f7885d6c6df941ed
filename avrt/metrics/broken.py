"""One thing that was not as declared; `avrt.metrics.assumptions` names the kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal[
    "execution",
    "rate",
    "delay",
    "gap",
    "phase",
    "lost",
    "level",
    "told_late",
    "unseen",
    "supply",
    "failure",
    "skipped",
]


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that was not as declared.

    Attributes:
        subject: the task, source, device or stream.
        index: of the job, or of the message in the order of arrival; None for a device or stream.
        at_ns: when it began to be so.
        declared_ns, found_ns: the figure, where it is one; of a phase, the planned and found time.
        detail: the figure's name, or the reason.
    """

    kind: Kind
    subject: str
    index: int | None
    at_ns: int
    declared_ns: int | None = None
    found_ns: int | None = None
    detail: str = ""


def earliest(found: Iterable[Broken | None]) -> Broken | None:
    """Return what was broken first, None where nothing was."""
    return min((b for b in found if b is not None), key=lambda b: b.at_ns, default=None)
