"""Jobs as another instance of their stage can repeat them: frames, for whoever follows a task.

A frame begins where the one before it ended, or has the state before it with it: a copy that the
stage's own stream makes between two jobs, so no job is missed and none is in it twice. Followers
that lost track ask for it when a job begins, and have it with the next one: it is copied behind a
job, where it delays none. Only the first good frame of each variant of a task, which is kept as the
golden one, has a copy made in front of it.

All of it is for the driver's thread and waits for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from avrt.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from avrt.drivers.draft import Inputs
    from avrt.exec.runner import Result
    from avrt.exec.stream import Stream
    from avrt.model.commands import Dispatch


@dataclass(frozen=True, slots=True)
class Frame:
    """One job that ended well.

    Attributes:
        variant: which one computed it, "" for the stage as declared.
        anew: whether it began with the state after the warm-up.
        payload: what it made.
        before: the variant and the state before it; None for those that the frame before left.
    """

    inputs: Inputs
    variant: str
    anew: bool
    payload: object
    before: tuple[str, object] | None = None


class Follower(Protocol):
    """Who repeats the jobs of a task elsewhere."""

    task: str

    def begins(self, variant: str, *, is_known: bool) -> bool:
        """Take in that a job begins; return whether the state behind it is wanted.

        `is_known` tells whether the state before it is.
        """

    def follow(self, frame: Frame) -> None:
        """Take in that a job ended well."""

    def idle(self) -> None:
        """Take in that no job of the run is underway."""

    def lose_track(self) -> None:
        """Take in that what the next job begins with is not known."""

    def close(self) -> None: ...


@dataclass(slots=True)
class _Begun:
    """A job that will be a frame."""

    task: str
    inputs: Inputs
    variant: str
    anew: bool
    state: Future[object] | None = None

    def frame(self, result: Result) -> Frame | None:
        """Return the frame of a job that ended; None where it, or copying the state, failed."""
        before = None if self.state is None else self.state.result()  # it was queued before the job
        if result.fault is not None or isinstance(before, FaultError):
            return None
        assert before is None or isinstance(before, tuple)
        return Frame(self.inputs, self.variant, self.anew, result.payload, before)


class Shadows:
    """Hands jobs on as they end.

    Attributes:
        golden: by task and variant, the first frame.
    """

    def __init__(self) -> None:
        self.golden: dict[tuple[str, str], Frame] = {}
        self._followers: defaultdict[str, list[Follower]] = defaultdict(list)
        self._begun: dict[int, _Begun] = {}
        self._turns: dict[str, tuple[Stream, int]] = {}
        self._behind: dict[str, Future[object]] = {}

    def join(self, follower: Follower) -> None:
        """Let a follower have the jobs that begin from now on."""
        self._followers[follower.task].append(follower)

    def leave(self, follower: Follower) -> None:
        """Let it go, if it is there, and close it."""
        if follower in self._followers[follower.task]:
            self._followers[follower.task].remove(follower)
        follower.close()

    def close(self) -> None:
        """Let all of them go."""
        for follower in [one for several in self._followers.values() for one in several]:
            self.leave(follower)

    def beginning(
        self,
        command: Dispatch,
        inputs: Inputs,
        stream: Stream,
        begin: Callable[[], None],
        *,
        anew: bool,
    ) -> Callable[[], None]:
        """Return what begins a job, and copies the state behind it where somebody wants that."""
        task = command.task
        followers = self._followers.get(task, ())
        is_first = (task, command.variant) not in self.golden
        if not followers and not is_first:
            return begin
        self._see_turn(task, stream)
        before = self._behind.pop(task, None)
        begun = _Begun(task, inputs, command.variant, anew, before)
        self._begun[command.job] = begun
        is_known = before is not None
        wanted = [one.begins(command.variant, is_known=is_known) for one in followers]

        def begin_watched() -> None:
            if is_first and not is_known:
                begun.state = stream.state()
            begin()
            if any(wanted):
                self._behind[task] = stream.state()

        return begin_watched if is_first or any(wanted) else begin

    def ended(self, job: int, result: Result | None) -> None:
        """Take in how a job ended; None where nobody knows."""
        begun = self._begun.pop(job, None)
        if begun is None:
            return
        frame = None if result is None else begun.frame(result)
        for follower in self._followers.get(begun.task, ()):
            if frame is None:
                follower.lose_track()
            else:
                follower.follow(frame)
        if frame is not None and frame.before is not None:
            self.golden.setdefault((begun.task, begun.variant), frame)

    def idle(self) -> None:
        """Take in that no job of the run is underway."""
        for followers in self._followers.values():
            for follower in followers:
                follower.idle()

    def _see_turn(self, task: str, stream: Stream) -> None:
        """Let followers lose track where the state changed otherwise than by a job."""
        turn = stream, stream.turns
        if self._turns.get(task) != turn:
            self._turns[task] = turn
            self._behind.pop(task, None)
            for follower in self._followers[task]:
                follower.lose_track()
