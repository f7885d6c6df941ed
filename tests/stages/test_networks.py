"""Each family's numbers become the boxes that its published description says, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_networks import BICYCLE, CAR, PERSON, SIDE, TRUCK, centre, fastestdet, nanodet, yolox

from avrt.errors import SoftwareFault
from avrt.stages.camera.networks import NETWORKS, Centre, FastestDet, NanoDet, Yolox

SIZE = (SIDE, SIDE)
BLANK = {"yolox": yolox, "nanodet": nanodet, "fastestdet": fastestdet, "centre": centre}


def test_yolox_counts_in_strides_from_the_cells_corner():
    outputs = yolox()
    cell = 64 + 1 * 4 + 2  # row 1, column 2 of the cells of 16 pixels
    outputs[0][0, cell, :5] = 0.5, 0.25, math.log(2), math.log(1), 0.8
    outputs[0][0, cell, 5 + CAR] = 0.5
    boxes, scores, classes = Yolox(SIZE).decoded(outputs, 0.3)
    # centre ((2 + 0.5) * 16, (1 + 0.25) * 16) = (40, 20), size (32, 16)
    np.testing.assert_allclose(boxes, [[24, 12, 56, 28]], rtol=1e-6)
    assert scores == pytest.approx([0.4])
    assert classes.tolist() == [CAR]


def test_nanodet_measures_four_distances_from_the_cells_middle_pixel():
    outputs = nanodet()
    cell = 5 * 8 + 3  # row 5, column 3 of the cells of 8 pixels
    outputs[0][0, cell, PERSON] = 0.9
    sides = outputs[3][0, cell].reshape(4, 8)
    sides[0, 1], sides[1, 2], sides[2, 3] = 50, 50, 50  # one, two and three strides for certain
    sides[3, [1, 4]] = 50  # one or four strides, equally likely: 2.5
    boxes, scores, classes = NanoDet(SIZE).decoded(outputs, 0.3)
    # middle pixel (3 * 8 + 3.5, 5 * 8 + 3.5) = (27.5, 43.5)
    np.testing.assert_allclose(boxes, [[19.5, 27.5, 51.5, 63.5]], rtol=1e-6)
    assert scores == pytest.approx([0.9])
    assert classes.tolist() == [PERSON]


def test_nanodet_takes_a_flat_distribution_for_its_middle():
    outputs = nanodet()
    outputs[2][0, 0, CAR] = 0.9  # the first cell of 32 pixels, middle pixel 15.5
    boxes, _, _ = NanoDet(SIZE).decoded(outputs, 0.3)
    np.testing.assert_allclose(boxes, [[15.5 - 112, 15.5 - 112, 15.5 + 112, 15.5 + 112]])


def test_fastestdet_squeezes_offsets_sizes_and_scores():
    outputs = fastestdet()
    column = outputs[0][0, :, 2, 1]  # row 2, column 1
    column[0], column[5 + BICYCLE] = 0.9, 0.6
    column[1:5] = math.atanh(0.5), math.atanh(-0.25), 0.0, -math.log(3)
    boxes, scores, classes = FastestDet(SIZE).decoded(outputs, 0.3)
    # centre ((1 + 0.5) * 16, (2 - 0.25) * 16) = (24, 28), size (64 / 2, 64 / 4)
    np.testing.assert_allclose(boxes, [[8, 20, 40, 36]], rtol=1e-6)
    assert scores == pytest.approx([0.9**0.6 * 0.6**0.4])
    assert classes.tolist() == [BICYCLE]


def test_centre_measures_four_distances_from_the_cells_middle():
    likely, sides = centre()
    likely[0, 3, 5, 9] = 0.7  # row 5, column 9: its middle is (38, 22)
    sides[0, :, 5, 9] = 8, 2, 10, 6
    boxes, scores, classes = Centre(SIZE).decoded([likely, sides], 0.3)
    np.testing.assert_allclose(boxes, [[30, 20, 48, 28]])
    assert scores == pytest.approx([0.7])
    assert classes.tolist() == [TRUCK]


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_is_found_where_nothing_is_shown(name):
    boxes, scores, classes = NETWORKS[name](SIZE).decoded(BLANK[name](), 0.3)
    assert boxes.shape == (0, 4)
    assert (len(scores), len(classes)) == (0, 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_scores_that_are_no_numbers_are_a_fault(name):
    outputs = BLANK[name]()
    outputs[0][:] = np.nan
    with pytest.raises(SoftwareFault) as caught:
        NETWORKS[name](SIZE).decoded(outputs, 0.3)
    assert caught.value.kind == "not_finite"


@pytest.mark.parametrize("name", NETWORKS)
def test_each_family_knows_its_own_outputs_only(name):
    for other, network in NETWORKS.items():
        shapes = [output.shape for output in BLANK[name]()]
        assert network.fits(SIZE, shapes) == (other == name)
        assert not network.fits((SIDE, 2 * SIDE), shapes)


@pytest.mark.parametrize(
    ("name", "blue", "red"),
    [
        ("yolox", 50, 200),
        ("nanodet", (50 - 103.53) / 57.375, (200 - 123.675) / 58.395),
        ("fastestdet", 50 / 255, 200 / 255),
        ("centre", (50 - 112) / 56, (200 - 112) / 56),
    ],
)
def test_the_input_is_blue_green_red_in_the_range_of_the_family(name, blue, red):
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    canvas[3, 7] = 200, 100, 50
    shown = NETWORKS[name](SIZE).prepared(canvas)
    assert shown.shape == (1, 3, SIDE, SIDE)
    assert shown.dtype == np.float32
    assert shown.flags.c_contiguous
    assert shown[0, 0, 3, 7] == pytest.approx(blue)
    assert shown[0, 2, 3, 7] == pytest.approx(red)
