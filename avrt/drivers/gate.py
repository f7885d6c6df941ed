"""The gate between sources and the kernel: every message passes its source's guard, or is counted.

`look_at` reads a payload, which takes a millisecond or more, on whatever thread the message is on;
`admits` decides, and is cheap. A source without a guard lets everything through.

What becomes of a source's messages follows from them and the times at which they came alone. That
nothing comes, the driver has to say: a replay with each message of any source, a live run when the
time has come. The sensor is lost at the end of its last period in either case. A live run says so
GRACE_NS late, since what came in time may still be on its way to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from avrt.logs.record.run_record import FLAWS, SENSORS
from avrt.model.codec import encode
from avrt.model.guard import FlawRecord, GuardSpec, SensorRecord
from avrt.safety.content import Content, inspect
from avrt.safety.guard import Facts, Guard
from avrt.safety.identity import Identity, frames_of_others
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.drivers.recorder import Recorder
    from avrt.logs.decode import Payload
    from avrt.logs.merge import SourceMessage
    from avrt.metrics.run import RunFigures
    from avrt.model.spec import PipelineSpec

GRACE_NS = 20 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class Seen:
    """A message that was looked at; without a guard there is nothing to see.

    Attributes:
        item: the message, without points that are no numbers.
        content: what it held, or None.
        dropped: how many points were taken out of it.
    """

    item: SourceMessage
    content: Content | None = None
    dropped: int = 0


class Gate:
    """All guards of a run."""

    def __init__(self, spec: PipelineSpec, figures: RunFigures, recorder: Recorder) -> None:
        """Begin with all sensors in use, and note that."""
        self._specs: dict[str, GuardSpec] = {
            source.name: source.guard for source in spec.sources if source.guard is not None
        }
        self._guards = {
            source.name: Guard(
                source.name,
                source.guard,
                source.period_ns,
                source.latency_ns,
                frames_of_others(source, spec.sources),
            )
            for source in spec.sources
            if source.guard is not None
        }
        self._figures = figures
        self._recorder = recorder
        self._tell(SensorRecord(name, 0, "ok", "ok") for name in self._guards)

    @property
    def alarm_ns(self) -> int | None:
        """When the next sensor is lost if nothing comes."""
        times = [at for guard in self._guards.values() if (at := guard.alarm_ns) is not None]
        return min(times, default=None)

    def look_at(self, item: SourceMessage) -> Seen:
        """Read what a guard wants to know of a message; on any thread."""
        spec = self._specs.get(item.source)
        if spec is None:
            return Seen(item)
        payload, content = inspect(item.payload, spec)
        if payload is item.payload:
            return Seen(item, content)
        return Seen(replace(item, payload=cast("Payload", payload)), content, content.nonfinite)

    def admits(self, seen: Seen) -> bool:
        """Tell whether a message is to be delivered; messages of a source are given in order."""
        item, content = seen.item, seen.content
        if content is None:
            return True
        counter = item.raw.sequence or None
        facts = Facts(
            item.log_ns,
            item.capture_ns,
            content,
            counter,
            item.jumped,
            item.epoch,
            Identity(item.raw.type, item.said_frame, content.form),
            item.raw.channel.writer,
        )
        reason, missing, changes = self._guards[item.source].take(facts)
        self._tell(changes)
        dropped = 0 if reason else seen.dropped
        if reason or missing or dropped:
            flaw = FlawRecord(item.source, item.sequence, item.log_ns, reason, missing, dropped)
            self._figures.flaw(flaw)
            self._recorder.note(FLAWS, encode(flaw), item.log_ns)
        return not reason

    def until(self, now_ns: int) -> None:
        """Let time pass."""
        for guard in self._guards.values():
            self._tell(guard.until(now_ns))

    def _tell(self, changes: Iterable[SensorRecord]) -> None:
        for change in changes:
            self._figures.sensor(change)
            self._recorder.note(SENSORS, encode(change), change.at_ns)
