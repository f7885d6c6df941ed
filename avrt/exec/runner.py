"""How one job runs: a stage is called on its own stream and whatever it does becomes a result.

A stream is one worker thread that takes its jobs in order, so a stage never runs twice at once and
keeps its state to itself. This module holds the package's only `except Exception`.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from avrt import clock
from avrt.errors import FaultError, SoftwareFault
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.message import Message

log = logging.getLogger("avrt.exec")


class RunnableStage(Protocol):
    """What a stream needs of a stage."""

    def warm(self) -> None: ...
    def process(self, **inputs: object) -> object: ...


@dataclass(frozen=True, slots=True)
class Result:
    """How a job's work ended.

    Attributes:
        payload: what the stage returned; None with a fault.
        fault: what went wrong, or None.
        host_ns: how long it took here, wall time.
    """

    payload: object
    fault: FaultError | None
    host_ns: int


def run_job(
    name: str, stage: RunnableStage, inputs: Mapping[str, Message[object] | None]
) -> Result:
    """Call a stage once; a fault is part of the result and never raised."""
    start_ns = clock.now_ns()
    payload: object = None
    fault: FaultError | None = None
    try:
        payload = stage.process(**inputs)
        if payload is None:
            fault = SoftwareFault("no_payload", "process returned None; return an empty payload")
    except FaultError as raised:
        fault = raised
    except Exception as raised:  # whatever a user's stage raises is a fault of that job
        log.warning("stage %s failed", name, exc_info=True)
        fault = SoftwareFault("exception", f"{type(raised).__name__}: {raised}")
    return Result(payload, fault, max(1, clock.now_ns() - start_ns))


class Stream:
    """A FIFO of work on one worker thread."""

    def __init__(self, name: str, stage: RunnableStage) -> None:
        self.name = name
        self._stage = stage
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"avrt-{name}", daemon=True)
        self._thread.start()

    def submit(self, inputs: Mapping[str, Message[object] | None]) -> Future[Result]:
        """Queue one call of the stage."""
        work = _Work(inputs, Future())
        self._work.put(work)
        return work.future

    def close(self) -> None:
        """End the thread after what is queued; a stuck stage's thread is left behind."""
        self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work.future.set_result(run_job(self.name, self._stage, work.inputs))


@dataclass(frozen=True, slots=True)
class _Work:
    inputs: Mapping[str, Message[object] | None]
    future: Future[Result]


def wait(future: Future[Result], timeout_ns: int) -> Result | None:
    """Return the result of submitted work, or None if it does not come within host time."""
    try:
        return future.result(timeout=timeout_ns / NS_PER_S)
    except FutureTimeoutError:
        return None


def warm(stage: RunnableStage) -> int:
    """Warm a stage up; return how long it took in ns."""
    start_ns = clock.now_ns()
    stage.warm()
    return clock.now_ns() - start_ns
