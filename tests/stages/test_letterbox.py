"""A picture's views keep its aspect, show all of it, and say where in the picture they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.stages.camera.letterbox import OVERLAP, canvas, layout

sizes = st.tuples(st.integers(1, 3000), st.integers(1, 2000))
views = st.sampled_from([(416, 416), (320, 320), (352, 352), (64, 32)])
tiles = st.integers(1, 6)
boxes = st.lists(st.lists(st.floats(0, 400, width=32), min_size=4, max_size=4), max_size=5)


@settings(max_examples=50)
@given(picture=sizes, view=views, tiles=tiles, rows=boxes)
def test_boxes_come_back_to_where_they_were(picture, view, tiles, rows):
    shown = layout(picture, view, tiles)
    found = np.array(rows, np.float32).reshape(-1, 4)
    for index in range(len(shown.lefts)):
        there = shown.to_picture(found, index)
        np.testing.assert_allclose(shown.to_view(there, index), found, atol=2e-3)


@settings(max_examples=50)
@given(picture=sizes, view=views, tiles=tiles)
def test_the_views_show_the_whole_picture(picture, view, tiles):
    shown = layout(picture, view, tiles)
    assert 1 <= len(shown.lefts) <= tiles
    assert shown.lefts[0] == 0
    last = len(shown.lefts) - 1
    ends = [left + shown.shown(index)[0] for index, left in enumerate(shown.lefts)]
    assert ends[last] == shown.scaled[0]
    for end, left in zip(ends, shown.lefts[1:], strict=False):
        assert end - left >= view[0] * OVERLAP - 1
    assert shown.scaled[1] <= view[1]


@settings(max_examples=50)
@given(picture=sizes, view=views, tiles=tiles)
def test_the_aspect_is_kept_to_a_pixel(picture, view, tiles):
    shown = layout(picture, view, tiles)
    scale = min(view[0] * (tiles - (tiles - 1) * OVERLAP) / picture[0], view[1] / picture[1])
    for side, scaled in zip(picture, shown.scaled, strict=True):
        assert abs(side * scale - scaled) <= 1


def test_one_view_of_a_wide_picture_is_a_letterbox():
    shown = layout((1242, 375), (416, 416), 1)
    assert shown.scaled == (416, 126)
    assert shown.lefts == (0,)


def test_three_views_of_a_wide_picture_see_more_of_it():
    shown = layout((1242, 375), (416, 416), 3)
    assert shown.scaled == (1082, 327)
    assert shown.lefts == (0, 333, 666)


def test_a_picture_that_fills_a_view_is_not_cut_up():
    assert layout((400, 400), (416, 416), 3).lefts == (0,)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_box_of_the_picture_is_where_the_view_shows_it(index):
    rgb = np.zeros((100, 520, 3), np.uint8)
    shown = layout((520, 100), (200, 200), 3)  # 520 = 2.6 * 200: views at 0, 160, 320, not scaled
    left = 160 * index + 50
    rgb[20:60, left : left + 30] = (200, 100, 50)
    view = shown.views(rgb)[index]
    marked = np.argwhere(view[..., 0] == 200)
    top, near = marked.min(axis=0)
    bottom, far = marked.max(axis=0) + 1
    box = np.array([[left, 20, left + 30, 60]], np.float32)
    assert shown.to_view(box, index).tolist() == [[near, top, far, bottom]]


def test_what_a_view_does_not_show_is_grey():
    full = canvas(np.full((2, 3, 3), 9, np.uint8), (4, 4), 114)
    assert full.shape == (4, 4, 3)
    assert (full[:2, :3] == 9).all()
    assert (full[2:] == 114).all()
    assert (full[:, 3:] == 114).all()
