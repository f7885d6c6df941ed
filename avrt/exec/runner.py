"""How one job runs: a stage is called on its own stream and whatever it does becomes a result.

A stream is one worker thread that takes its work in order, warm-up included, so a stage never runs
twice at once, keeps its state to itself and finds whatever it set for its thread. A payload must be
plain data, arrays and dataclasses; its arrays become read-only, because others read them while the
stage goes on.
"""

from __future__ import annotations

import copy
import logging
import threading
import traceback
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from avrt import clock, errors
from avrt.errors import FaultError, SoftwareFault, raised_by
from avrt.payload.digest import digest_of
from avrt.payload.seal import sealed
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from avrt.model.message import Message

T = TypeVar("T")

log = logging.getLogger("avrt.exec")

DETAIL_CHARS_MAX = 300
HANG_TIMEOUT_NS = 10 * NS_PER_S
OWN_FILES = (__file__, errors.__file__)


class RunnableStage(Protocol):
    """What a stream needs of a stage."""

    def warm(self) -> None: ...
    def process(self, **inputs: object) -> object: ...
    def freeze(self) -> object: ...
    def thaw(self, state: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    """How a job's work ended.

    Attributes:
        payload: what the stage returned; None with a fault.
        fault: what went wrong, or None.
        host_ns: how long it took here, wall time.
        end_host_ns: when it ended, host clock.
        digest: of the payload, taken before anybody else had it; empty with a fault.
    """

    payload: object
    fault: FaultError | None
    host_ns: int
    digest: bytes = b""
    end_host_ns: int = 0

    @property
    def start_host_ns(self) -> int:
        """When it began, host clock."""
        return self.end_host_ns - self.host_ns


def run_job(
    name: str, stage: RunnableStage, inputs: Mapping[str, Message[object] | None]
) -> Result:
    """Call a stage once; a fault is part of the result and never raised."""
    start_ns = clock.now_ns()
    payload = guarded(lambda: stage.process(**inputs))
    end_ns = clock.now_ns()
    host_ns = max(1, end_ns - start_ns)
    taken = payload if isinstance(payload, FaultError) else guarded(lambda: _take(payload))
    if isinstance(taken, FaultError):
        log.warning("stage %s failed: %s", name, taken)
        return Result(None, taken, host_ns, end_host_ns=end_ns)
    return Result(taken[0], None, host_ns, taken[1], end_ns)


def warm_up(stage: RunnableStage) -> Result:
    """Warm a stage up; it has no payload."""
    start_ns = clock.now_ns()
    fault = guarded(stage.warm)
    host_ns = max(1, clock.now_ns() - start_ns)
    return Result(None, fault if isinstance(fault, FaultError) else None, host_ns)


def guarded(call: Callable[[], T], passing: tuple[type[BaseException], ...] = ()) -> T | FaultError:
    """Call a user's code; what it raises, `passing` excepted, comes back as a fault.

    In the main thread KeyboardInterrupt has to pass; in others nobody would handle it.
    """
    made: list[T] = []
    raised = raised_by(lambda: made.append(call()))
    if raised is None:
        return made[0]
    if isinstance(raised, passing):
        raise raised
    return (
        raised if isinstance(raised, FaultError) else SoftwareFault("exception", describe(raised))
    )


def describe(error: BaseException) -> str:
    """Return what was raised, in one line, with the line of the user's file that it came from."""
    message = " ".join(str(error).split())[:DETAIL_CHARS_MAX]
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text + _place(error.__traceback__)


def _place(trace: TracebackType | None) -> str:
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename not in OWN_FILES]
    if not frames:
        return ""
    last = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    return f" at {last.filename}:{last.lineno}"


def _take(payload: object) -> tuple[object, bytes]:
    """Return a payload as it is handed over, and its digest."""
    if payload is None:
        raise SoftwareFault("no_payload", "process returned None; return an empty payload")
    try:
        taken = sealed(payload)
        return taken, digest_of(taken)
    except (TypeError, ValueError, RecursionError) as error:
        raise SoftwareFault("bad_payload", str(error)) from None


class Stream:
    """A FIFO of work on one worker thread.

    The state that its stage has after the warm-up is kept, and given back to the stage before a
    job that begins anew; until the stage has taken it, no job is done.
    """

    def __init__(
        self, name: str, stage: RunnableStage, prepare: Callable[[str], object] | None = None
    ) -> None:
        """Start the thread; `prepare` is called on it with the stream's name, before any work."""
        self.name = name
        self._stage = stage
        self._prepare = prepare
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"avrt-{name}", daemon=True)
        self._thread.start()

    def warm(self) -> Future[Result]:
        """Queue the warm-up of the stage."""
        return self._queue(_Work(None))

    def submit(
        self, inputs: Mapping[str, Message[object] | None], *, anew: bool = False
    ) -> Future[Result]:
        """Queue one call of the stage."""
        return self._queue(_Work(inputs, anew))

    def close(self) -> None:
        """End the thread after what is queued; a stuck stage's thread is left behind."""
        self._work.put(None)

    def _queue(self, work: _Work) -> Future[Result]:
        self._work.put(work)
        return work.future

    def _serve(self) -> None:
        if self._prepare is not None:
            self._prepare(self.name)
        fresh: object = None
        stale = False
        while (work := self._work.get()) is not None:
            if work.inputs is None:
                result, fresh = self._warm_up()
            else:
                fault = self._begin_anew(fresh) if work.anew or stale else None
                stale = fault is not None
                result = fault or run_job(self.name, self._stage, work.inputs)
            work.future.set_result(result)
            del work  # what a job read is not kept until the next one

    def _warm_up(self) -> tuple[Result, object]:
        """Warm the stage up; return how that ended, and the state it has then."""
        result = warm_up(self._stage)
        fresh = guarded(lambda: copy.deepcopy(self._stage.freeze()))
        if isinstance(fresh, FaultError):
            fault = result.fault or SoftwareFault("freeze", fresh.detail)
            return Result(None, fault, result.host_ns), None
        return result, fresh

    def _begin_anew(self, fresh: object) -> Result | None:
        """Give the stage its first state back; return the fault if that fails."""
        if fresh is None:
            return None
        start_ns = clock.now_ns()
        fault = guarded(lambda: self._stage.thaw(copy.deepcopy(fresh)))
        if not isinstance(fault, FaultError):
            return None
        log.warning("stage %s cannot begin anew: %s", self.name, fault)
        end_ns = clock.now_ns()
        return Result(None, fault, max(1, end_ns - start_ns), end_host_ns=end_ns)


@dataclass(frozen=True, slots=True)
class _Work:
    """A job's inputs, or None to warm up."""

    inputs: Mapping[str, Message[object] | None] | None
    anew: bool = False
    future: Future[Result] = field(default_factory=Future)


def wait(future: Future[Result], timeout_ns: int) -> Result | None:
    """Return the result of submitted work, or None if it does not come within host time."""
    try:
        return future.result(timeout=min(timeout_ns / NS_PER_S, threading.TIMEOUT_MAX))
    except FutureTimeoutError:
        return None
