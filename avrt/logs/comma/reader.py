"""A segment of comma2k19: a folder of numpy arrays, read as ROS 2 messages in the segment's time.

| topic | type | from `processed_log/` |
|---|---|---|
| `/imu` | sensor_msgs/Imu | IMU/accelerometer and IMU/gyro, which share their times |
| `/gnss/fix`, `/gnss/qcom/fix` | sensor_msgs/NavSatFix | GNSS/live_gnss_ublox, live_gnss_qcom |
| `/can/speed` | geometry_msgs/TwistStamped | CAN/speed |
| `/can/wheel_speed` | geometry_msgs/TwistStamped | CAN/wheel_speed, the mean of four wheels |
| `/radar/tracks` | sensor_msgs/PointCloud2 | CAN/radar, x y z vrel id, one cloud a cycle |
| `/can/frames` | can_msgs/Frame | CAN/raw_can, if it is there; no source of avrt reads it |
| `/camera/frames` | std_msgs/Header | `global_pose/frame_times`, if there: when images were taken |

* Times are seconds since the phone booted; log time and stamp are a row's time. A radar cycle is a
  burst of rows, one for each track: its stamp is the first row's time, its log time the last one's.
  A new cycle begins after a pause of `CYCLE_PAUSE_S`, or when an address comes again.
* The data set's axes are forward, right, down (https://github.com/commaai/comma2k19, README); here
  they become forward, left, up (y and z change sign), so the accelerometer reads +9.8 m/s^2 up at
  rest. Radar rows are forward and left already; a positive speed goes away.
* The radar's addresses are slots that other objects take over, which `new_track` tells. An id is
  the address and how many objects it has had, so that equal ids mean one object.
* An array that is missing or damaged leaves its topic without messages, and is told.
* A frame of the bus was cut at its last byte that is not zero: how long it was is lost, and its
  `dlc` is 8. A bus above 127 is a copy of what was sent there; can_msgs tells no bus.
* Not read: images (a video that avrt does not decode), raw GNSS, steering, magnetometer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import InputError
from avrt.logs.comma.arrays import read_frames, read_log, read_times, whole_numbers
from avrt.logs.ros.message import cloud_message, header
from avrt.logs.ros.types import CAN_FRAME, CLOUD, FIX, HEADER, IMU, TWIST, known_types
from avrt.logs.series import Series, SeriesReader
from avrt.payload import Fix, Imu, Speed
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

FOLDER = "processed_log"
CAN_FRAMES, FRAME_TIMES = f"{FOLDER}/CAN/raw_can", "global_pose/frame_times"
CYCLE_PAUSE_S = 0.02
OBJECTS_MAX = 10_000
ADDRESS_MAX = ((1 << 32) - OBJECTS_MAX) // OBJECTS_MAX  # ids have 32 bits
FLIP = np.array([1.0, -1.0, -1.0])
RADAR_FIELDS = {"x": "<f4", "y": "<f4", "z": "<f4", "vrel": "<f4", "id": "<u4"}


class Rows(NamedTuple):
    """What is read of a topic: stamps (ns), how to make a message, log times where they differ."""

    stamp_ns: NDArray[np.int64]
    make: Callable[[int], object]
    log_ns: NDArray[np.int64] | None = None


def recognises(path: Path) -> bool:
    return (path / FOLDER).is_dir()


def open_segment(path: Path, strict: bool) -> SeriesReader:  # noqa: FBT001 - see LogFormat
    """Open a segment folder; its arrays are read now.

    Raises:
        InputError: none of them can be used.
    """
    return SeriesReader("comma2k19 segment", _series(path), strict=strict)


def _series(folder: Path) -> Iterator[Series]:
    """Yield every topic, those that cannot be read included."""
    place = folder / FOLDER
    can = place / "CAN"
    topics: list[tuple[str, str, str, Callable[[], Rows]]] = [
        ("/imu", IMU, "imu", partial(_read_imu, place / "IMU")),
        ("/gnss/fix", FIX, "gnss", partial(_read_fix, place / "GNSS/live_gnss_ublox")),
        ("/gnss/qcom/fix", FIX, "gnss", partial(_read_fix, place / "GNSS/live_gnss_qcom")),
        ("/can/speed", TWIST, "vehicle", partial(_read_speed, can / "speed", 1)),
        ("/can/wheel_speed", TWIST, "vehicle", partial(_read_speed, can / "wheel_speed", 4)),
        ("/radar/tracks", CLOUD, "radar", partial(_read_radar, can / "radar")),
    ]
    if (folder / CAN_FRAMES).is_dir():
        topics.append(("/can/frames", CAN_FRAME, "can", partial(_read_frames, folder / CAN_FRAMES)))
    if (folder / FRAME_TIMES).is_file():
        times = partial(_read_frame_times, folder / FRAME_TIMES)
        topics.append(("/camera/frames", HEADER, "camera", times))
    for topic, type_name, frame, read in topics:
        try:
            stamp_ns, make, log_ns = read()
        except InputError as error:
            yield Series.damaged(topic, type_name, error)
        else:
            yield Series(topic, type_name, frame, stamp_ns, make, log_ns)


def _read_imu(folder: Path) -> Rows:
    times, acceleration = read_log(folder / "accelerometer", 3)
    gyro_times, rate = read_log(folder / "gyro", 3)
    if not np.array_equal(times, gyro_times):
        raise InputError("expected one time for acceleration and angular rate", str(folder))
    acceleration, rate = acceleration * FLIP, rate * FLIP
    return Rows(_ns(times), lambda index: Imu(acceleration[index], rate[index]))


def _read_fix(place: Path) -> Rows:
    """Read a receiver's latitude, longitude, speed, UTC, altitude and bearing."""
    times, values = read_log(place, 6)

    def make(index: int) -> Fix:
        latitude, longitude, _, _, altitude, _ = values[index].tolist()
        return Fix(latitude, longitude, altitude, np.full(3, np.nan), valid=True)

    return Rows(_ns(times), make)


def _read_speed(place: Path, columns: int) -> Rows:
    times, values = read_log(place, columns)
    speed = values.mean(axis=1)
    return Rows(_ns(times), lambda index: Speed(float(speed[index])))


def _read_radar(place: Path) -> Rows:
    times, values = read_log(place, 7)
    address, new = whole_numbers(values[:, 5], ADDRESS_MAX, place), values[:, 6] != 0
    starts = _cycle_starts(times, address)
    ends = np.append(starts[1:], len(times))[: len(starts)]
    rows = np.zeros(len(times), list(RADAR_FIELDS.items()))
    with np.errstate(over="ignore"):  # what no float32 holds becomes infinite: no target
        rows["x"], rows["y"], rows["vrel"] = values[:, 0], values[:, 1], values[:, 2]
    rows["id"] = _object_ids(address, new)
    stamp_ns = _ns(times[starts])

    def make(index: int) -> object:
        head = header(int(stamp_ns[index]), "radar")
        return cloud_message(head, rows[starts[index] : ends[index]])

    return Rows(stamp_ns, make, _ns(times[ends - 1]))


def _read_frames(place: Path) -> Rows:
    frames = read_frames(place)
    frame = known_types().types[CAN_FRAME]
    stamp_ns = _ns(frames.times)

    def make(index: int) -> object:
        address = int(frames.address[index])
        return frame(
            header=header(int(stamp_ns[index]), "can"),
            id=address,
            is_rtr=False,
            is_extended=address >= 1 << 11,
            is_error=False,
            dlc=len(frames.data[index]),
            data=frames.data[index],
        )

    return Rows(stamp_ns, make)


def _read_frame_times(path: Path) -> Rows:
    stamp_ns = _ns(read_times(path))
    return Rows(stamp_ns, lambda index: header(int(stamp_ns[index]), "camera"))


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
