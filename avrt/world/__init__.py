"""A small deterministic world with sensors: a road, who is on it, what a vehicle there measures.

`make_scene` sets it up, `World` lets it move and reads the sensors, `readings` gives all of it in
the order of a recording. Nothing here reads a clock or a file, and the same seed gives the same
bytes.
"""

from avrt.world.camera import camera_info
from avrt.world.following import PlanFollower
from avrt.world.lidar import HDL_32E, HDL_64E_FRONT, Beams
from avrt.world.mounting import MOUNTINGS, VEHICLE
from avrt.world.scenes import SCENES, Scene, make_scene
from avrt.world.sensors import SENSORS, Reading, expected, readings
from avrt.world.traffic import Control, EgoState
from avrt.world.world import SECONDS_MAX, EgoPose, World

__all__ = [
    "HDL_32E",
    "HDL_64E_FRONT",
    "MOUNTINGS",
    "SCENES",
    "SECONDS_MAX",
    "SENSORS",
    "VEHICLE",
    "Beams",
    "Control",
    "EgoPose",
    "EgoState",
    "PlanFollower",
    "Reading",
    "Scene",
    "World",
    "camera_info",
    "expected",
    "make_scene",
    "readings",
]
