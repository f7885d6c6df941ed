"""What a run with stages that really compute needs before it starts, and where it is recorded."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from avrt.analysis.admission import admit
from avrt.analysis.bounds import is_too_large
from avrt.api.judgement import judge
from avrt.errors import InputError, SpecError
from avrt.logs.raw import Anomaly
from avrt.logs.record.process import RemoteRecord
from avrt.logs.record.run_record import EXECUTION, JOURNAL, OUTPUT, VIEW, Record, RunRecord
from avrt.logs.transforms import read_transforms
from avrt.logs.truth import truth_topics
from avrt.model.codec import encode, to_json
from avrt.model.frames import Frames, merged
from avrt.model.levels import at_level, levels_of
from avrt.report.outputs import keep_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.api.pipeline import Pipeline
    from avrt.config.binding import BoundStage
    from avrt.logs.reader import LogReader
    from avrt.model.frames import Contradiction
    from avrt.model.spec import PipelineSpec

RECORDS_OWN = "/avrt/"
STRICT = "it stops where the log is damaged"
R = TypeVar("R", RunRecord, RemoteRecord)


def admitted(pipeline: Pipeline, spec: PipelineSpec, *, forced: bool) -> str:
    """Return what a run at the wall clock is known to miss, "" if nothing; too large is let in.

    Of a pipeline with a ladder, at any of its levels.

    Raises:
        SpecError: it is known to miss, and not forced.
    """
    levels = levels_of(spec)
    if not levels:
        return _admitted(pipeline, spec, forced=forced)
    told = [
        (level.name, _admitted(pipeline, at_level(spec, level), forced=forced)) for level in levels
    ]
    return "; ".join(f"at level {name} {missed}" for name, missed in told if missed)


def _admitted(pipeline: Pipeline, spec: PipelineSpec, *, forced: bool) -> str:
    if is_too_large(spec):
        return ""
    return pipeline.placed(lambda: admit(spec, judge(spec), forced=forced))


def built(pipeline: Pipeline, spec: PipelineSpec) -> dict[str, BoundStage]:
    """Return the stages, told where the sensors are."""
    tasks = [task for stage in spec.stages for task in stage.task_names]
    return {name: made for task in tasks for name, made in remade(pipeline, spec, task).items()}


def remade(pipeline: Pipeline, spec: PipelineSpec, task: str) -> dict[str, BoundStage]:
    """Return a fresh stage of a task and its variants, told where the sensors are."""
    stage = next(stage for stage in spec.stages if task in stage.task_names)
    stages = pipeline.build_task(task)
    frames = Frames(spec.transforms)
    for made in stages.values():
        calibrate = partial(made.calibrate, frames)
        pipeline.guarded(stage.name, calibrate, "it cannot be calibrated")
    return stages


def created(
    pipeline: Pipeline,
    out: Path,
    spec: PipelineSpec,
    zero_ns: int,
    conditions: Mapping[str, str],
    kind: type[R],
) -> R:
    """Return a new run record."""
    return kind(
        out,
        zero_ns=zero_ns,
        conditions=conditions,
        pipeline_json=to_json(encode(spec)),
        pipeline_yaml=None if pipeline.loaded is None else pipeline.loaded.text,
    )


@contextmanager
def recording(
    pipeline: Pipeline,
    out: Path | None,
    spec: PipelineSpec,
    zero_ns: int,
    conditions: Mapping[str, str],
    kind: type[R],
) -> Iterator[R | None]:
    """Open the run record, if there is to be one, and close it however the run ends."""
    if out is None:
        yield None
        return
    try:
        with created(pipeline, out, spec, zero_ns, conditions, kind) as record:
            yield record
    except OSError as error:
        raise SpecError(f"cannot write the run record {out}: {error.strerror}") from None


def check_out(
    pipeline: Pipeline, out: Path | None, spec: PipelineSpec, read: list[Path | None]
) -> None:
    """Refuse to write the record over what the run reads, or two things into one topic."""
    if out is None:
        return
    loaded = pipeline.loaded
    keep_apart("the run record", out, [*read, None if loaded is None else Path(loaded.path)])
    own = {f"{prefix}{stage.name}" for stage in spec.stages for prefix in (OUTPUT, VIEW)}
    for source in spec.sources:
        if source.topic in {JOURNAL, EXECUTION, *own}:
            what = f"the run record has a {source.topic} of its own; rename the stage"
            raise pipeline.at(SpecError(what, ("sources", source.name, "topic")))


def copy_truth(reader: LogReader, record: Record) -> None:
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


def calibrated(spec: PipelineSpec, reader: LogReader) -> tuple[PipelineSpec, list[Anomaly]]:
    """Return the pipeline with the transforms of the log's tf topics, and what contradicts.

    What the pipeline file says counts more than what the log says.
    """
    if not spec.tf_topics:
        return spec, []
    found, anomalies = read_transforms(reader, spec.tf_topics)
    transforms, contradictions = merged((*spec.transforms, *found))
    told = [*anomalies, *(_anomaly(one) for one in contradictions)]
    return replace(spec, transforms=transforms), told


def from_zero(anomalies: list[Anomaly], zero_ns: int) -> list[Anomaly]:
    return [a if a.at_ns is None else replace(a, at_ns=a.at_ns - zero_ns) for a in anomalies]


def _anomaly(contradiction: Contradiction) -> Anomaly:
    return Anomaly(
        "transform_contradicts",
        contradiction.refused.origin,
        None,
        1,
        f"{contradiction}; the first is taken",
    )
