"""Small logs made on the spot, and the recorded ones where they are at hand."""

from pathlib import Path

import numpy as np
import pytest

from avrt.logs.writer import LogWriter
from avrt.payload import CameraInfo

SHARED = Path(__file__).parents[3] / "shared" / "data"
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
JPEG = b"\xff\xd8 not quite a picture \xff\xd9"
INFO = CameraInfo(640, 480, np.arange(12.0).reshape(3, 4))


@pytest.fixture
def shared():
    if not SHARED.exists():
        pytest.skip("the recorded data is not at hand")
    return SHARED


def cloud_xyz(index, count=50):
    return np.random.default_rng(index).normal(size=(count, 3)).astype(np.float32)


def _write_log(path, frames=5, **options):
    """Write a log of a lidar, and a camera whose info follows at the same log time."""
    with LogWriter(path, **options) as log:
        for index in range(frames):
            at_ns = START_NS + index * PERIOD_NS
            log.add_cloud("/lidar", "lidar_roof", at_ns, cloud_xyz(index), np.full(50, index, "f4"))
            log.add_jpeg("/camera", "camera_front", at_ns + 10, JPEG)
            log.add_camera_info("/camera_info", "camera_front", at_ns + 10, INFO)
    return path


@pytest.fixture
def write_log():
    return _write_log


@pytest.fixture
def log_path(tmp_path):
    return _write_log(tmp_path / "log.mcap")
