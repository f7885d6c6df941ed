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
* Not read: camera frame times (there are no pixels), raw CAN and GNSS, steering, magnetometer.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING, Self

import numpy as np
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.errors import DamagedInputError, InputError
from avrt.logs.raw import Anomalies, Anomaly, Channel, RawMessage, TopicInfo
from avrt.logs.ros_message import cloud_message, fix_message, header, imu_message, twist
from avrt.logs.ros_types import CLOUD, FIX, IMU, TWIST, known_types, schema_text
from avrt.payload import Fix, Imu
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

FOLDER = "processed_log"
CYCLE_PAUSE_S = 0.02
OBJECTS_MAX = 10_000
FLIP = np.array([1.0, -1.0, -1.0])
RADAR_FIELDS = {"x": "<f4", "y": "<f4", "z": "<f4", "vrel": "<f4", "id": "<u4"}


@dataclass(frozen=True, slots=True)
class Series:
    """One topic: when each message was stamped and logged (ns), and how to make it."""

    channel: Channel
    stamp_ns: NDArray[np.int64]
    log_ns: NDArray[np.int64]
    make: Callable[[int, ros.std_msgs__msg__Header], object]
    frame: str


class CommaReader:
    """One open segment folder."""

    def __init__(self, folder: Path) -> None:
        """Read the arrays; one that is missing or damaged leaves its topic out and is told.

        Raises:
            InputError: none of them can be used.
        """
        self._folder = folder / FOLDER
        self._anomalies = Anomalies()
        self._damage: list[InputError] = []
        self._series: list[Series] = []
        self._store = known_types()
        for read in (
            self._read_imu,
            lambda: self._read_fix("/gnss/fix", "live_gnss_ublox"),
            lambda: self._read_fix("/gnss/qcom/fix", "live_gnss_qcom"),
            lambda: self._read_speed("/can/speed", "speed"),
            lambda: self._read_speed("/can/wheel_speed", "wheel_speed"),
            self._read_radar,
        ):
            try:
                read()
            except InputError as error:
                self._damage.append(error)
                self._anomalies.add("damaged", None, None, str(error))
        if not self._series:
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
        for message in merge(*(self._encode(s) for s in wanted), key=lambda m: m.log_ns):
            count += 1
            yield message
        if self._damage:
            first = self._damage[0]
            raise DamagedInputError(first.what, first.place, count)

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
        self,
        topic: str,
        type_name: str,
        frame: str,
        times: tuple[NDArray[np.int64], NDArray[np.int64]],
        make: Callable[[int, ros.std_msgs__msg__Header], object],
    ) -> None:
        schema = schema_text(self._store, type_name)
        channel = Channel(len(self._series) + 1, topic, type_name, "cdr", "ros2msg", schema)
        self._series.append(Series(channel, *times, make, frame))

    def _load(self, name: str, columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the times (N,) seconds, in order, and the values (N, columns) of a log.

        Raises:
            InputError: they are missing, damaged, or do not belong together.
        """
        place = self._folder / name
        try:
            times, values = (np.load(place / part, allow_pickle=False) for part in ("t", "value"))
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"expected the arrays t and value: {error}", str(place)) from None
        if values.ndim == 1:
            values = values[:, None]
        if times.ndim != 1 or values.shape != (len(times), columns):
            expected = f"expected as many times as rows of {columns} values"
            raise InputError(f"{expected}, found {times.shape} and {values.shape}", str(place))
        if times.dtype.kind not in "fiu" or values.dtype.kind not in "fiu":
            found = f"found {times.dtype} and {values.dtype}"
            raise InputError(f"expected arrays of numbers, {found}", str(place))
        if not bool(np.isfinite(times).all()) or bool((np.diff(times) < 0).any()):
            raise InputError("expected times that do not go back", str(place))
        return times.astype(np.float64), values.astype(np.float64)

    def _read_imu(self) -> None:
        times, acceleration = self._load("IMU/accelerometer", 3)
        gyro_times, rate = self._load("IMU/gyro", 3)
        if not np.array_equal(times, gyro_times):
            place = str(self._folder / "IMU")
            raise InputError("expected one time for acceleration and angular rate", place)
        acceleration, rate = acceleration * FLIP, rate * FLIP

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return imu_message(head, Imu(acceleration[index], rate[index]))

        self._add("/imu", IMU, "imu", _same(times), make)

    def _read_fix(self, topic: str, name: str) -> None:
        """Read a receiver's latitude, longitude, speed, UTC, altitude and bearing."""
        times, values = self._load(f"GNSS/{name}", 6)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            latitude, longitude, _, _, altitude, _ = values[index].tolist()
            fix = Fix(latitude, longitude, altitude, np.full(3, np.nan), valid=True)
            return fix_message(head, fix)

        self._add(topic, FIX, "gnss", _same(times), make)

    def _read_speed(self, topic: str, name: str) -> None:
        times, values = self._load(f"CAN/{name}", 4 if name == "wheel_speed" else 1)
        speed = values.mean(axis=1)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return ros.geometry_msgs__msg__TwistStamped(head, twist(float(speed[index]), np.nan))

        self._add(topic, TWIST, "vehicle", _same(times), make)

    def _read_radar(self) -> None:
        times, values = self._load("CAN/radar", 7)
        address, new = values[:, 5].astype(np.int64), values[:, 6] != 0
        starts = _cycle_starts(times, address)
        ends = np.append(starts[1:], len(times))
        rows = np.zeros(len(times), list(RADAR_FIELDS.items()))
        rows["x"], rows["y"], rows["vrel"] = values[:, 0], values[:, 1], values[:, 2]
        rows["id"] = _object_ids(address, new)

        def make(index: int, head: ros.std_msgs__msg__Header) -> object:
            return cloud_message(head, rows[starts[index] : ends[index]])

        first, last = _ns(times[starts]), _ns(times[ends - 1])
        self._add("/radar/tracks", CLOUD, "radar", (first, last), make)


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


def _same(times: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return _ns(times), _ns(times)
