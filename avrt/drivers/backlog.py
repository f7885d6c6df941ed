"""What waits to be written: calls that a thread of their own makes, in order, during the run.

`Waiting` makes the driver wait when it is full: nothing is lost, and virtual time does not mind.
`Passing` never makes it wait: at the wall clock the driver's thread only appends. Its own thread
takes what is there in batches, some milliseconds later, because waking another thread for each call
would cost the driver more than the call (they share one interpreter). Of messages, which may be
large, fewer wait than of lines.
"""

from __future__ import annotations

import threading
from collections import deque
from queue import Queue
from typing import TYPE_CHECKING, Protocol, TypeAlias

from avrt.errors import raised_by

if TYPE_CHECKING:
    from collections.abc import Callable

    Call: TypeAlias = Callable[[], object]

WAITING_MAX = 256
MESSAGES_MAX = 32
PASSING_MESSAGES_MAX = 4096  # ten seconds of a vehicle's sensors and stages
PASSING_MAX = 100_000  # about 120 MB
SHARE_CALLS = 2
BATCH_SECONDS = 0.005


class Backlog(Protocol):
    """Calls that wait for their thread."""

    def put(self, call: Call) -> None:
        """Queue a call that holds little."""

    def put_message(self, call: Call) -> bool:
        """Queue a call that holds a message; return False if there is no room for it."""

    def close(self) -> None:
        """Return once everything queued is done; raise what was raised."""


class Waiting:
    """Makes whoever puts something wait for room."""

    def __init__(self) -> None:
        self._queue: Queue[Call | None] = Queue(WAITING_MAX)
        self._room = threading.Semaphore(MESSAGES_MAX)
        self._ended = threading.Event()
        self._raised: BaseException | None = None
        threading.Thread(target=self._serve, name="avrt-record", daemon=True).start()

    def put(self, call: Call) -> None:
        self._queue.put(call)

    def put_message(self, call: Call) -> bool:
        self._room.acquire()

        def make() -> None:
            try:
                call()
            finally:
                self._room.release()

        self.put(make)
        return True

    def close(self) -> None:
        self._queue.put(None)
        self._ended.wait()  # join() takes a thread for ended once Ctrl-C has interrupted it
        if self._raised is not None:
            raise self._raised

    def _serve(self) -> None:
        while (call := self._queue.get()) is not None:
            raised = raised_by(call)
            self._raised = self._raised or raised
        self._ended.set()


class Passing:
    """Never makes anybody wait: a message that finds no room is refused.

    Calls that hold little are never refused: the record would not verify without one. When
    PASSING_MAX of them wait, which takes minutes of a stuck disk or a run that this thread cannot
    keep up with, whoever puts one makes SHARE_CALLS itself, so that no more wait.
    """

    def __init__(self, prepare: Callable[[], object] = tuple) -> None:
        """Start the thread, which `prepare` sets up."""
        self._prepare = prepare
        self._calls: deque[Call] = deque()
        self._messages = 0
        self._counting = threading.Lock()
        self._stopped = threading.Event()
        self._making = threading.Lock()
        self._maker: int | None = None  # the thread that makes a call, which may put more
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="avrt-record", daemon=True)
        self._thread.start()

    def put(self, call: Call) -> None:
        self._calls.append(call)
        if len(self._calls) > PASSING_MAX and self._maker != threading.get_ident():
            for _ in range(SHARE_CALLS):
                self._make_one()

    def put_message(self, call: Call) -> bool:
        with self._counting:
            if self._messages >= PASSING_MESSAGES_MAX:
                return False
            self._messages += 1

        def make() -> None:
            with self._counting:
                self._messages -= 1
            call()

        self._calls.append(make)
        return True

    def close(self) -> None:
        self._stopped.set()
        while self._thread.is_alive():  # join() takes it for ended once Ctrl-C has interrupted it
            self._thread.join(BATCH_SECONDS)
        self._make_all()
        if self._raised is not None:
            raise self._raised

    def _serve(self) -> None:
        self._prepare()
        while not self._stopped.wait(BATCH_SECONDS):
            self._make_all()

    def _make_all(self) -> None:
        while self._make_one():
            pass

    def _make_one(self) -> bool:
        """Make the call that has waited longest; return whether there was one."""
        with self._making:
            if not self._calls:
                return False
            self._maker = threading.get_ident()
            raised = raised_by(self._calls.popleft())
            self._maker = None
            self._raised = self._raised or raised
            return True
