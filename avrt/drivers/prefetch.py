"""Reads ahead on a thread of its own, so that a slow disk or a large chunk delays no decision."""

from __future__ import annotations

import threading
from queue import Full, Queue
from typing import TYPE_CHECKING, TypeVar

from avrt.errors import raised_by

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

T = TypeVar("T")

AHEAD_MAX = 64
POLL_SECONDS = 0.1


def prefetched(
    items: Iterable[T], ahead: int = AHEAD_MAX, prepare: Callable[[], object] = tuple
) -> Generator[T]:
    """Yield the items in order, at most `ahead` of them read before they are wanted.

    `prepare` sets the reading thread up. What reading raises is raised here, after the last good
    item.
    """
    queue: Queue[T | _End] = Queue(ahead)
    stopped = threading.Event()

    def read() -> None:
        prepare()
        for item in items:
            if not _put(queue, item, stopped):
                return

    def read_to_the_end() -> None:
        _put(queue, _End(raised_by(read)), stopped)

    thread = threading.Thread(target=read_to_the_end, name="avrt-read", daemon=True)
    thread.start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
        thread.join()


class _End:
    """What comes after the last item."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _put(queue: Queue[T | _End], item: T | _End, stopped: threading.Event) -> bool:
    """Put an item when there is room; return False if nobody wants it any more."""
    while not stopped.is_set():
        try:
            queue.put(item, timeout=POLL_SECONDS)
        except Full:
            continue
        return True
    return False
