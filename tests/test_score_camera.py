"""The tool that scores camera networks counts as it says, and its intervals are Wilson's."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from avrt.payload import ImageDetections

PATH = Path(__file__).parents[1] / "tools" / "score_camera.py"
LABELS = """\
Car 0.00 0 0 100 100 200 200 0 0 0 0 0 0 0
Van 0.00 0 0 300 100 400 120 0 0 0 0 0 0 0
Cyclist 0.00 0 0 500 100 550 200 0 0 0 0 0 0 0
DontCare -1 -1 0 700 100 800 200 0 0 0 0 0 0 0
"""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("score_camera", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["score_camera"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def known(tool, tmp_path):
    (tmp_path / "labels.txt").write_text(LABELS)
    return tool.truth(tmp_path / "labels.txt")


def found(*boxes):
    scores = np.linspace(0.9, 0.5, len(boxes)).astype(np.float32)
    corners = np.array([box for box, _ in boxes], np.float32).reshape(-1, 4)
    return ImageDetections(corners, scores, tuple(label for _, label in boxes), 1242, 375)


def test_objects_too_low_to_count_are_neither_found_nor_missed(tool, known):
    assert tool.matches(found(), known) == (0, 2, 0, 0)
    assert tool.matches(found(((300, 100, 400, 120), "car")), known) == (0, 2, 0, 0)


def test_a_box_of_the_kind_that_overlaps_by_half_is_right(tool, known):
    assert tool.matches(found(((100, 100, 200, 151), "truck")), known) == (1, 2, 1, 1)
    assert tool.matches(found(((100, 100, 200, 149), "car")), known) == (0, 2, 0, 1)
    assert tool.matches(found(((100, 100, 200, 200), "pedestrian")), known) == (0, 2, 0, 1)
    assert tool.matches(found(((500, 100, 550, 200), "pedestrian")), known) == (1, 2, 1, 1)


def test_an_object_is_found_once(tool, known):
    twice = found(((100, 100, 200, 200), "car"), ((100, 100, 200, 190), "car"))
    assert tool.matches(twice, known) == (1, 2, 1, 2)


def test_boxes_in_regions_that_nobody_labelled_are_not_judged(tool, known):
    assert tool.matches(found(((720, 120, 780, 180), "car")), known) == (0, 2, 0, 0)
    assert tool.matches(found(((600, 120, 720, 180), "car")), known) == (0, 2, 0, 1)


@pytest.mark.parametrize(("count", "total"), [(12, 28), (0, 5), (5, 5), (1, 1000)])
def test_the_ends_of_an_interval_are_where_the_count_is_at_the_edge_of_chance(tool, count, total):
    for end in tool.wilson(count, total):
        off = abs(count / total - end)
        assert off == pytest.approx(1.96 * (end * (1 - end) / total) ** 0.5, abs=2e-3)


def test_an_interval_of_nothing_says_nothing(tool):
    assert tool.wilson(0, 0) == [0.0, 1.0]
