"""Reports from the field of images that were sheared, of other colours, or no images at all."""

import numpy as np
import pytest

import avrt
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.model.message import Message, Stamp
from avrt.model.spec import SourceSpec
from avrt.stages.camera.decoding import decoded
from avrt.stages.camera.detector import Detector
from cases import field

REPORTS = ("IMG-01", "IMG-03", "IMG-05", "IMG-07", "IMG-09", "IMG-11", "IMG-13")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return field.generated(tmp_path_factory.mktemp("images"), "gen_a_img.py", REPORTS)


@pytest.fixture
def path_of(folder):
    def one(report):
        (path,) = folder.glob(f"{report}_*.mcap")
        return path

    return one


@pytest.fixture
def read(path_of):
    """Return a function that reads the images of one camera of a report."""

    def images_of(report, topic="/cam"):
        source = SourceSpec(name="camera", type="camera", topic=topic)
        with open_log(path_of(report)) as log:
            merged = MergedLog(log, [source])
            images = [message.payload for message in merged]
        assert merged.topics()[topic].lost == 0
        return images

    return images_of


def test_img_01_the_padding_of_rows_is_left_out(folder, read):
    (image,) = read("IMG-01")
    assert decoded(image).tolist() == field.answer(folder, "IMG-01")["rgb"]


def test_img_03_numbers_of_two_bytes_are_in_native_order(folder, read):
    (image,) = read("IMG-03", "/depth")
    values = image.values()
    assert values.tolist() == field.answer(folder, "IMG-03")["values"]
    assert values.dtype == np.uint16
    assert decoded(image)[..., 0].tolist() == (values >> 8).tolist()


def test_img_05_a_mosaic_becomes_the_picture_behind_it(folder, read):
    answer = field.answer(folder, "IMG-05")
    (image,) = read("IMG-05")
    off = decoded(image)[1:-1, 1:-1].astype(int) - answer["interior_rgb"]
    assert np.abs(off).max() <= answer["tol"]


def test_img_07_yuv422_is_uyvy_in_full_range(folder, read):
    answer = field.answer(folder, "IMG-07")
    (image,) = read("IMG-07")
    for row in decoded(image).astype(int):
        assert np.abs(row - answer["rgb_row"]).max() <= answer["tol"]


def test_img_09_what_a_format_says_changes_no_colour(folder, read):
    answer = field.answer(folder, "IMG-09")
    images = read("IMG-09", "/cam/compressed")
    assert len(images) == answer["decoded"]
    assert [image.encoding for image in images] == ["jpeg"] * 5 + ["png"]
    for image in images:
        tolerance = answer["tol_jpeg"] if image.encoding == "jpeg" else 0
        pixels = decoded(image).astype(int)
        assert np.abs(pixels[:, :7] - answer["left_rgb"]).max() <= tolerance
        assert np.abs(pixels[:, 9:] - answer["right_rgb"]).max() <= tolerance


def test_img_11_images_without_bytes_are_counted_and_cost_the_other_camera_nothing(folder, path_of):
    """One camera is lost, as no message of it ever comes to a stage; the other goes on.

    The guard tells it by time, not by count: after three periods of silence, 100 ms at least.
    """
    answer = field.answer(folder, "IMG-11")
    pipeline = avrt.Pipeline("field")
    pipeline.source("cam1", type="camera", topic="/cam1", rate="30 Hz", guard="default")
    pipeline.source("cam2", type="camera", topic="/cam2")
    for name in ("cam1", "cam2"):
        pipeline.add(total, name=f"of_{name}", inputs={"image": name}, wcet="1 ms", deadline="1 s")
    data = pipeline.replay(path_of("IMG-11")).data
    for topic, told in answer.items():
        counts = data["log"]["topics"][topic]
        assert (counts["delivered"], counts["lost"]) == (told["decoded"], told.get("dropped", 0))
    assert data["stages"]["of_cam2"]["jobs"]["met"] == answer["/cam2"]["decoded"]
    assert data["sensors"]["cam1"]["state"] == "lost"
    (odd,) = [one for one in data["log"]["anomalies"] if one["kind"] == "undecodable"]
    assert (odd["topic"], odd["count"]) == ("/cam1", 5)
    assert "expected 200 rows of 600 bytes" in odd["detail"]
    assert "found 0 bytes" in odd["detail"]


def black(image):
    pixels = image.payload.pixels()
    pixels *= 0
    return int(pixels.sum())


def total(image):
    return int(image.payload.pixels().sum())


@pytest.mark.parametrize("order", [(black, total), (total, black)])
def test_img_13_a_stage_that_writes_into_an_image_fails_and_others_see_what_was_sent(
    folder, path_of, order
):
    answer = field.answer(folder, "IMG-13")
    seen = []

    def keep(one):
        seen.append(one.payload)
        return 0

    pipeline = avrt.Pipeline("field")
    pipeline.source("camera", type="camera", topic="/cam")
    for stage in order:
        pipeline.add(stage, inputs={"image": "camera"}, wcet="1 ms", deadline="1 s")
    pipeline.add(keep, inputs={"one": "total"}, wcet="1 ms", deadline="1 s")
    report = pipeline.replay(path_of("IMG-13"))
    assert seen == [answer["sum_seen_by_second_stage"]] * 3
    assert report.data["faults"] == {"black: exception": 3}
    assert "read-only" in report.data["stages"]["black"]["first_fault"]


@pytest.mark.slow
def test_img_13_a_network_changes_nothing_and_warns_of_nothing(folder, read):
    """Warnings of torch about memory that cannot be written are errors in these tests."""
    image, answer = read("IMG-13")[0], field.answer(folder, "IMG-13")
    Detector(model="builtin").process(Message(Stamp("camera", 0, 0, 0, 0), image))
    assert int(image.pixels().sum()) == answer["sum_seen_by_second_stage"]
