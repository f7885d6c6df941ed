"""Where the sensors are mounted, as a log's tf topics tell it, read before the run begins.

A transform of tf relates a child frame to its one parent, and all of them make trees (REP 105). A
mounting does not change: the first value of a pair is kept, and a later one that is not the same is
told with the largest change. A second parent of a child, or a ring, contradicts what was said
before: it is told and left out. So is a transform that cannot be one: a number that is none, or a
quaternion whose length is not 1 (to `NORM_ERROR`, as tf2 has it).

Frame names lose the slash that ROS 1 put before them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from avrt.errors import InputError, did_you_mean
from avrt.logs.decode import parse
from avrt.logs.raw import Anomalies, Anomaly, refusal
from avrt.logs.ros.types import TRANSFORMS
from avrt.model.frames import SAME_DEGREES, SAME_METRES, Matrix, TransformSpec, apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rosbags.typesys.stores import ros2_jazzy as ros

    from avrt.logs.raw import RawMessage, TopicInfo
    from avrt.logs.reader import LogReader

KEY = ("calibration", "tf")
NORM_ERROR = 0.01


def read_transforms(
    reader: LogReader, topics: Sequence[str]
) -> tuple[list[TransformSpec], list[Anomaly]]:
    """Return the transforms of these topics, and what is odd about them (log times).

    Damage of the log is not told here: whoever plays the log tells it.

    Raises:
        SpecError: the log has no such topic, or it is not one of transforms.
        InputError: the same of a damaged log, which may have had it.
    """
    _check(reader, topics)
    tree = Tree()
    with suppress(InputError):
        for raw in reader.messages(topics):
            try:
                for parent, child, matrix in _transforms(raw):
                    tree.add(raw, parent, child, matrix)
            except InputError as error:
                tree.anomalies.add("undecodable", raw.topic, raw.log_ns, str(error))
    return list(tree.transforms.values()), tree.told()


class Tree:
    """Transforms by child while they are read."""

    def __init__(self) -> None:
        self.transforms: dict[str, TransformSpec] = {}
        self.anomalies = Anomalies()
        self._moved: dict[tuple[str, str], tuple[float, float]] = {}

    def add(self, raw: RawMessage, parent: str, child: str, matrix: Matrix | None) -> None:
        """Take a transform in, or tell why not; `matrix` None means that it is none."""
        name = f"{parent} to {child}"
        if matrix is None:
            what = f"the transform from {name} has no finite numbers, or no unit quaternion"
            return self._tell(raw, "transform_invalid", what)
        known = self.transforms.get(child)
        if known is None:
            if child in self._ancestors(parent):
                what = f"{name} closes a ring: {child} is above {parent} already"
                return self._tell(raw, "transform_contradicts", what)
            origin = raw.topic
            self.transforms[child] = TransformSpec(
                parent=parent, child=child, matrix=matrix, origin=origin
            )
        elif known.parent != parent:
            what = f"{child} is below {known.parent} already, and is said to be below {parent}"
            self._tell(raw, "transform_contradicts", what)
        else:
            self._compare(raw, known, matrix)
        return None

    def told(self) -> list[Anomaly]:
        """Return what is odd; of a transform that moves, with how far it went."""
        found = list(self.anomalies)
        for anomaly in found:
            if anomaly.kind == "transform_moves":
                anomaly.detail = "; ".join(
                    f"{parent} to {child} moves up to {metres:.3f} m and {degrees:.2f} deg"
                    for (parent, child), (metres, degrees) in self._moved.items()
                )
        return found

    def _ancestors(self, frame: str) -> set[str]:
        found = {frame}
        while frame in self.transforms:
            frame = self.transforms[frame].parent
            found.add(frame)
        return found

    def _compare(self, raw: RawMessage, known: TransformSpec, matrix: Matrix) -> None:
        metres, degrees = apart(known.matrix, matrix)
        if metres > SAME_METRES or degrees > SAME_DEGREES:
            pair = known.parent, known.child
            far, turned = self._moved.get(pair, (0.0, 0.0))
            self._moved[pair] = max(far, metres), max(turned, degrees)
            self._tell(raw, "transform_moves", "")

    def _tell(self, raw: RawMessage, kind: str, detail: str) -> None:
        self.anomalies.add(kind, raw.topic, raw.log_ns, detail)


def _check(reader: LogReader, topics: Sequence[str]) -> None:
    infos = reader.topics()
    for topic in topics:
        if topic not in infos:
            what = f"the log has no topic {topic!r}; {_remedy(topic, infos)}"
            raise refusal(what, KEY, reader.anomalies)
        info = infos[topic]
        if info.type != TRANSFORMS or info.encoding != "cdr":
            found = f"{info.type or 'no type'} in encoding {info.encoding!r}"
            what = f"expected {topic} to be of {TRANSFORMS}, found {found}"
            raise refusal(what, KEY, reader.anomalies)


def _remedy(topic: str, infos: Mapping[str, TopicInfo]) -> str:
    """Return the nearest topic of transforms, or what to do without."""
    found = [name for name, info in infos.items() if info.type == TRANSFORMS]
    near = did_you_mean(topic, found) if found else "it has no transforms"
    return f"{near}; what no transform tells is said in calibration.frames"


def _transforms(raw: RawMessage) -> Iterator[tuple[str, str, Matrix | None]]:
    for stamped in cast("ros.tf2_msgs__msg__TFMessage", parse(raw)).transforms:
        parent = stamped.header.frame_id.removeprefix("/")
        child = stamped.child_frame_id.removeprefix("/")
        yield parent, child, _matrix(stamped.transform)


def _matrix(transform: ros.geometry_msgs__msg__Transform) -> Matrix | None:
    t, q = transform.translation, transform.rotation
    numbers = (t.x, t.y, t.z, q.x, q.y, q.z, q.w)
    norm = math.hypot(q.x, q.y, q.z, q.w)
    if not all(map(math.isfinite, numbers)) or abs(norm - 1) > NORM_ERROR:
        return None
    x, y, z, w = q.x / norm, q.y / norm, q.z / norm, q.w / norm
    return (
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), t.x,
        2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), t.y,
        2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), t.z,
    )  # fmt: skip
