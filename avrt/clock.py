"""The only module that reads the host's clock or waits for it."""

from __future__ import annotations

import time
from queue import Empty
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")

WAIT_SECONDS_MAX = 3600.0


def now_ns() -> int:
    """Return host time in ns from an arbitrary zero point; it never goes back."""
    return time.perf_counter_ns()


def thread_ns() -> int:
    """Return the processor time that the calling thread has had, ns."""
    return time.thread_time_ns()


def wall_date() -> str:
    """Return the date and time as ISO 8601 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def epoch_ns() -> int:
    """Return the date and time as ns since 1970 in UTC; it may jump."""
    return time.time_ns()


def sleep(seconds: float) -> None:
    """Let other threads run for a while."""
    time.sleep(seconds)


def take(queue: SimpleQueue[T], timeout_ns: int | None) -> T | None:
    """Wait for an item, an hour at the most, or less; return it, or None."""
    seconds = WAIT_SECONDS_MAX if timeout_ns is None else timeout_ns / 1e9
    try:
        return queue.get(timeout=min(seconds, WAIT_SECONDS_MAX))
    except Empty:
        return None
