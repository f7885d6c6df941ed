"""KITTI's labelled object frames: a folder with `velodyne`, `image_2`, `label_2` and `calib`.

Frames are scenes of different drives without times. They come one second apart, which is more than
anything is carried from one to the next (`avrt.report.score.scenes`); each has a message of
`/tf_static` and a CameraInfo of its own, and object numbers are of one frame only: 1000 times its
place, counted from one, and on. Objects are labelled where camera 2 sees them; to judge a detector
take `/lidar/velodyne/points_in_image`, which leaves out the points that nobody labelled.

`image_3`, the right colour camera, is read where it is there; a frame has what it has files of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.kitti.calibration import LIDAR, Calibration, read_calibration
from avrt.logs.kitti.labels import read_objects, truth_of
from avrt.logs.kitti.sensors import (
    LABELLED_CAMERA,
    camera_series,
    files_in,
    labelled_points_series,
    mounting_series,
    points_series,
    present,
)
from avrt.logs.ros.types import TRUE_OBJECTS
from avrt.logs.series import Series, SeriesReader
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from avrt.payload import Truth

START_NS = 1_317_000_000 * NS_PER_S  # KITTI was recorded in 2011
STEP_NS = NS_PER_S
IDS = 1000
PARTS = ("training", "testing")
CONTENT = ("velodyne", "image_2", "label_2")


def recognises(path: Path) -> bool:
    return _folder(path) is not None


def open_frames(path: Path, strict: bool) -> SeriesReader:  # noqa: FBT001 - see LogFormat
    """Open a folder of frames, or the one that has it as `training`.

    Raises:
        InputError: it holds none.
    """
    folder = _folder(path)
    assert folder is not None
    series = list(_series(folder))
    if not series:
        raise InputError(f"expected frames in {', '.join(CONTENT)}, found none", str(folder))
    return SeriesReader("KITTI object frames", series, strict=strict)


def _folder(path: Path) -> Path | None:
    """Return the folder of the frames, where a path has them."""
    for folder in (path, *(path / part for part in PARTS)):
        if any((folder / name).is_dir() for name in CONTENT):
            return folder
    return None


def _series(folder: Path) -> Iterator[Series]:
    """Yield the topics of the frames that have files of them."""
    sweeps, calib, labels = (files_in(folder / name) for name in ("velodyne", "calib", "label_2"))
    images = {number: files_in(folder / f"image_{number}") for number in (LABELLED_CAMERA, 3)}
    names = sorted({*sweeps, *labels, *(name for some in images.values() for name in some)})
    times = START_NS + np.arange(len(names)) * STEP_NS

    def calibration_of(frames: NDArray[np.int64]) -> Callable[[int], Calibration]:
        def read(index: int) -> Calibration:
            name = names[frames[index]]
            return read_calibration(calib.get(name, folder / "calib" / f"{name}.txt"))

        return read

    cameras = [number for number, some in images.items() if some]
    found = present(names, calib)
    if len(found):
        yield mounting_series(times[found], calibration_of(found), cameras)
    for number in cameras:
        found = present(names, images[number])
        paths = [images[number][names[frame]] for frame in found]
        yield from camera_series(number, times[found], paths, calibration_of(found))
    found = present(names, sweeps)
    if len(found):
        yield points_series(times[found], [sweeps[names[frame]] for frame in found])
    seen = images[LABELLED_CAMERA]
    found = present(names, sweeps, seen)
    if len(found):
        paths = [sweeps[names[frame]] for frame in found]
        pictures = [seen[names[frame]] for frame in found]
        yield labelled_points_series(times[found], paths, pictures, calibration_of(found))
    found = present(names, labels)
    if len(found):
        calibration = calibration_of(found)

        def make(index: int, found: NDArray[np.int64] = found) -> Truth:
            frame = int(found[index])
            objects = read_objects(labels[names[frame]], IDS * (frame + 1))
            return truth_of(objects, calibration(index).from_camera)

        yield Series("/ground_truth/objects", TRUE_OBJECTS, LIDAR, times[found], make)
