"""Pass on what a LiDAR showed, unless others see it in other directions: the `Aligned` stage.

It stands between the LiDAR's detector and the tracker, so that nothing is made of a sweep of which
it is known that it is turned. Each image and each radar cycle is compared once, with the sweep that
was captured nearest to it, as soon as one within NEAR_NS is there. Things are compared

* in the image by the directions of their middles, where height and row fit: an outline that is cut
  off at the edge has no middle that is known, nor has one that is wide, such as a wall;
* with radar targets at about their distance, which a turned mounting does not change.

How offsets are judged stands in `avrt.safety.bearings`. The vehicle's own motion is not taken out:
within NEAR_NS a turn of 20 degrees a second makes 1.2 degrees, either way.

Shape letters: N points, M things of the LiDAR, D detections, T targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.payload.projection import box_corners, moved
from avrt.safety.bearings import WITHIN, Bearings
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.model.message import Message
    from avrt.payload import Box, Detections, ImageDetections, Targets
    from avrt.payload.cloud import Coordinates

NEAR_NS = 60 * NS_PER_MS
KEPT = 4  # sweeps, and looks of each sensor: of what belongs together either may come first
WIDE = 12.0  # degrees: what is wider has no direction of its own
AHEAD = 1.0  # metres before the lens
HEIGHTS = 0.7  # of the logarithm of the ratio
ROWS = 3.0  # degrees
RANGES = 2.5  # metres
EDGE = 2.0  # pixels


@dataclass(frozen=True, slots=True)
class ImageLook:
    """One image's detections that are whole.

    Attributes:
        across, down: (D,) float64, degrees to the right of the axis and below it: their middles.
        heights: (D,) float64, degrees.
        projection: (3, 4) float64, pixels, from `frame`.
        size: width and height of the image, pixels.
    """

    capture_ns: int
    frame: str
    across: NDArray[np.float64]
    down: NDArray[np.float64]
    heights: NDArray[np.float64]
    projection: NDArray[np.float64]
    size: tuple[int, int]

    @classmethod
    def of(cls, message: Message[ImageDetections]) -> ImageLook | None:
        """Take a message; None of one without a camera model."""
        found, stamp = message.payload, message.stamp
        if found.info is None or not found.info.projection.any() or not stamp.frame:
            return None
        projection = found.info.projection.astype(np.float64)
        boxes = np.asarray(found.boxes, np.float64).reshape(-1, 4)
        size = (found.width_px, found.height_px)
        whole = (boxes[:, 0] > EDGE) & (boxes[:, 2] < size[0] - EDGE)
        low, high = _angles(projection, boxes[whole, :2]), _angles(projection, boxes[whole, 2:])
        middle = (low + high) / 2
        heights = high[:, 1] - low[:, 1]
        return cls(
            stamp.capture_ns, stamp.frame, middle[:, 0], middle[:, 1], heights, projection, size
        )

    def offsets(self, sweep: Sweep, matrix: Matrix) -> list[list[float]]:
        """Return for each thing how far left of detections it lies, degrees.

        `matrix` leads from the sweep's frame to the camera's.
        """
        return [self._of(moved(box_corners(box), matrix)) for box in sweep.boxes]

    def _of(self, corners: Coordinates) -> list[float]:
        if corners[:, 2].min() < AHEAD:
            return []
        ends = corners @ self.projection[:, :3].T + self.projection[:, 3]
        pixels = ends[:, :2] / ends[:, 2:]
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        if low[0] < 0 or high[0] > self.size[0]:
            return []
        angles = _angles(self.projection, np.stack([low, high]))
        if angles[1, 0] - angles[0, 0] > WIDE:
            return []
        middle, height = angles.mean(axis=0), angles[1, 1] - angles[0, 1]
        apart = self.across - middle[0]
        like = np.abs(np.log(np.maximum(self.heights, 1e-3) / max(height, 1e-3))) < HEIGHTS
        like &= (np.abs(self.down - middle[1]) < ROWS) & (np.abs(apart) < WITHIN)
        return [float(one) for one in apart[like]]


@dataclass(frozen=True, slots=True)
class RadarLook:
    """One cycle's targets: (T,) float64, degrees to the left in `frame`, and metres."""

    capture_ns: int
    frame: str
    azimuths: NDArray[np.float64]
    ranges: NDArray[np.float64]

    @classmethod
    def of(cls, message: Message[Targets]) -> RadarLook:
        xy = np.asarray(message.payload.xy, np.float64).reshape(-1, 2)
        xy = xy[np.isfinite(xy).all(axis=1)]
        stamp = message.stamp
        return cls(stamp.capture_ns, stamp.frame, _azimuths(xy), np.hypot(xy[:, 0], xy[:, 1]))

    def offsets(self, sweep: Sweep, matrix: Matrix) -> list[list[float]]:
        """Return for each thing how far left of targets it lies, degrees."""
        places = moved(sweep.places, matrix)
        away = np.hypot(places[:, 0], places[:, 1])
        apart = _wrapped(_azimuths(places)[:, None] - self.azimuths)
        like = (np.abs(away[:, None] - self.ranges) < RANGES) & (np.abs(apart) < WITHIN)
        return [row[fits].tolist() for row, fits in zip(apart, like, strict=True)]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What the LiDAR showed once.

    Attributes:
        places: (M, 3) float64, metres: where the points are of each thing that is not wide.
    """

    capture_ns: int
    frame: str
    boxes: tuple[Box, ...]
    places: NDArray[np.float64]

    @classmethod
    def of(cls, message: Message[Detections]) -> Sweep:
        things, stamp = message.payload.objects, message.stamp
        clouds = [np.asarray(one.points, np.float64) for one in things if len(one.points)]
        middles = [np.median(cloud, axis=0) for cloud in clouds]
        narrow = [
            middle
            for cloud, middle in zip(clouds, middles, strict=True)
            if np.ptp(_wrapped(_azimuths(cloud) - _azimuths(middle[None]))) < WIDE
        ]
        boxes = tuple(one.box for one in things)
        return cls(stamp.capture_ns, stamp.frame, boxes, np.reshape(narrow, (-1, 3)))


Look = TypeVar("Look", bound=ImageLook | RadarLook)


@dataclass(frozen=True, slots=True)
class Waiting(Generic[Look]):
    """The looks of another sensor that no sweep is near to yet; `newest_ns` came last."""

    looks: tuple[Look, ...] = ()
    newest_ns: int | None = None

    def joined(self, look: Look | None) -> Waiting[Look]:
        """Take in a look, unless it came before: a sampled input repeats itself."""
        if look is None or look.capture_ns == self.newest_ns:
            return self
        looks: tuple[Look, ...] = (*self.looks, look)
        return Waiting(looks[-KEPT:], look.capture_ns)

    def matched(self, sweeps: Sequence[Sweep]) -> tuple[Waiting[Look], tuple[Look, Sweep] | None]:
        """Take out the newest look that a sweep is near to, with those before it."""
        for place, look in reversed(list(enumerate(self.looks))):
            sweep = min(sweeps, key=lambda one: abs(one.capture_ns - look.capture_ns))
            if abs(sweep.capture_ns - look.capture_ns) <= NEAR_NS:
                return Waiting(self.looks[place + 1 :], self.newest_ns), (look, sweep)
        return self, None


@dataclass(frozen=True, slots=True)
class State:
    """What the stage knows between two sweeps."""

    sweeps: tuple[Sweep, ...] = ()
    images: Waiting[ImageLook] = field(default_factory=Waiting)
    cycles: Waiting[RadarLook] = field(default_factory=Waiting)
    bearings: Bearings = field(default_factory=Bearings)


class Aligned(Stage):
    """Pass a LiDAR's detections on while camera and radar see them in the same directions.

    Either of the others may be left out. A job that knows of a turn ends with a fault in place of
    its output, and so does every one after it, until the sensors agree again.
    """

    def __init__(self) -> None:
        self.frames = Frames()
        self.state = State()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def process(
        self,
        lidar: Message[Detections],
        camera: Message[ImageDetections] | None = None,
        radar: Message[Targets] | None = None,
    ) -> Detections:
        """Return what the LiDAR showed.

        Raises:
            DataFault: it lies in other directions than what the others show, or nobody knows where
                one of the sensors is.
        """
        state = self.state
        sweeps = (*state.sweeps, Sweep.of(lidar))[-KEPT:]
        images = state.images.joined(None if camera is None else ImageLook.of(camera))
        cycles = state.cycles.joined(None if radar is None else RadarLook.of(radar))
        images, seen = images.matched(sweeps)
        cycles, heard = cycles.matched(sweeps)
        offsets = {
            name: self._offsets(*pair)
            for name, pair in (("camera", seen), ("radar", heard))
            if pair is not None
        }
        bearings = state.bearings.after(offsets)
        self.state = State(sweeps, images, cycles, bearings)
        turned = bearings.turned
        if turned is not None:
            raise DataFault("turned", str(turned))
        return lidar.payload

    def freeze(self) -> object:
        return self.state

    def thaw(self, state: object) -> None:
        if not isinstance(state, State):
            raise SpecError(f"expected the state of an Aligned, found {type(state).__name__}")
        self.state = state

    def _offsets(self, look: ImageLook | RadarLook, sweep: Sweep) -> list[list[float]]:
        return look.offsets(sweep, self.frames.between(sweep.frame, look.frame))


def _angles(projection: NDArray[np.float64], pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return directions of pixels, (N, 2), degrees to the right of the axis and below it."""
    centre, focal = projection[:2, 2], projection[(0, 1), (0, 1)]
    return np.asarray(np.degrees(np.arctan((pixels - centre) / focal)))


def _azimuths(xy: Coordinates) -> NDArray[np.float64]:
    return np.asarray(np.degrees(np.arctan2(xy[:, 1], xy[:, 0])))


def _wrapped(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((degrees + 180) % 360 - 180)
