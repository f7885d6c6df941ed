"""Where KITTI's sensors are, and how its cameras see.

Formulas of the development kits (object: readme.txt, "Coordinate transformation"; raw: IJRR 2013,
equations 4 to 8): a point x of the LiDAR is in image i at P_i R_rect T_velo_to_cam x. P_i is
[K | K t]: camera i sees from t beside the rectified camera 0, whose axes all of them have.

`base_link` is not in the files: it is on the ground below the middle of the rear axle, from which
the inertial unit is 0.05 m behind, 0.32 m to the left and 0.93 m up (IJRR 2013, figure 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_lines
from avrt.logs.messages import pose_of
from avrt.payload import CameraInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from avrt.logs.messages import Pose
    from avrt.payload.cloud import Coordinates

    Matrix = NDArray[np.float64]

VEHICLE, IMU, LIDAR = "base_link", "imu", "velodyne"
CAMERAS = range(4)
TURN_ERROR_MAX = 0.01  # of a product of rows; files have seven digits
PIXELS_MAX = 1 << 16
IMU_IN_VEHICLE: Pose = (-0.05, 0.32, 0.93, 0.0, 0.0, 0.0, 1.0)


def camera_frame(number: int) -> str:
    return f"camera_{number:02d}"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of one recording.

    Attributes:
        projections: by camera, (3, 4) from the rectified camera 0 to pixels.
        to_camera: (4, 4) from the LiDAR to the rectified camera 0, metres.
        to_lidar: (4, 4) from the inertial unit to the LiDAR, metres; None where it is not told.
        sizes: by camera, width and height of its images, where they are told.
    """

    projections: Mapping[int, Matrix]
    to_camera: Matrix
    to_lidar: Matrix | None
    sizes: Mapping[int, tuple[int, int]]

    @property
    def from_camera(self) -> Matrix:
        """(4, 4) from the rectified camera 0 to the LiDAR."""
        return np.linalg.inv(self.to_camera).astype(float)

    def transforms(self, cameras: Iterable[int]) -> list[tuple[str, str, Pose]]:
        """Return the mountings: of the inertial unit, the LiDAR in it, and these cameras."""
        found = []
        if self.to_lidar is not None:
            found.append((VEHICLE, IMU, IMU_IN_VEHICLE))
            found.append((IMU, LIDAR, pose_of(np.linalg.inv(self.to_lidar).astype(float))))
        for number in cameras:
            shift = np.eye(4)
            projection = self.projections[number]
            shift[:3, 3] = np.linalg.solve(projection[:, :3], projection[:, 3])
            shift[:3, 3] *= -1  # back from what is seen to where it is seen from
            place = pose_of(self.from_camera @ shift)
            found.append((LIDAR, camera_frame(number), place))
        return found

    def info(self, number: int, size: tuple[int, int]) -> CameraInfo:
        """Return the model of a camera in its own frame."""
        projection = self.projections[number].copy()
        projection[:, 3] = 0.0
        return CameraInfo(*size, projection)

    def in_image(self, xyz: Coordinates, number: int, size: tuple[int, int]) -> NDArray[np.bool_]:
        """Return which points (N, 3) of the LiDAR lie in an image."""
        u, v, depth = self.projections[number] @ self.to_camera @ _homogeneous(xyz)
        with np.errstate(all="ignore"):
            u, v = u / depth, v / depth
        inside: NDArray[np.bool_] = (
            (depth > 0) & (u >= 0) & (u < size[0]) & (v >= 0) & (v < size[1])
        )
        return inside


def read_calibration(path: Path) -> Calibration:
    """Return the calibration of an object frame or a tracking sequence, which name parts apart.

    Raises:
        InputError: it is missing or not whole.
    """
    values = Values(path)
    rectify = np.eye(4)
    rectify[:3, :3] = values.turn("R0_rect", "R_rect")
    to_camera = rectify @ values.rigid("Tr_velo_to_cam", "Tr_velo_cam")
    to_lidar = values.rigid("Tr_imu_to_velo", "Tr_imu_velo")
    projections = {number: values.matrix(3, 4, f"P{number}") for number in CAMERAS}
    return Calibration(projections, to_camera, to_lidar, {})


def read_drive_calibration(folder: Path) -> Calibration:
    """Return the calibration of the drives of a day: the folder of its three files.

    Raises:
        InputError: one is missing or not whole; that of the inertial unit may be missing.
    """
    cameras = Values(folder / "calib_cam_to_cam.txt")
    rectify = np.eye(4)
    rectify[:3, :3] = cameras.turn("R_rect_00")
    to_camera = rectify @ Values(folder / "calib_velo_to_cam.txt").turn_and_shift()
    path = folder / "calib_imu_to_velo.txt"
    to_lidar = Values(path).turn_and_shift() if path.exists() else None
    projections = {n: cameras.matrix(3, 4, f"P_rect_{n:02d}") for n in CAMERAS}
    sizes = {n: cameras.matrix(1, 2, f"S_rect_{n:02d}")[0] for n in CAMERAS}
    whole = {n: (int(size[0]), int(size[1])) for n, size in sizes.items() if _is_size(size)}
    return Calibration(projections, to_camera, to_lidar, whole)


class Values:
    """The numbers of a calibration file by name: "NAME: 1 2 3", or without the colon."""

    def __init__(self, path: Path) -> None:
        self._path = path
        rows = (line.split(maxsplit=1) for line in read_lines(path))
        self._rows = {row[0].rstrip(":"): row[-1] for row in rows}

    def matrix(self, rows: int, columns: int, *names: str) -> Matrix:
        """Return the matrix that has one of these names.

        Raises:
            InputError: none has, or it is not of this size.
        """
        text = next((self._rows[name] for name in names if name in self._rows), "")
        try:
            numbers = np.array(text.split(), float)
        except ValueError:
            numbers = np.empty(0)
        if numbers.size != rows * columns or not np.isfinite(numbers).all():
            found = repr(text[:40]) if text else f"only {', '.join(self._rows)}"
            what = f"expected {rows * columns} numbers of {' or '.join(names)}, found {found}"
            raise InputError(what, str(self._path))
        return numbers.reshape(rows, columns)

    def turn(self, *names: str) -> Matrix:
        """Return a rotation (3, 3).

        Raises:
            InputError: there is none.
        """
        return self._checked(self.matrix(3, 3, *names), names)

    def rigid(self, *names: str) -> Matrix:
        """Return a matrix (4, 4) of twelve numbers, [R | t].

        Raises:
            InputError: there is none, or R is no rotation.
        """
        rows = self.matrix(3, 4, *names)
        self._checked(rows[:, :3], names)
        return np.vstack((rows, (0, 0, 0, 1)))

    def turn_and_shift(self) -> Matrix:
        """Return a matrix (4, 4) of the rows R and T."""
        whole = np.eye(4)
        whole[:3, :3], whole[:3, 3] = self.turn("R"), self.matrix(1, 3, "T")[0]
        return whole

    def _checked(self, turn: Matrix, names: tuple[str, ...]) -> Matrix:
        far = np.abs(turn @ turn.T - np.eye(3)).max()
        if not far <= TURN_ERROR_MAX or np.linalg.det(turn) < 0:
            what = f"expected {' or '.join(names)} to hold a rotation, found {turn.tolist()}"
            raise InputError(what, str(self._path))
        return turn


def _is_size(size: Matrix) -> bool:
    return bool(((size >= 1) & (size <= PIXELS_MAX)).all())


def _homogeneous(xyz: Coordinates) -> Matrix:
    return np.vstack((xyz.T.astype(float), np.ones(len(xyz))))
