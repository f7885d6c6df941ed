"""What ran when: spans of streams and of the host, taken while an executor runs.

Start and end of a span are recordings of its stream, so taking them makes no stream wait; they are
read in `spans`, after the work is over. All times are the executor's clock, the host's spans too.
At most `spans_max` spans are held; what came afterwards is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from avrt.device.base import Device, Mark

SpanKind = Literal["compute", "copy", "wait", "host"]
HostActivity = Literal["preparing", "launching", "waiting"]

HOST = "host"
SPANS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Span:
    """Something that a stream, or the host, did from `start_ns` until before `end_ns`.

    Attributes:
        name: of the operation; of a wait, the stream waited for; of the host, what it was for.
        activity: of the host, what it was doing; empty otherwise.
    """

    stream: str
    name: str
    kind: SpanKind
    start_ns: int
    end_ns: int
    activity: str = ""


class Timeline:
    """Takes spans for an executor.

    Attributes:
        dropped: how many spans there was no room for.
    """

    def __init__(self, spans_max: int = SPANS_MAX) -> None:
        self.dropped = 0
        self._spans_max = spans_max
        self._host: list[Span] = []
        self._marked: list[tuple[str, str, SpanKind, Mark, Mark]] = []

    def is_full(self) -> bool:
        """Return whether no more spans are taken."""
        return len(self._host) + len(self._marked) >= self._spans_max

    def add(self, stream: str, name: str, kind: SpanKind, start: Mark, end: Mark) -> None:
        """Take a span of a stream."""
        if self.is_full():
            self.dropped += 1
        else:
            self._marked.append((stream, name, kind, start, end))

    def add_host(self, name: str, activity: HostActivity, start_ns: int, end_ns: int) -> None:
        """Take a span of the host."""
        if self.is_full():
            self.dropped += 1
        else:
            self._host.append(Span(HOST, name, "host", start_ns, end_ns, activity))

    def spans(self, device: Device) -> list[Span]:
        """Return the spans that are over, by start; skipped operations have none."""
        done = [
            Span(stream, name, kind, device.at_ns(start), device.at_ns(end))
            for stream, name, kind, start, end in self._marked
            if device.passed(end) and end.error is None
        ]
        return sorted([*self._host, *done], key=lambda span: (span.start_ns, span.end_ns))

    def clear(self) -> None:
        """Forget all spans, taken or dropped."""
        self._host.clear()
        self._marked.clear()
        self.dropped = 0
