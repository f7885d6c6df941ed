"""How this process is set up before jobs run.

One thread count for every numerical library, set through threadpoolctl *and* torch before any
worker starts and never by the environment: with differing counts for overlapping stages results
differ from run to run. What is alive before the first job (some 300,000 objects of torch and scipy)
is put out of the garbage collector's sight: one full collection took 110 ms of a 12 ms stage.
Ctrl-C stops a run between two steps, so that its record is whole however it was stopped.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

import threadpoolctl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


SWITCH_SECONDS = 0.0005
NOTHING: AbstractContextManager[None] = nullcontext()


def set_threads(count: int) -> None:
    """Let BLAS, OpenMP and torch use `count` threads each for one operation."""
    import torch  # noqa: PLC0415 - what is set up before torch loads is in this module too

    threadpoolctl.threadpool_limits(limits=count)
    torch.set_num_threads(count)


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """Collect garbage now and keep the collector off what is alive until the end.

    A program that has frozen its objects itself keeps them so.
    """
    gc.collect()
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def quick_switching(seconds: float = SWITCH_SECONDS) -> Iterator[None]:
    """Let a thread that waits for the interpreter have it within `seconds`, not 5 ms.

    The driver's thread is the one that waits. Beside four stages at four times real time its
    lateness at planned instants fell from 15.5 to 10.3 ms at p95 and from 35 to 19 ms at most.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, with which systemd and containers stop a process, do what Ctrl-C does.

    Outside the main thread, and where the program handles SIGTERM itself, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Interrupts:
    """Ctrl-C raises KeyboardInterrupt in `check` and inside `allowed`, and is kept until then.

    A second one raises wherever it comes. Outside the main thread, and where the program handles
    SIGINT itself, nothing changes.

    Attributes:
        forced: whether one raised where it was not allowed, and something is left half done.
    """

    def __init__(self) -> None:
        self.forced = False
        self._installed = False
        self._allowed = False
        self._pending = False

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pending and kind is None:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt for a Ctrl-C that came."""
        if self._pending:
            raise KeyboardInterrupt

    def allowed(self) -> AbstractContextManager[None]:
        """Raise KeyboardInterrupt for a Ctrl-C that came, or comes within."""
        return self._opened() if self._installed else NOTHING

    @contextmanager
    def _opened(self) -> Iterator[None]:
        self._allowed = True
        try:
            self.check()
            yield
        finally:
            self._allowed = False

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self._allowed or self._pending:
            self.forced = not self._allowed
            raise KeyboardInterrupt
        self._pending = True
