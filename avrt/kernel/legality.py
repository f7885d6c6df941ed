"""Which events may come when: everything is checked before anything changes.

A refused call raises `KernelError` and leaves the kernel as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from avrt.errors import KernelError
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Event,
    Failed,
    Hung,
    ModeRequested,
    Ordered,
    Read,
    SegmentEnded,
    Started,
    StreamBack,
    StreamLost,
    Voted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.kernel.job import Job, Task
    from avrt.kernel.queues import DeviceQueue
    from avrt.kernel.state import State
    from avrt.kernel.voting import Voting


class Legality:
    """What the kernel knows, looked at for judging a batch of events."""

    def __init__(
        self,
        state: State,
        sources: Mapping[str, int],
        tasks: Mapping[str, Task],
        devices: Mapping[str, DeviceQueue],
        working: Mapping[int, Job],
        voting: Voting,
    ) -> None:
        self._state = state
        self._sources = sources
        self._tasks = tasks
        self._devices = devices
        self._working = working
        self._voting = voting

    def check(self, at_ns: int, events: Sequence[Event]) -> None:
        """Raise KernelError if this call may not come now."""
        if at_ns < self._state.now_ns:
            raise KernelError(f"time went back from {self._state.now_ns} to {at_ns} ns")
        for event in events:
            problem = self._problem(event, events)
            if problem:
                raise KernelError(f"illegal at {at_ns} ns: {event}: {problem}")
        if len(events) > 1:
            claims = [claim for event in events for claim in _claims(event)]
            if len(set(claims)) < len(claims):
                twice = next(claim for claim in claims if claims.count(claim) > 1)
                raise KernelError(f"illegal at {at_ns} ns: {twice[0]} {twice[1]} twice in one call")

    def _problem(  # noqa: C901, PLR0911, PLR0912 - one case an event
        self, event: Event, batch: Sequence[Event]
    ) -> str:
        match event:
            case Completed():
                return self._job(event.job, last=True) or self._new(event.buffer)
            case Failed() | Hung():
                return self._job(event.job)
            case Arrived():
                return self._arrival(event) or self._new(event.buffer)
            case Started():
                known = event.job in self._working
                return "" if known else "this job is not on a stream"
            case SegmentEnded():
                return self._job(event.job, last=False)
            case Voted():
                return self._voting.problem(event, batch)
            case Read():
                unread = self._state.buffers.is_unread(event.buffer)
                return "" if unread else "no outside reader holds this buffer"
            case StreamBack():
                return "" if event.stream in self._tasks else "no such stream"
            case StreamLost() | DeviceLost() | DeviceBack():
                return self._resource(event)
            case Drain():
                again = self._state.draining and not event.at_once
                return "draining already" if again else ""
            case Ordered():
                return ""
            case ModeRequested():
                return "" if event.mode in self._state.modes else "no such mode"
            case _:
                assert_never(event)

    def _job(self, job_id: int, *, last: bool | None = None) -> str:
        """Judge the end of work; `last` tells whether it is said to be the last segment's."""
        job = self._working.get(job_id)
        if job is None:
            return "this job is not on a stream"
        if job.since_ns is None:
            return "this job is preempted"
        course = job.course
        is_last = course is None or course.segment + 1 == len(job.task.route)
        if last is None or last == is_last:
            return ""
        return "no other segment follows" if is_last else "another segment follows"

    def _new(self, handle: int) -> str:
        return "this buffer is live" if self._state.buffers.is_live(handle) else ""

    def _arrival(self, event: Arrived) -> str:
        if self._state.draining:
            return "nothing arrives after Drain"
        return "" if event.source in self._sources else "no such source"

    def _resource(self, event: StreamLost | DeviceLost | DeviceBack) -> str:
        if isinstance(event, StreamLost):
            task = self._tasks.get(event.stream)
            if task is None:
                return "no such stream"
            return "lost already" if task.lost else ""
        device = self._devices.get(event.device)
        if device is None:
            return "no such device"
        if device.lost == isinstance(event, DeviceLost):
            return "lost already" if device.lost else "not lost"
        return ""


def _claims(event: Event) -> tuple[tuple[str, object], ...]:
    """Return what an event uses up: no other event of the same call may have it too."""
    claims: tuple[tuple[str, object], ...] = ()
    match event:
        case Completed():
            claims = (("job", event.job), ("buffer", event.buffer))
        case Failed() | Hung() | SegmentEnded():
            claims = (("job", event.job),)
        case Arrived():
            claims = (("buffer", event.buffer),)
        case Voted():
            made = () if event.buffer is None else (("buffer", event.buffer),)
            claims = (("vote", event.activation), *made)
        case Read():
            claims = (("read", event.buffer),)
        case StreamLost() | StreamBack():
            claims = (("stream", event.stream),)
        case DeviceLost() | DeviceBack():
            claims = (("device", event.device),)
        case Drain():
            claims = (("drain", ""),)
        case _:
            pass
    return claims
