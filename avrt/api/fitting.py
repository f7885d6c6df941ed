"""A pipeline that fits a log: sources of the topics that avrt reads, and the stages they feed.

One sensor of each kind is taken, the one that says most; what is left out is told. Where the log
has transforms they say where sensors are; a LiDAR, radar or inertial unit that they do not reach
counts as being at the vehicle's origin and looking ahead, and a camera that they do not reach is
looked at by itself and not fused. All of that stands in the file as a comment: it is a beginning,
to be made right by whoever knows the vehicle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import yaml

from avrt.config.pipeline import LoadedPipeline, parse
from avrt.errors import InputError, SpecError
from avrt.logs.decode import why_unreadable
from avrt.logs.reader import open_log
from avrt.logs.ros.types import (
    CAMERA_INFO,
    CLOUD,
    COMPRESSED_IMAGE,
    IMAGE,
    RADAR_SCAN,
    RADAR_TRACKS,
    SCAN,
    SICK_RADAR,
    SICK_RADAR_XD,
    TRANSFORMS,
)
from avrt.logs.survey.survey import survey_log
from avrt.logs.transforms import read_transforms
from avrt.model.frames import Frames
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from avrt.errors import AvrtError
    from avrt.logs.raw import TopicInfo
    from avrt.logs.survey.survey import Survey
    from avrt.logs.survey.topic import TopicSurvey

PREFERRED = {
    "lidar": (CLOUD, SCAN),
    "radar": (RADAR_TRACKS, RADAR_SCAN, SICK_RADAR, SICK_RADAR_XD, CLOUD),
    "camera": (COMPRESSED_IMAGE, IMAGE),
}
"""Message types of a kind, the best one first; a picture of a radar needs figures no log has."""
KINDS = (*PREFERRED, "imu", "gnss", "can")
VEHICLES = ("base_link", "vehicle", "ego_vehicle", "base_footprint")
MESSAGES_MIN = 2  # of a topic that has a rate
HZ_MIN, HZ_MAX = 0.01, 1e9  # of a source; a period is at least 1 ns
AGE_NS_MAX = NS_PER_S // 2  # of what another sensor or the vehicle's motion is taken for
TOPICS_SHOWN = 10
DEVICES = {
    "cpu": {"type": "cpu", "slots": 2, "threads": 1},
    "camera_cpu": {"type": "cpu", "slots": 1, "threads": 1},
}
SWEEP_BYTES_MIN = 1 << 16  # of a message with enough planes of points to match sweeps by
WIDTH = 100


@dataclass(slots=True)
class Fit:
    """A pipeline file while it is made.

    Attributes:
        period_ns: of the source that releases the stages after it, by source.
        notes: what was assumed or left out.
    """

    vehicle: str
    known: Frames
    sources: dict[str, dict[str, object]] = field(default_factory=dict)
    stages: dict[str, dict[str, object]] = field(default_factory=dict)
    frames: dict[str, dict[str, object]] = field(default_factory=dict)
    period_ns: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def source(self, name: str, topic: TopicSurvey, **more: object) -> None:
        self.period_ns[name] = _period_ns(topic)
        rate = f"{_digits(_hz(topic), 4)} Hz"
        self.sources[name] = {"type": topic.kind, "topic": topic.topic, "rate": rate} | more

    def stage(self, name: str, run: str, period_ns: int, share: float, **more: object) -> None:
        """Add a stage that may take a share of a period, and has to be done by its end."""
        self.stages[name] = {
            "run": run,
            "device": "cpu",
            "wcet": f"{_digits(max(period_ns * share / NS_PER_MS, 0.1), 3)} ms",
            "deadline": f"{_digits(max(period_ns / NS_PER_MS, 0.2), 4)} ms",
            **more,
        }

    def reaches(self, frame: str) -> bool:
        """Whether the log tells where a frame is in the vehicle."""
        return self.known.connects(frame, self.vehicle)

    def place(self, name: str, topic: TopicSurvey) -> None:
        """Put a sensor at the vehicle's origin, if the log does not say where it is."""
        for frame in topic.frames:
            if not frame.isprintable():
                self.notes.append(f"the {name} names a frame that no file can hold: {frame!r}")
            elif frame and frame != self.vehicle and not self.reaches(frame):
                self.frames[frame] = {"parent": self.vehicle}
                self.notes.append(
                    f"the log does not say where the {name} is ({frame}): it counts as being at "
                    "the vehicle's origin, x ahead"
                )


def fitting_pipeline(log: Path) -> LoadedPipeline:
    """Return a pipeline that fits a log.

    Raises:
        SpecError: there is nothing in the log that a stage could read.
        InputError: the log cannot be used, or is damaged and what is good of it is not enough.
    """
    return parse(fitting_text(log, survey_log(log)), f"the pipeline that fits {log.name}")


def fitting_text(log: Path, survey: Survey) -> str:
    """Return the text of a pipeline file that fits a log; see `fitting_pipeline`."""
    tf = [
        topic.topic
        for topic in survey.topics
        if topic.type == TRANSFORMS and topic.messages and topic.topic.isprintable()
    ]
    with open_log(log) as reader:
        transforms = read_transforms(reader, tf)[0] if tf else []
        infos = reader.topics()
    known = Frames(tuple(transforms))
    names = {name for t in transforms for name in (t.parent, t.child)}
    vehicle = next((name for name in VEHICLES if name in names), VEHICLES[1])
    fit = Fit(vehicle, known)
    _fill(fit, _usable(fit, survey.topics, infos))
    if not fit.stages:
        raise _none_fits(log, survey, infos)
    calibration = {"tf": tf} if tf else {}
    devices = sorted({str(stage["device"]) for stage in fit.stages.values()})
    keys = {
        "pipeline": "fitted",
        "devices": {name: DEVICES[name] for name in devices},
        "calibration": calibration | ({"frames": fit.frames} if fit.frames else {}),
        "sources": fit.sources,
        "stages": fit.stages,
    }
    used = {key: value for key, value in keys.items() if value}
    text: str = yaml.dump(
        used,
        Dumper=_Dumper,
        default_flow_style=None,
        sort_keys=False,
        width=WIDTH,
        allow_unicode=True,
    )
    about = [
        f"made to fit {_shown(log.name)}; times are shares of the sensors' periods",
        *fit.notes,
    ]
    return "".join(f"# {note}\n" for note in about) + text


def _usable(
    fit: Fit, topics: Iterable[TopicSurvey], infos: Mapping[str, TopicInfo]
) -> list[TopicSurvey]:
    """Return the topics that a source could read; note why others of such a kind are left out."""
    usable = []
    for topic in topics:
        why = _obstacle(topic, infos[topic.topic])
        if not why:
            usable.append(topic)
        elif topic.kind:
            fit.notes.append(f"left out: {_shown(topic.topic)}, {why}")
    return usable


def _obstacle(topic: TopicSurvey, info: TopicInfo) -> str:
    """Return why no source can read a topic that is there; "" where one can."""
    if topic.messages < MESSAGES_MIN:
        return f"it has no rate: expected {MESSAGES_MIN} messages or more, found {topic.messages}"
    if topic.log is None:
        return "none of its messages has a log time"
    if not topic.topic or not topic.topic.isprintable():
        return "its name is no text of one line"
    return topic.kind and why_unreadable(info, topic.kind)  # where the topic has several types


def _none_fits(log: Path, survey: Survey, infos: Mapping[str, TopicInfo]) -> AvrtError:
    """Return why there is no pipeline: the user's mistake, unless the log is damaged."""
    topics = survey.topics
    found = [
        f"{_shown(topic.topic)} ({topic.type or 'no type'}{why and f': {why}'})"
        for topic in topics[:TOPICS_SHOWN]
        for why in [topic.kind and _obstacle(topic, infos[topic.topic])]
    ]
    if len(topics) > TOPICS_SHOWN:
        found.append(f"and {len(topics) - TOPICS_SHOWN} more")
    what = f"no stage reads any of its topics: {', '.join(found) or 'none'}"
    if survey.damage is not None:
        return InputError(f"no pipeline fits: {what}; it is damaged: {survey.damage}", str(log))
    return SpecError(f"no pipeline fits {_shown(log.name)}: {what}")


def _shown(name: str) -> str:
    """Return a name as it is, or quoted and escaped where it would break a line."""
    return name if name and name.isprintable() else repr(name)


def _hz(topic: TopicSurvey) -> float:
    assert topic.log is not None
    return min(max(topic.log.usual_hz, HZ_MIN), HZ_MAX)


def _period_ns(topic: TopicSurvey) -> int:
    return round(NS_PER_S / _hz(topic))


def _digits(value: float, count: int) -> str:
    """Return a number of so many digits, never as a power of ten: a quantity has no exponent."""
    return f"{Decimal(f'{value:.{count}g}'):f}"


class _Dumper(yaml.SafeDumper):
    """Writes what is there twice out twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - of any data
        return True


def _fill(fit: Fit, topics: Sequence[TopicSurvey]) -> None:
    chosen = {kind: _choose(kind, topics) for kind in KINDS}
    used = {topic.topic for topic in chosen.values() if topic is not None}
    ego = _ego(fit, chosen)
    trackers: dict[str, str] = {}
    lidar, radar, camera = chosen["lidar"], chosen["radar"], chosen["camera"]
    if lidar is not None:
        fit.source("lidar", lidar)
        fit.place("lidar", lidar)
        period_ns = fit.period_ns["lidar"]
        fit.stage(
            "lidar_detect", "avrt.stages.lidar:Detector", period_ns, 0.4, inputs={"cloud": "lidar"}
        )
        trackers["lidar"] = "lidar_detect"
    if radar is not None:
        fit.source("radar", radar)
        fit.place("radar", radar)
        fit.stage(
            "radar_detect",
            "avrt.stages.radar:TargetFilter",
            fit.period_ns["radar"],
            0.1,
            inputs={"targets": "radar", **ego},
            trigger="targets",
            queue=8,
            **({"params": {"vehicle_frame": fit.vehicle}} if ego else {}),
        )
        trackers["radar"] = "radar_detect"
    if camera is not None and _add_camera(fit, camera, topics):
        trackers["camera"] = "camera_detect"
    if trackers:
        _add_tracker(fit, trackers, ego)
    left = [t.topic for t in topics if t.kind not in {"", "camera_info"} and t.topic not in used]
    if left:
        fit.notes.append(f"left out: {', '.join(left)}")


def _choose(kind: str, topics: Iterable[TopicSurvey]) -> TopicSurvey | None:
    """Return the topic of a kind that is used: of the best type, then the one that says most."""
    fitting = [topic for topic in topics if topic.kind == kind]
    order = PREFERRED.get(kind)
    if order is not None:
        fitting = [topic for topic in fitting if topic.type in order]
        fitting.sort(key=lambda topic: order.index(topic.type))
        fitting = [topic for topic in fitting if topic.type == fitting[0].type]
    return max(fitting, key=lambda topic: (topic.size_bytes, topic.topic), default=None)


def _ego(fit: Fit, chosen: dict[str, TopicSurvey | None]) -> dict[str, object]:
    """Add what tells how the vehicle moves; return the input that those who need it have."""
    named = {"imu": chosen["imu"], "speed": chosen["can"], "gnss": chosen["gnss"]}
    told = {name: topic for name, topic in named.items() if topic is not None}
    lidar = chosen["lidar"]
    if "speed" in told or told.keys() >= {"imu", "gnss"}:
        first = next(iter(told))
        for name, topic in told.items():
            fit.source(name, topic)
        if "imu" in told:
            fit.place("inertial unit", told["imu"])
        inputs = {
            name: name if name == first else _sampled(name, 5 * fit.period_ns[name])
            for name in told
        }
        fit.stage(
            "ego", "avrt.stages.ego:EgoEstimator", fit.period_ns[first], 0.1,
            inputs=inputs, trigger=first, params={"frame": fit.vehicle},
        )  # fmt: skip
    elif lidar is not None and lidar.size_bytes > SWEEP_BYTES_MIN * lidar.read:
        fit.stage(
            "ego", "avrt.stages.ego:ScanMatcher", _period_ns(lidar), 0.3,
            inputs={"cloud": "lidar"}, params={"frame": fit.vehicle},
        )  # fmt: skip
    else:
        return {}
    return {"ego": _sampled("ego", AGE_NS_MAX)}


def _sampled(name: str, age_ns_max: int) -> dict[str, object]:
    """Return an input that a stage takes as it is, and does without where it is too old."""
    return {"from": name, "optional": True, "max_age": f"{max(age_ns_max // NS_PER_MS, 1)} ms"}


def _add_camera(fit: Fit, camera: TopicSurvey, topics: Sequence[TopicSurvey]) -> bool:
    """Add a camera and its detector; return whether what it sees can be fused."""
    infos = [topic for topic in topics if topic.type == CAMERA_INFO]
    same = [info for info in infos if set(info.frames) & set(camera.frames)]
    more = {"info": same[0].topic} if same else {}
    fit.source("camera", camera, **more)
    fit.stage(
        "camera_detect", "avrt.stages.camera:Detector", fit.period_ns["camera"], 0.6,
        device="camera_cpu", inputs={"image": "camera"}, on_miss="skip_next",
        params={"model": "builtin"},
    )  # fmt: skip
    if not same:
        fit.notes.append("the log has no CameraInfo of the camera: what it sees is not fused")
    elif not all(fit.reaches(frame) for frame in camera.frames):
        fit.notes.append("the log does not say where the camera is: what it sees is not fused")
    else:
        return True
    return False


def _add_tracker(fit: Fit, seen: dict[str, str], ego: dict[str, object]) -> None:
    first = next(iter(seen))
    inputs: dict[str, object] = {
        name: stage if name == first else _sampled(stage, AGE_NS_MAX)
        for name, stage in seen.items()
    }
    period_ns = fit.period_ns[first]
    params = {"frame": fit.vehicle, "vehicle_frame": fit.vehicle}
    fit.stage(
        "track", "avrt.stages.fusion:Tracker", period_ns, 0.15,
        inputs=inputs | ego, trigger=first, params=params,
    )  # fmt: skip
    fit.stage("plan", "avrt.stages.planning:Planner", period_ns, 0.1, inputs={"scene": "track"})
