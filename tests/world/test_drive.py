"""A drive is an ordinary log, and the same one wherever it is made."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from avrt.api.drive import write_drive
from avrt.errors import SpecError
from avrt.logs import open_log
from avrt.logs.truth import read_truth
from avrt.world import SENSORS

SECONDS = 0.5
CODE = "import sys; from avrt.api.drive import write_drive; write_drive(sys.argv[1], seconds=0.5)"


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    path = tmp_path_factory.mktemp("drive") / "drive.mcap"
    write_drive(path, seconds=SECONDS)
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_another_process_on_a_smaller_processor_writes_the_same_bytes(drive, tmp_path):
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    for count in range(len(extensions) + 1):
        path = tmp_path / f"{count}.mcap"
        without = {"NPY_DISABLE_CPU_FEATURES": " ".join(extensions[count:])}
        limited = {**os.environ, **without, "PYTHONHASHSEED": str(count)}
        subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-c", CODE, str(path)], env=limited, check=True
        )
        assert digest(path) == digest(drive), extensions[count:]


def test_another_tool_opens_the_drive(drive):
    with AnyReader([drive]) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        assert set(counts) == {"/tf_static", *(sensor.topic for sensor in SENSORS)}
        for connection, _, data in reader.messages():
            reader.deserialize(data, connection.msgtype)


def test_a_drive_ends_for_all_sensors_at_once(drive):
    with open_log(drive) as reader:
        times = [raw.log_ns for raw in reader.messages()]
        assert times == sorted(times)
        assert max(times) - min(times) < SECONDS * 1e9
        info = reader.topics()
    assert info["/lidar/points"].messages == 4  # the fifth sweep would come at 0.503 s
    assert info["/radar/targets"].messages == 10
    assert info["/imu/data"].messages == 50


def test_the_truth_of_a_drive_is_in_the_vehicles_frame(drive):
    with open_log(drive) as reader:
        scenes = list(read_truth(reader))
    assert {scene.frame for scene in scenes} == {"base_link"}
    assert {one.label for one in scenes[0].truth.objects} >= {"car", "truck", "cyclist"}


def test_a_drive_that_cannot_be_made_is_told(tmp_path):
    with pytest.raises(SpecError, match="no scene 'rain'"):
        write_drive(tmp_path / "drive.mcap", "rain", seconds=0.2)
    with pytest.raises(SpecError, match="a seed of 0 or more, found -1"):
        write_drive(tmp_path / "drive.mcap", seed=-1, seconds=0.2)
    for seconds in (-1.0, 0.0, 61.0, float("nan"), float("inf")):
        with pytest.raises(SpecError, match="at most 60 s"):
            write_drive(tmp_path / "drive.mcap", seconds=seconds)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SpecError, match="cannot create the log"):
        write_drive(tmp_path / "no" / "drive.mcap", seconds=0.2)
