"""How one job runs: a stage is called once, and whatever it does becomes a result.

A payload must be plain data, arrays and dataclasses; its arrays become read-only, because others
read them while the stage goes on.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from avrt import clock, errors
from avrt.errors import (
    CORRUPTED,
    OUT_OF_MEMORY,
    DataFault,
    FaultError,
    HardwareFault,
    SoftwareFault,
    raised_by,
)
from avrt.exec import places
from avrt.exec.places import OnProcessor
from avrt.model.message import Message
from avrt.payload.digest import check_plain, digest_of, is_intact
from avrt.payload.seal import sealed
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from avrt.exec.places import Place
    from avrt.payload.digest import Digest

T = TypeVar("T")

log = logging.getLogger("avrt.exec")

DETAIL_CHARS_MAX = 300
PROCESSOR = OnProcessor()
HANG_TIMEOUT_NS = 10 * NS_PER_S
OWN_FILES = (__file__, errors.__file__, places.__file__)


class RunnableStage(Protocol):
    """What a stream needs of a stage."""

    def warm(self) -> None: ...
    def place(self, device: str) -> None: ...
    def process(self, **inputs: object) -> object: ...
    def weight_arrays(self) -> Sequence[object]: ...
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
        digest: of the payload, taken before anybody else had it; empty with a fault, and where
            none is asked for.
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
    name: str,
    stage: RunnableStage,
    inputs: Mapping[str, Message[object] | None],
    place: Place = PROCESSOR,
    *,
    digest: Digest | None = digest_of,
) -> Result:
    """Call a stage once; a fault is part of the result and never raised."""
    start_ns = clock.now_ns()
    payload = guarded(lambda: _computed(stage, inputs, place))
    end_ns = clock.now_ns()
    host_ns = max(1, end_ns - start_ns)
    taken = payload if isinstance(payload, FaultError) else guarded(lambda: _take(payload, digest))
    if isinstance(taken, FaultError):
        log.warning("stage %s failed%s: %s", name, _with(inputs), taken)
        return Result(None, taken, host_ns, end_host_ns=end_ns)
    return Result(taken[0], None, host_ns, taken[1], end_ns)


def _computed(
    stage: RunnableStage, inputs: Mapping[str, Message[object] | None], place: Place
) -> object:
    """Call a stage with inputs that are what was published."""
    for name, message in inputs.items():
        if not isinstance(message, Message) or not message.digest:
            continue
        if not is_intact(message.payload, message.digest):
            told = f"{message.stamp.source} {message.stamp.sequence}"
            raise DataFault(CORRUPTED, f"input {name}, {told}, is not what was published")
    return place.compute(lambda: stage.process(**inputs))


def warm_up(stage: RunnableStage, place: Place = PROCESSOR) -> Result:
    """Warm a stage up; it has no payload."""
    start_ns = clock.now_ns()
    fault = guarded(lambda: place.compute(stage.warm))
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
    return raised if isinstance(raised, FaultError) else fault_of(raised)


def fault_of(raised: BaseException) -> FaultError:
    """Return what was raised as a fault, by whose it is."""
    kind = type(raised).__name__
    if kind in {"OutOfMemoryError", "MemoryError"}:
        return SoftwareFault(OUT_OF_MEMORY, describe(raised))
    if kind == "AcceleratorError":
        return HardwareFault("device", describe(raised))
    return SoftwareFault("exception", describe(raised))


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


def _with(inputs: Mapping[str, Message[object] | None]) -> str:
    """Return which messages a job had, in words."""
    stamps = [message.stamp for message in inputs.values() if isinstance(message, Message)]
    told = ", ".join(f"{stamp.source} {stamp.sequence}" for stamp in stamps)
    return f" with {told}" if told else ""


def _take(payload: object, digest: Digest | None) -> tuple[object, bytes]:
    """Return a payload as it is handed over, and its digest if that is wanted."""
    if payload is None:
        raise SoftwareFault("no_payload", "process returned None; return an empty payload")
    try:
        taken = sealed(payload)
        if digest is not None:
            return taken, digest(taken)
        check_plain(taken)
    except (TypeError, ValueError, RecursionError) as error:
        raise SoftwareFault("bad_payload", str(error)) from None
    return taken, b""
