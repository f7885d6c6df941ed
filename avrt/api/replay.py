"""One replay, from files to a report: opens what it reads, places the sensors, runs, records."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from avrt.api.arguments import timing_run
from avrt.api.flights import flight_recorder, summarise_flight
from avrt.api.preparation import (
    STRICT,
    admitted,
    built,
    calibrated,
    check_out,
    copy_truth,
    from_zero,
    recording,
)
from avrt.api.report import Report
from avrt.drivers.ballots import voter_of
from avrt.drivers.conditions import read_conditions
from avrt.drivers.execution import MeasuredTiming, ModelTiming, RecordedTiming
from avrt.drivers.hosts import fit_to_host, supplied_by_host
from avrt.drivers.replay import replay
from avrt.errors import SpecError
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.record.journal import all_of
from avrt.logs.record.run_record import RunRecord
from avrt.metrics.sets import DropWatch
from avrt.model.codec import to_json
from avrt.report.summary import RunSummary
from avrt.report.trace.writing import TraceWriter
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from avrt.api.arguments import KeepAround
    from avrt.api.pipeline import Pipeline
    from avrt.drivers.ballots import MakeVoter
    from avrt.drivers.execution import Timing
    from avrt.drivers.flight import FlightRecorder
    from avrt.drivers.result import RunResult
    from avrt.drivers.wall import WallClock
    from avrt.logs.record.journal import Watch
    from avrt.metrics.sets import DroppedSet
    from avrt.model.spec import PipelineSpec


class Playback(NamedTuple):
    """How often a log is played, how long after its first message, and whether damage ends it."""

    loops: int = 1
    start_ns: int = 0
    strict: bool = False


class Replay:
    """A log about to be replayed through a pipeline; see `Pipeline.replay` for the arguments.

    `voter` makes the voter of a redundant stage.
    """

    def __init__(  # noqa: PLR0913 - as the method has them
        self,
        pipeline: Pipeline,
        log: str | Path,
        out: str | Path | None,
        timing: str | None,
        wall: WallClock | None,
        playback: Playback,
        *,
        kept: KeepAround | None = None,
        voter: MakeVoter = voter_of,
    ) -> None:
        self._pipeline = pipeline
        self._log = Path(log)
        self._out = None if out is None else Path(out)
        self._timing = timing
        self._recorded = timing_run(timing)
        self._wall = wall
        self._playback = playback
        self._kept = kept
        self._voter = voter

    def run(
        self,
        hang_timeout_ns: int,
        progress: Callable[[int], None] | None,
        *,
        force: bool,
        trace: str | Path | None = None,
        dropped: Callable[[DroppedSet], object] | None = None,
    ) -> Report:
        """Do it, and write the trace that is wanted."""
        loaded = self._pipeline.loaded
        pipeline = None if loaded is None else loaded.path
        kept = (self._log, self._out, pipeline, self._recorded)
        with TraceWriter(trace, kept) as traced:
            told = None if dropped is None else DropWatch(self._pipeline.declared, dropped)
            watch = all_of(told, traced.watch)
            report = self._run(hang_timeout_ns, progress, watch, force=force)
            traced.write(report.summary.pipeline)
        return report

    def _run(
        self,
        hang_timeout_ns: int,
        progress: Callable[[int], None] | None,
        watch: Watch | None,
        *,
        force: bool,
    ) -> Report:
        spec, devices = fit_to_host(self._pipeline.check_stages())
        spec = self._pipeline.planned(spec)
        placed = self._pipeline.placed
        forced = self._admit(spec, force=force)
        spec, supply = (spec, "") if self._wall is None else supplied_by_host(spec)
        costs = _timing(self._timing, spec, self._wall)
        check_out(self._pipeline, self._out, spec, [self._log, self._recorded])
        with open_log(self._log, strict=self._playback.strict) as reader:
            spec, told = placed(partial(calibrated, spec, reader))
            playback, strict = self._playback, self._log if self._playback.strict else None
            log = placed(
                lambda: MergedLog(
                    reader, spec.sources, playback.loops, start_ns=playback.start_ns, strict=strict
                )
            )
            stages = built(self._pipeline, spec)
            conditions = self._conditions(costs, devices, supply, forced)
            with recording(
                self._pipeline, self._out, spec, log.zero_ns, conditions, RunRecord
            ) as record:
                if record is not None:
                    copy_truth(reader, record)
                flight = self._flight(spec, log.zero_ns, conditions)
                result = placed(
                    lambda: replay(
                        spec,
                        stages,
                        with_models(log, spec.cameras),
                        costs,
                        clock=self._wall,
                        record=flight if record is None else record,
                        hang_timeout_ns=hang_timeout_ns,
                        progress=progress,
                        watch=watch,
                        voter=self._voter,
                    )
                )
                summary = _summary(spec, log, result, costs, conditions)
                summary.anomalies = [*from_zero(told, log.zero_ns), *summary.anomalies]
                summary.record = None if self._out is None else str(self._out)
                if flight is not None:
                    flight.close()
                    summarise_flight(summary, flight)
                if record is not None:
                    record.close({"decisions": result.decisions, "run": to_json(summary.data())})
        return Report(summary, result.damage)

    def _flight(
        self, spec: PipelineSpec, zero_ns: int, conditions: Mapping[str, str]
    ) -> FlightRecorder | None:
        if self._kept is None:
            return None
        return flight_recorder(self._pipeline, self._kept, spec, zero_ns, conditions)

    def _admit(self, spec: PipelineSpec, *, force: bool) -> str:
        """Return what a forced run is known to miss; virtual time lets everything in."""
        if self._wall is not None:
            return admitted(self._pipeline, spec, forced=force)
        if force:
            raise SpecError(
                "virtual time refuses nothing: drop --force, or choose the clock 'wall'"
            )
        return ""

    def _conditions(self, costs: Timing, devices: str, supply: str, forced: str) -> dict[str, str]:
        more = {
            "devices": devices,
            "supply": supply,
            "timing_run": costs.source,
            "clock": "" if self._wall is None else f"wall, rate {self._wall.rate:g}",
            "forced": forced and f"it is known to miss: {forced}",
            "loops": "" if self._playback.loops == 1 else str(self._playback.loops),
            "start": format_ns(self._playback.start_ns) if self._playback.start_ns else "",
            "strict": STRICT if self._playback.strict else "",
        }
        told = {name: text for name, text in more.items() if text}
        return read_conditions(log=self._log.name, timing=costs.label, **told)


def _timing(text: str | None, spec: PipelineSpec, wall: WallClock | None) -> Timing:
    """Return the execution times asked for; at the wall clock only measured ones exist."""
    if wall is not None:
        if text not in {None, "measured"}:
            raise SpecError(f"at the wall clock jobs take what they take here, not {text!r}")
        return MeasuredTiming()
    if text is None:
        return ModelTiming(spec)
    kind, _, path = str(text).partition(":")
    if kind == "recorded" and path:
        return RecordedTiming(spec, path)
    if text == "model":
        return ModelTiming(spec)
    if text == "measured":
        return MeasuredTiming()
    raise SpecError(f"expected a timing of model, measured or recorded:RUN, found {text!r}")


def _summary(
    spec: PipelineSpec,
    merged: MergedLog,
    result: RunResult,
    timing: Timing,
    conditions: Mapping[str, str],
) -> RunSummary:
    return RunSummary(
        spec,
        result.figures,
        timing.label,
        conditions,
        end_ns=result.end_ns,
        topics=merged.topics(),
        anomalies=merged.anomalies,
        decisions=result.decisions,
        payloads=result.payloads,
        hangs=result.hangs,
        interrupted=result.interrupted,
        not_recorded=result.not_recorded,
        wakeup_late_ns=result.wakeup_late_ns.summary(),
        damage=[] if result.damage is None else result.damage.lines,
        complete=not result.interrupted,
    )
