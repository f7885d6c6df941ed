"""A CPU stream: one thread that does what it is given, in order, set up for numerical work.

The thread sets for itself, because none of it reaches a running thread from outside: how many
threads torch uses for one operation, that denormal numbers count as zero, inference mode, and where
asked its core and a real-time priority. What the system refuses is told in `granted`, not raised.
torch's count holds for its own and OpenMP's threads; MKL has one count a process.

Nothing spins: a thread that waits holds neither the interpreter nor a core. Submitting to a busy
stream is a put to a queue in C. A child that was forked has none of its parent's threads, so every
call there raises ForkedProcess where it would wait for ever.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

import torch

from avrt.device.base import FOREVER_NS, ForkedProcess, Stream, StreamClosed
from avrt.errors import raised_by
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS_DEFAULT = 1


class _Forks:
    """How often this process came out of a fork; asking the system costs 1 us a call."""

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        self.count += 1


_forks = _Forks()
os.register_at_fork(after_in_child=_forks.note)


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a stream's thread is to be.

    Attributes:
        threads: torch's threads for one operation; None leaves them alone.
        flush_denormal: whether denormal numbers count as zero.
        inference: whether torch records nothing for gradients.
        cpu: the only core it may run on, or None.
        priority: SCHED_FIFO priority from 1 to 99, or None for the ordinary scheduler.
    """

    threads: int | None = THREADS_DEFAULT
    flush_denormal: bool = True
    inference: bool = True
    cpu: int | None = None
    priority: int | None = None


class CpuStream(Stream):
    """A FIFO of calls on a thread of its own.

    What a call raises is kept as `error`, and what follows is skipped until a reset.

    Attributes:
        granted: what the thread got, known once `ready` returned.
    """

    __slots__ = ("_born", "_closed", "_given_up", "_ready", "_setup", "_thread", "_work", "granted")

    def __init__(self, name: str, setup: WorkerSetup | None = None, *, priority: int = 0) -> None:
        super().__init__(name, priority)
        self.granted: dict[str, str] = {}
        self._setup = setup or WorkerSetup()
        self._work: SimpleQueue[tuple[Callable[[], object], bool] | None] = SimpleQueue()
        self._ready = threading.Event()
        self._closed = False
        self._given_up = False
        self._born = _forks.count
        self._thread = threading.Thread(target=self._serve, name=f"avrt-{name}", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], object]) -> None:
        """Queue a call; it is skipped when the stream has failed by then."""
        self._put((call, False))

    def submit_always(self, call: Callable[[], object]) -> None:
        """Queue a call that runs whether or not the stream has failed; it must not raise."""
        self._put((call, True))

    def reset(self) -> None:
        """Drop the error at this point of the stream."""
        self._put((self._clear, True))

    def ready(self, timeout_ns: int = FOREVER_NS) -> bool:
        """Wait until the thread has set itself up; return whether it has."""
        self.check_process()
        return self._ready.wait(timeout_ns / NS_PER_S)

    def close(self) -> None:
        """End the thread after what is queued; does not wait, and may be called again."""
        if not self._closed and self._born == _forks.count:
            self._closed = True
            self._work.put(None)

    def give_up(self) -> None:
        """Skip what is queued, with StreamClosed as the error, and end the thread."""
        self._given_up = True
        self.fail(StreamClosed(self.name))
        self.close()

    def join(self, timeout_ns: int = FOREVER_NS) -> bool:
        """Wait for the end of the thread of a closed stream; return whether it came."""
        self.check_process()
        self._thread.join(timeout_ns / NS_PER_S)
        return not self._thread.is_alive()

    def check_process(self) -> None:
        """Raise in a forked child, where the thread is missing."""
        if _forks.count != self._born:
            raise ForkedProcess(
                f"stream {self.name} belongs to the parent of this process; "
                "make devices after the fork, or spawn"
            )

    def _put(self, item: tuple[Callable[[], object], bool]) -> None:
        if _forks.count != self._born:
            self.check_process()
        if self._closed:
            raise StreamClosed(self.name)
        self._work.put(item)

    def _set_up(self) -> None:
        self.granted = set_up_thread(self._setup)

    def _clear(self) -> None:
        if not self._given_up:
            self.error = None

    def _serve(self) -> None:
        refused = raised_by(self._set_up)
        self._ready.set()
        if refused is not None:
            self.fail(refused)
        with torch.inference_mode(self._setup.inference):
            while (item := self._work.get()) is not None:
                call, always = item
                if (always or self.error is None) and (raised := raised_by(call)) is not None:
                    self.fail(raised)
                del item, call  # what a call holds is not kept until the next one


def set_up_thread(setup: WorkerSetup) -> dict[str, str]:
    """Set the calling thread up and return what it got, as text."""
    if setup.threads is not None:
        torch.set_num_threads(setup.threads)
    flushes = setup.flush_denormal and torch.set_flush_denormal(True)
    refused = ""
    if setup.cpu is not None:
        refused += _refusal("cpu", lambda: os.sched_setaffinity(0, {setup.cpu or 0}))
    if setup.priority is not None:
        parameters = os.sched_param(setup.priority)
        refused += _refusal("priority", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, parameters))
    return {
        "threads": str(torch.get_num_threads()),
        "flush_denormal": "yes" if flushes else "no",
        "cpus": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "scheduler": "fifo" if os.sched_getscheduler(0) == os.SCHED_FIFO else "other",
        "refused": refused.strip(),
    }


def _refusal(what: str, call: Callable[[], None]) -> str:
    try:
        call()
    except (OSError, ValueError) as error:
        return f"{what}: {error} "
    return ""
