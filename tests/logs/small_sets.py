"""Small logs of every format that avrt reads, a few messages each, written on the spot."""

from __future__ import annotations

import json
from functools import cache
from io import BytesIO

import numpy as np
from mcap.writer import IndexType
from PIL import Image as PillowImage
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.stores import ros1_noetic as ros1

from avrt.logs.ros.message import header, imu_message
from avrt.logs.ros.types import IMU
from avrt.logs.writer import LogWriter
from avrt.payload import CameraInfo, Imu

START_NS = 1_700_000_000_000_000_000
STEP_NS = 100_000_000
S = 1_000_000_000
FRAMES = 4
ROS1, ROS2 = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_JAZZY)
BARE = {
    "index_types": IndexType.NONE,
    "use_statistics": False,
    "use_summary_offsets": False,
    "repeat_channels": False,
    "repeat_schemas": False,
}
"""Options of an MCAP writer that leaves chunks and nothing else: no index, no summary."""


def reading(index):
    return Imu(np.array([0.0, 0.0, 9.8]), np.array([0.0, 0.0, index / 10]))


def write_mcap(path):
    info = CameraInfo(640, 480, np.arange(12.0).reshape(3, 4))
    with LogWriter(path, chunk_bytes=2000) as log:
        for index in range(8):
            at_ns = START_NS + index * STEP_NS
            points = np.random.default_rng(index).normal(size=(50, 3)).astype(np.float32)
            log.add_cloud("/lidar", "roof", at_ns, points)
            log.add_camera_info("/camera_info", "camera", at_ns, info)
            log.add_imu("/imu", "imu", at_ns + 10, reading(index))
    return path


def write_bag(path):
    with Writer1(path) as writer:
        writer.chunk_threshold = 1000
        topic = writer.add_connection("/imu", IMU, typestore=ROS1)
        for index in range(20):
            at_ns = START_NS + index * STEP_NS
            message = imu_message(header(at_ns, "imu"), reading(index))
            message.header = ros1.std_msgs__msg__Header(index, message.header.stamp, "imu")
            writer.write(topic, at_ns, ROS1.serialize_ros1(message, IMU))
    return path


def write_rosbag2(path):
    with Writer2(path, version=9) as writer:
        topics = [writer.add_connection(name, IMU, typestore=ROS2) for name in ("/imu", "/other")]
        for index in range(8):
            at_ns = START_NS + index * STEP_NS
            data = bytes(ROS2.serialize_cdr(imu_message(header(at_ns, "imu"), reading(index)), IMU))
            for topic in topics:
                writer.write(topic, at_ns, data)
    return path


def put_arrays(folder, name, times, values):
    place = folder / "processed_log" / name
    place.mkdir(parents=True)
    for part, array in (("t", times), ("value", values)):
        with (place / part).open("wb") as file:
            np.save(file, np.asarray(array, float))


def write_comma(path):
    times = 46_408.5 + np.arange(FRAMES) * 0.01
    put_arrays(path, "IMU/accelerometer", times, np.tile([1.0, 2.0, -9.8], (FRAMES, 1)))
    put_arrays(path, "IMU/gyro", times, np.tile([0.1, 0.2, 0.3], (FRAMES, 1)))
    fixes = np.tile([37.7, -122.4, 8.0, 1.5e12, 33.0, 2.0], (FRAMES, 1))
    for name in ("live_gnss_ublox", "live_gnss_qcom"):
        put_arrays(path, f"GNSS/{name}", times, fixes)
    put_arrays(path, "CAN/speed", times, np.full((FRAMES, 1), 8.0))
    put_arrays(path, "CAN/wheel_speed", times, np.full((FRAMES, 4), 8.0))
    rows = [(20.0 - k, -2.8, 3.6, np.nan, np.nan, 528, 0) for k in range(FRAMES)]
    put_arrays(path, "CAN/radar", times, rows)
    return path


@cache
def encoded_picture(size, encoding):
    """Return a picture of stripes: it is no plain colour, and quickly made."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[:, ::7] = 255
    buffer = BytesIO()
    PillowImage.fromarray(pixels).save(buffer, encoding)
    return buffer.getvalue()


def picture(path, size=(96, 32), encoding="PNG"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded_picture(size, encoding))


def sweep(path, columns=4, points=120):
    """Write points ahead of the LiDAR, on the ground and on a wall."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.random.default_rng(1).uniform(-1, 1, (points, columns)).astype("<f4")
    rows[:, 0] = 10 + 5 * rows[:, 0]
    rows.tofile(path)


def text(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


# KITTI, with the calibration of object frame 000000: numbers as its files have them.
P2 = "707.0493 0 604.0814 45.75831 0 707.0493 180.5066 -0.3454157 0 0 1 0.004981016"
R0 = (
    "0.9999128 0.01009263 -0.008511932 -0.01012729 0.9999406 -0.004037671 "
    "0.008470675 0.004123522 0.9999556"
)
VELO = (
    "0.006927964 -0.9999722 -0.002757829 -0.02457729 -0.001162982 0.002749836 -0.9999955 "
    "-0.06127237 0.9999753 0.006931141 -0.001143899 -0.3321029"
)
IMU_TO_VELO = (
    "0.9999976 0.0007553071 -0.002035826 -0.8086759 -0.0007854027 0.9998898 -0.01482298 "
    "0.3195559 0.002024406 0.01482464 0.9998881 -0.7997231"
)
CAR = "Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.50 1.60 4.00 2.00 1.70 20.00 -1.57"
NOBODY = "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10"
OXTS = "49.01 8.43 116.4 0.02 0.01 0.5 " + " ".join(str(k / 10) for k in range(6, 30))


def calibration_text(colon=":", names=("R0_rect", "Tr_velo_to_cam", "Tr_imu_to_velo")):
    projections = "".join(f"P{number}: {P2}\n" for number in range(4))
    rest = zip(names, (R0, VELO, IMU_TO_VELO), strict=True)
    return projections + "".join(f"{name}{colon} {values}\n" for name, values in rest) + "\n"


def write_kitti_frames(path):
    folder = path / "training"
    for index in range(FRAMES):
        name = f"{index:06d}"
        picture(folder / "image_2" / f"{name}.png", (1242, 375))
        sweep(folder / "velodyne" / f"{name}.bin")
        text(folder / "calib" / f"{name}.txt", calibration_text())
        text(folder / "label_2" / f"{name}.txt", f"{CAR}\n{NOBODY}\n" if index else "")
    return path


def write_kitti_tracking(path):
    """Write sequence 0003 and return its path, which is not there itself; frame 1 has no sweep."""
    folder = path / "training"
    for index in range(FRAMES):
        picture(folder / "image_02/0003" / f"{index:06d}.png", (1242, 375))
        if index != 1:
            sweep(folder / "velodyne/0003" / f"{index:06d}.bin")
    names = ("R_rect", "Tr_velo_cam", "Tr_imu_velo")
    text(folder / "calib/0003.txt", calibration_text("", names))
    text(folder / "oxts/0003.txt", f"{OXTS}\n" * FRAMES)
    rows = (f"0 7 {CAR}", f"0 -1 {NOBODY}", f"2 7 {CAR}", f"2 8 {CAR.replace('Car', 'Van')}")
    text(folder / "label_02/0003.txt", "\n".join(rows))
    return folder / "0003"


def write_kitti_raw(path, images=(2,)):
    drive = path / "2011_09_26_drive_0005_sync"
    times = [f"2011-09-26 13:02:{25 + index / 10:013.10f}" for index in range(FRAMES)]
    lines = "".join(f"{time[:-1]}\n" for time in times)
    later = "".join(f"2011-09-26 13:02:{25.05 + index / 10:012.9f}\n" for index in range(FRAMES))
    for name in ("velodyne_points", "oxts", *(f"image_{number:02d}" for number in images)):
        text(drive / name / "timestamps.txt", lines)
    text(drive / "velodyne_points/timestamps_end.txt", later)
    for index in range(FRAMES):
        name = f"{index:010d}"
        for number in images:
            picture(drive / f"image_{number:02d}/data/{name}.png")
        sweep(drive / f"velodyne_points/data/{name}.bin")
        text(drive / f"oxts/data/{name}.txt", f"{OXTS}\n")
    cameras = "calib_time: 09-Jan-2012 13:57:47\n" + "".join(
        f"S_rect_{n:02d}: 96 32\nR_rect_{n:02d}: {R0}\nP_rect_{n:02d}: {P2}\n" for n in range(4)
    )
    text(path / "calib_cam_to_cam.txt", cameras)
    for name, values in (("calib_velo_to_cam", VELO), ("calib_imu_to_velo", IMU_TO_VELO)):
        turn = np.array(values.split()).reshape(3, 4)
        rows = f"R: {' '.join(turn[:, :3].ravel())}\nT: {' '.join(turn[:, 3])}\n"
        text(path / f"{name}.txt", rows)
    return drive


# nuScenes, after the published schema: a vehicle at 5 m/s towards the map's y, one sensor of a kind
PCD_FIELDS = [("x", "F", 4), ("y", "F", 4), ("z", "F", 4), ("dyn_prop", "I", 1), ("id", "I", 2)]
PCD_FIELDS += [(name, "F", 4) for name in ("rcs", "vx", "vy", "vx_comp", "vy_comp")]
PCD_FIELDS += [(name, "I", 1) for name in ("is_quality_valid", "ambig_state", "invalid_state")]
NUSCENES = {  # channel: modality, translation, rotation w x y z, Hz, ending
    "LIDAR_TOP": ("lidar", [0.94, 0.0, 1.84], [0.70710678, 0, 0, -0.70710678], 20, "pcd.bin"),
    "RADAR_FRONT": ("radar", [3.41, 0.0, 0.5], [1, 0, 0, 0], 10, "pcd"),
    "CAM_FRONT": ("camera", [1.7, 0.0, 1.51], [0.5, -0.5, 0.5, -0.5], 10, "jpg"),
}
NORTH = [0.70710678, 0, 0, 0.70710678]
SAMPLE_US = 500_000
START_US = START_NS // 1000


def radar_pcd(path, points=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.zeros(points, [(name, f"<{kind.lower()}{size}") for name, kind, size in PCD_FIELDS])
    rows["x"], rows["y"] = 20 + np.arange(points), np.arange(points) - 2
    rows["vx"], rows["rcs"], rows["id"] = -5.0, 7.5, np.arange(points)
    columns = zip(*PCD_FIELDS, strict=True)
    names, kinds, sizes = (" ".join(map(str, column)) for column in columns)
    header = (
        f"# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS {names}\nSIZE {sizes}\n"
        f"TYPE {kinds}\nCOUNT {' '.join('1' * len(PCD_FIELDS))}\nWIDTH {points}\nHEIGHT 1\n"
        f"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points}\nDATA binary\n"
    )
    path.write_bytes(header.encode() + rows.tobytes())


def write_nuscenes(path, scenes=("scene-0061",), samples=3):
    """Write a data set of scenes and return the path of the first, which is not there itself."""
    tables = {name: [] for name in ("scene", "sample", "sample_data", "ego_pose", "instance")}
    tables["sample_annotation"] = []
    tables["category"] = [
        {"token": "c0", "name": "vehicle.car"},
        {"token": "c1", "name": "human.pedestrian.adult"},
    ]
    tables["sensor"] = [
        {"token": f"s-{name}", "channel": name, "modality": one[0]}
        for name, one in NUSCENES.items()
    ]
    intrinsic = [[1266.4, 0.0, 48.0], [0.0, 1266.4, 16.0], [0.0, 0.0, 1.0]]
    tables["calibrated_sensor"] = [
        {
            "token": f"m-{name}",
            "sensor_token": f"s-{name}",
            "translation": translation,
            "rotation": rotation,
            "camera_intrinsic": intrinsic if modality == "camera" else [],
        }
        for name, (modality, translation, rotation, *_) in NUSCENES.items()
    ]
    for number, scene in enumerate(scenes):
        first_us = START_US + number * 100_000_000
        tables["scene"].append({"token": scene, "name": scene})
        _nuscenes_objects(tables, scene, first_us, samples)
        for name in NUSCENES:
            _nuscenes_files(path, tables, scene, (name, first_us, samples))
    for name, rows in tables.items():
        text(path / "v1.0-mini" / f"{name}.json", json.dumps(rows))
    return path / "v1.0-mini" / scenes[0]


def _nuscenes_objects(tables, scene, first_us, samples):
    """Add a car 20 m ahead that keeps its distance, and somebody who stands there once."""
    for index in range(samples):
        token, at_us = f"{scene}-{index}", first_us + index * SAMPLE_US
        tables["sample"].append({"token": token, "scene_token": scene, "timestamp": at_us})
        places = [("car", "c0", [100.0, 20.0 + 2.5 * index, 1.0], [1.8, 4.5, 1.6])]
        if index == 1:
            places.append(("walker", "c1", [97.0, 12.5, 0.9], [0.6, 0.7, 1.8]))
        for name, category, place, size in places:
            instance = f"{scene}-{name}"
            if instance not in {row["token"] for row in tables["instance"]}:
                tables["instance"].append({"token": instance, "category_token": category})
            tables["sample_annotation"].append(
                {
                    "token": f"{token}-{name}",
                    "sample_token": token,
                    "instance_token": instance,
                    "translation": place,
                    "size": size,
                    "rotation": NORTH,
                }
            )


def _nuscenes_files(path, tables, scene, of_sensor):
    """Add the files of a sensor and where the vehicle was then."""
    name, first_us, samples = of_sensor
    modality, *_, hz, ending = NUSCENES[name]
    step_us = 1_000_000 // hz
    for index in range((samples - 1) * SAMPLE_US // step_us + 1):
        after_us = index * step_us
        key = after_us % SAMPLE_US == 0
        token = f"{scene}-{name}-{index}"
        file = f"{'samples' if key else 'sweeps'}/{name}/{token}.{ending}"
        if modality == "lidar":
            sweep(path / file, columns=5)
        elif modality == "radar":
            radar_pcd(path / file)
        else:
            picture(path / file, encoding="JPEG")
        place = [100.0, after_us * 5e-6, 0.0]
        tables["ego_pose"].append({"token": token, "translation": place, "rotation": NORTH})
        tables["sample_data"].append(
            {
                "token": token,
                "sample_token": f"{scene}-{-(-after_us // SAMPLE_US)}",
                "ego_pose_token": token,
                "calibrated_sensor_token": f"m-{name}",
                "filename": file,
                "timestamp": first_us + after_us,
                "is_key_frame": key,
                "width": 96 if modality == "camera" else 0,
                "height": 32 if modality == "camera" else 0,
            }
        )
