"""The stream of a stage: one thread that takes its work in order, warm-up included.

So a stage never runs twice at once, keeps its state to itself and finds whatever it set for its
thread. Between two jobs may change where it computes (when its device is lost, and back) and which
of its variants does: a variant of the same class takes over the state of the one before, any other
begins with that after its own warm-up. Weights that have changed are found and mended behind jobs,
and told by the next one (`scrub`).
"""

from __future__ import annotations

import copy
import gc
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from avrt import clock
from avrt.errors import OUT_OF_MEMORY, WEIGHTS, FaultError, SoftwareFault
from avrt.exec.runner import PROCESSOR, Result, guarded, run_job, warm_up
from avrt.exec.scrub import Scrub
from avrt.payload.digest import digest_of
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.exec.places import Place
    from avrt.exec.runner import RunnableStage
    from avrt.exec.scrub import ScrubPlan
    from avrt.model.message import Message
    from avrt.payload.digest import Digest

    Inputs = Mapping[str, Message[object] | None]
    Told = Callable[[Result], object]

T = TypeVar("T")

log = logging.getLogger("avrt.exec")

CHECKPOINT_NS = NS_PER_S
NOWHERE: Mapping[str, Callable[[], Place]] = MappingProxyType({})
NO_VARIANTS: Mapping[str, tuple[RunnableStage, str]] = MappingProxyType({})


class Stream:
    """A FIFO of work on one worker thread.

    The state that its stage has after the warm-up is kept, and given back to the stage before a
    job that begins anew; until the stage has taken it, no job is done.

    Attributes:
        checkpoint: the variant that ran, and a copy of its state after a job, no older than
            CHECKPOINT_NS of work before the last one; None where none is kept. For one that takes
            its place when it hangs.
        scrub: what is known of the weights of its stage.
        turns: how often something other than a job was to change its state.
    """

    checkpoint: tuple[str, object] | None = None
    turns = 0

    def __init__(  # noqa: PLR0913 - all after the stage is optional
        self,
        name: str,
        stage: RunnableStage,
        prepare: Callable[[str], object] | None = None,
        places: Mapping[str, Callable[[], Place]] = NOWHERE,
        threads: int | None = None,
        *,
        variants: Mapping[str, tuple[RunnableStage, str]] = NO_VARIANTS,
        digest: Digest | None = digest_of,
        keeps: bool = False,
        scrub: ScrubPlan | None = None,
    ) -> None:
        """Start the thread.

        Args:
            name: of the stream.
            stage: what it calls.
            prepare: is called with the name, on the thread, before any work.
            places: makes the place on each device that the stage may run on, the first one its own;
                without any it computes on the processor.
            threads: of torch for one operation; None leaves them as they are.
            variants: by name, what is called in place of the stage, and the device of its own.
            digest: makes the digest that results carry of their payload; None for none.
            keeps: whether checkpoints are kept.
            scrub: how weights are checked; None for not at all.
        """
        from avrt.device.worker import CpuStream, WorkerSetup  # noqa: PLC0415 - brings torch

        self.name = name
        self.scrub = Scrub(name, scrub)
        self._homes = {"": next(iter(places), "")}
        self._homes |= {variant: device for variant, (_, device) in variants.items()}
        self._stages = {"": stage} | {variant: made for variant, (made, _) in variants.items()}
        self._variant = ""
        self._digest = digest
        self._keeps = keeps
        self._kept_ns = clock.now_ns()
        self._places = places
        self._made: dict[str, Place] = {}
        self._device = self._homes[""]
        self._place: Place = PROCESSOR
        self._placed = dict.fromkeys(self._stages, PROCESSOR.device)
        self._fresh: dict[str, object] = {}
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

    def begin(
        self,
        inputs: Inputs,
        told: Told,
        *,
        anew: bool = False,
        device: str = "",
        variant: str = "",
    ) -> None:
        """Queue one call of the stage, or of a variant; `told` takes its result, on the thread.

        A future for each job, with its condition and lock, is for those that wait.
        """
        self._worker.submit_always(partial(self._do, inputs, told, anew, device, variant))

    def state(self) -> Future[object]:
        """Queue the variant that ran and a copy of its state; a fault in its place if one comes."""
        future: Future[object] = Future()
        copied = lambda: (self._variant, copy.deepcopy(self._stage.freeze()))  # noqa: E731
        self._worker.submit_always(lambda: future.set_result(guarded(copied)))
        return future

    def adopt(self, state: Future[object]) -> None:
        """Queue taking over what `state` of another stream gives; nothing is done before."""
        self.turns += 1
        self._worker.submit_always(lambda: self._adopt(state.result()))

    def begin_anew(self) -> None:
        """Queue taking back the state that the stage had after its warm-up."""
        self.turns += 1
        self._worker.submit_always(self._begin_anew)

    def resume(self, checkpoint: tuple[str, object] | None) -> None:
        """Queue going on from a checkpoint of another stream, if there is one."""
        if checkpoint is not None:
            self.checkpoint = checkpoint
            self._worker.submit_always(lambda: self._adopt(checkpoint))

    def idle(self) -> Future[bool]:
        """Queue telling that all that was queued before is done."""
        future: Future[bool] = Future()
        self._worker.submit_always(lambda: future.set_result(True))
        return future

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

    @property
    def _stage(self) -> RunnableStage:
        return self._stages[self._variant]

    def _do(
        self,
        inputs: Inputs,
        told: Told,
        anew: bool,  # noqa: FBT001
        device: str,
        variant: str,
    ) -> None:
        """Do one job, on the thread; nothing that a stage raises leaves this."""
        changed = None if variant == self._variant else self._change(variant)
        moved = self._move(device or self._device)
        fault = self._begin_anew() if anew or self._is_stale else None
        self._is_stale = fault is not None
        told(moved or changed or fault or self._spoilt() or self._run(inputs))
        if self.scrub.job_bytes:  # what it raises is the device's, and the next job's to tell
            guarded(lambda: self._place.compute(lambda: self.scrub.check(self._variant)))
        if self._keeps and clock.now_ns() - self._kept_ns >= CHECKPOINT_NS:
            self._keep()

    def _keep(self) -> None:
        """Keep a copy of the state, behind the job; a stage that cannot give one has none."""
        state = guarded(lambda: copy.deepcopy(self._stage.freeze()))
        self._kept_ns = clock.now_ns()
        if state is not None and not isinstance(state, FaultError):
            self.checkpoint = (self._variant, state)

    def _do_warm_up(self, told: Told) -> None:
        """Warm every variant up where it belongs, the stage as declared last."""
        total_ns = 0
        for variant, device in sorted(self._homes.items(), reverse=True):
            self._variant = variant
            result = self._move(device) or self._warm_up()
            total_ns += result.host_ns
            if result.fault is not None:
                break
        told(Result(None, result.fault, total_ns))

    def _change(self, variant: str) -> Result | None:
        """Let a variant go on; return the fault if it cannot take over."""
        before, was = self._stage, self._variant
        self._variant = variant
        title = variant or "declared"
        fault = self._fault_of(lambda: self._take_over(before), f"go on as {title}")
        if fault is not None:
            self._variant = was  # the next job tries it again
        return fault

    def _take_over(self, before: RunnableStage) -> None:
        state = self._fresh.get(self._variant)
        if type(before) is type(self._stage):
            state = before.freeze()
        if state is not None:
            self._stage.thaw(copy.deepcopy(state))

    def _run(self, inputs: Inputs) -> Result:
        """Call the stage; once more if it ran out of memory, when nothing holds what it had."""
        result = self._call(inputs)
        if result.fault is None or result.fault.kind != OUT_OF_MEMORY:
            return result
        gc.collect()
        log.warning("stage %s ran out of memory and is tried once more", self.name)
        again = self._call(inputs)
        return replace(again, host_ns=again.end_host_ns - result.start_host_ns)

    def _call(self, inputs: Inputs) -> Result:
        return run_job(self.name, self._stage, inputs, self._place, digest=self._digest)

    def _move(self, device: str) -> Result | None:
        """Go to a device; return the fault if that fails."""
        is_there = device in self._made and device == self._device
        if is_there and self._placed[self._variant] == self._place.device:
            return None
        if device not in self._places:
            return None
        return self._fault_of(partial(self._go, device), f"go to {device}")

    def _go(self, device: str) -> None:
        place = self._made.get(device) or self._places[device]()
        is_elsewhere = place.device != self._placed[self._variant]
        if is_elsewhere:
            self._stage.place(place.device)
            self._placed[self._variant] = place.device
        self._made[device] = self._place = place
        self._device = device
        if is_elsewhere and self._variant in self.scrub.crc32s:
            place.compute(lambda: self.scrub.moved(self._variant, self._stage.weight_arrays()))

    def _warm_up(self) -> Result:
        """Warm the stage up, and keep the state it has then."""
        result = warm_up(self._stage, self._place)
        fresh = guarded(lambda: copy.deepcopy(self._stage.freeze()))
        if isinstance(fresh, FaultError):
            fault = result.fault or SoftwareFault("freeze", fresh.detail)
            return Result(None, fault, result.host_ns)
        self._fresh[self._variant] = fresh
        held = guarded(self._hold_weights)
        if isinstance(held, FaultError) and result.fault is None:
            return Result(None, SoftwareFault(WEIGHTS, held.detail), result.host_ns)
        return result

    def _hold_weights(self) -> None:
        """Take the weights of the present variant as they have to be."""
        arrays = self._stage.weight_arrays()
        if len(arrays):
            self._place.compute(lambda: self.scrub.hold(self._variant, arrays))

    def _spoilt(self) -> Result | None:
        """Return that weights had changed, in place of a job, if they had."""
        fault, at_ns = self.scrub.fault(self._variant), clock.now_ns()
        return None if fault is None else Result(None, fault, 1, end_host_ns=at_ns)

    def _begin_anew(self) -> Result | None:
        """Give the stage its first state back; return the fault if that fails."""
        self.checkpoint = None  # nothing that it believed then holds now
        fresh = self._fresh.get(self._variant)
        if fresh is None:
            return None
        return self._fault_of(lambda: self._stage.thaw(copy.deepcopy(fresh)), "begin anew")

    def _adopt(self, told: object) -> None:
        """Take over a variant and its state; a fault in their place tells nothing."""
        if isinstance(told, FaultError):
            return
        assert isinstance(told, tuple)
        self._variant, state = told
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


def wait(future: Future[T], timeout_ns: int) -> T | None:
    """Return the result of submitted work, or None if it does not come within host time."""
    try:
        return future.result(timeout=min(timeout_ns / NS_PER_S, threading.TIMEOUT_MAX))
    except FutureTimeoutError:
        return None
