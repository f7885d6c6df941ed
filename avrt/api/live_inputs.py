"""What feeds a live run: sensors of its own, a log that is played, or the built-in world."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from avrt import clock
from avrt.api.preparation import STRICT, calibrated, copy_truth, from_zero
from avrt.api.raw_messages import RawMessages
from avrt.api.world_reader import WorldReader
from avrt.config.binding import build_source
from avrt.drivers.feeds import LogFeed, SourceFeed
from avrt.errors import SpecError
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog, TopicCount
from avrt.logs.reader import open_log
from avrt.units import NS_PER_S
from avrt.world import SECONDS_MAX, SENSORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack

    from avrt.api.pipeline import Pipeline
    from avrt.drivers.feeds import Feed
    from avrt.drivers.orders import Orders
    from avrt.logs.raw import Anomaly, RawMessage
    from avrt.logs.reader import LogReader
    from avrt.logs.record.run_record import Record
    from avrt.metrics.progress import Progress
    from avrt.metrics.sets import DroppedSet
    from avrt.model.source import Reading
    from avrt.model.spec import PipelineSpec, SourceSpec

SCENE = "cut_in"
BEYOND_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """What a live run is asked for; see `Pipeline.run`."""

    log: Path | None = None
    world: str | None = None
    seed: int = 0
    loops: int = 1
    strict: bool = False
    duration_ns: int | None = None
    record: Path | None = None
    flight: Path | None = None
    force: bool = False
    hang_timeout_ns: int
    preparing: Callable[[int], None] | None = None
    look: Callable[[Progress], None] | None = None
    orders: Orders | None = None
    dropped: Callable[[DroppedSet], object] | None = None


class LiveInputs:
    """Everything that feeds a run, opened.

    Attributes:
        spec: the pipeline, with the transforms that a log has.
        zero_ns: pipeline time zero in the clock of raw messages.
        conditions: what feeds the run, in words.
    """

    def __init__(
        self, pipeline: Pipeline, spec: PipelineSpec, request: LiveRequest, opened: ExitStack
    ) -> None:
        """Open what is asked for; `opened` closes it.

        Raises:
            SpecError: nothing feeds a source, or the request contradicts itself or the pipeline.
            InputError: the log cannot be used at all.
        """
        self._request = request
        self.spec = spec
        self._contradictions: list[Anomaly] = []
        self._log: MergedLog | None = None
        self._reader = pipeline.placed(lambda: self._open(opened))
        if self._reader is not None:
            read = partial(calibrated, spec, self._reader)
            self.spec, self._contradictions = pipeline.placed(read)
            self._log = pipeline.placed(partial(self._merged, self._reader))
        self.zero_ns = clock.epoch_ns() if self._log is None else self._log.zero_ns

    def feeds(self, pipeline: Pipeline) -> list[Feed]:
        """Return what delivers the messages of all sources."""
        feeds: list[Feed] = []
        if self._log is not None:
            aside = self._reader.aside if isinstance(self._reader, WorldReader) else None
            messages = with_models(self._log, self.spec.cameras)
            feeds.append(LogFeed(messages, self._request.duration_ns, aside))
        loaded = pipeline.loaded
        folder = None if loaded is None else Path(loaded.path).parent
        for source in self.spec.sources:
            if source.run:
                made = pipeline.placed(partial(build_source, source, folder))
                encode = _Encoding(source, self.zero_ns)
                feeds.append(SourceFeed(source.name, source.frame, made, encode))
        return feeds

    def wait_ready(self) -> None:
        """Wait until the run can begin: the world needs a head start."""
        if isinstance(self._reader, WorldReader):
            slots = sum(device.slots for device in self.spec.devices)
            has_core = len(os.sched_getaffinity(0)) > slots
            request = self._request
            self._reader.wait_ahead(request.duration_ns, request.preparing, has_core=has_core)

    def copy_truth(self, record: Record) -> None:
        """Put a log's ground truth into the record; that of the world comes with its messages."""
        if self._reader is not None and not isinstance(self._reader, WorldReader):
            copy_truth(self._reader, record)

    @property
    def conditions(self) -> dict[str, str]:
        request = self._request
        if request.log is not None:
            fed = {"log": request.log.name} | ({"strict": STRICT} if request.strict else {})
        elif self._reader is not None:
            fed = {"world": f"{request.world or SCENE}, seed {request.seed}"}
        else:
            fed = {}
        return fed if request.loops == 1 else {**fed, "loops": str(request.loops)}

    @property
    def anomalies(self) -> list[Anomaly]:
        """What was odd so far, times in pipeline ns."""
        odd = [] if self._log is None else self._log.anomalies
        return [*from_zero(self._contradictions, self.zero_ns), *odd]

    def topics(self, taken: Mapping[str, int], dropped: Mapping[str, int]) -> dict[str, TopicCount]:
        """Return what came, and what of it was lost; a live run leaves nothing unread.

        Args:
            taken: by source, messages that the kernel was told of; more were read ahead.
            dropped: by source, messages that gave way to newer ones.
        """
        counts = {} if self._log is None else self._log.topics()
        names = {source.topic: source.name for source in self.spec.sources}
        return {
            topic: _received(
                count,
                taken.get(names.get(topic, ""), count.delivered),
                dropped.get(names.get(topic, ""), 0),
            )
            for topic, count in counts.items()
        }

    def _open(self, opened: ExitStack) -> LogReader | None:
        """Open what feeds the sources that do not read their own sensors."""
        request = self._request
        wanted = [source for source in self.spec.sources if not source.run]
        if request.log is not None and request.world is not None:
            raise SpecError("a log and a world cannot both feed a pipeline; drop one of them")
        if request.strict and request.log is None:
            raise SpecError("only a log can be damaged: drop 'strict', or give a log to play")
        if not wanted:
            if request.log is not None or request.world is not None:
                raise SpecError("every source reads its own sensor; drop the log or the world")
            return None
        if request.log is not None:
            return opened.enter_context(open_log(request.log, strict=request.strict))
        scene = request.world or self._scene(wanted)
        seconds = min(SECONDS_MAX, self._world_seconds)
        return opened.enter_context(WorldReader(scene, request.seed, seconds, self._passes))

    def _scene(self, wanted: Sequence[SourceSpec]) -> str:
        topics = {sensor.topic for sensor in SENSORS}
        strange = [source.name for source in wanted if source.topic not in topics]
        if strange:
            what = f"nothing feeds {', '.join(strange)}: give a log to play, or write 'run'"
            raise SpecError(what, ("sources", strange[0]))
        return SCENE

    @property
    def _passes(self) -> int:
        """How many drives the world makes."""
        return ceil(self._world_seconds / SECONDS_MAX)

    @property
    def _world_seconds(self) -> float:
        """How long the world goes on: its sensors still measure when the time is up."""
        request = self._request
        if request.duration_ns is None:
            return SECONDS_MAX * request.loops
        return request.duration_ns / NS_PER_S + BEYOND_SECONDS

    def _merged(self, reader: LogReader) -> MergedLog:
        sources = [source for source in self.spec.sources if not source.run]
        request = self._request
        passes = request.loops if request.log is not None else self._passes
        strict = request.log if request.strict else None
        return MergedLog(reader, sources, passes, strict=strict)


class _Encoding:
    """Gives each reading of a source the form that it has in the record."""

    def __init__(self, source: SourceSpec, zero_ns: int) -> None:
        self._topic = source.topic or f"/{source.name}"
        self._frame = source.frame
        self._zero_ns = zero_ns
        self._made: list[RawMessage] = []
        self._encoder = RawMessages(self._made.append)

    def __call__(self, reading: Reading, capture_ns: int, at_ns: int) -> RawMessage:
        """Encode a reading, from when it was captured and when it came, pipeline ns.

        Raises:
            SpecError: it is no payload that a source can give.
        """
        stamp_ns, log_ns = self._zero_ns + capture_ns, self._zero_ns + at_ns
        frame = reading.frame or self._frame
        self._encoder.add(self._topic, frame, stamp_ns, reading.payload, log_ns)
        return self._made.pop()


def _received(count: TopicCount, taken: int, dropped: int) -> TopicCount:
    lost = count.lost + dropped
    return replace(count, messages=taken + lost, delivered=taken, lost=lost, unread=0)
