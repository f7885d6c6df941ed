"""In which order the events of one instant are taken in, whatever order they came in.

First what ended or was lost (by phase, then job, activation, stream or device number), later, after
the timers of the instant, what arrived: by source order and sequence, then mode requests, then the
drain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
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

    from avrt.model.events import Event

ARRIVALS = (Arrived, ModeRequested, Ordered, Drain)
PHASES = {
    Started: 0,
    SegmentEnded: 1,
    Completed: 1,
    Failed: 1,
    Hung: 1,
    Voted: 2,
    StreamLost: 3,
    DeviceLost: 4,
    DeviceBack: 5,
    StreamBack: 6,
    Read: 7,
}


class InstantOrder:
    """The order of one pipeline; the mappings give each name its place in the pipeline file."""

    def __init__(
        self, sources: Mapping[str, int], tasks: Mapping[str, int], devices: Mapping[str, int]
    ) -> None:
        self._sources = sources
        self._tasks = tasks
        self._devices = devices

    def split(self, events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
        """Return what ended or was lost, and what arrived, each in order."""
        if len(events) == 1:
            return ((), events) if isinstance(events[0], ARRIVALS) else (events, ())
        ended = [event for event in events if not isinstance(event, ARRIVALS)]
        arrived = [event for event in events if isinstance(event, ARRIVALS)]
        return sorted(ended, key=self._end_rank), sorted(arrived, key=self._arrival_rank)

    def _end_rank(self, event: Event) -> tuple[int, int]:
        phase = PHASES[type(event)]
        match event:
            case Started() | SegmentEnded() | Completed() | Failed() | Hung():
                return (phase, event.job)
            case Voted():
                return (phase, event.activation)
            case StreamLost() | StreamBack():
                return (phase, self._tasks[event.stream])
            case DeviceLost() | DeviceBack():
                return (phase, self._devices[event.device])
            case _:
                return (phase, event.buffer if isinstance(event, Read) else 0)

    def _arrival_rank(self, event: Event) -> tuple[int, int, int, str]:
        if isinstance(event, Arrived):
            return (self._sources[event.source], event.sequence, event.buffer, "")
        asked = ""
        if isinstance(event, ModeRequested):
            asked = f"{event.mode} {event.cause}"
        elif isinstance(event, Ordered):
            asked = event.order
        return (len(self._sources) + isinstance(event, Drain), 0, 0, asked)
