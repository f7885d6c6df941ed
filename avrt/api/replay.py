"""One replay, from files to a report: opens what it reads, places the sensors, runs, records."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.analysis.admission import admit
from avrt.analysis.bounds import is_too_large
from avrt.api.arguments import timing_run
from avrt.api.judgement import judge
from avrt.api.report import Report
from avrt.drivers.conditions import read_conditions
from avrt.drivers.execution import MeasuredTiming, ModelTiming, RecordedTiming
from avrt.drivers.hosts import fit_to_host, supplied_by_host
from avrt.drivers.replay import replay
from avrt.errors import InputError, SpecError
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog
from avrt.logs.raw import Anomaly
from avrt.logs.reader import open_log
from avrt.logs.record.run_record import EXECUTION, JOURNAL, OUTPUT, VIEW, RunRecord
from avrt.logs.transforms import read_transforms
from avrt.logs.truth import truth_topics
from avrt.model.codec import encode, to_json
from avrt.model.frames import Frames, merged
from avrt.report.outputs import keep_apart
from avrt.report.summary import RunSummary
from avrt.report.trace.writing import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from avrt.api.pipeline import Pipeline
    from avrt.config.binding import BoundStage
    from avrt.drivers.execution import Timing
    from avrt.drivers.replay import ReplayResult
    from avrt.drivers.wall import WallClock
    from avrt.logs.reader import LogReader
    from avrt.logs.record.journal import Watch
    from avrt.model.frames import Contradiction
    from avrt.model.spec import PipelineSpec


class Replay:
    """A log about to be replayed through a pipeline; see `Pipeline.replay` for the arguments."""

    def __init__(
        self,
        pipeline: Pipeline,
        log: str | Path,
        out: str | Path | None,
        timing: str | None,
        wall: WallClock | None,
        loops: int,
    ) -> None:
        self._pipeline = pipeline
        self._log = Path(log)
        self._out = None if out is None else Path(out)
        self._timing = timing
        self._recorded = timing_run(timing)
        self._wall = wall
        self._loops = loops

    def run(
        self,
        hang_timeout_ns: int,
        progress: Callable[[int], None] | None,
        *,
        force: bool,
        trace: str | Path | None = None,
    ) -> Report:
        """Do it, and write the trace that is wanted."""
        loaded = self._pipeline.loaded
        pipeline = None if loaded is None else loaded.path
        kept = (self._log, self._out, pipeline, self._recorded)
        with TraceWriter(trace, kept) as traced:
            report = self._run(hang_timeout_ns, progress, traced.watch, force=force)
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
        forced = placed(lambda: self._admit(spec, force=force))
        spec, supply = (spec, "") if self._wall is None else supplied_by_host(spec)
        costs = _timing(self._timing, spec, self._wall)
        self._check_out(spec)
        with open_log(self._log) as reader:
            spec, told = placed(partial(_calibrated, spec, reader))
            log = placed(lambda: MergedLog(reader, spec.sources, self._loops))
            stages = self._build(spec)
            conditions = self._conditions(costs, devices, supply, forced)
            with self._recording(spec, log.zero_ns, conditions) as record:
                if record is not None:
                    _copy_truth(reader, record)
                result = placed(
                    lambda: replay(
                        spec,
                        stages,
                        with_models(log, spec.cameras),
                        costs,
                        clock=self._wall,
                        record=record,
                        hang_timeout_ns=hang_timeout_ns,
                        progress=progress,
                        watch=watch,
                    )
                )
                summary = _summary(spec, log, result, costs, conditions)
                summary.anomalies = [*_from_zero(told, log.zero_ns), *summary.anomalies]
                summary.record = None if self._out is None else str(self._out)
                if record is not None:
                    record.close({"decisions": result.decisions, "run": to_json(summary.data())})
        return Report(summary, result.damage)

    def _admit(self, spec: PipelineSpec, *, force: bool) -> str:
        """Return what a forced run is known to miss; virtual time lets everything in."""
        if self._wall is not None:
            if is_too_large(spec):
                return ""
            return admit(spec, judge(spec), forced=force)
        if force:
            raise SpecError(
                "virtual time refuses nothing: drop --force, or choose the clock 'wall'"
            )
        return ""

    def _build(self, spec: PipelineSpec) -> dict[str, BoundStage]:
        """Return the stages, told where the sensors are."""
        stages = self._pipeline.build()
        frames = Frames(spec.transforms)
        for name, stage in stages.items():
            calibrate = partial(stage.calibrate, frames)
            self._pipeline.guarded(name, calibrate, "it cannot be calibrated")
        return stages

    def _conditions(self, costs: Timing, devices: str, supply: str, forced: str) -> dict[str, str]:
        more = {
            "devices": devices,
            "supply": supply,
            "timing_run": costs.source,
            "clock": "" if self._wall is None else f"wall, rate {self._wall.rate:g}",
            "forced": forced and f"it is known to miss: {forced}",
            "loops": "" if self._loops == 1 else str(self._loops),
        }
        told = {name: text for name, text in more.items() if text}
        return read_conditions(log=self._log.name, timing=costs.label, **told)

    @contextmanager
    def _recording(
        self, spec: PipelineSpec, zero_ns: int, conditions: Mapping[str, str]
    ) -> Iterator[RunRecord | None]:
        """Open the run record, if there is to be one, and close it however the run ends."""
        if self._out is None:
            yield None
            return
        try:
            with RunRecord(
                self._out,
                zero_ns=zero_ns,
                conditions=conditions,
                pipeline_json=to_json(encode(spec)),
                pipeline_yaml=None if self._pipeline.loaded is None else self._pipeline.loaded.text,
            ) as record:
                yield record
        except OSError as error:
            raise SpecError(f"cannot write the run record {self._out}: {error.strerror}") from None

    def _check_out(self, spec: PipelineSpec) -> None:
        """Refuse to write the record over what the run reads, or two things into one topic."""
        if self._out is None:
            return
        loaded = self._pipeline.loaded
        read = [self._log] if loaded is None else [self._log, Path(loaded.path)]
        if self._recorded is not None:
            read.append(self._recorded)
        keep_apart("the run record", self._out, read)
        own = {f"{prefix}{stage.name}" for stage in spec.stages for prefix in (OUTPUT, VIEW)}
        for source in spec.sources:
            if source.topic in {JOURNAL, EXECUTION, *own}:
                what = f"the run record has a {source.topic} of its own; rename the stage"
                raise self._pipeline.at(SpecError(what, ("sources", source.name, "topic")))


RECORDS_OWN = "/avrt/"


def _copy_truth(reader: LogReader, record: RunRecord) -> None:
    """Put the log's ground truth into the record; damage is told by who plays the log."""
    topics = truth_topics(reader)
    for topic in topics:
        if topic.startswith(RECORDS_OWN):
            what = f"the run record has topics of its own below {RECORDS_OWN}"
            raise SpecError(f"{what}; rename {topic}, which holds ground truth")
    if topics:
        with suppress(InputError):
            for raw in reader.messages(topics):
                record.input(raw.topic, raw)


def _calibrated(spec: PipelineSpec, reader: LogReader) -> tuple[PipelineSpec, list[Anomaly]]:
    """Return the pipeline with the transforms of the log's tf topics, and what contradicts.

    What the pipeline file says counts more than what the log says.
    """
    if not spec.tf_topics:
        return spec, []
    found, anomalies = read_transforms(reader, spec.tf_topics)
    transforms, contradictions = merged((*spec.transforms, *found))
    told = [*anomalies, *(_anomaly(one) for one in contradictions)]
    return replace(spec, transforms=transforms), told


def _from_zero(anomalies: list[Anomaly], zero_ns: int) -> list[Anomaly]:
    return [a if a.at_ns is None else replace(a, at_ns=a.at_ns - zero_ns) for a in anomalies]


def _anomaly(contradiction: Contradiction) -> Anomaly:
    return Anomaly(
        "transform_contradicts",
        contradiction.refused.origin,
        None,
        1,
        f"{contradiction}; the first is taken",
    )


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
    result: ReplayResult,
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
        damage=[] if result.damage is None else [str(result.damage)],
        complete=not result.interrupted,
    )
