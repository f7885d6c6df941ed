"""Messages of live sources on their way to the driver: a bounded queue each, and what fell out.

A source never waits for the driver. When QUEUE_MAX messages of it wait, which means that the driver
does not get to run, the oldest gives way to the newest and is counted: late data is worth less than
new data, and nothing is lost in silence.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.drivers.gate import Seen
    from avrt.model.message import Message

    Letter = tuple[Message[object], Seen]

QUEUE_MAX = 8


class Mailbox:
    """One source's messages that the driver has not taken yet.

    Attributes:
        delivered: messages that the source put.
        dropped: how many of them gave way to newer ones.
    """

    def __init__(self, size: int = QUEUE_MAX) -> None:
        self._size = size
        self._letters: deque[Letter] = deque()
        self._lock = threading.Lock()
        self.delivered = 0
        self.dropped = 0

    @property
    def taken(self) -> int:
        """Messages that the driver took."""
        with self._lock:
            return self.delivered - self.dropped - len(self._letters)

    def put(self, letter: Letter) -> None:
        """Put a message, in place of the oldest if there is no room."""
        with self._lock:
            self.delivered += 1
            if len(self._letters) == self._size:
                self._letters.popleft()
                self.dropped += 1
            self._letters.append(letter)

    def take(self) -> Letter | None:
        """Take the oldest message; None if it gave way."""
        with self._lock:
            return self._letters.popleft() if self._letters else None
