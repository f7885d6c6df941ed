"""What the sensors see, over time: `Tracker`; and whether they see it alike: `Aligned`.

`tracker` is the stage. `arrivals` takes messages in whatever order they come, `history` puts late
ones in their place, `scene` is what is believed at one time and how a look changes it. Each sensor
has its model: `lidar_model`, `radar_model` with `radar_births` and `reflection`, `camera_model`
with `agreement`. `hypothesis` is one track, `tracking` its filter, `existence` whether it is real.
"""

from avrt.stages.fusion.aligned import Aligned
from avrt.stages.fusion.tracker import Tracker

__all__ = ["Aligned", "Tracker"]
