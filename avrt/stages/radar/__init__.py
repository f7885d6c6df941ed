"""Radar: pictures to targets (`CfarDetector`), and the targets worth following (`TargetFilter`)."""

from avrt.stages.radar.detector import CfarDetector
from avrt.stages.radar.target_filter import TargetFilter

__all__ = ["CfarDetector", "TargetFilter"]
