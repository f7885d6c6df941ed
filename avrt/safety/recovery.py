"""When a device that broke is tried again, and when it is given up: waits, and failed recoveries.

The first try comes after WAIT_NS_MIN, the next ones after twice as long each, up to WAIT_NS_MAX. A
device that breaks again begins with twice the wait it began with before, or with the shortest once
it has worked for WAIT_NS_MAX.

A recovery fails when a device answers and does not prove itself (`avrt.drivers.probation`). The one
that makes FAILURES_MAX within WITHIN_NS is the last: the device stays out. That is the rule for
replicas (`replicas`), and how Erlang's supervisors count.
"""

from __future__ import annotations

from collections import deque

from avrt.safety.replicas import QUARANTINES_MAX, WITHIN_NS
from avrt.units import NS_PER_S

WAIT_NS_MIN = NS_PER_S
WAIT_NS_MAX = 64 * NS_PER_S
FAILURES_MAX = QUARANTINES_MAX


class Recovery:
    """How one device is tried; times count from anywhere and never go back.

    Attributes:
        wait_ns: until the next try.
    """

    def __init__(self) -> None:
        self.wait_ns = WAIT_NS_MIN
        self._is_out = False
        self._first_ns = 0
        self._back_ns = 0
        self._failed_ns: deque[int] = deque(maxlen=FAILURES_MAX)

    @property
    def is_out(self) -> bool:
        """Whether there is no next try."""
        return self._is_out

    def lost(self, at_ns: int) -> None:
        """Take in that it broke."""
        is_known = self._first_ns > 0 and at_ns - self._back_ns < WAIT_NS_MAX
        self._first_ns = min(2 * self._first_ns, WAIT_NS_MAX) if is_known else WAIT_NS_MIN
        self.wait_ns = self._first_ns

    def silent(self) -> None:
        """Take in that it did not answer when it was tried."""
        self.wait_ns = min(2 * self.wait_ns, WAIT_NS_MAX)

    def failed(self, at_ns: int) -> None:
        """Take in that it answered and did not prove itself."""
        self.silent()
        self._failed_ns.append(at_ns)
        recent = [failed_ns for failed_ns in self._failed_ns if at_ns - failed_ns <= WITHIN_NS]
        self._is_out = self._is_out or len(recent) >= FAILURES_MAX

    def back(self, at_ns: int) -> None:
        """Take in that it is used again."""
        self._back_ns = at_ns
