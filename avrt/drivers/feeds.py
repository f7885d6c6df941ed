"""Where live messages come from: threads that deliver each message when it is there.

* `LogFeed`: a log, or a world that is made meanwhile, at its own pace: each message comes when
  pipeline time reaches its log time, and never earlier.
* `SourceFeed`: a source of the user's, which waits for its sensor.

Whatever a feed delivers late is delivered late: the time at which a message came is the time at
which its feed had it ready.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from avrt.drivers.prefetch import prefetched
from avrt.errors import InputError
from avrt.logs.merge import SourceMessage
from avrt.units import NEVER_NS, NS_PER_S

if TYPE_CHECKING:
    import threading
    from collections import deque
    from collections.abc import Callable, Generator, Iterable

    from avrt.drivers.wall import WallClock
    from avrt.logs.decode import Payload
    from avrt.logs.raw import RawMessage
    from avrt.model.source import Reading, Source

    Deliver = Callable[[SourceMessage], None]

POLL_NS = NS_PER_S // 5


class Feed(Protocol):
    """What one thread delivers.

    Attributes:
        name: of its thread.
        aside: messages for the record alone, or None.
        damage: what ended it early, or None.
    """

    name: str
    aside: deque[RawMessage] | None
    damage: InputError | None

    def open(self, set_up: Callable[[str], object]) -> None:
        """Be ready to deliver, before time begins; `set_up` is for threads of the feed's own."""

    def run(self, deliver: Deliver, wall: WallClock, stopped: threading.Event) -> None:
        """Deliver everything, each message when it is there; return at the end or when stopped."""

    def close(self) -> None:
        """Let `run` return soon; called from another thread."""


class LogFeed:
    """Messages with log times, each delivered when that time has come."""

    name = "log"

    def __init__(
        self,
        log: Iterable[SourceMessage],
        until_ns: int | None = None,
        aside: deque[RawMessage] | None = None,
    ) -> None:
        """Deliver the messages of a log that come before `until_ns`, all when None.

        A log that goes on at that time is a feed until then, and no shorter.
        What is put into `aside` meanwhile is kept for the record, and no stage reads it.
        """
        self._log = log
        self._ahead: Generator[SourceMessage] | None = None
        self.aside = aside
        self._until_ns = NEVER_NS if until_ns is None else until_ns
        self.damage: InputError | None = None

    def open(self, set_up: Callable[[str], object]) -> None:
        """Begin to read ahead."""
        ahead = prefetched(self._log, prepare=partial(set_up, "reader"))
        first = list(islice(ahead, 1))
        self._ahead = _rejoined(first, ahead)

    def run(self, deliver: Deliver, wall: WallClock, stopped: threading.Event) -> None:
        assert self._ahead is not None
        try:
            with closing(self._ahead) as items:
                self._play(items, deliver, wall, stopped)
        except InputError as damage:
            self.damage = damage

    def _play(
        self,
        items: Iterable[SourceMessage],
        deliver: Deliver,
        wall: WallClock,
        stopped: threading.Event,
    ) -> None:
        for item in items:
            wait_until(min(item.log_ns, self._until_ns), wall, stopped)
            if stopped.is_set() or item.log_ns >= self._until_ns:
                return
            deliver(replace(item, log_ns=wall.now_ns()))

    def close(self) -> None:
        pass


class SourceFeed:
    """Readings of a source that the user wrote; see `avrt.Source`."""

    aside: deque[RawMessage] | None = None
    damage: InputError | None = None

    def __init__(
        self,
        name: str,
        frame: str,
        source: Source,
        encode: Callable[[Reading, int, int], RawMessage],
    ) -> None:
        """Deliver what `source` reads as messages of the source `name`.

        `encode` gives a reading its form in the record, from when it was captured and when it came,
        pipeline ns.
        """
        self.name = name
        self._frame = frame
        self._source = source
        self._encode = encode

    def open(self, set_up: Callable[[str], object]) -> None:
        del set_up
        self._source.open()

    def run(self, deliver: Deliver, wall: WallClock, stopped: threading.Event) -> None:
        while not stopped.is_set() and (reading := self._source.read()) is not None:
            now_ns = wall.now_ns()
            capture_ns = now_ns - int(reading.age_ns * wall.rate)
            raw = self._encode(reading, capture_ns, now_ns)
            deliver(
                SourceMessage(
                    source=self.name,
                    sequence=raw.sequence,
                    log_ns=now_ns,
                    capture_ns=capture_ns,
                    raw_header_ns=capture_ns,
                    frame=reading.frame or self._frame,
                    payload=cast("Payload", reading.payload),
                    raw=raw,
                    said_frame=reading.frame,
                )
            )

    def close(self) -> None:
        self._source.close()


def _rejoined(
    first: list[SourceMessage], rest: Generator[SourceMessage]
) -> Generator[SourceMessage]:
    """Yield both; closing it closes the rest."""
    with closing(rest):
        yield from first
        yield from rest


def wait_until(at_ns: int, wall: WallClock, stopped: threading.Event) -> None:
    """Wait for a pipeline time, or until stopped.

    The time itself is waited for, so that no error adds up.
    """
    while (left_ns := wall.host_left_ns(at_ns)) > 0 and not stopped.is_set():
        stopped.wait(min(left_ns, POLL_NS) / NS_PER_S)
