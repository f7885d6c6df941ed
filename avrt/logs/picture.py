"""What a stage's output looks like in Foxglove: payloads to ROS 2 messages, without a plug-in.

Detections and tracks become scenes, plans a path, image boxes annotations; clouds and images stay
what they are. Header stamps are capture times in the log's clock.
"""

from __future__ import annotations

from typing import NamedTuple

from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.foxglove import IMAGE_ANNOTATIONS, PATH, SCENE_UPDATE, make_typestore
from avrt.logs.ros_message import cloud_message, cloud_rows, ros_time
from avrt.logs.ros_types import CLOUD, COMPRESSED_IMAGE, IMAGE
from avrt.logs.scene import ScenePainter, pose
from avrt.payload import Detections, Image, ImageBoxes, Plan, PointCloud, Tracks
from avrt.units import NS_PER_S


class Picture(NamedTuple):
    """One encoded message: its ROS 2 type and its CDR bytes."""

    type: str
    data: bytes


class Painter:
    """Encodes payloads of one run."""

    def __init__(self) -> None:
        self.store = make_typestore()
        self._scenes = ScenePainter(self.store)

    def paint(self, stage: str, payload: object, capture_ns: int, frame: str) -> Picture | None:
        """Return the picture of a payload, or None for one that has none.

        `capture_ns` is absolute time in the log's clock.
        """
        header = ros.std_msgs__msg__Header(ros_time(capture_ns), frame)
        painted = self._paint(stage, payload, header)
        if painted is None:
            return None
        type_name, message = painted
        return Picture(type_name, bytes(self.store.serialize_cdr(message, type_name)))

    def _paint(
        self, stage: str, payload: object, header: ros.std_msgs__msg__Header
    ) -> tuple[str, object] | None:
        painted: tuple[str, object] | None = None
        scenes = self._scenes
        match payload:
            case Tracks():
                shapes = {f"track {t.id}": scenes.track(t) for t in payload.objects}
                painted = SCENE_UPDATE, scenes.update(stage, header, shapes)
            case Detections():
                shapes = {
                    f"detection {i}": scenes.detection(d) for i, d in enumerate(payload.objects)
                }
                painted = SCENE_UPDATE, scenes.update(stage, header, shapes)
            case Plan():
                painted = PATH, _path(header, payload)
            case ImageBoxes():
                painted = IMAGE_ANNOTATIONS, scenes.annotations(header, payload)
            case PointCloud():
                painted = CLOUD, cloud_message(header, cloud_rows(payload))
            case Image() if payload.width_px:
                painted = IMAGE, _raw_image(header, payload)
            case Image():
                image = ros.sensor_msgs__msg__CompressedImage(
                    header, payload.encoding, payload.data
                )
                painted = COMPRESSED_IMAGE, image
            case _:
                pass
        return painted


def _path(header: ros.std_msgs__msg__Header, plan: Plan) -> object:
    start_ns = header.stamp.sec * NS_PER_S + header.stamp.nanosec
    poses = [
        ros.geometry_msgs__msg__PoseStamped(
            ros.std_msgs__msg__Header(ros_time(start_ns + round(t * NS_PER_S)), header.frame_id),
            pose(x, y, 0.0, yaw),
        )
        for t, (x, y), yaw in zip(plan.t.tolist(), plan.xy.tolist(), plan.yaw.tolist(), strict=True)
    ]
    return ros.nav_msgs__msg__Path(header, poses)


def _raw_image(header: ros.std_msgs__msg__Header, image: Image) -> object:
    row = len(image.data) // image.height_px if image.height_px else 0
    return ros.sensor_msgs__msg__Image(
        header, image.height_px, image.width_px, image.encoding, 0, row, image.data
    )
