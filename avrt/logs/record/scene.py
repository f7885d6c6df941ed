"""Objects as Foxglove draws them: cubes with labels and velocity arrows, and outlines in images.

A track says which sensors support it now; one that none does is only predicted.

Each object is an entity of its own: it replaces its older self, and is taken away when the stage
does not show it any more, or when nothing came for `LIFETIME_NS`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rosbags.typesys.store import Msg, Msgarg, Typestore

    from avrt.payload import Box, Detection, ImageBoxes, ImageDetections, Track

LIFETIME_NS = NS_PER_S
ARROW_SPEED_MIN = 0.3
COLORS: Mapping[str, tuple[float, float, float]] = {
    "car": (0.2, 0.6, 1.0),
    "truck": (0.6, 0.4, 1.0),
    "pedestrian": (1.0, 0.4, 0.3),
    "cyclist": (1.0, 0.8, 0.2),
}
GREY = (0.7, 0.7, 0.7)
CONFIRMED_ALPHA, TENTATIVE_ALPHA = 0.6, 0.2
LINE_LOOP, LINE_LIST = 2, 4
FONT_PX = 12.0
UNUSED = ("arrows", "spheres", "cylinders", "lines", "triangles", "models")

Shape = dict[str, list["Msg"]]


class Outline(NamedTuple):
    """Lines in an image between corners (u, v) in pixels, in the colour of a class."""

    type: int
    corners: list[list[float]]
    color: str
    text: str


class ScenePainter:
    """Makes foxglove_msgs; remembers which entities each stage shows."""

    def __init__(self, store: Typestore) -> None:
        self._store = store
        self._shown: dict[str, list[str]] = {}

    def _new(self, name: str, **values: Msgarg) -> Msg:
        return self._store.types[f"foxglove_msgs/msg/{name}"](**values)

    def _color(self, label: str, alpha: float) -> Msg:
        r, g, b = COLORS.get(label, GREY)
        return self._new("Color", r=r, g=g, b=b, a=alpha)

    def update(
        self, stage: str, header: ros.std_msgs__msg__Header, shapes: Mapping[str, Shape]
    ) -> Msg:
        """Return the SceneUpdate that shows these entities (by id) and no others of the stage."""
        lifetime = ros.builtin_interfaces__msg__Duration(*divmod(LIFETIME_NS, NS_PER_S))
        empty: dict[str, Msgarg] = {name: [] for name in UNUSED}
        entities: list[Msg] = [
            self._new(
                "SceneEntity",
                timestamp=header.stamp,
                frame_id=header.frame_id,
                id=id_,
                lifetime=lifetime,
                frame_locked=True,
                **{**empty, **shape},
            )
            for id_, shape in shapes.items()
        ]
        gone: list[Msg] = [
            self._new("SceneEntityDeletion", timestamp=header.stamp, type=0, id=id_)
            for id_ in self._shown.get(stage, ())
            if id_ not in shapes
        ]
        self._shown[stage] = list(shapes)
        return self._new("SceneUpdate", deletions=gone, entities=entities)

    def track(self, track: Track) -> Shape:
        alpha = CONFIRMED_ALPHA if track.confirmed else TENTATIVE_ALPHA
        speed = math.hypot(track.vx, track.vy)
        seen_by = " + ".join(track.sensors) or "predicted"
        text = f"id {track.id} {track.label} {speed:.1f} m/s p={track.existence:.2f}, {seen_by}"
        shape = self._cube(track.box, track.label, alpha, text)
        shape["metadata"] = [
            self._new("KeyValuePair", key="sensors", value=", ".join(track.sensors)),
            self._new("KeyValuePair", key="nearest_x", value=f"{track.nearest_x:.2f} m"),
            self._new("KeyValuePair", key="hits", value=str(track.hits)),
            self._new("KeyValuePair", key="misses", value=str(track.misses)),
        ]
        if speed > ARROW_SPEED_MIN:
            shape["arrows"] = [
                self._new(
                    "ArrowPrimitive",
                    pose=pose(
                        track.box.x, track.box.y, track.box.z, math.atan2(track.vy, track.vx)
                    ),
                    shaft_length=speed,
                    shaft_diameter=0.15,
                    head_length=0.5,
                    head_diameter=0.4,
                    color=self._color(track.label, 1.0),
                )
            ]
        return shape

    def detection(self, found: Detection) -> Shape:
        score = "?" if found.score is None else f"{found.score:.2f}"
        text = f"{found.label} {score}, {found.point_count} points"
        return {**self._cube(found.box, found.label, CONFIRMED_ALPHA, text), "metadata": []}

    def _cube(self, box: Box, label: str, alpha: float, text: str) -> Shape:
        size = ros.geometry_msgs__msg__Vector3(box.length, box.width, box.height)
        cube = self._new(
            "CubePrimitive",
            pose=pose(box.x, box.y, box.z, box.yaw),
            size=size,
            color=self._color(label, alpha),
        )
        label_text = self._new(
            "TextPrimitive",
            pose=pose(box.x, box.y, box.z + box.height / 2 + 0.5, 0.0),
            billboard=True,
            font_size=FONT_PX,
            scale_invariant=True,
            color=self._color("", 1.0),
            text=text,
        )
        return {"cubes": [cube], "texts": [label_text]}

    def edges(self, header: ros.std_msgs__msg__Header, boxes: ImageBoxes) -> Msg:
        """Return the outlines of 3D boxes in an image, those parts that can be seen."""
        outlines: list[Outline] = []
        for edges, label in zip(boxes.edges, boxes.labels, strict=True):
            seen = edges[np.isfinite(edges).all(axis=(1, 2))].reshape(-1, 2)
            outlines.append(Outline(LINE_LIST, seen.tolist(), "car", label))
        return self._annotations(header, outlines)

    def rectangles(self, header: ros.std_msgs__msg__Header, found: ImageDetections) -> Msg:
        """Return the boxes that a network found in an image."""
        outlines: list[Outline] = []
        rows = zip(found.boxes.tolist(), found.scores.tolist(), found.labels, strict=True)
        for (left, top, right, bottom), score, label in rows:
            corners = [[left, top], [right, top], [right, bottom], [left, bottom]]
            outlines.append(Outline(LINE_LOOP, corners, label, f"{label} {score:.2f}"))
        return self._annotations(header, outlines)

    def _annotations(self, header: ros.std_msgs__msg__Header, outlines: Sequence[Outline]) -> Msg:
        points: list[Msg] = []
        texts: list[Msg] = []
        clear = self._color("", 0.0)
        for outline in (one for one in outlines if one.corners):
            color = self._color(outline.color, 1.0)
            corners: list[Msg] = [self._new("Point2", x=u, y=v) for u, v in outline.corners]
            points.append(
                self._new(
                    "PointsAnnotation",
                    timestamp=header.stamp,
                    type=outline.type,
                    points=corners,
                    outline_color=color,
                    outline_colors=[],
                    fill_color=clear,
                    thickness=2.0,
                )
            )
            left, top = (min(place) for place in zip(*outline.corners, strict=True))
            texts.append(
                self._new(
                    "TextAnnotation",
                    timestamp=header.stamp,
                    position=self._new("Point2", x=left, y=top),
                    text=outline.text,
                    font_size=FONT_PX,
                    text_color=color,
                    background_color=clear,
                )
            )
        return self._new("ImageAnnotations", circles=[], points=points, texts=texts)


def pose(x: float, y: float, z: float, yaw: float) -> ros.geometry_msgs__msg__Pose:
    """Return a pose turned by `yaw` radians about z; metres."""
    turn = ros.geometry_msgs__msg__Quaternion(0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
    return ros.geometry_msgs__msg__Pose(ros.geometry_msgs__msg__Point(x, y, z), turn)
