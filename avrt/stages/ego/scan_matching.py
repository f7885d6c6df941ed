"""Tell how the vehicle moves from its LiDAR alone: the `ScanMatcher` stage.

Each sweep is fitted (`registration`) to what stood upright (`upright`) in the last SWEEPS sweeps,
from where the motion so far predicts it; the fitted pose then corrects the filter of the motion
(`vehicle`). A sweep that shows too little to fit leaves the prediction as it is: the covariance
grows and `sensors` is empty. The motion is in the plane. The first sweep of all says nothing, and
at the second the speed is unknown: then a row of speeds is tried and the best one is fitted. After
LOST_SWEEPS that did not fit, or a gap of GAP_SECONDS, the map begins anew where the vehicle is
believed to be.

What most upright things do is taken for standing still. In a jam in a tunnel that is wrong.

Time comes from capture stamps only, with the same rules as in `fusion`: a stamp that is not newer
adds no time, one older by more than CLOCK_STEP restarts the clock there, none wipes what is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import SpecError
from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.stages.ego import readings, vehicle
from avrt.stages.ego.registration import Match, Target
from avrt.stages.ego.upright import RANGE_LIMIT, Features, features, joined
from avrt.stages.ego.vehicle import SPEED, YAW, Reading, Vehicle, X, Y, motion_of
from avrt.stages.parameters import check_not_negative, check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import EgoMotion, PointCloud
    from avrt.payload.cloud import Coordinates

CLOCK_STEP_NS = 1_000_000_000
SWEEPS = 20  # in the map
LOST_SWEEPS = 5  # in a row that do not fit
GAP_SECONDS = 1.0
SOURCE_VOXEL = 0.6  # metres: the sweep is thinned to this before it is fitted
FEATURES_MIN = 30  # of a sweep, and of the map
SHARE_MIN = 0.15  # of the sweep's features that fit
KERNEL_MIN, KERNEL_MAX = 0.8, 3.0  # metres, at the first iteration
SPEED_SIGMA_MAX = 3.0  # m/s: a speed less certain than this is looked for
SPEEDS = np.arange(-6.0, 45.0, 1.5)  # m/s, the row that is tried
SPEED_REACH = 0.25  # metres
SCATTER = 3.0  # how much worse a pose is than its pairs' scatter: neighbours err alike
SIGMA_MIN = (0.01, 0.01, 0.0005)  # metres, metres, radians


@dataclass(frozen=True, slots=True)
class MatcherState:
    """What is known between two sweeps; nothing in it is changed in place.

    Attributes:
        map: features of the last sweeps in the frame where the vehicle began, oldest first.
        sweep: how many sweeps there were.
        unmatched: how many of the newest ones did not fit.
    """

    capture_ns: int | None = None
    vehicle: Vehicle = field(default_factory=vehicle.at_start)
    map: tuple[Features, ...] = ()
    sweep: int = 0
    unmatched: int = 0


class ScanMatcher(Stage):
    """Turn sweeps into the vehicle's own motion.

    Args:
        frame: the vehicle's frame, whose x points forward and z up; "" is the cloud's own. With it
            the pose is that of the vehicle, not of the sensor.
        range_min, range_max: distance in the plan that is looked at, metres.
    """

    def __init__(self, *, frame: str = "", range_min: float = 2.0, range_max: float = 60.0) -> None:
        check_not_negative(range_min=range_min)
        check_positive(range_max=range_max)
        if range_min >= range_max:
            what = f"expected less than range_max, {range_max} m, found {range_min}"
            raise SpecError(what, ("range_min",))
        if range_max > RANGE_LIMIT:
            raise SpecError(f"expected at most {RANGE_LIMIT} m, found {range_max}", ("range_max",))
        self.frame = frame
        self.output_frame = frame
        self.range_min = range_min
        self.range_max = range_max
        self.frames = Frames()
        self.state = MatcherState()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def warm(self) -> None:
        """Fit a small wall to itself, so that the first sweep finds every library loaded."""
        y, z = np.meshgrid(np.linspace(-5, 5, 40), np.linspace(-1.6, 1, 20))
        wall = np.stack([np.full(y.size, 10.0), y.ravel(), z.ravel()], axis=1)
        found = features(wall.astype(np.float32), 0)
        Target(found).fitted(found, np.zeros(3), KERNEL_MIN)

    def process(self, cloud: Message[PointCloud]) -> EgoMotion:
        """Return the motion at the sweep's capture time."""
        state, stamp = self.state, cloud.stamp
        seconds, capture_ns = _elapsed(state.capture_ns, stamp.capture_ns)
        moved = vehicle.predicted(state.vehicle, seconds)
        found = features(self._cropped(cloud.payload.xyz), state.sweep)
        found = self._in_vehicle(found, stamp.frame)
        match = None if seconds > GAP_SECONDS else _fitted(state, found, moved, seconds)
        if match is not None:
            moved = vehicle.corrected(moved, _reading(match), 0.0).vehicle
        unmatched = 0 if match is not None else state.unmatched + 1
        placed = found.placed(*moved.mean[[X, Y, YAW]].tolist())
        known = (*state.map, placed)[-SWEEPS:] if match is not None else state.map
        if unmatched > LOST_SWEEPS or seconds > GAP_SECONDS or _count(known) < FEATURES_MIN:
            known = (placed,)
        self.state = MatcherState(capture_ns, moved, known, state.sweep + 1, unmatched)
        return _motion(self.state)

    def freeze(self) -> object:
        return self.state

    def thaw(self, state: object) -> None:
        if not isinstance(state, MatcherState):
            raise SpecError(f"expected the state of a ScanMatcher, found {type(state).__name__}")
        self.state = state

    def _cropped(self, xyz: Coordinates) -> NDArray[np.float32]:
        """Return the points within range, float32; NaN and infinity compare false."""
        distance = np.hypot(xyz[:, 0], xyz[:, 1])
        kept = (distance >= self.range_min) & (distance <= self.range_max)
        kept &= np.abs(xyz[:, 2]) < self.range_max
        return np.asarray(xyz[kept], np.float32)

    def _in_vehicle(self, found: Features, frame: str) -> Features:
        if not self.frame or frame == self.frame:
            return found
        matrix = np.array(self.frames.between(frame, self.frame)).reshape(3, 4)
        xyz = found.xyz @ matrix[:, :3].T + matrix[:, 3]
        return Features(xyz, found.normal @ matrix[:2, :2].T, found.is_wall)


def _elapsed(last_ns: int | None, capture_ns: int) -> tuple[float, int]:
    """Return seconds since the last sweep, never negative, and the new time."""
    if last_ns is None or last_ns - capture_ns > CLOCK_STEP_NS:
        return 0.0, capture_ns
    return max(0, capture_ns - last_ns) / 1e9, max(last_ns, capture_ns)


def _count(known: tuple[Features, ...]) -> int:
    return sum(len(part) for part in known)


def _fitted(state: MatcherState, found: Features, moved: Vehicle, seconds: float) -> Match | None:
    """Return where the sweep fits the map, or None where one of them shows too little."""
    source = found.thinned(SOURCE_VOXEL, state.sweep)
    if len(source) < FEATURES_MIN or _count(state.map) < FEATURES_MIN:
        return None
    target = Target(joined(state.map))
    pose = moved.mean[[X, Y, YAW]]
    kernel = KERNEL_MIN
    if moved.covariance[SPEED, SPEED] > SPEED_SIGMA_MAX**2 and seconds > 0:
        pose = _started(target, source, moved, seconds)
    else:
        sigma = math.sqrt(max(moved.covariance[X, X], moved.covariance[Y, Y]))
        kernel = min(max(KERNEL_MIN, 3 * sigma), KERNEL_MAX)
    match = target.fitted(source, pose, kernel)
    enough = match.share >= SHARE_MIN and match.weight >= FEATURES_MIN / 2
    return match if enough else None


def _started(
    target: Target, source: Features, moved: Vehicle, seconds: float
) -> NDArray[np.float64]:
    """Return the pose (3,) that the best of SPEEDS leads to; of equals the slowest."""
    x, y, yaw = moved.mean[[X, Y, YAW]].tolist()
    way = (SPEEDS - moved.mean[SPEED]) * seconds
    reach = max(SPEED_REACH, float(SPEEDS[1] - SPEEDS[0]) * seconds)
    poses = [np.array([x + d * math.cos(yaw), y + d * math.sin(yaw), yaw]) for d in way.tolist()]
    shares = np.array([target.share_within(source, pose, reach) for pose in poses])
    best = np.nonzero(shares == shares.max())[0]
    return poses[int(best[np.argmin(np.abs(SPEEDS[best]))])]


def _reading(match: Match) -> Reading:
    noise = SCATTER**2 * match.covariance + np.diag(np.square(SIGMA_MIN))
    x, y, yaw = match.pose.tolist()
    return readings.pose(x, y, yaw, noise)


def _motion(state: MatcherState) -> EgoMotion:
    sensors = ("cloud",) if state.sweep > 1 and state.unmatched == 0 else ()
    x, y, yaw = state.vehicle.mean[[X, Y, YAW]].tolist()
    return motion_of(state.vehicle, (x, y, yaw), sensors)
