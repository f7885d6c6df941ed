"""The only module that reads the host's clock or waits for it."""

from __future__ import annotations

import time


def now_ns() -> int:
    """Return host time in ns from an arbitrary zero point; it never goes back."""
    return time.perf_counter_ns()


def wall_date() -> str:
    """Return the date and time as ISO 8601 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
