"""What came from one source, and where its captures pause.

A gap is more than GAP_STEPS times the declared period or the usual step (the median of those that
are not zero), whichever is longer, between a capture and the newest before it.
"""

from __future__ import annotations

from array import array

import numpy as np

from avrt.report.page.sieve import Sieve

MESSAGES_MAX = 2_000
GAPS_MAX = 200
GAP_STEPS = 1.5


class Messages:
    """The messages of one source, in the order of arrival.

    Attributes:
        captures: when each was captured, pipeline ns, by its number.
        times: (arrival, capture) of those that are drawn.
    """

    def __init__(self, period_ns: int | None) -> None:
        self._period_ns = period_ns
        self.captures = array("q")
        self.times: Sieve[tuple[int, int]] = Sieve(MESSAGES_MAX)

    def arrived(self, at_ns: int, capture_ns: int) -> None:
        """Take in one message."""
        self.captures.append(capture_ns)
        self.times.add((at_ns, capture_ns))

    def gaps(self) -> Sieve[tuple[int, int]]:
        """Return where nothing was captured for longer than usual: from and to, pipeline ns."""
        newest = np.maximum.accumulate(np.array(self.captures, np.int64))
        steps = np.diff(newest)
        moving = steps[steps > 0]
        if not len(moving):
            return Sieve(GAPS_MAX)
        longest = GAP_STEPS * max(self._period_ns or 0, float(np.median(moving)))
        places = np.nonzero(steps > longest)[0].tolist()
        return Sieve(GAPS_MAX, ((int(newest[i]), int(newest[i + 1])) for i in places))
