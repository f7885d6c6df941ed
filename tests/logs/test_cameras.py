"""A camera model of the pipeline file goes to the images of its frame that have none."""

from dataclasses import replace

import numpy as np

import avrt
from avrt.logs.cameras import with_models
from avrt.logs.merge import SourceMessage
from avrt.logs.raw import Channel, RawMessage
from avrt.model.spec import CameraSpec
from avrt.payload import CameraInfo, Image, PointCloud

RAW = RawMessage(Channel(0, "/t", "", "cdr"), 0, 0, 0, b"")
MODEL = CameraSpec(
    frame="front", width_px=640, height_px=480, projection=tuple(float(i) for i in range(12))
)
IMAGE = Image("jpeg", np.zeros(0, np.uint8))


def message(payload, frame):
    return SourceMessage("cam", 0, 0, 0, 0, frame, payload, RAW)


def test_only_an_image_of_that_frame_without_a_model_gets_it():
    own = CameraInfo(1, 1, np.eye(3, 4))
    cloud = PointCloud(np.zeros((0, 3), np.float32))
    given = [
        message(IMAGE, "front"),
        message(IMAGE, "rear"),
        message(replace(IMAGE, info=own), "front"),
        message(cloud, "front"),
    ]
    first, *others = with_models(given, [MODEL])
    assert (first.payload.info.width_px, first.payload.info.height_px) == (640, 480)
    assert first.payload.info.projection.tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert others == given[1:]


def test_zeros_of_a_camera_that_is_not_calibrated_are_no_model():
    none = CameraInfo(640, 480, np.zeros((3, 4)))
    (found,) = with_models([message(replace(IMAGE, info=none), "front")], [MODEL])
    assert found.payload.info.projection.any()


def test_a_stage_finds_the_model_of_its_pipeline(tmp_path):
    from avrt.logs.writer import LogWriter  # noqa: PLC0415

    path = tmp_path / "drive.mcap"
    with LogWriter(path) as log:
        log.add_jpeg("/cam", "front", 10**18, b"")
    keys = {"size": [640, 480], "projection": [[1, 0, 2, 0], [0, 1, 3, 0], [0, 0, 1, 0]]}
    pipeline = avrt.Pipeline("p", calibration={"cameras": {"front": keys}})
    pipeline.source("cam", type="camera", topic="/cam")

    def width(image):
        return image.payload.info.width_px

    pipeline.add(width, inputs={"image": "cam"}, wcet="1 ms", deadline="1 s")
    pipeline.replay(path, out=tmp_path / "run.mcap")
    assert [m.payload for m in avrt.read_outputs(tmp_path / "run.mcap", "width")] == [640]
