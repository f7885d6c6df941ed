"""Find road users in a LiDAR sweep: the `Detector` stage.

Road, things, outlines, sizes: each step is a module (`ground`, `clusters`, `outline`, `sizes`)
that states its method. What fits no class is "unknown" if it is small, and structure (walls,
hedges, bridges, poles) if not. Structure is left out, except for the part of it that stands in the
ego corridor: nothing in the vehicle's own way is ever dropped for its shape.

Shape letters: N points of the sweep, M points above the road, C things.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import SpecError
from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.payload import Box, Detection, Detections
from avrt.payload.footprint import contains
from avrt.payload.projection import moved
from avrt.stages.geometry import resized
from avrt.stages.lidar.clusters import Linking, cluster
from avrt.stages.lidar.ground import GroundModel
from avrt.stages.lidar.outline import Outlines, fit
from avrt.stages.lidar.sizes import UPPER_FROM, Fit, Shape, classify, completed
from avrt.stages.parameters import check_not_negative, check_number, check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import PointCloud
    from avrt.payload.cloud import Coordinates

UNKNOWN_SIDE_MAX = 3.0  # metres: a larger thing without a class is structure
UNKNOWN_TOP_MIN = 0.4  # metres: lower things can be driven over
UNKNOWN_TOP_MAX = 2.2  # metres: a thin thing taller than this is a pole or a tree
UNKNOWN_TOP_CUT = 1.75  # metres: likewise, where its top is out of view
CEILING = 6.0  # metres above the road: what is higher can be driven under
GAP_NEAR, GAP_GROWTH = 0.4, 0.01  # metres, and for each metre of range: a crown above a car
GAP_BEAMS = 1.25  # steps of elevation that are no gap
FRAGMENT_MARGIN = 0.1  # metres
SIDE_MIN = 0.3  # metres
KEPT_POINTS = 64


class Detector(Stage):
    """Turn a sweep into boxes with a class, nearest first.

    Args:
        sensor_height: of the LiDAR above the road, metres.
        elevation_max: upper edge of the sensor's vertical view, degrees above the horizon.
        elevation_step: largest angle between neighbouring beams, degrees: what they leave out
            between them is no gap in a thing.
        range_min, range_max: distance in the plane that is looked at, metres.
        aside_max: largest distance from the x axis that is looked at, metres.
        clearance: lowest height above the road that makes a thing, metres.
        points_min: fewest points of a thing.
        corridor_half_width: what lies nearer than this to the x axis is kept at any shape, metres.
        frame: that the boxes are in, x forward, y left, z up from the sensor's height; "" is the
            cloud's own. Ground and corridor are looked for in it.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        sensor_height: float = 1.73,
        elevation_max: float = 2.0,
        elevation_step: float = 0.43,
        range_min: float = 1.5,
        range_max: float = 80.0,
        aside_max: float = 80.0,
        clearance: float = 0.25,
        points_min: int = 8,
        corridor_half_width: float = 1.2,
        frame: str = "",
    ) -> None:
        check_positive(
            sensor_height=sensor_height,
            range_max=range_max,
            aside_max=aside_max,
            clearance=clearance,
            points_min=points_min,
            elevation_step=elevation_step,
            corridor_half_width=corridor_half_width,
        )
        check_not_negative(range_min=range_min)
        check_number(elevation_max=elevation_max)
        if range_min >= range_max:
            what = f"expected less than range_max, {range_max} m, found {range_min}"
            raise SpecError(what, ("range_min",))
        self.ground = GroundModel(sensor_height, slope_max=0.2)
        self.linking = Linking()
        self.elevation_slope = math.tan(math.radians(elevation_max))
        self.gap_growth = max(GAP_GROWTH, GAP_BEAMS * math.tan(math.radians(elevation_step)))
        self.sensor_height = sensor_height
        self.range_min = range_min
        self.range_max = range_max
        self.aside_max = aside_max
        self.clearance = clearance
        self.points_min = points_min
        self.corridor_half_width = corridor_half_width
        self.output_frame = frame
        self.frames = Frames()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def warm(self) -> None:
        """Look at a small wall once, so that the first sweep finds every library loaded."""
        y, z = np.meshgrid(np.linspace(-1, 1, 20), np.linspace(-1.6, 0, 20))
        wall = np.stack([np.full(y.size, 10.0), y.ravel(), z.ravel()], axis=1)
        self._detected(wall.astype(np.float32))

    def process(self, cloud: Message[PointCloud]) -> Detections:
        """Return what stands on the road in this sweep.

        Raises:
            DataFault: no transform leads from the sweep's frame to the one asked for.
        """
        target = self.output_frame or cloud.stamp.frame
        return self._detected(
            moved(cloud.payload.xyz, self.frames.between(cloud.stamp.frame, target))
        )

    def _detected(self, points: Coordinates) -> Detections:
        xyz = self._cropped(points)
        if len(xyz) == 0:
            return Detections()
        height = self.ground.heights(xyz)
        standing = np.nonzero((height > self.clearance) & (height < CEILING))[0]
        xyz, height = xyz[standing], height[standing]
        order, at = cluster(xyz, height, self.linking)
        order, at = self._large_enough(order, at)
        if len(at) == 1:
            return Detections()
        xyz, height = xyz[order], height[order]
        outlines = fit(xyz[:, :2], at)
        found = []
        for c in range(len(at) - 1):
            thing = slice(int(at[c]), int(at[c + 1]))
            found += self._detections(xyz[thing], height[thing], outlines, c)
        return Detections(tuple(_without_fragments(found)))

    def _cropped(self, xyz: Coordinates) -> NDArray[np.float32]:
        """Return the points within range, float32; NaN and infinity compare false."""
        distance = np.hypot(xyz[:, 0], xyz[:, 1])
        kept = (distance >= self.range_min) & (distance <= self.range_max)
        kept &= (np.abs(xyz[:, 1]) <= self.aside_max) & (np.abs(xyz[:, 2]) < self.range_max)
        return np.asarray(xyz[kept], np.float32)

    def _large_enough(
        self, order: NDArray[np.int64], at: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        size = np.diff(at)
        kept = size >= self.points_min
        offsets = np.concatenate([[0], np.cumsum(size[kept])])
        return order[np.repeat(kept, size)], offsets

    def _detections(
        self, xyz: NDArray[np.float32], height: NDArray[np.float32], outlines: Outlines, c: int
    ) -> list[Detection]:
        distance = math.hypot(*xyz[:, :2].mean(axis=0).tolist())
        bottom, top = _standing(height, GAP_NEAR + self.gap_growth * distance)
        limit = self.sensor_height + distance * self.elevation_slope
        shape = Shape(
            low=outlines.low[c],
            high=outlines.high[c],
            bottom=bottom,
            top=top,
            cut=top > limit - 0.3,
            edge=float(outlines.edge[c]),
            upper=_upper(xyz, height),
        )
        yaw = float(outlines.yaw[c])
        found = classify(shape, yaw)
        if found is not None:
            return [_detection(xyz, height, shape, yaw, found)]
        if top < UNKNOWN_TOP_MIN:
            return []
        side = float(shape.extent.max())
        tall = top > UNKNOWN_TOP_MAX or (shape.cut and top > UNKNOWN_TOP_CUT)
        if side <= UNKNOWN_SIDE_MAX and not tall:
            return [_detection(xyz, height, shape, yaw, None)]
        return self._in_corridor(xyz, height)

    def _in_corridor(
        self, xyz: NDArray[np.float32], height: NDArray[np.float32]
    ) -> list[Detection]:
        """Return the part of a structure that stands in the ego corridor, as one unknown thing."""
        inside = (np.abs(xyz[:, 1]) < self.corridor_half_width) & (xyz[:, 0] > 0)
        inside &= height < UNKNOWN_TOP_MAX
        if np.count_nonzero(inside) < self.points_min:
            return []
        xyz, height = xyz[inside], height[inside]
        low, high = (f(axis=0).astype(np.float64) for f in (xyz[:, :2].min, xyz[:, :2].max))
        top = float(height.max())
        shape = Shape(low, high, bottom=0.0, top=top, cut=False, edge=0.0, upper=0.0)
        return [_detection(xyz, height, shape, 0.0, None)]


def _without_fragments(found: list[Detection]) -> list[Detection]:
    """Return the detections nearest first, without those inside one that has more points."""
    kept: list[Detection] = []
    for one in sorted(found, key=lambda one: (-one.point_count, one.box.x, one.box.y)):
        if not any(contains(other.box, one.box.x, one.box.y, FRAGMENT_MARGIN) for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: (math.hypot(one.box.x, one.box.y), one.box.x, one.box.y))


def _standing(height: NDArray[np.float32], gap: float) -> tuple[float, float]:
    """Return the height of the lowest point and of the highest one without a gap under it."""
    levels = np.sort(height)
    gaps = np.nonzero(np.diff(levels) > gap)[0]
    top = levels[gaps[0]] if len(gaps) else levels[-1]
    return float(levels[0]), float(top)


def _upper(xyz: NDArray[np.float32], height: NDArray[np.float32]) -> float:
    """Return the larger extent along x or y of the points above a bonnet, 0 if there are none."""
    upper = xyz[height > UPPER_FROM, :2]
    return float((upper.max(axis=0) - upper.min(axis=0)).max()) if len(upper) else 0.0


def _detection(
    xyz: NDArray[np.float32],
    height: NDArray[np.float32],
    shape: Shape,
    yaw: float,
    found: Fit | None,
) -> Detection:
    axis = 0 if found is None else found.axis
    first, second = ((shape.low + shape.high) / 2).tolist()
    cos, sin = math.cos(yaw), math.sin(yaw)
    road = float(xyz[:, 2].mean() - height.mean())
    seen = Box(
        x=first * cos - second * sin,
        y=first * sin + second * cos,
        z=road + shape.top / 2,
        length=float(shape.extent[axis]),
        width=float(shape.extent[1 - axis]),
        height=shape.top,
        yaw=_forward(yaw + axis * math.pi / 2),
    )
    length, width = seen.length, seen.width
    if found is not None:
        length, width = completed(found.size, length, width)
    box = resized(seen, max(length, SIDE_MIN), max(width, SIDE_MIN))
    return Detection(
        box=box,
        label="unknown" if found is None else found.size.label,
        score=None if found is None else found.score,
        points=_nearest(xyz),
        point_count=len(xyz),
        nearest_x=_quantile(xyz[:, 0], 0.05),
    )


def _forward(yaw: float) -> float:
    """Return the direction along the same line that looks along +x rather than -x."""
    return yaw - math.pi if math.cos(yaw) < -1e-9 else yaw


def _nearest(xyz: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return KEPT_POINTS of the nearest half of the points, evenly spread, in order of distance."""
    order = np.argsort(np.hypot(xyz[:, 0], xyz[:, 1]), kind="stable")
    near = order[: max(KEPT_POINTS, len(order) // 2)]
    step = np.arange(min(KEPT_POINTS, len(near))) * len(near) // min(KEPT_POINTS, len(near))
    return xyz[near[step]]


def _quantile(values: NDArray[np.float32], share: float) -> float:
    at = int(share * (len(values) - 1))
    return float(np.partition(values, at)[at])
