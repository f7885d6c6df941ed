"""A small deterministic world with sensors: a road, its users, a LiDAR, a camera, ground truth."""

from avrt.world.camera import LIDAR_TO_CAMERA, camera_info, render
from avrt.world.lidar import sweep
from avrt.world.scene import Actor, Pole, Scene, Truth, make_scene

__all__ = [
    "LIDAR_TO_CAMERA",
    "Actor",
    "Pole",
    "Scene",
    "Truth",
    "camera_info",
    "make_scene",
    "render",
    "sweep",
]
