"""Times of one topic as figures: how regular they are, and how many messages seem to be missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REGULAR_SPREAD = 0.3  # of the median step: p5 to p75 of a sensor that keeps its rate and loses some
MISSING_STEPS = 1.7  # a lost message makes a step of two; jitter of a regular sensor less than this
REGULAR_STEPS_MIN = 8


@dataclass(frozen=True, slots=True)
class Steps:
    """Times in ns, in the order of the log, and what lies between two of them.

    Attributes:
        equal, back: how many have the time of the one before, or an earlier one.
        p5_ns, median_ns, p95_ns, max_ns: of the steps that go on; 0 where there is none.
        longest_at_ns: when the longest step began.
        regular: whether it keeps a rate; messages may be missing, and pauses be in it.
        missing: how many messages its long steps have room for; 0 of what is not regular.
    """

    count: int
    first_ns: int
    last_ns: int
    equal: int
    back: int
    p5_ns: int
    median_ns: int
    p95_ns: int
    max_ns: int
    longest_at_ns: int
    regular: bool
    missing: int

    @classmethod
    def of(cls, times: Sequence[int] | NDArray[np.int64]) -> Self | None:
        """Return the figures of some times; None where there are none."""
        at = np.asarray(times, np.int64)
        if not at.size:
            return None
        steps = np.diff(at)
        onward = steps > 0
        forward = steps[onward]
        p5, median, p75, p95, longest = (
            np.percentile(forward, (5, 50, 75, 95, 100), method="inverted_cdf").tolist()
            if forward.size
            else (0, 0, 0, 0, 0)
        )
        regular = forward.size >= REGULAR_STEPS_MIN and p75 - p5 <= REGULAR_SPREAD * median
        begins = at[:-1][onward]
        return cls(
            count=at.size,
            first_ns=int(at.min()),
            last_ns=int(at.max()),
            equal=int(np.count_nonzero(steps == 0)),
            back=int(np.count_nonzero(steps < 0)),
            p5_ns=p5,
            median_ns=median,
            p95_ns=p95,
            max_ns=longest,
            longest_at_ns=int(begins[forward.argmax()]) if forward.size else int(at[0]),
            regular=bool(regular),
            missing=_missing(forward, median) if regular else 0,
        )

    @property
    def usual_hz(self) -> float:
        """The rate that it keeps, whatever is missing in it; the mean of what is not regular."""
        return NS_PER_S / self.median_ns if self.regular else self.hz

    @property
    def hz(self) -> float:
        """Messages in a second, pauses and all; 0 where one cannot tell."""
        span_ns = self.last_ns - self.first_ns
        return (self.count - 1) * NS_PER_S / span_ns if span_ns > 0 else 0.0


def _missing(forward: NDArray[np.int64], median: int) -> int:
    long = forward[forward >= MISSING_STEPS * median]
    return int((np.rint(long / median) - 1).sum())
