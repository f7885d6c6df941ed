"""The detector finds what a network shows, in pixels of the image, and says what a file lacks."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image as PillowImage
from small_networks import BOAT, CAR, PERSON, SIDE, TRUCK, fastestdet, nanodet, written, yolox

from avrt.errors import DataFault, SpecError
from avrt.payload import CameraInfo, Image
from avrt.stages.camera import detector as image_detector
from avrt.stages.camera.overlay import Detector

CELL = 64 + 1 * 4 + 2  # row 1, column 2 of yolox's cells of 16 pixels


def picture(width=SIDE, height=SIDE, info=None):
    return Image("rgb8", np.zeros(width * height * 3, np.uint8), width, height, info)


def seeing(*things):
    """Return yolox outputs that show (class, score, cell, dx), each 16 pixels wide and high."""
    outputs = yolox()
    for kind, score, cell, dx in things:
        outputs[0][0, cell, :5] = dx, 0.5, 0.0, 0.0, 1.0
        outputs[0][0, cell, 5 + kind] = score
    return outputs


@pytest.fixture
def detector(tmp_path):
    def make(outputs, **parameters):
        return Detector(model=written(tmp_path / "small.onnx", outputs), **parameters)

    return make


def test_a_box_is_in_pixels_of_the_image(detector, sent):
    info = CameraInfo(128, 96, np.eye(3, 4))
    found = detector(seeing((CAR, 0.9, CELL, 0.5))).process(sent(picture(128, 96, info)))
    # in the view (32, 16, 48, 32); the image is scaled by a half
    np.testing.assert_allclose(found.boxes, [[64, 32, 96, 64]])
    assert found.boxes.dtype == np.float32
    assert found.scores == pytest.approx([0.9])
    assert found.labels == ("car",)
    assert (found.width_px, found.height_px) == (128, 96)
    assert found.info is info


def test_each_view_is_moved_to_its_place(detector, sent):
    views = detector(seeing((CAR, 0.9, CELL, 0.0)), tiles=2)
    found = views.process(sent(picture(115, 64)))  # 1.8 views of 64: at 0 and 51
    np.testing.assert_allclose(found.boxes, [[24, 16, 40, 32], [75, 16, 91, 32]])


def test_what_a_view_shows_beside_the_picture_is_cut_off(detector, sent):
    found = detector(seeing((CAR, 0.9, 64, -0.25))).process(sent(picture(64, 20)))
    np.testing.assert_allclose(found.boxes, [[0, 0, 4, 16]])
    assert not len(detector(seeing((CAR, 0.9, CELL, 0.5))).process(sent(picture(64, 16))).labels)


def test_halves_at_a_border_between_views_become_one(detector, sent):
    outputs = seeing((CAR, 0.9, 64 + 3, 0.0), (CAR, 0.8, 64 + 2, 0.5), (CAR, 0.7, 64, 0.5))
    outputs[0][0, 64 + 3, :2] = 0.0, 0.5  # 40 to 56: whole in both views
    outputs[0][0, 64 + 2, 2] = np.log(3.0)  # 16 to 64: cut on the right in the first view
    outputs[0][0, 64, 2] = np.log(2.0)  # 0 to 24: cut on the left in the second view
    found = detector(outputs, tiles=2, iou_max=0.9).process(sent(picture(115, 64)))
    assert [16.0, 0.0, 75.0, 16.0] in found.boxes.tolist()


def test_classes_are_named_as_road_users_and_others_left_out(detector, sent):
    shown = seeing((PERSON, 0.9, 64, 0.5), (BOAT, 0.95, 67, 0.5), (TRUCK, 0.8, CELL, 0.5))
    found = detector(shown).process(sent(picture()))
    assert found.labels == ("pedestrian", "truck")


def test_a_car_that_also_looks_like_a_truck_is_one_box(detector, sent):
    alike = (TRUCK, 0.8, CELL, 0.5), (CAR, 0.7, CELL + 1, -0.5), (PERSON, 0.6, CELL - 1, 1.5)
    found = detector(seeing(*alike)).process(sent(picture()))
    assert found.labels == ("truck", "pedestrian")


def test_weights_that_onnxruntime_holds_are_out_of_reach(detector):
    assert detector(yolox()).weight_arrays() == ()


def test_the_limit_on_scores_can_be_set(detector, sent):
    shown = seeing((CAR, 0.2, CELL, 0.5))
    assert detector(shown).process(sent(picture())).labels == ()
    assert detector(shown, score_min=0.1).process(sent(picture())).labels == ("car",)


def test_a_view_has_a_bound_on_candidates_and_keeps_the_best(detector, sent, monkeypatch):
    monkeypatch.setattr(image_detector, "CANDIDATES_MAX", 2)
    shown = seeing(*((CAR, 0.5 + cell / 10, 64 + 4 * cell, 0.0) for cell in range(4)))
    shown[0][0, 64::4, 1] = 0.0
    found = detector(shown).process(sent(picture()))
    assert found.scores == pytest.approx([0.8, 0.7])


def test_nothing_seen_is_a_payload(detector, sent):
    found = detector(yolox(), tiles=3).process(sent(picture(300, 64)))
    assert found.boxes.shape == (0, 4)
    assert found.scores.shape == (0,)


@pytest.mark.parametrize(
    ("name", "outputs"), [("yolox", yolox), ("nanodet", nanodet), ("fastestdet", fastestdet)]
)
def test_the_family_is_told_from_the_shapes(detector, name, outputs):
    made = detector(outputs())
    assert made.network.name == name
    assert made.score_min == made.network.score_min
    made.warm()


def test_a_batch_that_is_left_open_is_one_image(tmp_path, sent):
    model = written(tmp_path / "open.onnx", seeing((CAR, 0.9, CELL, 0.5)), open_batch=True)
    assert Detector(model=model).process(sent(picture())).labels == ("car",)


def test_a_compressed_image_is_decoded(detector, sent):
    file = io.BytesIO()
    PillowImage.new("RGB", (SIDE, SIDE)).save(file, "PNG")
    image = Image("png", np.frombuffer(file.getvalue(), np.uint8))
    made = detector(seeing((CAR, 0.9, CELL, 0.5)))
    assert made.process(sent(image)).labels == ("car",)
    with pytest.raises(DataFault, match="png that cannot be decoded"):
        made.process(sent(Image("png", image.data[:40])))
    with pytest.raises(DataFault, match="rgb8 that cannot be decoded"):
        made.process(sent(Image("rgb8", image.data[:40], 4, 4)))


def refused(key, **parameters):
    with pytest.raises(SpecError) as caught:
        Detector(**parameters)
    assert caught.value.key == (key,)
    return caught.value.what


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    model = written(tmp_path / "small.onnx", yolox())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "pip install 'avrt[onnx]'" in refused("model", model=model)


def test_a_missing_file_names_its_neighbour(tmp_path):
    written(tmp_path / "yolox_nano.onnx", yolox())
    what = refused("model", model=str(tmp_path / "yolox_nana.onnx"))
    assert "no such file" in what
    assert "did you mean 'yolox_nano.onnx'?" in what
    assert "no such file" in refused("model", model=str(tmp_path))


def test_a_file_that_is_no_network_is_refused(tmp_path):
    (tmp_path / "text.onnx").write_text("weights, honestly\n")
    what = refused("model", model=str(tmp_path / "text.onnx"))
    assert "expected a network that onnxruntime can run" in what
    assert len(what.splitlines()) == 1


@pytest.mark.parametrize(
    ("outputs", "spoilt"),
    [
        ([np.zeros((1, 84, 86), np.float32)], {}),
        ([np.zeros((1, 85, 4, 5), np.float32)], {}),
        (nanodet()[:5], {}),
        ([*nanodet()[:5], np.zeros((1, 4, 40), np.float32)], {}),
        (yolox(), {"shape": (1, 3, SIDE, 2 * SIDE)}),
        (yolox(), {"shape": (1, 1, SIDE, SIDE)}),
        (yolox(), {"shape": (1, 3, SIDE)}),
        (yolox(), {"kind": TensorProto.UINT8}),
    ],
)
def test_a_network_of_no_known_family_is_refused(tmp_path, outputs, spoilt):
    model = written(tmp_path / "other.onnx", outputs, **spoilt)
    what = refused("model", model=model)
    assert "expected" in what
    assert "found" in what


def test_a_family_that_does_not_fit_is_refused(tmp_path):
    model = written(tmp_path / "small.onnx", yolox())
    assert "expected the outputs of nanodet" in refused("network", model=model, network="nanodet")
    assert "did you mean 'yolox'?" in refused("network", model=model, network="yolo")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tiles", 0),
        ("tiles", 17),
        ("threads", 0),
        ("iou_max", 1.0),
        ("score_min", -0.1),
        ("providers", "CPUExecutionProvider"),
        ("providers", ["QuantumExecutionProvider"]),
    ],
)
def test_parameters_are_checked(tmp_path, key, value):
    refused(key, model=written(tmp_path / "small.onnx", yolox()), **{key: value})
