"""What messages carry: small frozen dataclasses over arrays.

Vehicle and LiDAR frames: x forward, y left, z up (REP 103), metres, radians. Camera optical frame:
z forward, x right, y down. Shape letters: N points or objects, S samples of a trajectory.
"""

from avrt.payload.cloud import PointCloud
from avrt.payload.image import CameraInfo, Image, ImageBoxes, ImageDetections, Lens, RoadMask
from avrt.payload.motion import EgoMotion, Fix, Imu, Speed
from avrt.payload.objects import Box, Detection, Detections, SensorUse, Track, Tracks
from avrt.payload.plan import Plan, PlanCause
from avrt.payload.targets import Targets
from avrt.payload.truth import TrueObject, Truth

__all__ = [
    "Box",
    "CameraInfo",
    "Detection",
    "Detections",
    "EgoMotion",
    "Fix",
    "Image",
    "ImageBoxes",
    "ImageDetections",
    "Imu",
    "Lens",
    "Plan",
    "PlanCause",
    "PointCloud",
    "RoadMask",
    "SensorUse",
    "Speed",
    "Targets",
    "Track",
    "Tracks",
    "TrueObject",
    "Truth",
]
