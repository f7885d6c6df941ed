"""When two outputs agree, by what they are.

A distance of at most 1 is agreement. It need not be transitive: a may agree with b and b with c
while a and c do not (Pullum, "Software Fault Tolerance Techniques", 2001, on formal majority).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from avrt.safety.structure import apart, in_units, is_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

Problem: TypeAlias = Literal["", "nonfinite", "schema", "range"]
SHARE = 1e-5
"""Of an array's largest magnitude: 20 times what healthy runs of one network differ by, and no
single flipped bit that changed a detection stayed below it; 44 of 420 flips did change one."""
ABSOLUTE = 1e-9


class Agreement(Protocol):
    """How outputs of one kind are compared."""

    def problem(self, payload: object) -> Problem:
        """Return why an output cannot be voted for, or ""."""

    def distance(self, a: object, b: object) -> float:
        """Return how far two outputs lie apart; at most 1 if they agree."""

    def settle(self, payloads: Sequence[object]) -> object | None:
        """Return what is safest where no two agree: one of them or a merge; None if nothing is."""

    def completed(self, selected: object, others: Sequence[object]) -> object | None:
        """Return what is selected with what must not be lost of others; None if nothing is."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Any payload: equal but for rounding; nothing is safest.

    Attributes:
        share: of the largest magnitude in each array, or of each number.
        absolute: allowed whatever the magnitude.
    """

    share: float = SHARE
    absolute: float = ABSOLUTE

    def problem(self, payload: object) -> Problem:
        return "" if is_finite(payload) else "nonfinite"

    def distance(self, a: object, b: object) -> float:
        return apart(a, b, self.share, self.absolute)

    def settle(self, payloads: Sequence[object]) -> None:
        del payloads

    def completed(self, selected: object, others: Sequence[object]) -> None:
        del selected, others


EXACT = Tolerance(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number.

    Attributes:
        absolute: allowed difference, in its unit.
        share: of the larger magnitude.
        safe: which of different values is the conservative one: "least" (a permitted speed),
            "greatest" (a risk) or "" if neither is.
        period: of an angle, in its unit (2 pi, 360); None for other numbers.
    """

    absolute: float = ABSOLUTE
    share: float = 0.0
    safe: str = ""
    period: float | None = None

    def problem(self, payload: object) -> Problem:
        if isinstance(payload, bool) or not isinstance(payload, int | float):
            return "schema"
        return "" if math.isfinite(payload) else "nonfinite"

    def distance(self, a: object, b: object) -> float:
        assert isinstance(a, int | float)
        assert isinstance(b, int | float)
        difference = abs(a - b)
        if self.period is not None:
            difference = abs(math.remainder(a - b, self.period))
        return in_units(difference, max(abs(a), abs(b)), self.share, self.absolute)

    def settle(self, payloads: Sequence[object]) -> object | None:
        values = [payload for payload in payloads if isinstance(payload, int | float)]
        match self.safe:
            case "least":
                return min(values)
            case "greatest":
                return max(values)
            case _:
                return None

    def completed(self, selected: object, others: Sequence[object]) -> None:
        del selected, others


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several classes: they are equal or not.

    Attributes:
        order: the most conservative one first (red, amber, unknown, green); what is not in it is
            no legal value. Empty where any value is legal and none is safer than another.
    """

    order: tuple[object, ...] = field(default=())

    def problem(self, payload: object) -> Problem:
        return "range" if self.order and payload not in self.order else ""

    def distance(self, a: object, b: object) -> float:
        return 0.0 if type(a) is type(b) and a == b else math.inf

    def settle(self, payloads: Sequence[object]) -> object | None:
        return min(payloads, key=self.order.index) if self.order else None

    def completed(self, selected: object, others: Sequence[object]) -> None:
        del selected, others
