"""What is kept of a source from one of its messages to the next: clocks, camera model, count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.logs.clock_map import ClockMap

if TYPE_CHECKING:
    from avrt.logs.raw import RawMessage
    from avrt.model.spec import SourceSpec
    from avrt.payload import CameraInfo


@dataclass(slots=True)
class LogSource:
    """One source while its messages are read from a log.

    Attributes:
        order: its place in the pipeline file.
        clocks: of those that write to its topic.
        epoch: of a clock that is not known yet.
        delivered: how many of its messages were.
        info, raw_info: the camera's newest model, and its message if no image came since.
    """

    spec: SourceSpec
    order: int
    clocks: dict[str, ClockMap] = field(default_factory=dict)
    epoch: int = 0
    delivered: int = 0
    info: CameraInfo | None = None
    raw_info: RawMessage | None = None

    def clock_of(self, writer: str) -> ClockMap:
        """Return the clock of one of those that write to its topic; most topics have one."""
        if writer not in self.clocks:
            epoch = max((clock.epoch for clock in self.clocks.values()), default=self.epoch)
            self.clocks[writer] = ClockMap(self.spec.clock_offset_ns, self.spec.period_ns, epoch)
        return self.clocks[writer]

    def begin_anew(self) -> None:
        """Forget the clocks and the camera model of the pass before."""
        epochs = [clock.epoch for clock in self.clocks.values()]
        self.epoch = max(epochs, default=self.epoch) + 1
        self.clocks.clear()
        self.info = None
