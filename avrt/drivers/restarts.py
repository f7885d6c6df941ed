"""A stage whose stream hung is made anew, on a stream of its own, from its last checkpoint.

A thread that hangs cannot be stopped and is left behind. So a stage is made anew at most
RESTARTS_MAX times within WITHIN_NS, as Erlang's supervisors count (their default for bursts is 5 in
30 s); after that its stream stays lost, and whatever counts on its outputs decides what follows.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING

from avrt import clock
from avrt.errors import FaultError
from avrt.exec.runner import guarded
from avrt.model.events import Event, StreamBack
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.drivers.wall import Inbox
    from avrt.exec.stream import Stream

RESTARTS_MAX = 3
WITHIN_NS = 30 * NS_PER_S

log = logging.getLogger("avrt.drivers")


class Restarts:
    """Makes streams anew and tells the driver when one is ready.

    Args:
        inbox: of the driver.
        make: makes the stream of a task with a fresh stage, warmed up; it may raise or be slow.
        replace: puts a new stream in the place of the old one, on the driver's thread.
        stopped: is set when nobody cares any more.
    """

    def __init__(
        self,
        inbox: Inbox,
        make: Callable[[str], Stream],
        replace: Callable[[str, Stream], None],
        stopped: threading.Event,
    ) -> None:
        self._inbox = inbox
        self._make = make
        self._replace = replace
        self._stopped = stopped
        self._times_ns: defaultdict[str, deque[int]] = defaultdict(deque)
        self._underway: set[str] = set()

    def hung(self, task: str) -> None:
        """Begin to make the stream of a task anew, unless that was done too often.

        One that is underway is enough. Called on the driver's thread.
        """
        if task in self._underway:
            return
        times_ns, now_ns = self._times_ns[task], clock.now_ns()
        while times_ns and now_ns - times_ns[0] >= WITHIN_NS:
            times_ns.popleft()
        if len(times_ns) >= RESTARTS_MAX:
            told = f"{RESTARTS_MAX} times within {WITHIN_NS // NS_PER_S} s"
            log.error("stage %s hung, and was made anew %s: its stream stays lost", task, told)
            return
        times_ns.append(now_ns)
        self._underway.add(task)
        name = f"avrt-restart-{task}"
        threading.Thread(target=self._restart, args=(task,), name=name, daemon=True).start()

    def _restart(self, task: str) -> None:
        made = guarded(partial(self._make, task))
        if isinstance(made, FaultError):
            log.error("stage %s cannot be made anew: %s", task, made)
            self._inbox.put(lambda _now_ns: self._over(task))
        elif self._stopped.is_set():
            made.close()
        else:
            self._inbox.put(lambda _now_ns: self._ready(task, made))

    def _ready(self, task: str, stream: Stream) -> Sequence[Event]:
        self._replace(task, stream)
        return (*self._over(task), StreamBack(task))

    def _over(self, task: str) -> Sequence[Event]:
        self._underway.discard(task)
        return ()
