"""What messages carry: small frozen dataclasses over arrays.

Vehicle and LiDAR frames: x forward, y left, z up (REP 103), metres, radians. Camera optical frame:
z forward, x right, y down. Shape letters: N points or objects, S samples of a trajectory.
"""

from avrt.payload.cloud import PointCloud
from avrt.payload.image import CameraInfo, Image, ImageBoxes
from avrt.payload.objects import Box, Detection, Detections, Track, Tracks
from avrt.payload.plan import Plan, PlanCause

__all__ = [
    "Box",
    "CameraInfo",
    "Detection",
    "Detections",
    "Image",
    "ImageBoxes",
    "Plan",
    "PlanCause",
    "PointCloud",
    "Track",
    "Tracks",
]
