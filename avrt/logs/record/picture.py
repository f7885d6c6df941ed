"""What a stage's output looks like in Foxglove: payloads to ROS 2 messages, without a plug-in.

Detections and tracks become scenes, plans a path, boxes in images annotations, radar targets a
cloud, the vehicle's motion an odometry; clouds and images stay what they are, and a road mask is a
grey image. Single readings of a sensor (Imu, Fix, Speed) have no picture. Header stamps are capture
times in the log's clock.
"""

from __future__ import annotations

from functools import singledispatchmethod
from typing import NamedTuple

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.record.foxglove import IMAGE_ANNOTATIONS, PATH, SCENE_UPDATE, make_typestore
from avrt.logs.record.scene import ScenePainter, pose
from avrt.logs.ros.message import cloud_message, cloud_rows, header, ros_time, target_rows, twist
from avrt.logs.ros.types import CLOUD, COMPRESSED_IMAGE, IMAGE, ODOMETRY
from avrt.payload import (
    Detections,
    EgoMotion,
    Image,
    ImageBoxes,
    ImageDetections,
    Plan,
    PointCloud,
    RoadMask,
    Targets,
    Tracks,
)
from avrt.units import NS_PER_S

START_FRAME = "odom"
ROAD_GREY, LANE_GREY = 128, 255

Header = ros.std_msgs__msg__Header
Painted = tuple[str, object]


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
        painted = self._paint(payload, stage, header(capture_ns, frame))
        if painted is None:
            return None
        type_name, message = painted
        return Picture(type_name, bytes(self.store.serialize_cdr(message, type_name)))

    @singledispatchmethod
    def _paint(self, _payload: object, _stage: str, _head: Header) -> Painted | None:
        return None

    @_paint.register(Tracks)
    def _(self, tracks: Tracks, stage: str, head: Header) -> Painted:
        shapes = {f"track {t.id}": self._scenes.track(t) for t in tracks.objects}
        return SCENE_UPDATE, self._scenes.update(stage, head, shapes)

    @_paint.register(Detections)
    def _(self, found: Detections, stage: str, head: Header) -> Painted:
        shapes = {f"detection {i}": self._scenes.detection(d) for i, d in enumerate(found.objects)}
        return SCENE_UPDATE, self._scenes.update(stage, head, shapes)

    @_paint.register(ImageBoxes)
    def _(self, boxes: ImageBoxes, _stage: str, head: Header) -> Painted:
        return IMAGE_ANNOTATIONS, self._scenes.edges(head, boxes)

    @_paint.register(ImageDetections)
    def _(self, found: ImageDetections, _stage: str, head: Header) -> Painted:
        return IMAGE_ANNOTATIONS, self._scenes.rectangles(head, found)

    @_paint.register(Plan)
    def _(self, plan: Plan, _stage: str, head: Header) -> Painted:
        return PATH, _path(head, plan)

    @_paint.register(PointCloud)
    def _(self, cloud: PointCloud, _stage: str, head: Header) -> Painted:
        return CLOUD, cloud_message(head, cloud_rows(cloud), cloud.rows)

    @_paint.register(Targets)
    def _(self, targets: Targets, _stage: str, head: Header) -> Painted:
        return CLOUD, cloud_message(head, target_rows(targets))

    @_paint.register(EgoMotion)
    def _(self, motion: EgoMotion, _stage: str, head: Header) -> Painted:
        return ODOMETRY, _odometry(head, motion)

    @_paint.register(RoadMask)
    def _(self, road: RoadMask, _stage: str, head: Header) -> Painted:
        grey = np.where(road.lane, LANE_GREY, np.where(road.drivable, ROAD_GREY, 0))
        height, width = grey.shape
        data = grey.astype(np.uint8).reshape(-1)
        return IMAGE, ros.sensor_msgs__msg__Image(head, height, width, "mono8", 0, width, data)

    @_paint.register(Image)
    def _(self, image: Image, _stage: str, head: Header) -> Painted:
        if not image.width_px:
            message = ros.sensor_msgs__msg__CompressedImage(head, image.encoding, image.data)
            return COMPRESSED_IMAGE, message
        return IMAGE, ros.sensor_msgs__msg__Image(
            head, image.height_px, image.width_px, image.encoding, 0, image.row_bytes, image.data
        )


def _path(head: Header, plan: Plan) -> object:
    start_ns = head.stamp.sec * NS_PER_S + head.stamp.nanosec
    poses = [
        ros.geometry_msgs__msg__PoseStamped(
            Header(ros_time(start_ns + round(t * NS_PER_S)), head.frame_id),
            pose(x, y, 0.0, yaw),
        )
        for t, (x, y), yaw in zip(plan.t.tolist(), plan.xy.tolist(), plan.yaw.tolist(), strict=True)
    ]
    return ros.nav_msgs__msg__Path(head, poses)


def _odometry(head: Header, motion: EgoMotion) -> object:
    """Return an odometry in the frame of the start; its pose drifts and states no covariance."""
    covariance = np.zeros((6, 6))
    covariance[np.ix_([0, 5], [0, 5])] = motion.covariance
    place = ros.geometry_msgs__msg__PoseWithCovariance(
        pose(motion.x, motion.y, 0.0, motion.yaw), np.zeros(36)
    )
    moving = ros.geometry_msgs__msg__TwistWithCovariance(
        twist(motion.speed, motion.yaw_rate), covariance.ravel()
    )
    start = Header(head.stamp, START_FRAME)
    return ros.nav_msgs__msg__Odometry(start, head.frame_id, place, moving)
