"""A raw drive of KITTI: a folder such as `2011_09_26/2011_09_26_drive_0005_sync`.

* Of the day's folder the only drive is meant; of several one is to be named.
* `image_00` to `image_03`, `velodyne_points` and `oxts`, those that are there, each with
  `timestamps.txt` and `data/`. The calibration files lie in the folder above, or in this one;
  without them there is no `/tf_static` and no CameraInfo.
* A line of `timestamps.txt` promises a message. Its file is missing in some drives as they were
  published (four sweeps of 2011_09_26_drive_0009): that message is lost, and told.
* Times have no time zone; they are taken as UTC. A sweep's stamp is when the LiDAR looked ahead and
  set the cameras off, its log time when it had turned round (`timestamps_end.txt`). All other log
  times are stamps.
* Images of a `_sync` drive are rectified. Those of an `_extract` drive are not, though the
  calibration that goes with them here is that of rectified ones.
* Points are not taken to one instant: a sweep lasts 0.1 s, and no point has a time of its own.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_lines
from avrt.logs.kitti.calibration import CAMERAS, Calibration, read_drive_calibration
from avrt.logs.kitti.sensors import (
    POINTS,
    camera_series,
    files_in,
    motion_series,
    mounting_series,
    points_series,
)
from avrt.logs.ros.types import CLOUD, COMPRESSED_IMAGE, IMU, TRANSFORMS
from avrt.logs.series import Series, SeriesReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

TIMES = "timestamps.txt"
TIME = re.compile(r"(19[789]|20[012])\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})?", re.ASCII)
LIDAR, OXTS, CALIBRATION = "velodyne_points", "oxts", "calib_cam_to_cam.txt"
FOLDERS = (*(f"image_{number:02d}" for number in CAMERAS), LIDAR, OXTS)


def recognises(path: Path) -> bool:
    return bool(_drives(path))


def open_drive(path: Path, strict: bool) -> SeriesReader:  # noqa: FBT001 - see LogFormat
    """Open the folder of a drive, or of a day with one drive.

    Raises:
        InputError: there are several, or no sensor of it can be used.
    """
    drive, *others = _drives(path)
    if others:
        names = ", ".join(one.name for one in (drive, *others))
        what = f"expected one drive, found {names}; name one as {drive}"
        raise InputError(what, str(path))
    return SeriesReader("KITTI raw drive", _series(drive), strict=strict)


def _drives(path: Path) -> list[Path]:
    """Return the drives that a path may mean."""
    folders = [path, *sorted(path.glob("*_drive_*"))] if path.is_dir() else []
    found = [one for one in folders if any((one / name / TIMES).is_file() for name in FOLDERS)]
    return [path] if path in found else found


def _series(drive: Path) -> Iterator[Series]:
    """Yield every topic, those that cannot be read included."""
    calibration, damage = _calibration(drive)
    told = None if calibration is None else lambda _index: calibration
    found: list[Series] = []
    for number in CAMERAS:
        read = partial(_camera, number, told)
        found += _read(drive / f"image_{number:02d}", read, COMPRESSED_IMAGE)
    found += _read(drive / LIDAR, _lidar, CLOUD)
    found += _read(drive / OXTS, _motion, IMU)
    if damage is not None:
        yield Series.damaged("/tf_static", TRANSFORMS, damage)
    elif told is not None:
        first_ns = [int(one.stamp_ns.min()) for one in found if len(one.stamp_ns)]
        cameras = [n for n in CAMERAS if (drive / f"image_{n:02d}" / TIMES).is_file()]
        yield mounting_series(np.array([min(first_ns, default=0)]), told, cameras)
    yield from found


def _calibration(drive: Path) -> tuple[Calibration | None, InputError | None]:
    """Return the calibration of a drive, or why there is none that can be used."""
    for folder in (drive, drive.absolute().parent):
        if (folder / CALIBRATION).is_file():
            try:
                return read_drive_calibration(folder), None
            except InputError as error:
                return None, error
    return None, None


def _read(folder: Path, read: Callable[[Path], list[Series]], type_name: str) -> list[Series]:
    """Return the topics of a sensor; one without messages where its times cannot be read."""
    if not (folder / TIMES).is_file():
        return []
    try:
        return read(folder)
    except InputError as error:
        topics = {LIDAR: POINTS, OXTS: "/oxts/imu"}
        topic = topics.get(folder.name, f"/camera/{folder.name}/compressed")
        return [Series.damaged(topic, type_name, error)]


def _camera(
    number: int, calibration: Callable[[int], Calibration] | None, folder: Path
) -> list[Series]:
    stamp_ns = read_times(folder / TIMES)
    return list(camera_series(number, stamp_ns, _paths(folder, len(stamp_ns), "png"), calibration))


def _lidar(folder: Path) -> list[Series]:
    stamp_ns = read_times(folder / TIMES)
    end = folder / "timestamps_end.txt"
    log_ns = read_times(end) if end.is_file() else stamp_ns
    if len(log_ns) != len(stamp_ns):
        what = f"expected as many times as in {TIMES}, {len(stamp_ns)}, found {len(log_ns)}"
        raise InputError(what, str(end))
    return [points_series(stamp_ns, _paths(folder, len(stamp_ns), "bin"), log_ns)]


def _motion(folder: Path) -> list[Series]:
    stamp_ns = read_times(folder / TIMES)
    paths = _paths(folder, len(stamp_ns), "txt")

    def line_of(index: int) -> tuple[str, str]:
        return " ".join(read_lines(paths[index])), str(paths[index])

    return list(motion_series(stamp_ns, line_of))


def _paths(folder: Path, count: int, ending: str) -> list[Path]:
    """Return the file of each message: the one that is there, or what it would be called."""
    there = files_in(folder / "data")
    names = (f"{index:010d}" for index in range(count))
    return [there.get(name, folder / "data" / f"{name}.{ending}") for name in names]


def read_times(path: Path) -> NDArray[np.int64]:
    """Return the times (N,) of a file, ns since 1970: lines like "2011-09-26 13:02:25.964389445".

    Raises:
        InputError: it is missing, or a line is none.
    """
    lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        if TIME.fullmatch(line.strip()) is None:
            what = f"expected a date with a time, found {line[:40]!r}"
            raise InputError(what, f"{path}, line {number}")
    try:
        return np.array(lines, "datetime64[ns]").astype(np.int64)
    except ValueError as error:
        raise InputError(f"expected dates with times: {error}", str(path)) from None
