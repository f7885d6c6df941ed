"""What stages made of the sensors, by capture time: tracks, detections, radar targets, plans.

Everything is in the frame of the tracks (`Outputs.frame`); what no transform leads there is left
out and told. Ellipses hold 95 % of where an object's centre is believed to be.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from avrt.errors import InputError
from avrt.payload import Detections, ImageDetections, Plan, Targets, Tracks
from avrt.payload.projection import moved
from avrt.report.page.sieve import Sieve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from avrt.logs.record.run_file import RunFile
    from avrt.logs.truth import TrueScene
    from avrt.model.frames import Frames, Matrix
    from avrt.model.message import Message
    from avrt.payload import Box, Detection, Track, TrueObject

OUTPUTS_MAX = 1_200
OBJECTS_MAX = 8_000  # over all outputs of a class
TARGETS_MAX = 300
TARGETS_OF_ALL_MAX = 40_000
SAMPLES_MAX = 40
SAMPLES_OF_ALL_MAX = 10_000
CHI_SQUARE_95 = 5.991  # two degrees of freedom: an ellipse of 95 % (any table of the distribution)
DRAWN = (Tracks, Detections, Targets, ImageDetections, Plan)

T = TypeVar("T")


class Made(NamedTuple):
    """One output: when what it rests on was captured, when it could be read, and what it is."""

    stage: str
    message: Message[object]


@dataclass(slots=True)
class Outputs:
    """The outputs that the page draws.

    Attributes:
        kinds: by class of payload, the outputs of the stage that is drawn.
        notes: what is left out, and why.
    """

    kinds: dict[type, Sieve[Made]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def frame(self) -> str | None:
        """The frame of everything that is drawn from above; None where nothing is."""
        for kind in (Tracks, Detections, Plan, Targets):
            made = self.of(kind)
            if made:
                return made[0].message.stamp.frame
        return None

    def of(self, kind: type) -> list[Made]:
        """Return what is kept of a class, by capture time."""
        sieve = self.kinds.get(kind)
        made = [] if sieve is None else sieve.items
        return sorted(made, key=lambda one: one.message.stamp.capture_ns)


def read_outputs(run: RunFile) -> Outputs:
    """Read what stages published; of several stages with one class of payload, the first's."""
    found = Outputs()
    for stage in run.stages():
        try:
            _read_stage(run, stage, found)
        except InputError as error:
            found.notes.append(f"outputs of {stage} are drawn as far as they can be read: {error}")
    if Tracks in found.kinds:
        found.kinds.pop(Detections, None)
    for kind, sieve in found.kinds.items():
        most, size = ROOM.get(kind, (OUTPUTS_MAX, _one))
        sieve.thin_to(most, size)
        if sieve.left_out:
            what = f"{kind.__name__} of {sieve.items[0].stage}"
            found.notes.append(f"{what}: 1 in {sieve.step} of {sieve.seen} is drawn")
    return found


def _one(_made: Made) -> int:
    return 1


def _objects(made: Made) -> int:
    payload = made.message.payload
    return len(payload.objects) if isinstance(payload, Tracks | Detections) else 0


def _targets(made: Made) -> int:
    payload = made.message.payload
    return min(TARGETS_MAX, payload.count) if isinstance(payload, Targets) else 0


def _samples(made: Made) -> int:
    payload = made.message.payload
    return min(SAMPLES_MAX, len(payload.xy)) if isinstance(payload, Plan) else 0


ROOM: Mapping[type, tuple[int, Callable[[Made], int]]] = {
    Tracks: (OBJECTS_MAX, _objects),
    Detections: (OBJECTS_MAX, _objects),
    Targets: (TARGETS_OF_ALL_MAX, _targets),
    Plan: (SAMPLES_OF_ALL_MAX, _samples),
}


def _read_stage(run: RunFile, stage: str, found: Outputs) -> None:
    for message in run.outputs(stage):
        kind = type(message.payload)
        if not isinstance(message.payload, DRAWN):
            return
        made = found.kinds.setdefault(kind, Sieve(OUTPUTS_MAX))
        if made.items and made.items[0].stage != stage:
            shown = made.items[0].stage
            found.notes.append(f"{kind.__name__} of {stage} are not drawn: {shown}'s are")
            return
        made.add(Made(stage, message))


class Placed:
    """Turns outputs into rows in one frame; floats are rounded to what a picture shows."""

    def __init__(self, outputs: Outputs, frames: Frames, frame: str) -> None:
        self._outputs = outputs
        self._frames = frames
        self._frame = frame
        self.labels: list[str] = []
        self.unplaced = 0

    def _label(self, name: str) -> int:
        if name not in self.labels:
            self.labels.append(name)
        return self.labels.index(name)

    def _reachable(self, kind: type) -> Iterator[Made]:
        away: set[str] = set()
        for made in self._outputs.of(kind):
            frame = made.message.stamp.frame
            if self._frames.connects(frame, self._frame):
                yield made
            elif frame not in away:
                away.add(frame)
                what = f"no transform leads from {frame!r} to {self._frame!r}"
                self._outputs.notes.append(f"{kind.__name__} of {made.stage} are not drawn: {what}")

    def tracks(self) -> list[dict[str, object]]:
        """Return the tracks, or where there are none the detections, of every sweep."""
        rows: list[dict[str, object]] = []
        for made in (*self._reachable(Tracks), *self._reachable(Detections)):
            payload = made.message.payload
            row = _stamped(made)
            if isinstance(payload, Tracks):
                row["objects"] = [self._track(t) for t in payload.objects if self._is_placed(t.box)]
            elif isinstance(payload, Detections):
                objects = [one for one in payload.objects if self._is_placed(one.box)]
                row["objects"] = [self._detection(one) for one in objects]
            rows.append(row)
        return rows

    def _is_placed(self, box: Box) -> bool:
        """Whether a box can be drawn; those that cannot are counted."""
        placed = all(math.isfinite(value) for value in astuple(box))
        self.unplaced += not placed
        return placed

    def _track(self, track: Track) -> list[object]:
        return [
            track.id,
            self._label(track.label),
            *box_numbers(track.box),
            rounded(track.vx),
            rounded(track.vy),
            *_ellipse(track.covariance),
            rounded(track.existence),
            int(track.confirmed),
            ", ".join(track.sensors),
            rounded(track.closing_speed),
        ]

    def _detection(self, found: Detection) -> list[object]:
        score = None if found.score is None else rounded(found.score)
        label = self._label(found.label)
        return [None, label, *box_numbers(found.box), 0, 0, 0, 0, 0, score, 1, "", 0]

    def truth(self, scenes: Iterable[tuple[int, TrueScene]]) -> list[dict[str, object]]:
        """Return what was really there, where it is known."""
        rows: list[dict[str, object]] = []
        away: set[str] = set()
        for at_ns, scene in scenes:
            if not self._frames.connects(scene.frame, self._frame):
                if scene.frame not in away:
                    away.add(scene.frame)
                    what = f"no transform leads from {scene.frame!r} to {self._frame!r}"
                    self._outputs.notes.append(f"ground truth is not drawn: {what}")
                continue
            matrix = self._frames.between(scene.frame, self._frame)
            objects = [
                [one.id, self._label(one.label), *box_numbers(box), rounded(vx), rounded(vy)]
                for one, box, vx, vy in _turned(matrix, scene)
            ]
            rows.append({"t": at_ns, "objects": objects})
        return rows

    def targets(self) -> list[dict[str, object]]:
        """Return where radar targets are, in decimetres."""
        rows: list[dict[str, object]] = []
        for made in self._reachable(Targets):
            payload = made.message.payload
            assert isinstance(payload, Targets)
            xyz = np.concatenate([payload.xy, np.zeros((payload.count, 1), np.float32)], axis=1)
            there = moved(xyz, self._frames.between(made.message.stamp.frame, self._frame))
            there = there[np.isfinite(there).all(axis=1)]
            kept = there[:: max(1, -(-len(there) // TARGETS_MAX)), :2]
            flat = np.round(kept * 10).astype(np.int64).ravel().tolist()
            rows.append({**_stamped(made), "xy_dm": flat, "count": payload.count})
        return rows

    def plans(self) -> list[dict[str, object]]:
        """Return the planned trajectories."""
        rows: list[dict[str, object]] = []
        for made in self._reachable(Plan):
            plan = made.message.payload
            assert isinstance(plan, Plan)
            xyz = np.concatenate([plan.xy, np.zeros((len(plan.xy), 1))], axis=1)
            matrix = self._frames.between(made.message.stamp.frame, self._frame)
            there = moved(xyz.astype(np.float32), matrix)
            step = max(1, -(-len(there) // SAMPLES_MAX))
            kept = np.flatnonzero(np.isfinite(there).all(axis=1))[::step]
            rows.append(
                {
                    **_stamped(made),
                    "xy": [[rounded(x), rounded(y)] for x, y in there[kept, :2].tolist()],
                    "speed": [rounded(v) for v in plan.speed[kept].tolist()],
                    "acceleration": [rounded(a) for a in plan.acceleration[kept].tolist()],
                    "kind": plan.kind,
                    "time_gap": None if plan.time_gap is None else rounded(plan.time_gap),
                    "cause": None if plan.cause is None else plan.cause.track_id,
                }
            )
        return rows


def _turned(matrix: Matrix, scene: TrueScene) -> list[tuple[TrueObject, Box, float, float]]:
    """Return true objects with box and velocity in another frame that differs in place and yaw."""
    yaw = math.atan2(matrix[4], matrix[0])
    cos, sin = math.cos(yaw), math.sin(yaw)
    places = np.array([[o.box.x, o.box.y, o.box.z] for o in scene.truth.objects], np.float32)
    there = moved(places.reshape(-1, 3), matrix).tolist()
    return [
        (
            one,
            replace(one.box, x=x, y=y, z=z, yaw=one.box.yaw + yaw),
            one.vx * cos - one.vy * sin,
            one.vx * sin + one.vy * cos,
        )
        for one, (x, y, z) in zip(scene.truth.objects, there, strict=True)
    ]


def box_numbers(box: Box) -> list[float]:
    """Return x, y, z, length, width, height and yaw, as a picture needs them."""
    places = (box.x, box.y, box.z, box.length, box.width, box.height)
    return [*(rounded(value) for value in places), rounded(box.yaw, 3)]


def _ellipse(covariance: NDArray[np.float64]) -> list[float]:
    """Return half axes in metres and the turn of the first, radians; zeros where unknown."""
    place = np.asarray(covariance, np.float64)[:2, :2]
    if place.shape != (2, 2) or not np.isfinite(place).all():
        return [0.0, 0.0, 0.0]
    values, vectors = np.linalg.eigh((place + place.T) / 2)
    minor, major = np.sqrt(np.maximum(values, 0.0) * CHI_SQUARE_95).tolist()
    turn = math.atan2(float(vectors[1, 1]), float(vectors[0, 1]))
    return [rounded(major), rounded(minor), rounded(turn, 3)]


def _stamped(made: Made) -> dict[str, object]:
    stamp = made.message.stamp
    return {"t": stamp.capture_ns, "published": stamp.publish_ns}


def rounded(value: float, digits: int = 2) -> float:
    """Return a number that JSON can hold; one that is none becomes 0."""
    return round(float(value), digits) if math.isfinite(value) else 0.0
