"""Name a thing by its size, and complete the box of which only the near sides were seen.

Rule: a class fits if the visible extents fit into its largest size, one side at least is a whole
face of it, and the height fits. The visible sides stay where they are; the box grows away from the
sensor to the usual size of the class. Usual sizes: mean of KITTI's training labels for car (3.9 x
1.6 x 1.5), pedestrian (0.8 x 0.7 x 1.8) and cyclist (1.8 x 0.6 x 1.7) as in Lang et al.,
"PointPillars" (CVPR 2019), section 4, the car a little larger as later models are; the truck is
ours (EU type N2/N3 lorries are 6 to 16.5 m long and up to 2.55 m wide).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A class of road users, all in metres.

    Attributes:
        length, width, height: usual size.
        length_max, width_max: largest visible extent that is still believed.
        face_min: smallest wide face: the larger visible extent is at least this.
        bottom_max: the lowest point above the road is not higher: road users stand on it.
        top_min, top_max: height of the highest point above the road.
        edge_min: least share of points on the outline (vegetation has them all over).
        upper_max: largest extent of what is higher than a car's bonnet: a rider is narrow there.
    """

    label: str
    length: float
    width: float
    height: float
    length_max: float
    width_max: float
    face_min: float
    bottom_max: float
    top_min: float
    top_max: float
    edge_min: float
    upper_max: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What was seen of a thing.

    Attributes:
        low, high: (2,) float64, metres: extent along its two axes, origin at the sensor.
        bottom, top: height of its lowest and highest point above the road, metres.
        cut: it reaches the sensor's upper edge of view, so it may be taller than `top`.
        edge: share of its points on the outline.
        upper: larger extent of its points higher than UPPER_FROM, metres.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bottom: float
    top: float
    cut: bool
    edge: float
    upper: float

    @property
    def extent(self) -> NDArray[np.float64]:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Fit:
    """A class that fits, the axis (0 or 1) its length lies along, and how well, 0 to 1."""

    size: SizeClass
    axis: int
    score: float


CLASSES = (
    SizeClass("car", 4.2, 1.75, 1.5, 5.6, 2.25, 1.1, 0.85, 1.1, 2.3, 0.45, math.inf),
    SizeClass("truck", 8.0, 2.5, 3.2, 16.5, 3.2, 1.8, 0.85, 2.3, 4.1, 0.42, math.inf),
    SizeClass("cyclist", 1.75, 0.6, 1.7, 2.2, 0.9, 1.1, 0.7, 1.4, 2.1, 0.0, 0.9),
    SizeClass("pedestrian", 0.8, 0.7, 1.75, 1.1, 0.95, 0.25, 0.7, 1.1, 2.1, 0.0, 0.9),
)
UPPER_FROM = 1.1  # metres above the road
TRUCK_TOP_CUT = 1.75  # metres: a truck whose top is out of view shows at least this much
THIN_WIDTH, THIN_LENGTH = 0.4, 7.0  # metres: what is thinner and longer is a wall
LONG_ENOUGH = 0.45  # of a truck's usual length
WEIGHTS = (0.25, 0.5, 0.25)  # of length, width and height in the score
AHEAD = 0.2  # weight of lying along the sensor's x axis: most roads run along the vehicle


def completed(size: SizeClass, length: float, width: float) -> tuple[float, float]:
    """Return the footprint of a thing of which this much was seen: at least the usual one.

    Trucks come in any length: one that showed most of the usual length is as long as it looked.
    """
    if size.label == "truck" and length > LONG_ENOUGH * size.length:
        return length, max(width, size.width)
    return max(length, size.length), max(width, size.width)


def classify(shape: Shape, yaw: float) -> Fit | None:
    """Return the class that fits best, the earlier one of equals, or None.

    Args:
        shape: what was seen.
        yaw: direction of its axis 0, radians.
    """
    best: Fit | None = None
    preferred = -1.0
    for size in CLASSES:
        for axis in (0, 1):
            score = _score(shape, size, axis)
            if score is None:
                continue
            ahead = score + AHEAD * abs(math.cos(yaw + axis * math.pi / 2))
            if ahead > preferred:
                best, preferred = Fit(size, axis, score), ahead
    return best


def _score(shape: Shape, size: SizeClass, axis: int) -> float | None:
    length, width = float(shape.extent[axis]), float(shape.extent[1 - axis])
    tall = size.label == "truck" and shape.cut
    if not (
        length <= size.length_max
        and width <= size.width_max
        and max(length, width) >= size.face_min
        and (TRUCK_TOP_CUT if tall else size.top_min) <= shape.top <= size.top_max
        and (width >= THIN_WIDTH or length <= THIN_LENGTH)
        and shape.bottom <= size.bottom_max
        and shape.edge >= size.edge_min
        and shape.upper <= size.upper_max
    ):
        return None
    terms = (
        min(1.0, length / size.length),
        1 - min(1.0, abs(width / size.width - 1)),
        1.0 if tall else 1 - min(1.0, abs(shape.top / size.height - 1)),
    )
    return sum(weight * term for weight, term in zip(WEIGHTS, terms, strict=True))
