"""LiDAR: sweeps to boxes (`Detector`), and sweeps as of one instant (`Deskew`)."""

from avrt.stages.lidar.deskew import Deskew
from avrt.stages.lidar.detector import Detector

__all__ = ["Deskew", "Detector"]
