"""One live run, from its sources to a report: opens what feeds it, places the sensors, runs.

A source with `run` reads its own sensor. All others read one log, played at a rate, or the built-in
world, made meanwhile; without either, the world plays where its topics are the ones that are asked
for.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from avrt import clock
from avrt.api.preparation import (
    admitted,
    built,
    calibrated,
    check_out,
    copy_truth,
    created,
    from_zero,
    recording,
)
from avrt.api.raw_messages import encoded
from avrt.api.report import Report
from avrt.api.world_reader import WorldReader
from avrt.config.binding import build_source
from avrt.drivers.conditions import read_conditions
from avrt.drivers.feeds import LogFeed, SourceFeed
from avrt.drivers.flight import FlightLimits, FlightRecorder
from avrt.drivers.hosts import fit_to_host, supplied_by_host
from avrt.drivers.live import LiveOptions, live
from avrt.errors import SpecError
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog, TopicCount
from avrt.logs.raw import Anomaly
from avrt.logs.reader import open_log
from avrt.logs.record.recorded import FLIGHT
from avrt.model.codec import to_json
from avrt.report.summary import FlightSummary, RunSummary
from avrt.units import NS_PER_S
from avrt.world import SECONDS_MAX, SENSORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.api.pipeline import Pipeline
    from avrt.drivers.feeds import Feed
    from avrt.drivers.result import RunResult
    from avrt.drivers.wall import WallClock
    from avrt.logs.raw import RawMessage
    from avrt.logs.reader import LogReader
    from avrt.logs.record.run_record import RunRecord
    from avrt.metrics.progress import Progress
    from avrt.model.source import Reading
    from avrt.model.spec import PipelineSpec, SourceSpec

SCENE = "cut_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """What a live run is asked for; see `Pipeline.run`."""

    log: Path | None = None
    world: str | None = None
    seed: int = 0
    loops: int = 1
    duration_ns: int | None = None
    record: Path | None = None
    flight: Path | None = None
    force: bool = False
    hang_timeout_ns: int
    preparing: Callable[[int], None] | None = None
    look: Callable[[Progress], None] | None = None


class Live:
    """A pipeline about to run in real time."""

    def __init__(self, pipeline: Pipeline, wall: WallClock, request: LiveRequest) -> None:
        self._pipeline = pipeline
        self._wall = wall
        self._request = request

    def run(self) -> Report:
        """Do it."""
        request, pipeline = self._request, self._pipeline
        spec, devices = fit_to_host(pipeline.check_stages())
        spec = pipeline.planned(spec)
        forced = admitted(pipeline, spec, forced=request.force)
        spec, supply = supplied_by_host(spec)
        check_out(pipeline, request.record, spec, [request.log])
        with ExitStack() as opened:
            reader = self._open(spec, opened)
            contradictions: list[Anomaly] = []
            log = None
            if reader is not None:
                spec, contradictions = pipeline.placed(partial(calibrated, spec, reader))
                log = self._merged(spec, reader)
            zero_ns = clock.epoch_ns() if log is None else log.zero_ns
            stages = built(pipeline, spec)
            feeds = self._feeds(spec, log, reader, zero_ns)
            world = self._world() if isinstance(reader, WorldReader) else ""
            conditions = self._conditions(world, devices, supply, forced)
            record = opened.enter_context(
                recording(pipeline, request.record, spec, zero_ns, conditions)
            )
            if record is not None and reader is not None and request.log is not None:
                copy_truth(reader, record)
            if isinstance(reader, WorldReader):
                slots = sum(device.slots for device in spec.devices)
                has_core = len(os.sched_getaffinity(0)) > slots
                reader.wait_ahead(request.duration_ns, request.preparing, has_core=has_core)
            flight = self._flight(spec, zero_ns, conditions) if record is None else None
            if flight is not None:
                opened.callback(flight.close)
            options = LiveOptions(
                duration_ns=request.duration_ns,
                record=flight if record is None else record,
                watch=None if flight is None else flight.watch,
                hang_timeout_ns=request.hang_timeout_ns,
                look=request.look,
            )
            result = pipeline.placed(lambda: live(spec, stages, feeds, self._wall, options))
            conditions = {**conditions, **result.conditions}
            summary = _summary(spec, log, result, conditions)
            summary.anomalies = [*from_zero(contradictions, zero_ns), *summary.anomalies]
            summary.record = None if request.record is None else str(request.record)
            if flight is not None:
                summary.flight = FlightSummary(
                    tuple(map(str, flight.paths)), flight.unwritten, flight.failure
                )
            if record is not None:
                _finish(record, summary)
        return Report(summary, result.damage)

    def _open(self, spec: PipelineSpec, opened: ExitStack) -> LogReader | None:
        """Open what feeds the sources that do not read their own sensors."""
        request = self._request
        wanted = [source for source in spec.sources if not source.run]
        if request.log is not None and request.world is not None:
            raise SpecError("a log and a world cannot both feed a pipeline; drop one of them")
        if not wanted:
            if request.log is not None or request.world is not None:
                raise SpecError("every source reads its own sensor; drop the log or the world")
            return None
        if request.log is not None:
            return opened.enter_context(open_log(request.log))
        scene = request.world or self._scene(wanted)
        seconds = SECONDS_MAX
        if request.duration_ns is not None:
            seconds = min(SECONDS_MAX, request.duration_ns / NS_PER_S)
        reader = WorldReader(scene, request.seed, max(1.0, seconds), self._passes)
        return opened.enter_context(reader)

    def _scene(self, wanted: Sequence[SourceSpec]) -> str:
        topics = {sensor.topic for sensor in SENSORS}
        strange = [source.name for source in wanted if source.topic not in topics]
        if strange:
            what = f"nothing feeds {', '.join(strange)}: give a log to play, or write 'run'"
            raise self._pipeline.at(SpecError(what, ("sources", strange[0])))
        return SCENE

    @property
    def _passes(self) -> int:
        """How many drives the world makes."""
        if self._request.duration_ns is None:
            return self._request.loops
        return ceil(self._request.duration_ns / NS_PER_S / SECONDS_MAX)

    def _merged(self, spec: PipelineSpec, reader: LogReader) -> MergedLog:
        sources = [source for source in spec.sources if not source.run]
        passes = self._request.loops if self._request.log is not None else self._passes
        return self._pipeline.placed(lambda: MergedLog(reader, sources, passes))

    def _feeds(
        self,
        spec: PipelineSpec,
        log: MergedLog | None,
        reader: LogReader | None,
        zero_ns: int,
    ) -> list[Feed]:
        """Return what delivers the messages of all sources."""
        feeds: list[Feed] = []
        if log is not None:
            aside = reader.aside if isinstance(reader, WorldReader) else None
            messages = with_models(log, spec.cameras)
            feeds.append(LogFeed(messages, self._request.duration_ns, aside))
        loaded = self._pipeline.loaded
        folder = None if loaded is None else Path(loaded.path).parent
        for source in spec.sources:
            if source.run:
                made = self._pipeline.placed(partial(build_source, source, folder))
                encode = partial(_encoded, source, zero_ns)
                feeds.append(SourceFeed(source.name, source.frame, made, encode))
        return feeds

    def _flight(
        self, spec: PipelineSpec, zero_ns: int, conditions: Mapping[str, str]
    ) -> FlightRecorder | None:
        folder = self._request.flight
        if folder is None:
            return None

        def create(path: Path, what: str) -> RunRecord:
            return created(self._pipeline, path, spec, zero_ns, {**conditions, FLIGHT: what})

        return FlightRecorder(folder, zero_ns, create, FlightLimits())

    def _world(self) -> str:
        return f"{self._request.world or SCENE}, seed {self._request.seed}"

    def _conditions(self, world: str, devices: str, supply: str, forced: str) -> dict[str, str]:
        request = self._request
        more = {
            "log": request.log.name if request.log is not None else "",
            "world": world,
            "devices": devices,
            "supply": supply,
            "forced": forced and f"it is known to miss: {forced}",
            "loops": "" if request.loops == 1 else str(request.loops),
        }
        told = {name: text for name, text in more.items() if text}
        return read_conditions(timing="measured", clock=f"live, rate {self._wall.rate:g}", **told)


def _finish(record: RunRecord, summary: RunSummary) -> None:
    """Close the record; what the disk refuses ends the record, and not the run."""
    if not summary.record_failure:
        told = {"decisions": summary.decisions, "run": to_json(summary.data())}
        try:
            record.close(told, summary.conditions)
        except OSError as error:
            summary.record_failure = str(error)
    if summary.record_failure:
        record.give_up()


def _encoded(
    source: SourceSpec, zero_ns: int, reading: Reading, capture_ns: int, at_ns: int
) -> RawMessage:
    topic, frame = source.topic or f"/{source.name}", reading.frame or source.frame
    return encoded(topic, frame, reading, zero_ns + capture_ns, zero_ns + at_ns)


def _summary(
    spec: PipelineSpec,
    log: MergedLog | None,
    result: RunResult,
    conditions: Mapping[str, str],
) -> RunSummary:
    topics = {} if log is None else _received(spec, log.topics(), result.dropped)
    anomalies = [] if log is None else log.anomalies
    anomalies += [
        Anomaly("source_failed", name, None, 1, why) for name, why in result.source_faults.items()
    ]
    anomalies += [
        Anomaly("dropped", name, None, count, "gave way to newer ones: the driver did not run")
        for name, count in result.dropped.items()
    ]
    return RunSummary(
        spec,
        result.figures,
        "measured",
        conditions,
        end_ns=result.end_ns,
        topics=topics,
        anomalies=anomalies,
        decisions=result.decisions,
        payloads=result.payloads,
        hangs=result.hangs,
        interrupted=result.interrupted,
        not_recorded=result.not_recorded,
        wakeup_late_ns=result.wakeup_late_ns.summary(),
        record_failure=result.record_failure,
        resources=result.resources,
        damage=[] if result.damage is None else [str(result.damage)],
    )


def _received(
    spec: PipelineSpec, topics: Mapping[str, TopicCount], dropped: Mapping[str, int]
) -> dict[str, TopicCount]:
    """Return what came, and what of it was lost; a live run has nothing unread."""
    lost = {source.topic: dropped.get(source.name, 0) for source in spec.sources}
    return {
        topic: replace(
            count,
            messages=count.delivered + count.lost,
            delivered=count.delivered - lost.get(topic, 0),
            lost=count.lost + lost.get(topic, 0),
            unread=0,
        )
        for topic, count in topics.items()
    }
