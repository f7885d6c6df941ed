"""The tools that train the camera network fold, aim and count as they say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from avrt.payload import ImageDetections
from avrt.stages.camera.builtin import CentreNetwork, computing_with
from avrt.stages.camera.networks import Centre

TOOLS = str(Path(__file__).parents[1] / "tools")
CAR, TRUCK = Centre.labels.index("car"), Centre.labels.index("truck")


@pytest.fixture(scope="module")
def images():
    return _imported("camera_images")


@pytest.fixture(scope="module")
def training():
    return _imported("train_camera")


@pytest.fixture(scope="module")
def scores():
    return _imported("camera_scores")


def _imported(name):
    sys.path.insert(0, TOOLS)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(TOOLS)


def objects(images, *rows):
    """Return objects of (left, top, right, bottom, kind, counts)."""
    table = np.array(rows, np.float32).reshape(-1, 6)
    return images.Objects(table[:, :4], table[:, 4].astype(np.int64), table[:, 5] > 0)


def test_a_folded_network_gives_what_the_trained_one_gives(training):
    torch.manual_seed(1)
    trained = CentreNetwork(trained=True)
    for module in trained.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    arrays = training.folded(trained.eval())
    plain = CentreNetwork().eval()
    plain.load_state_dict({name: torch.from_numpy(one).float() for name, one in arrays.items()})
    shown = torch.randn(1, 3, 64, 96)
    with torch.inference_mode(), computing_with(1):
        for one, other in zip(trained(shown), plain(shown), strict=True):
            np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02)  # float16


def test_an_object_is_aimed_at_in_its_middle_and_what_does_not_count_is_left_out(training, images):
    rows = (40, 40, 80, 60, CAR, 1), (160, 80, 200, 120, TRUCK, 0)
    maps, judged, boxes, weights = training.targets_of(objects(images, *rows))
    assert np.argwhere(maps == 1).tolist() == [[CAR, 12, 15]]  # (60, 50) in cells of 4
    assert boxes[:, 12, 15].tolist() == [40, 40, 80, 60]
    assert weights.sum() == pytest.approx(1.0)
    assert judged[0, 25, 45] == 0
    assert judged.sum() == judged.size - 10 * 10


def test_of_two_objects_in_a_place_the_smaller_is_learnt(training, images):
    rows = (100, 60, 110, 70, CAR, 1), (60, 40, 150, 90, TRUCK, 1)
    maps, _, boxes, weights = training.targets_of(objects(images, *rows))
    assert boxes[:, 16, 26].tolist() == [100, 60, 110, 70]
    assert (maps[CAR] == 1).sum() == (maps[TRUCK] == 1).sum() == 1
    assert weights.sum() == pytest.approx(2.0)


def test_a_piece_shows_an_object_where_its_box_is(training, images):
    picture = np.zeros((256, 512, 3), np.uint8)
    picture[100:120, 300:340] = 255
    known = objects(images, (300, 100, 340, 120, CAR, 1))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        piece, left = training.cut(picture, known, np.array([300.0, 100, 340, 120]), rng)
        rows, columns = np.nonzero(piece[..., 0] > 127)
        found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        np.testing.assert_allclose(left.boxes[0], found, atol=1.1)


def test_boxes_on_what_does_not_count_are_neither_right_nor_wrong(scores, images):
    known = objects(images, (0, 0, 100, 50, CAR, 1), (200, 0, 300, 50, CAR, 0))
    boxes = [[0, 0, 90, 50], [0, 0, 100, 50], [210, 0, 300, 50], [400, 0, 450, 50]]
    found = ImageDetections(
        np.array(boxes, np.float32),
        np.array([0.9, 0.8, 0.7, 0.6], np.float32),
        ("car",) * 4,
        960,
        480,
    )
    tally = scores.Tally()
    scores.compare(found, known, "car", tally)
    assert tally.found == [(50.0, pytest.approx(0.9))]
    assert [is_right for _, is_right in tally.boxes] == [True, False, False]
    assert tally.average_precision() == 1.0
    assert tally.precision(0.5)["of"] == 3
    assert tally.recall(0.95, 0, 100)["count"] == 0
