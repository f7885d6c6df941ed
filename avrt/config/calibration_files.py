"""Calibration files of recorded data sets, as transforms and camera models.

* `kitti`: lines of `key: numbers`, as in the calib files of the object and tracking benchmarks and
  of the raw recordings (Geiger, Lenz, Stiller and Urtasun, "Vision meets Robotics: The KITTI
  Dataset", IJRR 2013). Frames: `velodyne`, `imu`, `camera_rect` (rectified camera 0) and
  `camera_00` to `camera_03`, whose place along the baseline is in the last column of their P.
* `radiate`: `default-calib.yaml` of the RADIATE data set (Sheeny et al., ICRA 2021). Frames:
  `radar`, `lidar`, `left_camera`, `right_camera`. The LiDAR's axes are x right, y forward, z up. As
  in the data set's own tools the translations are differences to the radar, written in the axes of
  the target, and the angles are degrees about x, y and z.

A file names its frames as the data set does; `frames: {velodyne: my_lidar}` renames them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from avrt.model.frames import (
    TURN_ERROR_MAX,
    Matrix,
    TransformSpec,
    composed,
    inverted,
    placed,
    turn_error,
)
from avrt.model.spec import CameraSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

FILE_BYTES_MAX = 1 << 18
KITTI_TURNS = {"R0_rect", "R_rect", "R_rect_00"}
KITTI_VELODYNE = {"Tr_velo_to_cam", "Tr_velo_cam"}
KITTI_IMU = {"Tr_imu_to_velo", "Tr_imu_velo"}
Place = tuple[tuple[float, ...], tuple[float, ...]]  # translation and rotation

OPTICAL: Matrix = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one file says."""

    transforms: list[TransformSpec] = field(default_factory=list)
    cameras: list[CameraSpec] = field(default_factory=list)


def read_calibration_file(path: Path, kind: str, names: Mapping[str, str]) -> Calibration:
    """Read a calibration file.

    Args:
        path: of the file.
        kind: one of FORMATS.
        names: new names for the file's frames.

    Raises:
        ValueError: it cannot be read, is no such file, or has no frame that is renamed; says what
            was expected and found.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ValueError(f"{path} is longer than {FILE_BYTES_MAX} bytes; expected a calibration")
    try:
        found = FORMATS[kind](data.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
    for one in found.transforms:
        if turn_error(one.matrix) > TURN_ERROR_MAX:
            raise ValueError(f"expected a rotation in {one.origin}")
    frames = {frame for one in found.transforms for frame in (one.parent, one.child)}
    unknown = next((name for name in names if name not in frames), None)
    if unknown is not None:
        raise ValueError(f"{path} has no frame {unknown!r}; it has {', '.join(sorted(frames))}")
    return _renamed(found, names)


def _renamed(found: Calibration, names: Mapping[str, str]) -> Calibration:
    def new(frame: str) -> str:
        return names.get(frame, frame)

    return Calibration(
        [
            TransformSpec(
                parent=new(one.parent), child=new(one.child), matrix=one.matrix, origin=one.origin
            )
            for one in found.transforms
        ],
        [
            CameraSpec(
                frame=new(one.frame),
                width_px=one.width_px,
                height_px=one.height_px,
                projection=one.projection,
            )
            for one in found.cameras
        ],
    )


def _read_kitti(text: str, path: str) -> Calibration:
    values = _kitti_lines(text, path)
    made = Calibration()

    def add(parent: str, child: str, matrix: Matrix, key: str) -> None:
        origin = f"{path} {key}"
        made.transforms.append(
            TransformSpec(parent=parent, child=child, matrix=matrix, origin=origin)
        )

    for key, numbers in values.items():
        if key in KITTI_VELODYNE:
            add("camera_unrectified", "velodyne", _sized(numbers, 12, key, path), key)
        elif key in KITTI_IMU:
            add("velodyne", "imu", _sized(numbers, 12, key, path), key)
        elif key in KITTI_TURNS:
            turn = _sized(numbers, 9, key, path)
            matrix = (*turn[:3], 0.0, *turn[3:6], 0.0, *turn[6:], 0.0)
            add("camera_rect", "camera_unrectified", matrix, key)
    if "R" in values and "T" in values:
        turn, move = _sized(values["R"], 9, "R", path), _sized(values["T"], 3, "T", path)
        matrix = (*turn[:3], move[0], *turn[3:6], move[1], *turn[6:], move[2])
        add("camera_unrectified", "velodyne", matrix, "R, T")
    for number in range(4):
        _add_kitti_camera(made, values, number, path)
    if not made.transforms:
        raise ValueError(f"expected a KITTI calibration file with keys such as P2, found {path}")
    return made


def _add_kitti_camera(
    made: Calibration, values: Mapping[str, Sequence[float]], number: int, path: str
) -> None:
    key = f"P{number}" if f"P{number}" in values else f"P_rect_0{number}"
    if key not in values:
        return
    p = _sized(values[key], 12, key, path)
    fx, fy = p[0], p[5]
    if fx <= 0 or fy <= 0:
        raise ValueError(f"expected focal lengths above zero in {key} of {path}")
    move_z = p[11]
    move_x, move_y = (p[3] - p[2] * move_z) / fx, (p[7] - p[6] * move_z) / fy
    frame = f"camera_0{number}"
    matrix = (1.0, 0.0, 0.0, move_x, 0.0, 1.0, 0.0, move_y, 0.0, 0.0, 1.0, move_z)
    made.transforms.append(
        TransformSpec(parent=frame, child="camera_rect", matrix=matrix, origin=f"{path} {key}")
    )
    size = f"S_rect_0{number}"
    width, height = map(int, _sized(values.get(size, (0, 0)), 2, size, path))
    projection = (fx, 0.0, p[2], 0.0, 0.0, fy, p[6], 0.0, 0.0, 0.0, 1.0, 0.0)
    made.cameras.append(
        CameraSpec(frame=frame, width_px=width, height_px=height, projection=projection)
    )


def _kitti_lines(text: str, path: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, _, rest = line.partition(":" if ":" in line else " ")
        if not rest.strip() or key.strip() in {"calib_time", "corner_dist"}:
            continue
        try:
            found = [float(word) for word in rest.split()]
        except ValueError:
            raise ValueError(f"expected numbers after {key!r} in {path}:{number}") from None
        if not all(math.isfinite(value) for value in found):
            raise ValueError(f"expected finite numbers after {key!r} in {path}:{number}")
        if key.strip() in values:
            raise ValueError(f"{key!r} stands for the second time in {path}:{number}")
        values[key.strip()] = found
    return values


def _sized(numbers: Sequence[float], count: int, key: str, path: str) -> tuple[float, ...]:
    if len(numbers) != count:
        raise ValueError(f"expected {count} numbers in {key} of {path}, found {len(numbers)}")
    return tuple(numbers)


def _read_radiate(text: str, path: str) -> Calibration:
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    made = Calibration()
    lidar = _radiate_place(data, "lidar_calib", path)
    made.transforms.append(
        TransformSpec(
            parent="radar", child="lidar", matrix=placed(lidar[0], (0.0, 0.0, 0.0)),
            origin=f"{path} lidar_calib",
        )
    )  # fmt: skip
    for side in ("left", "right"):
        key, frame = f"{side}_cam_calib", f"{side}_camera"
        matrix = _radiate_to_camera(lidar, _radiate_place(data, key, path))
        made.transforms.append(
            TransformSpec(parent=frame, child="lidar", matrix=matrix, origin=f"{path} {key}")
        )
        made.cameras.append(_radiate_camera(data, key, frame, path))
    return made


def _radiate_to_camera(lidar: Place, camera: Place) -> Matrix:
    """Return the transform from the LiDAR to a camera as the data set's tools compose it."""
    (lidar_move, lidar_turn), (camera_move, camera_turn) = lidar, camera
    x, y, z = (a - b for a, b in zip(lidar_turn, camera_turn, strict=True))
    about = [placed((0.0, 0.0, 0.0), turn) for turn in ((x, 0, 0), (0, y, 0), (0, 0, z))]
    turned = composed(inverted(composed(about[0], composed(about[1], about[2]))), OPTICAL)
    move = [a - b for a, b in zip(lidar_move, camera_move, strict=True)]
    return (*turned[:3], move[0], *turned[4:7], move[1], *turned[8:11], move[2])


def _radiate_place(data: object, key: str, path: str) -> Place:
    part = data.get(key) if isinstance(data, dict) else None
    found = [part.get(name) if isinstance(part, dict) else None for name in ("T", "R")]
    for numbers in found:
        if not isinstance(numbers, list) or len(numbers) != 3:
            raise ValueError(f"expected T and R of three numbers each in {key} of {path}")
        if _floats(numbers) is None:
            raise ValueError(f"expected finite numbers in T and R in {key} of {path}")
    move, turn = (tuple(float(n) for n in numbers or ()) for numbers in found)
    return move, turn


def _radiate_camera(data: object, key: str, frame: str, path: str) -> CameraSpec:
    part = data[key] if isinstance(data, dict) else {}
    names = ("fx", "fy", "cx", "cy")
    values, size = _floats([part.get(name) for name in names]), part.get("res")
    if values is None:
        raise ValueError(f"expected {', '.join(names)} in {key} of {path}")
    if not isinstance(size, list) or len(size) != 2 or not all(type(n) is int for n in size):
        raise ValueError(f"expected res: [width, height] in {key} of {path}")
    fx, fy, cx, cy = values
    if min(fx, fy, *size) <= 0:
        raise ValueError(f"expected fx, fy and res above zero in {key} of {path}")
    projection = (fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0)
    return CameraSpec(frame=frame, width_px=size[0], height_px=size[1], projection=projection)


def _floats(values: Sequence[object]) -> list[float] | None:
    """Return numbers of YAML as floats, or None if one is no number that a float can hold."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    finite = [float(number) for number in numbers if abs(number) <= sys.float_info.max]
    return finite if len(finite) == len(values) else None


FORMATS: Mapping[str, Callable[[str, str], Calibration]] = {
    "kitti": _read_kitti,
    "radiate": _read_radiate,
}
