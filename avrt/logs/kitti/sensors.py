"""The topics of KITTI's sensors, for whatever layout their files have.

| topic | type | from |
|---|---|---|
| `/tf_static` | TFMessage | the calibration: `base_link`, `imu`, `velodyne`, the cameras |
| `/camera/image_0N/camera_info` | CameraInfo | the calibration, at the time of each image |
| `/camera/image_0N/compressed` | CompressedImage | the PNG as it is |
| `/lidar/velodyne/points` | PointCloud2 | x y z intensity |
| `/lidar/velodyne/points_in_image` | PointCloud2 | those that camera 2 sees: labels are there |
| `/oxts/imu` | Imu | accelerations and rates x y z, orientation in east, north, up |
| `/oxts/fix` | NavSatFix | its one accuracy is taken for all three axes |
| `/oxts/speed` | TwistStamped | velocity forward, rate about up |

A line of the inertial unit has 30 numbers, as the raw development kit's dataformat.txt names them;
its rotation is R_z(yaw) R_y(pitch) R_x(roll) (convertOxtsToPose.m).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import picture_size, read_picture, read_rows
from avrt.logs.kitti.calibration import IMU as IMU_FRAME
from avrt.logs.kitti.calibration import LIDAR, camera_frame
from avrt.logs.messages import transforms_message
from avrt.logs.ros.types import CAMERA_INFO, CLOUD, COMPRESSED_IMAGE, FIX, IMU, TRANSFORMS, TWIST
from avrt.logs.series import Series
from avrt.payload import CameraInfo, Fix, Imu, PointCloud, Speed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from avrt.logs.kitti.calibration import Calibration

    Times = NDArray[np.int64]
    CalibrationOf = Callable[[int], Calibration]

POINTS = "/lidar/velodyne/points"
LABELLED_CAMERA = 2
OXTS_NUMBERS = 30
ANGLES, ACCELERATION, RATES = slice(3, 6), slice(11, 14), slice(17, 20)
FORWARD, RATE_UP, ACCURACY = 8, 22, 23


def files_in(folder: Path) -> dict[str, Path]:
    """Return the numbered files of a folder, in order; none where it is missing.

    Of "000134.bin" and "000134.reduced.bin" the shorter name counts.
    """
    if not folder.is_dir():
        return {}
    longest_first = sorted(folder.iterdir(), key=lambda path: (-len(path.name), path.name))
    found = {path.name.partition(".")[0]: path for path in longest_first}
    return {name: found[name] for name in sorted(found) if name.isdigit()}


def mounting_series(
    stamp_ns: Times, calibration_of: CalibrationOf, cameras: Sequence[int]
) -> Series:
    """Return where the sensors are; a message at each stamp."""

    def make(index: int) -> object:
        return transforms_message(int(stamp_ns[index]), calibration_of(index).transforms(cameras))

    return Series("/tf_static", TRANSFORMS, "", stamp_ns, make)


def camera_series(
    number: int, stamp_ns: Times, paths: Sequence[Path], calibration_of: CalibrationOf | None
) -> Iterator[Series]:
    """Yield the images of a camera, and before each one how it sees, where that is known."""
    topic, frame = f"/camera/image_{number:02d}", camera_frame(number)

    def make_info(index: int) -> CameraInfo:
        assert calibration_of is not None
        calibration = calibration_of(index)
        size = calibration.sizes.get(number) or picture_size(paths[index])
        return calibration.info(number, size)

    if calibration_of is not None:
        yield Series(f"{topic}/camera_info", CAMERA_INFO, frame, stamp_ns, make_info)
    yield Series(
        f"{topic}/compressed",
        COMPRESSED_IMAGE,
        frame,
        stamp_ns,
        lambda index: read_picture(paths[index]),
    )


def points_series(stamp_ns: Times, paths: Sequence[Path], log_ns: Times | None = None) -> Series:
    """Return the sweeps of the LiDAR."""
    return Series(POINTS, CLOUD, LIDAR, stamp_ns, lambda index: read_sweep(paths[index]), log_ns)


def labelled_points_series(
    stamp_ns: Times,
    paths: Sequence[Path],
    images: Sequence[Path],
    calibration_of: CalibrationOf,
) -> Series:
    """Return the part of each sweep in which objects are labelled."""

    def make(index: int) -> PointCloud:
        cloud = read_sweep(paths[index])
        size = picture_size(images[index])
        seen = calibration_of(index).in_image(cloud.xyz, LABELLED_CAMERA, size)
        assert cloud.intensity is not None
        return PointCloud(cloud.xyz[seen], cloud.intensity[seen])

    return Series(f"{POINTS}_in_image", CLOUD, LIDAR, stamp_ns, make)


def motion_series(stamp_ns: Times, line_of: Callable[[int], tuple[str, str]]) -> Iterator[Series]:
    """Yield what the inertial and satellite unit tells; `line_of` gives a line and its place."""

    def values(index: int) -> NDArray[np.float64]:
        return oxts_values(*line_of(index))

    def make_imu(index: int) -> Imu:
        row = values(index)
        return Imu(row[ACCELERATION], row[RATES], _quaternion(*row[ANGLES].tolist()))

    def make_fix(index: int) -> Fix:
        row = values(index)
        latitude, longitude, altitude = row[:3].tolist()
        return Fix(latitude, longitude, altitude, np.full(3, row[ACCURACY]), valid=True)

    def make_speed(index: int) -> Speed:
        row = values(index)
        return Speed(float(row[FORWARD]), float(row[RATE_UP]))

    yield Series("/oxts/imu", IMU, IMU_FRAME, stamp_ns, make_imu)
    yield Series("/oxts/fix", FIX, IMU_FRAME, stamp_ns, make_fix)
    yield Series("/oxts/speed", TWIST, IMU_FRAME, stamp_ns, make_speed)


def read_sweep(path: Path) -> PointCloud:
    """Return the points of a file.

    Raises:
        InputError: it is missing or cut.
    """
    rows = read_rows(path, 4)
    return PointCloud(rows[:, :3], rows[:, 3])


def oxts_values(line: str, place: str) -> NDArray[np.float64]:
    """Return the (30,) numbers of a line of the inertial and satellite unit.

    Raises:
        InputError: it has others.
    """
    try:
        numbers = np.array(line.split(), float)
    except ValueError as error:
        raise InputError(f"expected numbers: {error}", place) from None
    if len(numbers) != OXTS_NUMBERS:
        raise InputError(f"expected {OXTS_NUMBERS} numbers, found {len(numbers)}", place)
    return numbers


def present(names: Sequence[str], *files: Mapping[str, Path]) -> NDArray[np.int64]:
    """Return the indices of the names that have a file in each of these."""
    there = [all(name in some for some in files) for name in names]
    return np.flatnonzero(there).astype(np.int64)


def _quaternion(roll: float, pitch: float, yaw: float) -> NDArray[np.float64]:
    """Return x, y, z, w of R_z(yaw) R_y(pitch) R_x(roll)."""
    (cr, cp, cy), (sr, sp, sy) = (
        [function(angle / 2) for angle in (roll, pitch, yaw)] for function in (math.cos, math.sin)
    )
    return np.array(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ]
    )
