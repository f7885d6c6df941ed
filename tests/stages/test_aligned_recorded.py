"""On a recorded drive a sound mounting is not suspected, and one turned by five degrees is told."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_typestore

from avrt.errors import DataFault
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import CameraInfo, Image, PointCloud
from avrt.safety.bearings import SURE
from avrt.stages.camera.overlay import Detector as ImageDetector
from avrt.stages.fusion import Aligned
from avrt.stages.lidar.detector import Detector

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
KITTI = DATA / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap"
FRAMES = 20
CAMERA = CameraInfo(
    1242, 375, np.array([[721.54, 0, 609.56, 44.86], [0, 721.54, 172.85, 0.22], [0, 0, 1, 0.0027]])
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


def frames():
    pipeline = yaml.safe_load((ROOT / "pipelines" / "kitti_camera.yaml").read_text("utf-8"))
    rows = pipeline["calibration"]["frames"]["velodyne"]["matrix"]
    matrix = tuple(float(number) for row in rows for number in row)
    return Frames([TransformSpec(parent="camera_02", child="velodyne", matrix=matrix)])


def recorded(kind):
    """Return what the log holds first of messages of a type."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    with KITTI.open("rb") as file:
        found = make_reader(file).iter_messages()
        own = ((schema.name, raw.data) for schema, _, raw in found if schema.name.endswith(kind))
        return [store.deserialize_cdr(data, name) for name, data in islice(own, FRAMES)]


@pytest.fixture(scope="module")
def clouds():
    made = []
    for one in recorded("PointCloud2"):
        rows = np.frombuffer(one.data.tobytes(), np.float32)
        made.append(rows.reshape(-1, one.point_step // 4)[:, :3])
    return made


@pytest.fixture(scope="module")
def images():
    network = ImageDetector(model=str(DATA / "models" / "yolox_nano.onnx"), tiles=3)
    return network, [Image("jpeg", one.data) for one in recorded("CompressedImage")]


def evidence(sent, clouds, images, degrees):
    """Return the most that speaks for a turn after each frame, up to where it is told."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]], np.float32)
    stage, detector, (network, shown) = Aligned(), Detector(), images
    stage.calibrate(frames())
    peaks = []
    for index, (xyz, image) in enumerate(zip(clouds, shown, strict=True)):
        things = detector.process(sent(PointCloud(xyz @ turn), index / 10, index))
        boxes = replace(network.process(sent(image)), info=CAMERA)
        sweep = sent(things, index / 10, index, "velodyne")
        try:
            stage.process(sweep, camera=sent(boxes, index / 10, index, "camera_02"))
        except DataFault:
            return peaks
        peaks.append(max(stage.state.bearings.peaks.values()))
    return peaks


def test_a_sound_mounting_is_not_suspected(sent, clouds, images):
    peaks = evidence(sent, clouds, images, 0)
    assert len(peaks) == FRAMES
    assert max(peaks) < SURE / 3


@pytest.mark.parametrize("degrees", [5, -5])
def test_a_turn_of_five_degrees_is_told_within_a_second(sent, clouds, images, degrees):
    assert len(evidence(sent, clouds, images, degrees)) < 10
