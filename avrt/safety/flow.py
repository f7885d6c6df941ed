"""How the messages of a source follow each other: by their sender's counter, and by its rate.

* A counter is believed once it has gone up one by one for a while: many recorders write none, or
  one that they share among topics. What goes back or skips too many is not followed.
* The rate is a leaky bucket over capture times: nominal messages lie at least a period / `faster`
  apart, and one may come before its nominal time by as much as BURST messages at twice the rate do.
"""

from __future__ import annotations

from avrt.units import NEVER_NS

COUNTS = 1 << 32
BURST = 10


class SenderCounter:
    """Follows the counter of a sender, modulo COUNTS."""

    def __init__(self, skips_max: int, believed_after: int) -> None:
        self._skips_max = skips_max
        self._believed_after = believed_after
        self._last: int | None = None
        self._steps = 0

    def take(self, counter: int | None) -> int | None:
        """Return how many messages are missing before this one, -1 for the same counter again.

        None where its counter tells nothing. A step back is as good as too many missing.
        """
        last, self._last = self._last, counter
        if last is None or counter is None:
            return None
        missing = (counter - last) % COUNTS - 1
        if self._steps < self._believed_after:
            self._steps = 0 if missing else self._steps + 1
            return None
        if not 0 <= missing <= self._skips_max:
            self._last = last
        return missing

    def follow(self, counter: int | None) -> None:
        """Let the next message be compared with this counter; None compares it with none."""
        self._last = counter


class RateLimit:
    """Tells which messages are too many for a declared period."""

    def __init__(self, period_ns: int | None, faster: float) -> None:
        """Without a period, or with `faster` 0, none is."""
        is_limited = period_ns is not None and faster > 0
        self._apart_ns = int(period_ns / faster) if period_ns is not None and is_limited else 0
        self._burst_ns = max(0, BURST * self._apart_ns - BURST * (period_ns or 0) // 2)
        self.begin_anew()

    def begin_anew(self) -> None:
        self._nominal_ns = -NEVER_NS

    def is_early(self, capture_ns: int) -> bool:
        """Whether a message is one too many; it then counts for nothing."""
        nominal_ns = max(self._nominal_ns + self._apart_ns, capture_ns)
        if nominal_ns > capture_ns + self._burst_ns and self._apart_ns:
            return True
        self._nominal_ns = nominal_ns
        return False
