"""A device that comes back proves itself before anything runs on it: golden frames, then shadows.

Every stage that may run on the device gets a twin there, made anew, on a thread of its own. It is
warmed up, and

1. repeats the golden frames of its task, the first good job of each variant that belongs there;
2. then follows the jobs of its task, which run elsewhere, from the state of the stage's own stream
   on: SHADOW_FRAMES in a row must come out as theirs did. For a job of a variant that belongs on
   other devices it repeats a golden frame in its place.

Outputs are compared by the agreement of the stage (`avrt.safety.rules`) and thrown away. One that
differs or raises ends the trial, and the next one begins from the start, after a wait
(`avrt.safety.recovery`). Nothing waits for these twins: a job that comes while its twin is busy, or
while another one has its turn, is left out and counts for nothing, and the twin takes over the
state anew. A task of which no job comes for QUIET_NS goes by its golden frames alone, and so does
one that has nowhere else to run: its jobs wait for this very device.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from avrt import clock
from avrt.drivers.streams import stream_of
from avrt.errors import FaultError
from avrt.exec.runner import guarded
from avrt.exec.stream import wait
from avrt.safety.recovery import FAILURES_MAX
from avrt.safety.replicas import SHADOW_FRAMES, WITHIN_NS
from avrt.safety.rules import agreement_of, differs
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from avrt.config.binding import BoundStage
    from avrt.drivers.shadows import Frame, Shadows
    from avrt.exec.runner import Result
    from avrt.exec.stream import Stream
    from avrt.model.spec import PipelineSpec, StageSpec
    from avrt.safety.recovery import Recovery

QUIET_NS = 5 * NS_PER_S
BURST = 10
SPREAD = 5
WARM_NS = 60 * NS_PER_S
TOO_OFTEN = f"{FAILURES_MAX} times within {WITHIN_NS // (60 * NS_PER_S)} min"

log = logging.getLogger("avrt.drivers")


class Turns:
    """Lets the twins of a live run compute one at a time, and not for long.

    They hold the interpreter like everybody else there, so that twins of all stages at once would
    cost the run its deadlines. A turn is BURST frames; the next one begins when SPREAD times the
    processor time of this one are over. One that nothing comes of is over after QUIET_NS.
    """

    def __init__(self) -> None:
        self._holder: Twin | None = None
        self._since_ns = self._used_ns = self._next_ns = 0
        self._spent_ns = self._frames = 0

    def take(self, twin: Twin) -> bool:
        """Give a twin the turn if it is free; return whether the twin has it."""
        now_ns, holder = clock.now_ns(), self._holder
        if holder is not None and holder.waiting == 0 and now_ns - self._used_ns >= QUIET_NS:
            self.leave(holder)
        if self._holder is None and now_ns >= self._next_ns:
            self._spent_ns = self._frames = 0
            self._since_ns, self._holder = now_ns, twin
        if self._holder is not twin:
            return False
        self._used_ns = now_ns
        return True

    def did(self, twin: Twin, spent_ns: int, *, is_last: bool) -> None:
        """Take in a frame of a twin and its processor time; on the twin's thread."""
        self._spent_ns += spent_ns
        self._frames += 1
        if is_last or self._frames >= BURST:
            self.leave(twin)

    def leave(self, twin: Twin) -> None:
        """Let the turn go, if a twin has it."""
        if self._holder is twin:
            self._next_ns = self._since_ns + SPREAD * self._spent_ns
            self._holder = None


@dataclass(eq=False, slots=True)
class Twin:
    """A fresh instance of a stage, on the device.

    It takes a job only when it has done the one before and has the turn. It begins with it when no
    job of the run is underway, at the latest when the next one of its task begins. What it counts
    is written by one thread each: the driver's takes, its own is done.

    Attributes:
        variants: those that belong on the device.
        golden: the frames that it repeats first.
        differs: whether an output is another than the known one.
        is_alone: whether its task has nowhere else to run.
        turns: of the run; None where computing takes no time.
        left_out, taken, done: jobs that it did not take, that it took, and that it has done.
        agreed: shadow frames that came out alike, since it began.
        failure: why it does not agree, "" as long as it does.
    """

    task: str
    device: str
    stream: Stream
    variants: Collection[str]
    golden: Sequence[Frame]
    differs: Callable[[object, object], bool]
    is_alone: bool = False
    turns: Turns | None = None
    left_out: int = 0
    taken: int = 0
    done: int = 0
    agreed: int = 0
    failure: str = ""
    _takes: bool = False
    _held: Frame | None = None
    _has_state: bool = False
    _took_ns: int = 0

    @property
    def waiting(self) -> int:
        """How many frames are not done."""
        return self.taken - self.done + (self._held is not None)

    @property
    def moves(self) -> int:
        """A number that changes whenever its task or itself does something."""
        return self.left_out + self.taken + self.done

    def begin(self, timeout_ns: int) -> None:
        """Warm up, and repeat the golden frames; `failure` says what came of it."""
        warmed = wait(self.stream.warm(), WARM_NS)
        fault = None if warmed is None else warmed.fault
        if warmed is None or fault is not None:
            self.failure = f"its warm-up failed: {fault or 'no answer'}"
            return
        for frame in self.golden:
            self._repeat(frame)
        self.settle(timeout_ns * max(1, len(self.golden)))
        self.agreed = 0

    def begins(self, variant: str, *, is_known: bool) -> bool:
        self.idle()  # what has not begun by now does not wait for longer
        is_own = variant in self.variants
        may = self.agreed < SHADOW_FRAMES and self.waiting == 0 and self._has_turn()
        self._takes = may and (self._has_state or is_known or not is_own)
        self._has_state = self._takes and is_own
        self.left_out += not self._takes
        return may and not self._takes

    def follow(self, frame: Frame) -> None:
        if self._takes and frame.variant in self.variants:
            self._held = frame
        elif self._takes and self.golden:
            self._held = self.golden[0]
        self._takes = False
        if self.turns is None:
            self.idle()

    def idle(self) -> None:
        """Begin with the frame that is held, if there is one."""
        if self._held is not None:
            self._repeat(self._held)
            self._held = None

    def lose_track(self) -> None:
        self._takes = self._has_state = False
        if self.turns is not None and self.waiting == 0:
            self.turns.leave(self)

    def settle(self, timeout_ns: int) -> None:
        """Wait until it has done all that it took; one that does not answer has failed."""
        if self.waiting and wait(self.stream.idle(), timeout_ns) is None:
            self.failure = "it does not answer"

    def close(self) -> None:
        self.stream.close()
        if self.turns is not None:
            self.turns.leave(self)

    def _has_turn(self) -> bool:
        return self.turns is None or self.turns.take(self)

    def _repeat(self, frame: Frame) -> None:
        self.taken += 1
        self.stream.resume(frame.before)
        self.stream.begin(
            frame.inputs,
            lambda result: self._judge(frame.payload, result),
            anew=frame.anew,
            device=self.device,
            variant=frame.variant,
        )

    def _judge(self, known: object, result: Result) -> None:
        """Take in, on its own thread, what it made of a frame."""
        if result.fault is not None:
            self.failure = self.failure or str(result.fault)
        elif guarded(lambda: self.differs(known, result.payload)) is not False:
            self.failure = self.failure or "its output differs"
        else:
            self.agreed += 1
        before_ns, self._took_ns = self._took_ns, clock.thread_ns()
        self.done += 1
        if self.turns is not None:
            is_over = self.agreed >= SHADOW_FRAMES
            self.turns.did(self, self._took_ns - before_ns, is_last=is_over)


@dataclass(slots=True)
class Trial:
    """A device on probation.

    Attributes:
        twins: of all stages that may run on it.
        timeout_ns: host time after which a twin that has not answered has failed.
    """

    device: str
    twins: Sequence[Twin]
    timeout_ns: int
    _counts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def begin(self) -> str:
        """Let all twins repeat their golden frames; return what went wrong, or ""."""
        for twin in self.twins:
            twin.begin(self.timeout_ns)
            if twin.failure:
                break
        return self._failure

    def join(self, shadows: Shadows) -> None:
        for twin in self.twins:
            shadows.join(twin)

    def leave(self, shadows: Shadows) -> None:
        """End it; the twins end with it."""
        for twin in self.twins:
            shadows.leave(twin)

    def close(self) -> None:
        """End it before its twins follow anything."""
        for twin in self.twins:
            twin.close()

    def settle(self) -> None:
        """Wait until all twins have done what they took: for virtual time."""
        for twin in self.twins:
            twin.settle(self.timeout_ns)

    def verdict(self, at_ns: int) -> str | None:
        """Return "" if the device has proved itself, what went wrong, or None if it is open.

        Args:
            at_ns: a time that does not go back; it counts how long a twin was quiet.
        """
        if self._failure:
            return self._failure
        left = [t for t in self.twins if t.agreed < SHADOW_FRAMES and not t.is_alone]
        for twin in self.twins:
            unchanged_ns = self._unchanged_ns(twin, "computes", twin.taken + twin.done, at_ns)
            if twin.taken > twin.done and unchanged_ns >= self.timeout_ns:
                return f"{twin.task}: it does not answer"
        is_quiet = [self._unchanged_ns(t, "moves", t.moves, at_ns) >= QUIET_NS for t in left]
        return "" if all(is_quiet) else None

    @property
    def _failure(self) -> str:
        return next((f"{twin.task}: {twin.failure}" for twin in self.twins if twin.failure), "")

    def _unchanged_ns(self, twin: Twin, what: str, count: int, at_ns: int) -> int:
        """Return for how long a count of a twin has been what it is."""
        key = twin.task, what
        if self._counts.get(key, (-1, 0))[0] != count:
            self._counts[key] = count, at_ns
        return at_ns - self._counts[key][1]


@dataclass(frozen=True, slots=True)
class Probation:
    """Makes the trials of one run.

    Attributes:
        shadows: of its worker.
        make: makes the stage of a task anew, and its variants, for a device; None where nothing
            can: a device that answers has proved itself then.
        timeout_ns: host time after which a twin that has not answered has failed.
        prepare: sets the thread of a twin up.
        turns: of all its twins; None where computing takes no time.
    """

    spec: PipelineSpec
    shadows: Shadows
    make: Callable[[str, str], Mapping[str, BoundStage]] | None
    timeout_ns: int
    prepare: Callable[[str], object] | None = None
    turns: Turns | None = None

    def trial(self, device: str, lost: Collection[str]) -> Trial | FaultError:
        """Return a trial of a device that has not begun; a fault if a stage cannot be made.

        Args:
            device: which one.
            lost: those that are not there, this one among them.
        """
        twins: list[Twin] = []
        made = guarded(lambda: twins.extend(self._twins(device, lost)))
        if isinstance(made, FaultError):
            for twin in twins:
                twin.close()
            return made
        return Trial(device, twins, self.timeout_ns)

    def _twins(self, device: str, lost: Collection[str]) -> Iterator[Twin]:
        if self.make is None:
            return
        for stage in self.spec.stages:
            for task in stage.task_names:
                places = _places(self.spec, stage, task)
                variants = [name for name, devices in places.items() if device in devices]
                if not variants:
                    continue
                golden = [self.shadows.golden.get((task, variant)) for variant in variants]
                stages, prepare = self.make(task, device), self.prepare
                yield Twin(
                    task,
                    device,
                    stream_of(self.spec, stage, task, stages, prepare=prepare, only=device),
                    variants,
                    [frame for frame in golden if frame is not None],
                    partial(differs, agreement_of(stage)),
                    is_alone=all(p in lost for devices in places.values() for p in devices),
                    turns=self.turns,
                )


def tell_failed(device: str, why: str, recovery: Recovery) -> None:
    """Tell that a device did not prove itself, and what follows."""
    log.warning("device %s did not prove itself: %s", device, why)
    if recovery.is_out:
        log.error("device %s did not prove itself %s: it stays out", device, TOO_OFTEN)


def _places(spec: PipelineSpec, stage: StageSpec, task: str) -> dict[str, list[str]]:
    """Return on which devices a task, as "", and each of its variants may run."""
    home = stage.home(task)
    homes = {"": [segment.device for segment in stage.segments] or [home]}
    homes |= {variant.name: [variant.device or home] for variant in stage.variants}
    return {
        name: [place.name for home in devices for place in spec.places(spec.device(home))]
        for name, devices in homes.items()
    }
