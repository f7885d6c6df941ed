"""Tell how the vehicle moves from whatever measures it: the `EgoEstimator` stage.

An extended Kalman filter (`vehicle`) takes each reading once, at its own capture time, whichever
inputs there are: a gyro tells the yaw rate and an accelerometer the acceleration, both with a bias
that is learnt; wheels or the bus tell the speed, with an error of scale that satellites correct;
satellite fixes tell speed and course by how they move on (`satellite`). `sensors` names the inputs
that the estimate rests on now; without any it is predicted, and its covariance grows.

Time comes from capture stamps only. A reading that is older than the newest one by up to
CLOCK_STEP is used for what it tells about its own time; one with the stamp of the last one is the
same reading again. An input whose clock steps back by more restarts the time there; one that lags
behind the others by more is too late. A stamp later than the message itself is impossible. None of
these wipes what is known. A reading far from what is believed is an outlier, unless that goes on:
then the belief is doubted, and widened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.payload import Fix, Imu, Speed
from avrt.stages.ego import readings, vehicle
from avrt.stages.ego.geodesy import LocalPlane
from avrt.stages.ego.satellite import (
    BASE_SECONDS_MAX,
    Place,
    Satellites,
    anchored,
    anchored_vehicle,
    base_at,
    way_from,
)
from avrt.stages.ego.vehicle import GYRO_BIAS, SPEED, YAW_RATE, Reading, Vehicle
from avrt.stages.parameters import check_positive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from avrt.model.message import Message, Stamp
    from avrt.payload import EgoMotion

CLOCK_STEP_NS = 1_000_000_000
GATE = 15.1  # squared Mahalanobis distance of one number: one good reading in 10,000 is beyond
GATE_POSITION = 18.4  # likewise of two numbers
REJECTED_MAX = 10  # outliers in a row: then it is the belief that is wrong
HOLD_NS = {"imu": 250_000_000, "speed": 500_000_000, "gnss": 2_500_000_000}
"""How long an estimate rests on an input's newest reading."""
DOUBT = {
    "imu": {YAW_RATE: 0.3**2, GYRO_BIAS: 0.01**2},
    "speed": {SPEED: 5.0**2},
    "gnss": {SPEED: 2.0**2},
}
"""Variance added to what an input measures when its outliers go on."""

ACCELEROMETER_SIGMA = 0.7  # m/s^2, road vibration included
STANDING_SPEED = 0.02  # m/s: less, and the wheels do not turn
STANDING_SIGMA = 0.003  # rad/s: the yaw rate then
WHEEL_YAW_RATE_SIGMA = 0.02  # rad/s
FIX_SIGMA_MAX = 2.0  # metres: a fix is less wrong against the one before than it is on the earth


@dataclass(frozen=True, slots=True)
class Input:
    """What came of one input so far.

    Attributes:
        sequence, capture_ns: of its newest message.
        used_ns: capture time of the newest one that was believed, or None.
        rejected: outliers in a row.
    """

    sequence: int
    capture_ns: int
    used_ns: int | None = None
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class EgoState:
    """What is known between two calls; nothing in it is changed in place.

    Attributes:
        pose: x, y, yaw of the way driven so far. The filter's own pose jumps when satellites
            correct it; this one goes on as the vehicle does (REP 105 calls it "odom").
    """

    capture_ns: int | None = None
    pose: tuple[float, float, float] = (0.0, 0.0, 0.0)
    vehicle: Vehicle = field(default_factory=vehicle.at_start)
    satellites: Satellites = field(default_factory=Satellites)
    inputs: Mapping[str, Input] = field(default_factory=dict)

    def age(self, stamp: Stamp) -> float:
        """Return how many seconds a reading is older than the state, at least 0."""
        assert self.capture_ns is not None
        return (self.capture_ns - stamp.capture_ns) / 1e9


class EgoEstimator(Stage):
    """Turn inertial, satellite and wheel readings into the vehicle's own motion.

    Args:
        frame: the vehicle's frame, whose x points forward and z up. Inertial readings are turned
            into it from the frame of their stamp; "" means that the unit is aligned with it.
        gyro_sigma: standard deviation of the yaw rate of one reading, rad/s.
        speed_sigma: of one reading of the wheels or the bus, apart from its scale, m/s.
        fix_sigma: of one fix against the next ones, where the fix does not tell, metres.
    """

    def __init__(
        self,
        *,
        frame: str = "",
        gyro_sigma: float = 0.01,
        speed_sigma: float = 0.1,
        fix_sigma: float = 0.5,
    ) -> None:
        check_positive(gyro_sigma=gyro_sigma, speed_sigma=speed_sigma, fix_sigma=fix_sigma)
        self.frame = frame
        self.output_frame = frame
        self.gyro_sigma = gyro_sigma
        self.speed_sigma = speed_sigma
        self.fix_sigma = fix_sigma
        self.frames = Frames()
        self.state = EgoState()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def process(
        self,
        imu: Message[Imu] | None = None,
        gnss: Message[Fix] | None = None,
        speed: Message[Speed] | None = None,
    ) -> EgoMotion:
        """Return the motion at the newest capture time, in the vehicle's frame.

        Raises:
            DataFault: a message is impossible; it is not used, nor looked at again.
        """
        given = {"gnss": gnss, "imu": imu, "speed": speed}
        new = [(name, m) for name, m in given.items() if m is not None and self._is_new(name, m)]
        for name, message in new:
            fault = _fault(message)
            if fault is not None:
                self.state = _noted(self.state, name, message.stamp)
                raise DataFault("impossible_reading", f"{name} {message.stamp.sequence}: {fault}")
        for name, message in sorted(new, key=lambda one: (one[1].stamp.capture_ns, one[0])):
            self.state = self._taken(self.state, name, message)
        sensors = tuple(name for name in HOLD_NS if _rests_on(self.state, name))
        return vehicle.motion_of(self.state.vehicle, self.state.pose, sensors)

    def freeze(self) -> object:
        return self.state

    def thaw(self, state: object) -> None:
        if not isinstance(state, EgoState):
            raise SpecError(f"expected the state of an EgoEstimator, found {type(state).__name__}")
        self.state = state

    def _is_new(self, name: str, message: Message[object]) -> bool:
        known, stamp = self.state.inputs.get(name), message.stamp
        return known is None or (
            stamp.sequence != known.sequence and stamp.capture_ns != known.capture_ns
        )

    def _taken(
        self, state: EgoState, name: str, message: Message[Imu] | Message[Fix] | Message[Speed]
    ) -> EgoState:
        """Return the state after one message."""
        moved = _moved(state, name, message.stamp.capture_ns)
        state = _noted(moved or state, name, message.stamp)
        if moved is None:
            return state
        match message.payload:
            case Imu() as imu:
                return self._turned(state, imu, message.stamp)
            case Speed() as speed:
                return self._driven(state, speed, message.stamp)
            case Fix() as fix:
                return self._fixed(state, fix, message.stamp) if fix.valid else state

    def _turned(self, state: EgoState, imu: Imu, stamp: Stamp) -> EgoState:
        turn = self._turn(stamp.frame)
        along, rate = float(turn[0] @ imu.acceleration), float(turn[2] @ imu.angular_rate)
        state = _helped(state, stamp, readings.accelerometer(along, ACCELEROMETER_SIGMA))
        return _weighed(state, "imu", stamp, readings.gyro(rate, self.gyro_sigma))

    def _turn(self, frame: str) -> NDArray[np.float64]:
        """Return the rotation (3, 3) from a sensor's frame to the vehicle's."""
        if not self.frame:
            return np.eye(3)
        return np.array(self.frames.between(frame, self.frame)).reshape(3, 4)[:, :3]

    def _driven(self, state: EgoState, speed: Speed, stamp: Stamp) -> EgoState:
        state = _weighed(state, "speed", stamp, readings.wheels(speed.speed, self.speed_sigma))
        if not math.isnan(speed.yaw_rate):
            told = readings.yaw_rate(speed.yaw_rate, WHEEL_YAW_RATE_SIGMA)
            return _helped(state, stamp, told)
        if abs(speed.speed) < STANDING_SPEED:
            return _helped(state, stamp, readings.yaw_rate(0.0, STANDING_SIGMA))
        return state

    def _fixed(self, state: EgoState, fix: Fix, stamp: Stamp) -> EgoState:
        altitude = fix.altitude if math.isfinite(fix.altitude) else 0.0
        plane = state.satellites.plane or LocalPlane(fix.latitude, fix.longitude, altitude)
        told = float(np.max(fix.sigma[:2]))
        sigma = min(told, FIX_SIGMA_MAX) if told > 0 else self.fix_sigma
        east, north = plane.east_north(fix.latitude, fix.longitude, altitude)
        place = Place(stamp.capture_ns, east, north, sigma)
        state = replace(state, satellites=replace(state.satellites, plane=plane))
        anchor = state.satellites.anchor
        if anchor is None:
            return _approached(state, place, stamp)
        return _weighed(state, "gnss", stamp, anchor.position(place), GATE_POSITION)


def _fault(message: Message[Imu] | Message[Fix] | Message[Speed]) -> str | None:
    """Return what is impossible about a message, or None."""
    stamp = message.stamp
    if stamp.capture_ns - stamp.publish_ns > CLOCK_STEP_NS:
        ahead = (stamp.capture_ns - stamp.publish_ns) / 1e9
        return f"captured {ahead:.3f} s after it came"
    match message.payload:
        case Imu(acceleration=acceleration, angular_rate=angular_rate):
            numbers = [*acceleration.tolist(), *angular_rate.tolist()]
            expected = "finite acceleration and angular rate"
        case Speed(speed=speed, yaw_rate=yaw_rate):
            numbers = [speed, 0.0 if math.isnan(yaw_rate) else yaw_rate]
            expected = "a finite speed"
        case Fix(latitude=latitude, longitude=longitude, valid=valid):
            possible = abs(latitude) <= 90 and abs(longitude) <= 360
            numbers = [0.0 if possible or not valid else math.nan]
            expected = "latitude and longitude in degrees"
    good = all(math.isfinite(number) for number in numbers)
    return None if good else f"expected {expected}, found {message.payload}"


def _noted(state: EgoState, name: str, stamp: Stamp) -> EgoState:
    """Return the state that has seen this message."""
    known = state.inputs.get(name) or Input(stamp.sequence, stamp.capture_ns)
    seen = replace(known, sequence=stamp.sequence, capture_ns=stamp.capture_ns)
    return replace(state, inputs={**state.inputs, name: seen})


def _moved(state: EgoState, name: str, capture_ns: int) -> EgoState | None:
    """Return the state at the time of a message, or now if that is older; None if it is too old."""
    if state.capture_ns is None:
        return replace(state, capture_ns=capture_ns)
    ahead_ns = capture_ns - state.capture_ns
    if ahead_ns >= -CLOCK_STEP_NS:
        after = vehicle.predicted(state.vehicle, max(0, ahead_ns) / 1e9)
        pose = vehicle.carried(state.pose, state.vehicle, after)
        now_ns = max(capture_ns, state.capture_ns)
        return replace(state, capture_ns=now_ns, pose=pose, vehicle=after)
    known = state.inputs.get(name)
    if known is None or known.capture_ns - capture_ns <= CLOCK_STEP_NS:
        return None
    return _restarted(state, capture_ns)


def _restarted(state: EgoState, capture_ns: int) -> EgoState:
    """Return the state at the time where a clock that stepped back begins anew."""
    grown = vehicle.predicted(state.vehicle, CLOCK_STEP_NS / 1e9).covariance
    inputs = {name: replace(one, used_ns=None) for name, one in state.inputs.items()}
    satellites = replace(state.satellites, base=None)
    there = Vehicle(state.vehicle.mean, grown)
    return EgoState(capture_ns, state.pose, there, satellites, inputs)


def _weighed(
    state: EgoState, name: str, stamp: Stamp, reading: Reading, gate: float = GATE
) -> EgoState:
    """Return the state after an input's reading, if that is no outlier."""
    after = vehicle.corrected(state.vehicle, reading, state.age(stamp))
    known = state.inputs[name]
    if after.squared <= gate:
        used_ns = max(known.used_ns or stamp.capture_ns, stamp.capture_ns)
        known = replace(known, used_ns=used_ns, rejected=0)
        return replace(state, vehicle=after.vehicle, inputs={**state.inputs, name: known})
    if known.rejected + 1 < REJECTED_MAX:
        known = replace(known, rejected=known.rejected + 1)
        return replace(state, inputs={**state.inputs, name: known})
    return _doubted(state, name)


def _doubted(state: EgoState, name: str) -> EgoState:
    """Return the state that believes this input's next reading more than what it knew.

    Satellites that jumped and stay there move the anchor, not the vehicle.
    """
    known = replace(state.inputs[name], rejected=0)
    wide = vehicle.widened(state.vehicle, DOUBT[name])
    kept = state.satellites
    satellites = replace(kept, anchor=None, base=None) if name == "gnss" else kept
    inputs = {**state.inputs, name: known}
    return replace(state, vehicle=wide, satellites=satellites, inputs=inputs)


def _helped(state: EgoState, stamp: Stamp, reading: Reading) -> EgoState:
    """Return the state after a reading that only helps: its outliers do not count."""
    after = vehicle.corrected(state.vehicle, reading, state.age(stamp))
    return replace(state, vehicle=after.vehicle) if after.squared <= GATE else state


def _approached(state: EgoState, place: Place, stamp: Stamp) -> EgoState:
    """Return the state after a fix that comes before the vehicle's frame is anchored."""
    known, age = state.satellites, state.age(stamp)
    way = None if known.base is None else way_from(known.base, place, state.vehicle)
    if known.base is None or way is None:
        return replace(state, satellites=replace(known, base=base_at(place, state.vehicle, age)))
    if math.isinf(way.sigma) and way.seconds < BASE_SECONDS_MAX:
        return state
    state = _weighed(state, "gnss", stamp, way.speed)
    if math.isinf(way.sigma):
        return replace(state, satellites=replace(known, base=base_at(place, state.vehicle, age)))
    anchor = anchored(known.base, way, place, state.vehicle, age)
    satellites = replace(known, base=None, anchor=anchor)
    return replace(state, vehicle=anchored_vehicle(state.vehicle, way), satellites=satellites)


def _rests_on(state: EgoState, name: str) -> bool:
    known = state.inputs.get(name)
    if known is None or known.used_ns is None or state.capture_ns is None:
        return False
    return state.capture_ns - known.used_ns <= HOLD_NS[name]
