"""Ground truth in a log: topics of `derived_object_msgs/ObjectArray`, as simulators write it.

No stage reads it. A replay copies it into the run record, where scores and pictures find it. An
object's pose, velocity and shape are in the frame of the array's header; its own header says
nothing more. A shape is a box; of any other, and of a pose that is not upright, only the heading
and the outline's extent along the axes are taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.decode import parse
from avrt.logs.ros.message import header
from avrt.logs.ros.types import TRUE_OBJECTS, known_types
from avrt.payload import Box, TrueObject, Truth
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from rosbags.typesys.store import Msg

    from avrt.logs.raw import RawMessage
    from avrt.logs.reader import LogReader

LABELS: Mapping[int, str] = {
    4: "pedestrian",
    5: "cyclist",
    6: "car",
    7: "truck",
    8: "cyclist",
    9: "truck",
}
CLASSES = {"pedestrian": 4, "cyclist": 5, "car": 6, "truck": 7, "unknown": 0}
SURE = 255
TRACKED = 1
SOLID_BOX = 1


class Shape(Protocol):
    """A shape_msgs/SolidPrimitive."""

    dimensions: NDArray[np.float64]


class ObjectMessage(Protocol):
    """A derived_object_msgs/Object, as far as it is read."""

    id: int
    pose: ros.geometry_msgs__msg__Pose
    twist: ros.geometry_msgs__msg__Twist
    shape: Shape
    classification: int


class ArrayMessage(Protocol):
    """A derived_object_msgs/ObjectArray."""

    header: ros.std_msgs__msg__Header
    objects: Sequence[ObjectMessage]


@dataclass(frozen=True, slots=True)
class TrueScene:
    """What was really there at one instant.

    Attributes:
        stamp_ns: in the log's clock.
        topic: that told it.
    """

    stamp_ns: int
    frame: str
    topic: str
    truth: Truth


def truth_topics(reader: LogReader) -> list[str]:
    """Return the topics of a log that hold ground truth."""
    return [name for name, info in reader.topics().items() if info.type == TRUE_OBJECTS]


def read_truth(reader: LogReader) -> Iterator[TrueScene]:
    """Yield the ground truth of a log by log time; nothing if there is none.

    Raises:
        InputError: a message cannot be read, or the log is damaged (after the last good one).
    """
    topics = truth_topics(reader)
    if topics:
        for raw in reader.messages(topics):
            yield _scene(raw)


def truth_message(stamp_ns: int, frame: str, truth: Truth) -> Msg:
    """Return ground truth as a message."""
    found = [_message(stamp_ns, frame, one) for one in truth.objects]
    return known_types().types[TRUE_OBJECTS](header=header(stamp_ns, frame), objects=found)


def _message(stamp_ns: int, frame: str, one: TrueObject) -> Msg:
    vector, box, types = ros.geometry_msgs__msg__Vector3, one.box, known_types().types
    half = box.yaw / 2
    turn = ros.geometry_msgs__msg__Quaternion(0.0, 0.0, math.sin(half), math.cos(half))
    place = ros.geometry_msgs__msg__Point(box.x, box.y, box.z)
    still = vector(0.0, 0.0, 0.0)
    size = np.array([box.length, box.width, box.height])
    polygon = ros.geometry_msgs__msg__Polygon([])
    shape = types["shape_msgs/msg/SolidPrimitive"](type=SOLID_BOX, dimensions=size, polygon=polygon)
    return types["derived_object_msgs/msg/Object"](
        header=header(stamp_ns, frame),
        id=one.id,
        detection_level=TRACKED,
        object_classified=one.label != "unknown",
        pose=ros.geometry_msgs__msg__Pose(place, turn),
        twist=ros.geometry_msgs__msg__Twist(vector(one.vx, one.vy, 0.0), still),
        accel=ros.geometry_msgs__msg__Accel(still, still),
        polygon=polygon,
        shape=shape,
        classification=CLASSES[one.label],
        classification_certainty=SURE,
        classification_age=0,
    )


def _scene(raw: RawMessage) -> TrueScene:
    message = cast("ArrayMessage", parse(raw))
    try:
        found = tuple(_object(one) for one in message.objects)
    except ValueError as error:
        raise raw.error("ground truth", f"an object that is none: {error}") from None
    stamp = message.header.stamp
    frame = message.header.frame_id.removeprefix("/")
    return TrueScene(stamp.sec * NS_PER_S + stamp.nanosec, frame, raw.topic, Truth(found))


def _object(one: ObjectMessage) -> TrueObject:
    """Return an object of a message.

    Raises:
        ValueError: its shape has no three sides, or a number other than its velocity is none.
    """
    place, q = one.pose.position, one.pose.orientation
    length, width, height = one.shape.dimensions.tolist()
    yaw = math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y**2 + q.z**2))
    box = Box(place.x, place.y, place.z, length, width, height, yaw)
    if not all(map(math.isfinite, (place.x, place.y, place.z, length, width, height, yaw))):
        raise ValueError(f"object {one.id} has a place, size or heading that is no number")
    speed = one.twist.linear
    return TrueObject(one.id, LABELS.get(one.classification, "unknown"), box, speed.x, speed.y)
