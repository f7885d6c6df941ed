"""Boxes appear in the image where a pinhole camera shows them, and only those in front of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from avrt.errors import DataFault
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import Box, CameraInfo, Image, Track, Tracks
from avrt.payload.projection import box_corners, moved_box, projected_edges, seen_from
from avrt.stages.camera.overlay import Overlay

FOCAL, CENTRE = 700.0, (600.0, 180.0)
PROJECTION = np.array([[FOCAL, 0, CENTRE[0], 0], [0, FOCAL, CENTRE[1], 0], [0, 0, 1, 0]])
AHEAD = (0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # camera beside LiDAR
IMAGE = Image("jpeg", np.zeros(0, np.uint8), info=CameraInfo(1242, 375, PROJECTION))


def track(x, y=0.0, *, confirmed=True):
    return Track(
        id=9,
        label="car",
        box=Box(x, y, 0.0, 4.0, 2.0, 1.5, 0.0),
        vx=0.0,
        vy=0.0,
        closing_speed=0.0,
        covariance=np.eye(5),
        existence=1.0,
        hits=5,
        misses=0,
        confirmed=confirmed,
        sensors=("lidar",),
        nearest_x=x - 2.0,
        points=np.zeros((0, 3), np.float32),
    )


def mounted(matrix=AHEAD):
    overlay = Overlay()
    overlay.calibrate(Frames([TransformSpec(parent="camera", child="lidar", matrix=matrix)]))
    return overlay


def shown(sent, *tracks, image=IMAGE, matrix=AHEAD):
    return mounted(matrix).process(
        sent(image, frame="camera"), sent(Tracks(tracks, 0.0), frame="lidar")
    )


def test_a_known_corner_appears_at_its_pixel(sent):
    boxes = shown(sent, track(12.0))
    assert boxes.labels == ("9 car",)
    assert boxes.edges.shape == (1, 12, 2, 2)
    corners = {tuple(point) for point in boxes.edges[0].reshape(-1, 2).round(2).tolist()}
    assert (600.0 - 70.0, 180.0 + 52.5) in corners  # x 10 m, y +1 m, z -0.75 m


def test_the_calibration_moves_the_box(sent):
    moved = (*AHEAD[:3], 1.0, *AHEAD[4:])
    before, after = shown(sent, track(12.0)), shown(sent, track(12.0), matrix=moved)
    near = before.edges[0, :, :, 0].min()
    assert after.edges[0, :, :, 0].min() == pytest.approx(near + 70.0, abs=1e-3)


def test_a_box_behind_the_camera_is_dropped(sent):
    boxes = shown(sent, track(-12.0), track(12.0))
    assert len(boxes.labels) == 1
    assert shown(sent, track(-12.0)).edges.shape == (0, 12, 2, 2)


def test_edges_are_cut_before_the_lens(sent):
    boxes = shown(sent, track(1.0))
    assert np.isnan(boxes.edges).any()
    kept = boxes.edges[np.isfinite(boxes.edges).all(axis=(2, 3))]
    assert len(kept) == 8
    edges = projected_edges(box_corners(track(1.0).box)[None], seen_from(PROJECTION, AHEAD))
    assert np.nanmax(np.abs(edges - CENTRE)) <= FOCAL * 1.0 / 0.5 + 1e-6


def test_tentative_tracks_are_not_shown(sent):
    assert shown(sent, track(12.0, confirmed=False)).labels == ()


def test_no_tracks_and_no_camera_model_mean_no_boxes(sent):
    overlay = mounted()
    assert overlay.process(sent(IMAGE), None).labels == ()
    bare = replace(IMAGE, info=None)
    assert overlay.process(sent(bare), sent(Tracks((track(12.0),), 0.0))).labels == ()


def test_a_box_is_moved_on_to_the_instant_of_the_image():
    moving = replace(track(12.0), vx=5.0, vy=-1.0)
    moved = moved_box(moving, Tracks((moving,), 7.0), 0.5)
    assert (moved.x, moved.y) == (11.0, -0.5)
    turning = moved_box(moving, Tracks((moving,), 7.0, yaw_rate=0.1), 0.5)
    assert (turning.x, turning.y) == pytest.approx((11.0, -0.5 - 0.6))


def test_a_camera_whose_place_is_not_known_is_a_fault_that_names_both_frames(sent):
    tracks = sent(Tracks((track(12.0),), 0.0), frame="lidar")
    with pytest.raises(DataFault, match="'lidar' to 'camera'"):
        Overlay().process(sent(IMAGE, frame="camera"), tracks)
