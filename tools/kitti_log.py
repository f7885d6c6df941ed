"""KITTI object frames as an ordinary log with ground truth: image, points, camera, tf, objects.

    python tools/kitti_log.py ../shared/data/kitti_object_labelled kitti_object.mcap

makes an MCAP that `avrt replay -p pipelines/kitti_object.yaml` plays and `avrt score` scores. The
frames are of different drives: they come one second apart, each object has an id of its own, and
velocities are not known. Labels and boxes are of the left colour camera (camera 2); points outside
its image are left out, because nothing there is labelled. Objects without a class of ours ("Misc")
are "unknown"; "DontCare" regions have no place and are left out. KITTI: Geiger et al., CVPR 2012.
"""

from __future__ import annotations

import argparse
import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

from avrt.logs.writer import LogWriter
from avrt.payload import Box, CameraInfo, TrueObject, Truth
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

START_NS = 1_317_000_000 * NS_PER_S  # KITTI was recorded in 2011; frames have no time of their own
STEP_NS = NS_PER_S
LIDAR, CAMERA = "velodyne", "camera_02"
LABELS = {
    "Car": "car",
    "Van": "car",
    "Truck": "truck",
    "Tram": "truck",
    "Pedestrian": "pedestrian",
    "Person_sitting": "pedestrian",
    "Cyclist": "cyclist",
    "Misc": "unknown",
}


class Calibration:
    """One frame's calibration file.

    Attributes:
        projection: (3, 4) float64, from the rectified frame of camera 0 to pixels of camera 2.
        to_camera: (4, 4) float64, from LiDAR to the rectified frame of camera 0.
    """

    def __init__(self, path: Path) -> None:
        rows = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        found = {name: np.array(text.split(), float) for name, text in rows.items()}
        self.projection = found["P2"].reshape(3, 4)
        rectify, mount = np.eye(4), np.eye(4)
        rectify[:3, :3] = found["R0_rect"].reshape(3, 3)
        mount[:3] = found["Tr_velo_to_cam"].reshape(3, 4)
        self.to_camera = rectify @ mount

    def seen(self, points: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.bool_]:
        """Return which points lie in the image."""
        inside = np.column_stack((points[:, :3], np.ones(len(points)))) @ self.to_camera.T
        uvw = inside @ self.projection.T
        with np.errstate(all="ignore"):
            u, v = uvw[:, 0] / uvw[:, 2], uvw[:, 1] / uvw[:, 2]
        return (uvw[:, 2] > 0) & (u >= 0) & (u < size[0]) & (v >= 0) & (v < size[1])

    @property
    def camera_in_lidar(self) -> NDArray[np.float64]:
        """Where the frame of camera 2 is: camera 0's, moved along x so that P2 has no shift."""
        camera = np.eye(4)
        camera[:3, 3] = np.linalg.solve(self.projection[:, :3], self.projection[:, 3])
        return np.linalg.inv(camera @ self.to_camera)


def read_truth(path: Path, calibration: Calibration, first_id: int) -> Truth:
    """Return the labelled objects of a frame in the frame of the LiDAR."""
    to_lidar = np.linalg.inv(calibration.to_camera)
    found = []
    for line in path.read_text().splitlines():
        label, *values = line.split()
        if label not in LABELS:
            continue
        height, width, length, x, y, z, turn = map(float, values[7:14])
        centre = to_lidar @ (x, y - height / 2, z, 1)
        ahead = to_lidar[:3, :3] @ (math.cos(turn), 0.0, -math.sin(turn))
        yaw = math.atan2(ahead[1], ahead[0])
        box = Box(*centre[:3].tolist(), length, width, height, yaw)
        name = first_id + len(found)
        found.append(TrueObject(name, LABELS[label], box, math.nan, math.nan))
    return Truth(tuple(found))


def add_frame(log: LogWriter, folder: Path, name: str, index: int) -> None:
    """Add one frame: everything at one time."""
    at_ns = START_NS + index * STEP_NS
    calibration = Calibration(folder / "calib" / f"{name}.txt")
    with Image.open(folder / "image_2" / f"{name}.png") as picture:
        size, jpeg = picture.size, _jpeg(picture)
    if index == 0:
        pose = (*calibration.camera_in_lidar[:3, 3].tolist(), *_quaternion(calibration))
        log.add_transforms("/tf_static", at_ns, [(LIDAR, CAMERA, pose)])
    path = next((folder / "velodyne").glob(f"{name}*.bin"))
    points = np.fromfile(path, np.float32).reshape(-1, 4)
    points = points[calibration.seen(points, size)]
    log.add_cloud("/lidar/velodyne/points", LIDAR, at_ns, points[:, :3], points[:, 3])
    projection = calibration.projection.copy()
    projection[:, 3] = 0.0
    info = CameraInfo(size[0], size[1], projection)
    log.add_camera_info("/camera/image_02/camera_info", CAMERA, at_ns, info)
    log.add_jpeg("/camera/image_02/compressed", CAMERA, at_ns, jpeg)
    truth = read_truth(folder / "label_2" / f"{name}.txt", calibration, 1000 * (index + 1))
    log.add_truth("/ground_truth/objects", LIDAR, at_ns, truth)


def _jpeg(picture: Image.Image) -> bytes:
    buffer = BytesIO()
    picture.convert("RGB").save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def _quaternion(calibration: Calibration) -> list[float]:
    return Rotation.from_matrix(calibration.camera_in_lidar[:3, :3]).as_quat().tolist()


def write_log(folder: Path, out: Path) -> int:
    """Write every frame of a folder of KITTI object data; return how many."""
    training = folder / "training" if (folder / "training").is_dir() else folder
    names = sorted(path.stem for path in (training / "label_2").glob("*.txt"))
    if not names:
        raise SystemExit(f"{folder}: expected label_2/, calib/, image_2/ and velodyne/ of KITTI")
    with LogWriter(out) as log:
        for index, name in enumerate(names):
            add_frame(log, training, name, index)
    return len(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of KITTI object data, or its training/")
    parser.add_argument("out", type=Path, help="the log to write (MCAP)")
    options = parser.parse_args()
    print(f"{options.out}: {write_log(options.folder, options.out)} frames")


if __name__ == "__main__":
    main()
