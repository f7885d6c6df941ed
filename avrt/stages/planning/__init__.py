"""From a scene to what to do: `Planner`."""

from avrt.stages.planning.planner import Planner

__all__ = ["Planner"]
