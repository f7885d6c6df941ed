"""The stream of a stage: one thread that takes its work in order, warm-up included.

So a stage never runs twice at once, keeps its state to itself and finds whatever it set for its
thread. Where it computes may change between two jobs: when its device is lost, and back.
"""

from __future__ import annotations

import copy
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from avrt import clock
from avrt.errors import FaultError, SoftwareFault
from avrt.exec.runner import PROCESSOR, Result, guarded, run_job, warm_up
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.exec.places import Place
    from avrt.exec.runner import RunnableStage
    from avrt.model.message import Message

    Inputs = Mapping[str, Message[object] | None]
    Told = Callable[[Result], object]

log = logging.getLogger("avrt.exec")

NOWHERE: Mapping[str, Callable[[], Place]] = MappingProxyType({})


class Stream:
    """A FIFO of work on one worker thread.

    The state that its stage has after the warm-up is kept, and given back to the stage before a
    job that begins anew; until the stage has taken it, no job is done.
    """

    def __init__(
        self,
        name: str,
        stage: RunnableStage,
        prepare: Callable[[str], object] | None = None,
        places: Mapping[str, Callable[[], Place]] = NOWHERE,
        threads: int | None = None,
        *,
        digested: bool = True,
    ) -> None:
        """Start the thread.

        Args:
            name: of the stream.
            stage: what it calls.
            prepare: is called with the name, on the thread, before any work.
            places: makes the place on each device that the stage may run on, the first one its own;
                without any it computes on the processor.
            threads: of torch for one operation; None leaves them as they are.
            digested: whether results carry a digest of their payload.
        """
        from avrt.device.worker import CpuStream, WorkerSetup  # noqa: PLC0415 - brings torch

        self.name = name
        self._stage = stage
        self._digested = digested
        self._places = places
        self._made: dict[str, Place] = {}
        self._device = next(iter(places), "")
        self._place: Place = PROCESSOR
        self._fresh: object = None
        self._is_stale = False
        self._worker = CpuStream(name, WorkerSetup(threads=threads))
        if prepare is not None:
            self._worker.submit_always(partial(prepare, name))

    def warm(self) -> Future[Result]:
        """Queue the warm-up of the stage."""
        future: Future[Result] = Future()
        self._worker.submit_always(partial(self._do_warm_up, future.set_result))
        return future

    def submit(self, inputs: Inputs, *, anew: bool = False, device: str = "") -> Future[Result]:
        """Queue one call of the stage, on a device or where it is."""
        future: Future[Result] = Future()
        self.begin(inputs, future.set_result, anew=anew, device=device)
        return future

    def begin(self, inputs: Inputs, told: Told, *, anew: bool = False, device: str = "") -> None:
        """Queue one call of the stage; `told` takes its result, on the stream's thread.

        A future for each job, with its condition and lock, is for those that wait.
        """
        self._worker.submit_always(partial(self._do, inputs, told, anew, device))

    def state(self) -> Future[object]:
        """Queue a copy of the stage's state; a fault in its place if there is one."""
        future: Future[object] = Future()
        copied = lambda: copy.deepcopy(self._stage.freeze())  # noqa: E731
        self._worker.submit_always(lambda: future.set_result(guarded(copied)))
        return future

    def adopt(self, state: Future[object]) -> None:
        """Queue taking over a state of another stream, which does nothing else before it has it."""
        self._worker.submit_always(lambda: self._adopt(state.result()))

    def begin_anew(self) -> None:
        """Queue taking back the state that the stage had after its warm-up."""
        self._worker.submit_always(self._begin_anew)

    def close(self) -> None:
        """End the thread after what is queued; a stuck stage's thread is left behind."""
        self._worker.close()

    @property
    def told(self) -> str:
        """What its thread computes with; known after the warm-up."""
        granted = self._worker.granted
        threads = granted.get("threads", "?")
        flushes = granted.get("flush_denormal") == "yes"
        count = f"{threads} thread{'' if threads == '1' else 's'}"
        return f"{count}, denormal numbers {'count as zero' if flushes else 'are kept'}"

    def _do(self, inputs: Inputs, told: Told, anew: bool, device: str) -> None:  # noqa: FBT001
        """Do one job, on the thread; nothing that a stage raises leaves this."""
        moved = self._move(device or self._device)
        fault = self._begin_anew() if anew or self._is_stale else None
        self._is_stale = fault is not None
        told(moved or fault or self._run(inputs))

    def _do_warm_up(self, told: Told) -> None:
        told(self._move(self._device) or self._warm_up())

    def _run(self, inputs: Inputs) -> Result:
        return run_job(self.name, self._stage, inputs, self._place, digested=self._digested)

    def _move(self, device: str) -> Result | None:
        """Go to a device; return the fault if that fails."""
        if device not in self._places or (device in self._made and device == self._device):
            return None
        return self._fault_of(partial(self._go, device), f"go to {device}")

    def _go(self, device: str) -> None:
        place = self._made.get(device) or self._places[device]()
        if place.device != self._place.device:
            self._stage.place(place.device)
        self._made[device] = self._place = place
        self._device = device

    def _warm_up(self) -> Result:
        """Warm the stage up, and keep the state it has then."""
        result = warm_up(self._stage, self._place)
        fresh = guarded(lambda: copy.deepcopy(self._stage.freeze()))
        if isinstance(fresh, FaultError):
            fault = result.fault or SoftwareFault("freeze", fresh.detail)
            return Result(None, fault, result.host_ns)
        self._fresh = fresh
        return result

    def _begin_anew(self) -> Result | None:
        """Give the stage its first state back; return the fault if that fails."""
        if self._fresh is None:
            return None
        return self._fault_of(lambda: self._stage.thaw(copy.deepcopy(self._fresh)), "begin anew")

    def _adopt(self, state: object) -> None:
        if not isinstance(state, FaultError):
            self._fault_of(lambda: self._stage.thaw(copy.deepcopy(state)), "take over a state")

    def _fault_of(self, call: Callable[[], object], what: str) -> Result | None:
        """Make a call before a job; return its fault, which takes the place of the job."""
        start_ns = clock.now_ns()
        fault = guarded(call)
        if not isinstance(fault, FaultError):
            return None
        log.warning("stage %s cannot %s: %s", self.name, what, fault)
        end_ns = clock.now_ns()
        return Result(None, fault, max(1, end_ns - start_ns), end_host_ns=end_ns)


def wait(future: Future[Result], timeout_ns: int) -> Result | None:
    """Return the result of submitted work, or None if it does not come within host time."""
    try:
        return future.result(timeout=min(timeout_ns / NS_PER_S, threading.TIMEOUT_MAX))
    except FutureTimeoutError:
        return None
