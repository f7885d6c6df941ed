"""What the streams of a run at the wall clock did all the time, and the host between two jobs.

A job's work runs from `device_start_ns` to `device_ns`, by the device's own clock. The gap before
it, since the end of the work before on that stream, has up to four parts, which sum to it:

* reporting: the work before is over and the driver has not been told yet;
* idle: no job of the stream is there;
* waiting: a job is there, and others hold the slot, or the driver has not heard of it;
* handing over: the job is dispatched and its thread has not begun.

Side by side is the share of the time in which some stream works that has two or more at work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from avrt.metrics.distribution import Distribution
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from avrt.model.records import JobRecord
    from avrt.model.spec import PipelineSpec

PARTS = ("reporting", "idle", "waiting", "handing_over")
LOOK_BACK_NS = 30 * NS_PER_S
EDGES_MAX = 8192
"""Work that is reported so long, or so many jobs' edges, after it ended counts as done alone."""


@dataclass(slots=True)
class StreamFigures:
    """One stream.

    Attributes:
        busy_ns: how long it worked.
        gaps_ns: of each part of its gaps, all values.
        last_ns, told_ns: when its newest work ended and when that was reported.
    """

    busy_ns: int = 0
    gaps_ns: dict[str, Distribution] = field(
        default_factory=lambda: {part: Distribution() for part in PARTS}
    )
    total_ns: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    last_ns: int | None = None
    told_ns: int = 0

    def job(self, record: JobRecord, began_ns: int, done_ns: int) -> None:
        """Take in one job whose work began and ended."""
        self.busy_ns += done_ns - began_ns
        if self.last_ns is not None:
            parts = gap_before(record, began_ns, self.last_ns, self.told_ns)
            for part, ns in zip(PARTS, parts, strict=True):
                self.gaps_ns[part].add(ns)
                self.total_ns[part] += ns
        self.last_ns, self.told_ns = done_ns, record.end_ns


def gap_before(record: JobRecord, began_ns: int, last_ns: int, told_ns: int) -> list[int]:
    """Return the PARTS of the gap before a job's work, which sum to it.

    Args:
        record: the job.
        began_ns: when its work began.
        last_ns: when the work before on its stream ended.
        told_ns: when that was reported.
    """
    assert record.start_ns is not None
    parts, before = [], last_ns
    for edge in (told_ns, record.release_ns, record.start_ns, began_ns):
        at = min(max(edge, before), began_ns)
        parts.append(at - before)
        before = at
    return parts


class SideBySide:
    """How much of the time in which some stream works has two or more at work.

    Work is told in the order of its reports and may have begun earlier; what lies LOOK_BACK_NS or
    EDGES_MAX edges behind the newest is settled and forgotten.
    """

    def __init__(self) -> None:
        self._edges: list[tuple[int, int]] = []
        self._at_work = 0
        self._since_ns = 0
        self._busy_ns = 0
        self._shared_ns = 0

    def add(self, began_ns: int, done_ns: int) -> None:
        heappush(self._edges, (max(began_ns, self._since_ns), 1))
        heappush(self._edges, (max(done_ns, self._since_ns), -1))
        self._settle(done_ns - LOOK_BACK_NS)

    def share(self) -> float | None:
        """Return the share; None while nothing worked."""
        rest = SideBySide()
        rest._edges = list(self._edges)
        rest._at_work, rest._since_ns = self._at_work, self._since_ns
        rest._busy_ns, rest._shared_ns = self._busy_ns, self._shared_ns
        rest._settle(None)
        return rest._shared_ns / rest._busy_ns if rest._busy_ns else None

    def _settle(self, until_ns: int | None) -> None:
        """Take in the edges before a time and the oldest of too many, all of them when None."""
        while self._edges and (
            until_ns is None or self._edges[0][0] < until_ns or len(self._edges) > EDGES_MAX
        ):
            at_ns, change = heappop(self._edges)
            self._busy_ns += (at_ns - self._since_ns) * (self._at_work > 0)
            self._shared_ns += (at_ns - self._since_ns) * (self._at_work > 1)
            self._at_work, self._since_ns = self._at_work + change, at_ns


class Streams:
    """All streams of a run; they stay empty in virtual time, where no device has a clock."""

    def __init__(self, spec: PipelineSpec) -> None:
        self.streams = {task: StreamFigures() for stage in spec.stages for task in stage.task_names}
        self.side_by_side = SideBySide()

    @property
    def measured(self) -> bool:
        """Whether any device said when its work ran."""
        return any(stream.busy_ns for stream in self.streams.values())

    def job(self, record: JobRecord) -> None:
        """Take in how a job ended."""
        began_ns, done_ns = record.device_start_ns, record.device_ns
        if began_ns is not None and done_ns is not None:
            self.streams[record.task].job(record, began_ns, done_ns)
            self.side_by_side.add(began_ns, done_ns)

    def summary(self) -> dict[str, object]:
        return {
            "side_by_side": self.side_by_side.share(),
            "streams": {
                name: {
                    "busy_ns": stream.busy_ns,
                    "gaps_ns": {
                        part: {"total": stream.total_ns[part], **stream.gaps_ns[part].summary()}
                        for part in PARTS
                    },
                }
                for name, stream in self.streams.items()
                if stream.busy_ns
            },
        }
