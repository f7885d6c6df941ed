"""The vehicle's own motion, from its sensors (`EgoEstimator`) or from sweeps (`ScanMatcher`)."""

from avrt.stages.ego.estimator import EgoEstimator
from avrt.stages.ego.scan_matching import ScanMatcher

__all__ = ["EgoEstimator", "ScanMatcher"]
