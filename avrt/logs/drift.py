"""Whether a sensor's clock goes faster or slower than the log's, from how its lag changes.

The lag of a message, log time less stamp, is the two clocks' offset plus latency, and latency is
never below what the way takes. So the least lag of a few seconds hardly has any jitter in it (NTP's
clock filter, RFC 5905, takes the sample of the least delay alike), and a line is fitted to those of
the last WINDOW_NS by least squares. It is a drift when

* the lag has changed along it by CHANGE_NS: 50 ppm in 100 s, and sooner where it is more,
* no least lag lies further from it than a fifth of that: a jump lies a third off, wherever it is,
* and it is at most PPM_MAX steep: no quartz is as wrong as that, and what else grows is latency.

A drift that is known ends when half of that change is left; while lags lie off any line it goes on.
A latency that grows as evenly and as slowly looks the same, and is told the same.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKET_NS = 5 * NS_PER_S
WINDOW_NS, SPAN_NS_MIN = 100 * NS_PER_S, 25 * NS_PER_S
CHANGE_NS = 5 * NS_PER_MS
SHARE_OFF_MAX = 0.2
PPM_MAX = 500


class Drift:
    """Follows one clock against another.

    Attributes:
        ppb: how much faster the log's goes, in 1e-9; 0 as long as it is no drift.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Compare what follows with nothing before it."""
        self.ppb = 0
        self._least: deque[tuple[int, int]] = deque(maxlen=1 + WINDOW_NS // BUCKET_NS)
        self._bucket: tuple[int, int] | None = None
        self._end_ns: int | None = None

    def take(self, log_ns: int, lag_ns: int) -> bool:
        """Take one message; return whether a drift begins with it. Log times go on."""
        if self._bucket is None or self._end_ns is None:
            self._begin(log_ns, lag_ns)
            return False
        if log_ns < self._end_ns:
            if lag_ns < self._bucket[1]:
                self._bucket = log_ns, lag_ns
            return False
        self._least.append(self._bucket)
        self._begin(log_ns, lag_ns)
        was, self.ppb = self.ppb, self._fitted()
        return was == 0 != self.ppb

    def _begin(self, log_ns: int, lag_ns: int) -> None:
        self._bucket, self._end_ns = (log_ns, lag_ns), log_ns + BUCKET_NS

    def _fitted(self) -> int:
        """Return the slope of a line through the least lags; what it was where that is unclear."""
        first_ns, first_lag_ns = self._least[0]
        points = [(log_ns - first_ns, lag_ns - first_lag_ns) for log_ns, lag_ns in self._least]
        span_ns = points[-1][0]
        if span_ns < SPAN_NS_MIN:
            return self.ppb
        slope, start_ns = _line(points)
        change_ns = abs(slope) * span_ns
        off_ns = max(abs(lag_ns - start_ns - slope * at_ns) for at_ns, lag_ns in points)
        if off_ns > SHARE_OFF_MAX * max(change_ns, CHANGE_NS):
            return self.ppb
        if change_ns < CHANGE_NS // 2 or abs(slope) > PPM_MAX * 1e-6:
            return 0
        return round(slope * NS_PER_S) if self.ppb or change_ns >= CHANGE_NS else 0


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return slope and beginning of the line of least squares; equal numbers on any machine."""
    count = len(points)
    x, y = (sum(column) for column in zip(*points, strict=True))
    xx, xy = sum(t * t for t, _ in points), sum(t * lag for t, lag in points)
    slope = (count * xy - x * y) / (count * xx - x * x)
    return slope, (y - slope * x) / count
