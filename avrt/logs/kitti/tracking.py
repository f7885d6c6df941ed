"""A tracking sequence of KITTI: its label file, or `TRAINING/0000`, which is not there by itself.

* `label_02/0000.txt` becomes ground truth, a message for each frame, also where nothing is
  labelled; with it go `velodyne/0000`, `image_02/0000`, `image_03/0000`, `oxts/0000.txt` and
  `calib/0000.txt`, those that are there.
* Frames have numbers and no times: they come 0.1 s apart, the rate of the recording.
* A folder whose `label_02` has one sequence is that sequence; of several one is to be named.
* Without a calibration it is not known where the LiDAR is: the truth is then in the frame
  `camera_00_level`, the axes of the rectified camera 0 as forward, left and up.
* Results of trackers have a score and are no ground truth: they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_lines
from avrt.logs.kitti.calibration import LIDAR, Calibration, read_calibration
from avrt.logs.kitti.frames import PARTS, START_NS
from avrt.logs.kitti.labels import LEVEL, TO_LEVEL, is_tracking, read_tracks, truth_of
from avrt.logs.kitti.sensors import (
    LABELLED_CAMERA,
    camera_series,
    files_in,
    labelled_points_series,
    motion_series,
    mounting_series,
    points_series,
)
from avrt.logs.ros.types import IMU, TRANSFORMS, TRUE_OBJECTS
from avrt.logs.series import Series, SeriesReader
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

STEP_NS = 100 * NS_PER_MS
LABELS = "label_02"
TRUTH = "/ground_truth/objects"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence: the folder of all, its name, and the file of its labels."""

    folder: Path
    name: str
    labels: Path

    def text(self, kind: str) -> Path:
        return self.folder / kind / f"{self.name}.txt"

    def frames(self, kind: str) -> dict[int, Path]:
        """Return the files of a sensor by frame."""
        files = files_in(self.folder / kind / self.name)
        return {int(name): path for name, path in files.items()}


def recognises(path: Path) -> bool:
    return bool(_sequences(path))


def open_sequence(path: Path, strict: bool) -> SeriesReader:  # noqa: FBT001 - see LogFormat
    """Open a sequence.

    Raises:
        InputError: the path has several, or nothing of it can be used.
    """
    sequences = _sequences(path)
    if len(sequences) > 1:
        names = ", ".join(one.name for one in sequences)
        what = f"expected one sequence, found {names}; name one as {path / sequences[0].name}"
        raise InputError(what, str(path))
    return SeriesReader("KITTI tracking sequence", _series(sequences[0]), strict=strict)


def _sequences(path: Path) -> list[Sequence]:
    """Return what a path may mean."""
    if path.is_file():
        if path.parent.name != LABELS and not is_tracking(path):
            return []
        return [Sequence(path.parent.parent, path.stem, path)]
    if not path.exists():
        one = Sequence(path.parent, path.name, path.parent / LABELS / f"{path.name}.txt")
        folders = (one.folder / kind / one.name for kind in ("velodyne", "image_02"))
        known = one.labels.is_file() or any(folder.is_dir() for folder in folders)
        return [one] if known else []
    for folder in (path, *(path / part for part in PARTS)):
        texts = sorted((folder / LABELS).glob("*.txt"))
        if texts:
            return [Sequence(folder, text.stem, text) for text in texts]
    return []


def _series(one: Sequence) -> Iterator[Series]:
    """Yield the topics of a sequence, those that cannot be read included."""
    sweeps = one.frames("velodyne")
    images = {number: one.frames(f"image_{number:02d}") for number in (LABELLED_CAMERA, 3)}
    cameras = [number for number, some in images.items() if some]
    calibration = None
    if one.text("calib").is_file():
        try:
            calibration = read_calibration(one.text("calib"))
        except InputError as error:
            yield Series.damaged("/tf_static", TRANSFORMS, error)
        else:
            yield mounting_series(_times([0]), _always(calibration), cameras)
    told = None if calibration is None else _always(calibration)
    for number in cameras:
        paths = list(images[number].values())
        yield from camera_series(number, _times(images[number]), paths, told)
    if sweeps:
        yield points_series(_times(sweeps), list(sweeps.values()))
    seen = images[LABELLED_CAMERA]
    both = [frame for frame in sweeps if frame in seen]
    if both and told is not None:
        paths, pictures = [sweeps[frame] for frame in both], [seen[frame] for frame in both]
        yield labelled_points_series(_times(both), paths, pictures, told)
    if one.text("oxts").is_file():
        yield from _motion(one.text("oxts"))
    if one.labels.is_file():
        last = max([*sweeps, *(frame for some in images.values() for frame in some)], default=-1)
        yield _truth(one.labels, last + 1, calibration)


def _motion(path: Path) -> list[Series]:
    try:
        lines = read_lines(path)
    except InputError as error:
        return [Series.damaged("/oxts/imu", IMU, error)]
    return list(
        motion_series(
            _times(range(len(lines))), lambda index: (lines[index], f"{path}, line {index + 1}")
        )
    )


def _truth(path: Path, frames: int, calibration: Calibration | None) -> Series:
    """Return the labels of so many frames, or of as many as are labelled."""
    try:
        labels = read_tracks(path)
    except InputError as error:
        return Series.damaged(TRUTH, TRUE_OBJECTS, error)
    count = max(frames, *(frame + 1 for frame in labels))
    frame, matrix = LEVEL, TO_LEVEL
    if calibration is not None:
        frame, matrix = LIDAR, calibration.from_camera
    return Series(
        TRUTH,
        TRUE_OBJECTS,
        frame,
        _times(range(count)),
        lambda index: truth_of(labels.get(index, ()), matrix),
    )


def _times(frames: Mapping[int, Path] | range | list[int]) -> NDArray[np.int64]:
    return START_NS + np.fromiter(frames, np.int64, len(frames)) * STEP_NS


def _always(calibration: Calibration) -> Callable[[int], Calibration]:
    return lambda _index: calibration
