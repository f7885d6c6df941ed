"""Scores every stage of a recorded run whose output the truth can judge.

The record holds all that is needed: outputs, clouds, the log's ground truth, and where the sensors
are. Truth may come from another file, whose stamps are of the log's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from avrt.errors import DataFault, InputError, SpecError
from avrt.logs.clock_map import ClockMap
from avrt.logs.decode import decode
from avrt.logs.reader import open_log
from avrt.logs.record.recorded import read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.logs.truth import read_truth
from avrt.model.frames import Frames
from avrt.payload import Detections, ImageDetections, Plan, PointCloud, Tracks
from avrt.report.score.detections import DetectionScore, score_detections
from avrt.report.score.images import ImageScore, score_images
from avrt.report.score.plans import PlanScore, score_plans
from avrt.report.score.scenes import POINTS_MIN, Scenes, Sweeps, TrueWorld
from avrt.report.score.tracks import TrackScore, score_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from avrt.logs.reader import LogReader
    from avrt.logs.truth import TrueScene
    from avrt.model.message import Message
    from avrt.model.spec import PipelineSpec, SourceSpec

StageScore = TrackScore | DetectionScore | ImageScore | PlanScore


@dataclass(slots=True)
class RunScore:
    """The score of one run.

    Attributes:
        truth: the file that told it.
        other_topics: of ground truth in it, which were not looked at.
        sweeps: LiDAR sweeps that say what could be seen; without any, everything counts.
        unscored: by stage, why its output could not be scored.
        damage: what was wrong with the files, one line each.
    """

    record: str
    truth: str
    topic: str
    frame: str
    scenes: int
    sweeps: int
    other_topics: list[str] = field(default_factory=list)
    stages: dict[str, StageScore] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def data(self) -> dict[str, object]:
        """Return the score object: plain data."""
        return {
            "record": self.record,
            "truth": {
                "file": self.truth,
                "topic": self.topic,
                "frame": self.frame,
                "scenes": self.scenes,
                "other_topics": self.other_topics,
            },
            "seen": {"sweeps": self.sweeps, "points_min": POINTS_MIN if self.sweeps else None},
            "stages": {name: score.data() for name, score in self.stages.items()},
            "unscored": self.unscored,
            "damage": self.damage,
        }


def score_run(path: str | Path, truth: str | Path | None = None) -> RunScore:
    """Return the score of a recorded run.

    Args:
        path: a run record.
        truth: a log with ground truth; by default the record's own.

    Raises:
        SpecError: there is no ground truth.
        InputError: a file cannot be used.
    """
    told = path if truth is None else truth
    with RunFile(path) as run, open_log(path) as reader:
        spec = read_pipeline(run, path)
        damage: list[str] = []
        true = _read_truth(told, damage)
        if not true and (damage or (truth is None and (run.damage or not run.complete))):
            what = damage[0] if damage else "the record is damaged"
            raise InputError(f"no ground truth is left: {what}", str(told))
        if not true:
            what = f"{told} has no ground truth (derived_object_msgs/ObjectArray)"
            raise SpecError(f"{what}; name the log that has some with --truth LOG")
        world = TrueWorld(true, run.zero_ns)
        frames = Frames(spec.transforms)
        sweeps = _read_sweeps(reader, spec, run.zero_ns, world, frames, damage)
        score = RunScore(
            str(path), str(told), world.topic, world.frame, len(world.scenes), sweeps.count
        )
        score.other_topics = sorted({scene.topic for scene in true} - {world.topic})
        scenes = Scenes(world, sweeps, frames)
        for stage in spec.stages:
            messages = _read_outputs(run, stage.name, damage)
            try:
                found = _score(messages, scenes)
            except DataFault as error:
                score.unscored[stage.name] = error.detail
                continue
            if found is not None:
                score.stages[stage.name] = found
        if score.stages and not any(stage.frames for stage in score.stages.values()):
            raise SpecError(f"{told}: its ground truth is of other times than the run")
        score.damage = list(dict.fromkeys([*(str(error) for error in run.damage), *damage]))
    return score


def _score(messages: list[Message[object]], scenes: Scenes) -> StageScore | None:
    """Return the score of what a stage gave; None for what the truth says nothing about."""
    match messages[0].payload if messages else None:
        case Tracks():
            return score_tracks(cast("list[Message[Tracks]]", messages), scenes)
        case Detections():
            return score_detections(cast("list[Message[Detections]]", messages), scenes)
        case ImageDetections():
            return score_images(cast("list[Message[ImageDetections]]", messages), scenes)
        case Plan():
            return score_plans(cast("list[Message[Plan]]", messages), scenes)
        case _:
            return None


def _read_truth(path: str | Path, damage: list[str]) -> list[TrueScene]:
    scenes: list[TrueScene] = []
    with open_log(path) as reader:
        try:
            scenes.extend(read_truth(reader))
        except InputError as error:
            damage.append(str(error))
    return scenes


def _read_outputs(run: RunFile, stage: str, damage: list[str]) -> list[Message[object]]:
    """Return the outputs of a stage up to the first damaged one."""
    found: list[Message[object]] = []
    try:
        found.extend(run.outputs(stage))
    except InputError as error:
        damage.append(str(error))
    return found


def _read_sweeps(
    reader: LogReader,
    spec: PipelineSpec,
    zero_ns: int,
    world: TrueWorld,
    frames: Frames,
    damage: list[str],
) -> Sweeps:
    """Count the points of every recorded sweep in true objects."""
    sweeps = Sweeps()
    for source in spec.sources:
        if source.type != "lidar" or source.topic not in reader.topics():
            continue
        try:
            for at_ns, frame, cloud in _clouds(reader, source):
                if frames.connects(frame, world.frame) or frame == world.frame:
                    matrix = frames.between(frame, world.frame)
                    sweeps.add(source.name, at_ns - zero_ns, cloud, matrix, world)
        except InputError as error:
            damage.append(str(error))
    return sweeps


def _clouds(reader: LogReader, source: SourceSpec) -> Iterator[tuple[int, str, PointCloud]]:
    """Yield capture time in the log's clock, frame and points, as the replay took them."""
    clock = ClockMap(source.clock_offset_ns, source.period_ns)
    for raw in reader.messages([source.topic or ""]):
        found = decode(raw, "lidar")
        stamp_ns = found.header_ns if found.stamp_valid else raw.log_ns
        at_ns = clock.capture_ns(stamp_ns, raw.log_ns, lambda _kind, _detail: None)
        assert isinstance(found.payload, PointCloud)
        yield at_ns, source.frame or found.frame, found.payload
