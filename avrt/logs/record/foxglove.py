"""The message definitions a run record is written with, so that Foxglove and ROS tools show it.

`sensor_msgs` and `nav_msgs` come with `rosbags`; the field lists of `foxglove_msgs` stand here, as
published with Foxglove's SDK (https://github.com/foxglove/foxglove-sdk, schemas/ros2, MIT). The
whole definition of a type goes into the record, so a reader needs none of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

SCENE_UPDATE = "foxglove_msgs/msg/SceneUpdate"
IMAGE_ANNOTATIONS = "foxglove_msgs/msg/ImageAnnotations"
PATH = "nav_msgs/msg/Path"

DEFINITIONS = {
    "Color": "float64 r\nfloat64 g\nfloat64 b\nfloat64 a",
    "Point2": "float64 x\nfloat64 y",
    "KeyValuePair": "string key\nstring value",
    "ArrowPrimitive": """geometry_msgs/Pose pose
float64 shaft_length
float64 shaft_diameter
float64 head_length
float64 head_diameter
foxglove_msgs/Color color""",
    "CubePrimitive": """geometry_msgs/Pose pose
geometry_msgs/Vector3 size
foxglove_msgs/Color color""",
    "SpherePrimitive": """geometry_msgs/Pose pose
geometry_msgs/Vector3 size
foxglove_msgs/Color color""",
    "CylinderPrimitive": """geometry_msgs/Pose pose
geometry_msgs/Vector3 size
float64 bottom_scale
float64 top_scale
foxglove_msgs/Color color""",
    "LinePrimitive": """uint8 LINE_STRIP=0
uint8 LINE_LOOP=1
uint8 LINE_LIST=2
uint8 type
geometry_msgs/Pose pose
float64 thickness
bool scale_invariant
geometry_msgs/Point[] points
foxglove_msgs/Color color
foxglove_msgs/Color[] colors
uint32[] indices""",
    "TriangleListPrimitive": """geometry_msgs/Pose pose
geometry_msgs/Point[] points
foxglove_msgs/Color color
foxglove_msgs/Color[] colors
uint32[] indices""",
    "TextPrimitive": """geometry_msgs/Pose pose
bool billboard
float64 font_size
bool scale_invariant
foxglove_msgs/Color color
string text""",
    "ModelPrimitive": """geometry_msgs/Pose pose
geometry_msgs/Vector3 scale
foxglove_msgs/Color color
bool override_color
string url
string media_type
uint8[] data""",
    "SceneEntityDeletion": """builtin_interfaces/Time timestamp
uint8 MATCHING_ID=0
uint8 ALL=1
uint8 type
string id""",
    "SceneEntity": """builtin_interfaces/Time timestamp
string frame_id
string id
builtin_interfaces/Duration lifetime
bool frame_locked
foxglove_msgs/KeyValuePair[] metadata
foxglove_msgs/ArrowPrimitive[] arrows
foxglove_msgs/CubePrimitive[] cubes
foxglove_msgs/SpherePrimitive[] spheres
foxglove_msgs/CylinderPrimitive[] cylinders
foxglove_msgs/LinePrimitive[] lines
foxglove_msgs/TriangleListPrimitive[] triangles
foxglove_msgs/TextPrimitive[] texts
foxglove_msgs/ModelPrimitive[] models""",
    "SceneUpdate": """foxglove_msgs/SceneEntityDeletion[] deletions
foxglove_msgs/SceneEntity[] entities""",
    "CircleAnnotation": """builtin_interfaces/Time timestamp
foxglove_msgs/Point2 position
float64 diameter
float64 thickness
foxglove_msgs/Color fill_color
foxglove_msgs/Color outline_color""",
    "PointsAnnotation": """builtin_interfaces/Time timestamp
uint8 UNKNOWN=0
uint8 POINTS=1
uint8 LINE_LOOP=2
uint8 LINE_STRIP=3
uint8 LINE_LIST=4
uint8 type
foxglove_msgs/Point2[] points
foxglove_msgs/Color outline_color
foxglove_msgs/Color[] outline_colors
foxglove_msgs/Color fill_color
float64 thickness""",
    "TextAnnotation": """builtin_interfaces/Time timestamp
foxglove_msgs/Point2 position
string text
float64 font_size
foxglove_msgs/Color text_color
foxglove_msgs/Color background_color""",
    "ImageAnnotations": """foxglove_msgs/CircleAnnotation[] circles
foxglove_msgs/PointsAnnotation[] points
foxglove_msgs/TextAnnotation[] texts""",
}


@cache
def make_typestore() -> Typestore:
    """Return the ROS 2 types of rosbags with Foxglove's added; parsing them takes 50 ms."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in DEFINITIONS.items():
        store.register(get_types_from_msg(text, f"foxglove_msgs/msg/{name}"))
    return store
