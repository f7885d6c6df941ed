"""A segment of comma2k19: a folder of numpy arrays, read as ROS 2 messages in the segment's time.

| topic | type | from `processed_log/` |
|---|---|---|
| `/imu` | sensor_msgs/Imu | IMU/accelerometer and IMU/gyro, which share their times |
| `/gnss/fix`, `/gnss/qcom/fix` | sensor_msgs/NavSatFix | GNSS/live_gnss_ublox, live_gnss_qcom |
| `/can/speed` | geometry_msgs/TwistStamped | CAN/speed |
| `/can/wheel_speed` | geometry_msgs/TwistStamped | CAN/wheel_speed, the mean of four wheels |
| `/radar/tracks` | sensor_msgs/PointCloud2 | CAN/radar, x y z vrel id, one cloud a cycle |

* Times are seconds since the phone booted; log time and stamp are a row's time. A radar cycle is a
  burst of rows, one for each track: its stamp is the first row's time, its log time the last one's.
  A new cycle begins after a pause of `CYCLE_PAUSE_S`, or when an address comes again.
* The data set's axes are forward, right, down (https://github.com/commaai/comma2k19, README); here
  they become forward, left, up (y and z change sign), so the accelerometer reads +9.8 m/s^2 up at
  rest. Radar rows are forward and left already; a positive speed goes away.
* The radar's addresses are slots that other objects take over, which `new_track` tells. An id is
  the address and how many objects it has had, so that equal ids mean one object.
* An array that is missing or damaged leaves its topic without messages, and is told.
* Not read: camera frame times (there are no pixels), raw CAN and GNSS, steering, magnetometer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING, Self

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import InputError
from avrt.logs.comma.arrays import read_log, whole_numbers
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo, tell_damage
from avrt.logs.ros.message import cloud_message, fix_message, header, imu_message, twist
from avrt.logs.ros.types import CLOUD, FIX, IMU, TWIST, known_types, schema_text
from avrt.payload import Fix, Imu
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

Make = Callable[[int, ros.std_msgs__msg__Header], object]
Rows = tuple["NDArray[np.int64]", "NDArray[np.int64]", Make]

FOLDER = "processed_log"
TOPICS: Mapping[str, tuple[str, str]] = {
    "/imu": (IMU, "imu"),
    "/gnss/fix": (FIX, "gnss"),
    "/gnss/qcom/fix": (FIX, "gnss"),
    "/can/speed": (TWIST, "vehicle"),
    "/can/wheel_speed": (TWIST, "vehicle"),
    "/radar/tracks": (CLOUD, "radar"),
}
CYCLE_PAUSE_S = 0.02
OBJECTS_MAX = 10_000
ADDRESS_MAX = ((1 << 32) - OBJECTS_MAX) // OBJECTS_MAX  # ids have 32 bits
NO_NS = np.empty(0, np.int64)
FLIP = np.array([1.0, -1.0, -1.0])
RADAR_FIELDS = {"x": "<f4", "y": "<f4", "z": "<f4", "vrel": "<f4", "id": "<u4"}


@dataclass(frozen=True, slots=True)
class Series:
    """One topic: when each message was stamped and logged (ns), and how to make it."""

    channel: Channel
    stamp_ns: NDArray[np.int64]
    log_ns: NDArray[np.int64]
    make: Make
    frame: str


class CommaReader:
    """One open segment folder."""

    def __init__(self, folder: Path, *, strict: bool = False) -> None:
        """Read the arrays.

        Raises:
            InputError: none of them can be used.
        """
        self._folder = folder / FOLDER
        self._anomalies = Anomalies()
        self._damage: list[InputError] = []
        self._strict = strict
        self._series: list[Series] = []
        self._store = known_types()
        for topic, read in (
            ("/imu", self._read_imu),
            ("/gnss/fix", partial(self._read_fix, "live_gnss_ublox")),
            ("/gnss/qcom/fix", partial(self._read_fix, "live_gnss_qcom")),
            ("/can/speed", partial(self._read_speed, "speed", 1)),
            ("/can/wheel_speed", partial(self._read_speed, "wheel_speed", 4)),
            ("/radar/tracks", self._read_radar),
        ):
            try:
                stamp_ns, log_ns, make = read()
            except InputError as error:
                self._damage.append(error)
                self._anomalies.add("damaged", None, None, str(error))
                stamp_ns, log_ns, make = NO_NS, NO_NS, _make_none
            self._add(topic, stamp_ns, log_ns, make)
        if len(self._damage) == len(self._series):
            raise self._damage[0]

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._anomalies)

    def topics(self) -> dict[str, TopicInfo]:
        return {
            s.channel.topic: TopicInfo(
                s.channel.type, len(s.log_ns), "cdr", "ros2msg", s.channel.schema.decode()
            )
            for s in self._series
        }

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        names = None if topics is None else set(topics)
        wanted = [s for s in self._series if names is None or s.channel.topic in names]
        count = 0
        if self._strict:
            tell_damage(self._damage, 0, strict=True)
        for message in merge(*(self._encode(s) for s in wanted), key=lambda m: m.log_ns):
            count += 1
            yield message
        tell_damage(self._damage, count)

    def close(self) -> None:
        """Do nothing: the arrays were read when the folder was opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _encode(self, series: Series) -> Iterator[RawMessage]:
        channel = series.channel
        times = zip(series.stamp_ns.tolist(), series.log_ns.tolist(), strict=True)
        for index, (stamp_ns, log_ns) in enumerate(times):
            message = series.make(index, header(stamp_ns, series.frame))
            data = self._store.serialize_cdr(message, channel.type)
            yield RawMessage(channel, log_ns, log_ns, index, data)

    def _add(
        self, topic: str, stamp_ns: NDArray[np.int64], log_ns: NDArray[np.int64], make: Make
    ) -> None:
        type_name, frame = TOPICS[topic]
        schema = schema_text(self._store, type_name)
        channel = Channel(len(self._series) + 1, topic, type_name, "cdr", "ros2msg", schema)
        self._series.append(Series(channel, stamp_ns, log_ns, make, frame))

    def _read_imu(self) -> Rows:
        times, acceleration = read_log(self._folder / "IMU/accelerometer", 3)
        gyro_times, rate = read_log(self._folder / "IMU/gyro", 3)
        if not np.array_equal(times, gyro_times):
            place = str(self._folder / "IMU")
            raise InputError("expected one time for acceleration and angular rate", place)
        acceleration, rate = acceleration * FLIP, rate * FLIP

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return imu_message(head, Imu(acceleration[index], rate[index]))

        return _ns(times), _ns(times), make

    def _read_fix(self, name: str) -> Rows:
        """Read a receiver's latitude, longitude, speed, UTC, altitude and bearing."""
        times, values = read_log(self._folder / "GNSS" / name, 6)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            latitude, longitude, _, _, altitude, _ = values[index].tolist()
            fix = Fix(latitude, longitude, altitude, np.full(3, np.nan), valid=True)
            return fix_message(head, fix)

        return _ns(times), _ns(times), make

    def _read_speed(self, name: str, columns: int) -> Rows:
        times, values = read_log(self._folder / "CAN" / name, columns)
        speed = values.mean(axis=1)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return ros.geometry_msgs__msg__TwistStamped(head, twist(float(speed[index]), np.nan))

        return _ns(times), _ns(times), make

    def _read_radar(self) -> Rows:
        place = self._folder / "CAN/radar"
        times, values = read_log(place, 7)
        address, new = whole_numbers(values[:, 5], ADDRESS_MAX, place), values[:, 6] != 0
        starts = _cycle_starts(times, address)
        ends = np.append(starts[1:], len(times))[: len(starts)]
        rows = np.zeros(len(times), list(RADAR_FIELDS.items()))
        with np.errstate(over="ignore"):  # what no float32 holds becomes infinite: no target
            rows["x"], rows["y"], rows["vrel"] = values[:, 0], values[:, 1], values[:, 2]
        rows["id"] = _object_ids(address, new)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return cloud_message(head, rows[starts[index] : ends[index]])

        return _ns(times[starts]), _ns(times[ends - 1]), make


def _cycle_starts(times: NDArray[np.float64], address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row of each cycle."""
    starts: list[int] = []
    seen: set[int] = set()
    before = -np.inf
    for index, (at, slot) in enumerate(zip(times.tolist(), address.tolist(), strict=True)):
        if at - before > CYCLE_PAUSE_S or slot in seen:
            starts.append(index)
            seen.clear()
        seen.add(slot)
        before = at
    return np.array(starts, np.int64)


def _object_ids(address: NDArray[np.int64], new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return address times `OBJECTS_MAX` plus how many objects the address had before."""
    ids = np.zeros(len(address), np.int64)
    for slot in np.unique(address):
        rows = address == slot
        ids[rows] = slot * OBJECTS_MAX + np.cumsum(new[rows]) % OBJECTS_MAX
    return ids


def _ns(times: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(times * NS_PER_S).astype(np.int64)


def _make_none(index: int, _head: ros.std_msgs__msg__Header) -> object:
    raise IndexError(f"message {index} of a log without any")
