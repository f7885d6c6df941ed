"""Cameras: images to boxes (`Detector`), tracks drawn into images (`Overlay`).

`avrt.stages.camera.road:RoadNetwork` tells road and lane lines; it brings torch.
"""

from avrt.stages.camera.detector import Detector
from avrt.stages.camera.overlay import Overlay

__all__ = ["Detector", "Overlay"]
