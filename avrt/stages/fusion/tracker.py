"""Keep track of the things on the road over time, with every sensor there is: the `Tracker` stage.

Any of LiDAR boxes, radar targets and boxes in images may come, each with its own capture time and
its own model of measurement and noise (modules `lidar_model`, `radar_model`, `camera_model`), and
the vehicle's own motion. A sensor that sends nothing is not a sensor that sees nothing: it says
nothing, and the tracks live on what the others say. A track is tentative, then confirmed (it may be
planned for), then deleted; its id is never used again.

Tracks are those at the capture time of the trigger. What was captured before is used in the order
it was captured, whatever the order it came in (module `history`); what was captured later waits in
the history for the next call. So the tracks do not depend on the order in which messages came, as
long as they came within `HISTORY_NS`; only the numbers shown as ids are given in the order in which
tracks were first published, because a number once published stays.

Time comes from capture stamps only (module `arrivals`). After a gap tracks are predicted, their
covariance grows, and they are deleted only when their position is no longer known.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from avrt.errors import DataFault, SpecError
from avrt.model.frames import IDENTITY, Frames
from avrt.model.stage import Stage
from avrt.payload import (
    Detections,
    EgoMotion,
    ImageDetections,
    SensorUse,
    Targets,
    Track,
    Tracks,
)
from avrt.payload.footprint import half_extents
from avrt.stages.fusion.arrivals import HISTORY_NS, TrackerState, told_ahead
from avrt.stages.fusion.camera_model import CameraLook
from avrt.stages.fusion.history import History
from avrt.stages.fusion.lidar_model import LidarLook
from avrt.stages.fusion.looks import Rules
from avrt.stages.fusion.planar import Twist, mounted
from avrt.stages.fusion.radar_model import RadarLook, RadarView
from avrt.stages.fusion.scene import RANKS, EgoLook, Scene, Steps, Unusable
from avrt.stages.mounting import SPEED_SIGMA_MAX, is_known
from avrt.stages.parameters import check_number, check_positive, check_probability
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.model.frames import Matrix
    from avrt.model.message import Message
    from avrt.stages.fusion.arrivals import SceneHistory
    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Hypothesis
    from avrt.stages.fusion.scene import Look

    Given: TypeAlias = (
        Message[Detections] | Message[ImageDetections] | Message[Targets] | Message[EgoMotion]
    )

PAYLOADS: Mapping[str, type] = {
    "ego": EgoMotion,
    "lidar": Detections,
    "radar": Targets,
    "camera": ImageDetections,
}
TRIGGERS = ("lidar", "radar", "camera")
SILENT_NS = NS_PER_S  # an input without a message for longer is told
SAME_PLACE = 2.0  # metres: a track that replaces another one here keeps its id


class Tracker(Stage):
    """Turn what the sensors see into tracks with ids, velocities and probabilities of existence.

    Args:
        ego_speed: declared speed of the ego vehicle, m/s, driving straight, for as long as nothing
            comes in through `ego`. It only splits the relative motion, which is measured, into the
            object's share and the vehicle's: distances and closing speeds do not depend on it,
            velocities over ground are wrong by its error.
        gate: probability that a true measurement falls within the gate.
        confirm_hits: fewest looks that showed a confirmed track.
        confirm_existence: its least probability of existence.
        trigger: the input that releases the stage; "" is the first there is of lidar, radar and
            camera.
        frame: that the tracks are in; "" is the trigger's.
        vehicle_frame: the frame whose motion `ego` is; "" if the tracks' frame counts as being
            there.
        radar_range: how far the radar sees, metres.
        radar_view: its angle of view, degrees, its x axis in the middle.
        camera_offset_max: largest error of a camera's direction that is no anomaly, degrees.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        ego_speed: float = 0.0,
        gate: float = 0.9999,
        confirm_hits: int = 3,
        confirm_existence: float = 0.9,
        trigger: str = "",
        frame: str = "",
        vehicle_frame: str = "",
        radar_range: float = 150.0,
        radar_view: float = 120.0,
        camera_offset_max: float = 2.5,
    ) -> None:
        check_number(ego_speed=ego_speed)
        check_probability(gate=gate, confirm_existence=confirm_existence)
        check_positive(
            confirm_hits=confirm_hits,
            radar_range=radar_range,
            radar_view=radar_view,
            camera_offset_max=camera_offset_max,
        )
        if trigger and trigger not in TRIGGERS:
            raise SpecError(
                f"expected one of {', '.join(TRIGGERS)}, found {trigger!r}", ("trigger",)
            )
        self.declared = Twist(x=ego_speed, speed=ego_speed)
        self.steps = Steps(
            Rules(gate, confirm_hits, confirm_existence), math.radians(camera_offset_max)
        )
        self.radar_view = RadarView(radar_range, math.radians(radar_view) / 2)
        self.trigger = trigger
        self.output_frame = frame
        self.vehicle_frame = vehicle_frame
        self.frames = Frames()
        self.state = TrackerState(History(Scene(self.declared)))

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def process(
        self,
        lidar: Message[Detections] | None = None,
        camera: Message[ImageDetections] | None = None,
        radar: Message[Targets] | None = None,
        ego: Message[EgoMotion] | None = None,
    ) -> Tracks:
        """Return the tracks at the trigger's capture time, oldest first."""
        pairs = zip(RANKS, (ego, lidar, radar, camera), strict=True)
        given: dict[str, Given] = {name: one for name, one in pairs if one is not None}
        name_of_trigger = self._trigger(given)
        trigger = given[name_of_trigger].stamp
        before = self.state.at_trigger(trigger, self.declared)
        state = replace(before, frame=before.frame or self.output_frame or trigger.frame)
        looks: list[tuple[Key, Look]] = []
        for name, message in given.items():
            stamp = message.stamp
            if not state.is_new(name, stamp):
                continue
            key = (stamp.capture_ns, RANKS.index(name), stamp.sequence)
            needed = name in {name_of_trigger, "ego"}
            look = self._look(name, message, state.frame or "", needed=needed)
            state, used = state.received(name, stamp, key, trigger.capture_ns)
            if used:
                looks.append((key, look))
        history = _begun(state.history, looks, self.steps).with_looks(looks, self.steps)
        state = state.with_history(history)
        scene = _scene_at(history, trigger.capture_ns)
        self.state = _named(state, scene, trigger.capture_ns)
        return self._published(scene, trigger.capture_ns)

    def freeze(self) -> object:
        return self.state

    def thaw(self, state: object) -> None:
        if not isinstance(state, TrackerState):
            raise SpecError(f"expected the state of a Tracker, found {type(state).__name__}")
        self.state = state

    def _trigger(self, given: Mapping[str, Given]) -> str:
        """Return the name of the input that released the stage."""
        name = self.trigger or next((one for one in TRIGGERS if one in given), "")
        if name not in given:
            known = " or ".join([self.trigger] if self.trigger else TRIGGERS)
            found = ", ".join(given) or "nothing"
            raise DataFault("no_trigger", f"expected a message of {known}, found {found}")
        if name == "camera" and not self.output_frame:
            what = "expected a frame whose z points up, found a camera's"
            raise DataFault("no_frame", f"{what}; say in which the tracks are: params: {{frame: }}")
        new = [one for one in TRIGGERS if one in given and self.state.is_new(one, given[one].stamp)]
        if new and name not in new:
            what = f"{name} came again while {new[0]} is new; say which input is the trigger"
            raise DataFault("trigger", f"{what}: params: {{trigger: {new[0]}}}")
        return name

    def _look(self, name: str, message: Given, frame: str, *, needed: bool) -> Look:
        """Return a message made ready: in the tracker's frame, without what cannot be used.

        A sensor of which nobody knows where it is must not stop the tracks of the others: it is
        unusable, unless it is needed.
        """
        own = message.stamp.frame
        if not needed and own and frame and not self.frames.connects(own, frame):
            why = f"no transform leads from frame {own!r} to {frame!r}"
            return Unusable(why, _size(message.payload))
        match message.payload:
            case EgoMotion() as motion if name == "ego":
                return _ego_look(motion, self._between(self.vehicle_frame, frame))
            case Detections() as found if name == "lidar":
                return LidarLook.of(found, self._between(own, frame))
            case Targets() as targets if name == "radar":
                return RadarLook.of(targets, self._between(own, frame), self.radar_view)
            case ImageDetections() as found if name == "camera":
                if found.info is None or not found.info.projection.any() or not own:
                    why = "no camera model, or its messages name no frame"
                    return Unusable(why, len(found.boxes))
                return CameraLook.of(found, found.info, self.frames.between(frame, own))
        expected, kind = PAYLOADS[name].__name__, type(message.payload).__name__
        raise DataFault("payload", f"expected {expected} as {name}, found {kind}")

    def _between(self, source: str, target: str) -> Matrix:
        if not source or not target:
            return IDENTITY
        return self.frames.between(source, target)

    def _published(self, scene: Scene, at_ns: int) -> Tracks:
        state, twist = self.state, scene.twist
        tracks = [_track(one, state.names[one.birth][0], twist, at_ns) for one in scene.hypotheses]
        inputs = tuple(_use(name, state, scene, at_ns) for name in RANKS if name in state.inputs)
        return Tracks(tuple(tracks), twist.speed, twist.yaw_rate, inputs)


def _size(payload: object) -> int:
    """Return how many measurements a sensor's message holds."""
    match payload:
        case Detections(objects=objects):
            return len(objects)
        case Targets(xy=several) | ImageDetections(boxes=several):
            return len(several)
        case _:
            return 1


def _ego_look(motion: EgoMotion, to_frame: Matrix) -> Look:
    if not (math.isfinite(motion.speed) and math.isfinite(motion.yaw_rate)):
        return Unusable("its speed or yaw rate is no number", 1)
    if not is_known(motion):
        return Unusable(f"its speed is not known within {SPEED_SIGMA_MAX:g} m/s", 1)
    return EgoLook(mounted(motion.speed, motion.yaw_rate, to_frame))


def _begun(history: SceneHistory, looks: Sequence[tuple[Key, Look]], steps: Steps) -> SceneHistory:
    """Return the history as it is when the vehicle moved from its beginning as it first told."""
    if history.base.has_ego:
        return history
    all_looks = [*((one.key, one.look) for one in history.entries), *looks]
    told = [(key, look.twist) for key, look in all_looks if isinstance(look, EgoLook)]
    if not told:
        return history
    first = min(told, key=lambda one: one[0])[1]
    if first == history.base.twist:
        return history
    return history.rebased(history.base.driven_by(first), steps)


def _scene_at(history: SceneHistory, at_ns: int) -> Scene:
    """Return the scene at a time; the oldest that is kept if that is later."""
    scene = history.at(at_ns)
    return scene if scene.at_ns is not None and scene.at_ns > at_ns else scene.predicted(at_ns)


def _named(state: TrackerState, scene: Scene, at_ns: int) -> TrackerState:
    """Return the state with an id for each track of the scene.

    A late look may start a thing's track earlier than it was started before. The new track replaces
    the old one, and keeps its id.
    """
    here = {one.birth for one in scene.hypotheses}
    gone = [one for one in state.published if one.birth not in here and one.birth in state.names]
    names, id_next = dict(state.names), state.id_next
    for one in scene.hypotheses:
        if one.birth in names:
            track_id = names[one.birth][0]
        elif (old := _nearest(one, gone)) is not None:
            track_id = names.pop(old.birth)[0]
            gone.remove(old)
        else:
            track_id, id_next = id_next, id_next + 1
        names[one.birth] = (track_id, at_ns)
    kept = {birth: name for birth, name in names.items() if abs(at_ns - name[1]) <= HISTORY_NS}
    return replace(state, names=kept, id_next=id_next, published=scene.hypotheses)


def _nearest(one: Hypothesis, gone: Sequence[Hypothesis]) -> Hypothesis | None:
    """Return which of the tracks that are gone this one replaces: it was born before it."""
    found = [
        (math.hypot(*(old.mean[:2] - one.mean[:2])), old) for old in gone if one.birth < old.birth
    ]
    near = min(found, key=lambda pair: (pair[0], pair[1].birth), default=None)
    return near[1] if near is not None and near[0] < SAME_PLACE else None


def _track(one: Hypothesis, track_id: int, twist: Twist, at_ns: int) -> Track:
    box = one.box
    near = one.nearest_x
    return Track(
        id=track_id,
        label=one.label,
        box=box,
        vx=float(one.mean[2]),
        vy=float(one.mean[3]),
        closing_speed=twist.at(box.x, box.y)[0] - float(one.mean[2]),
        covariance=one.covariance,
        existence=one.existence,
        hits=one.hits,
        misses=one.misses,
        confirmed=one.confirmed,
        sensors=one.sensors(at_ns),
        nearest_x=near if math.isfinite(near) else box.x - half_extents(box)[0],
        points=one.points,
    )


def _use(name: str, state: TrackerState, scene: Scene, at_ns: int) -> SensorUse:
    arrivals, outcome = state.inputs[name], scene.outcome(name)
    if outcome is None:
        # What was neither lost nor looked at was captured after the trigger, and waits.
        unused = "nothing of it could be used" if arrivals.lost else ""
        told = told_ahead(arrivals) or unused
        return SensorUse(name, None, late=arrivals.late, lost=arrivals.lost, anomaly=told)
    age_ns = at_ns - outcome.capture_ns
    silent = f"silent for {age_ns / NS_PER_S:.1f} s" if age_ns > SILENT_NS else ""
    return SensorUse(
        name=name,
        age_ns=age_ns,
        measurements=outcome.measurements,
        matched=outcome.matched,
        dropped=outcome.dropped,
        residual=outcome.residual,
        late=arrivals.late,
        lost=arrivals.lost,
        anomaly=told_ahead(arrivals) or outcome.anomaly or silent,
    )
