"""Small logs of every format that avrt reads, a few messages each, written on the spot."""

from __future__ import annotations

import numpy as np
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
