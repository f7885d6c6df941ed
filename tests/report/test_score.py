"""What was there at a time, in a frame, and what of it could be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from avrt.errors import DataFault
from avrt.logs.truth import TrueScene
from avrt.logs.writer import LogWriter
from avrt.model.frames import IDENTITY, Frames, TransformSpec, placed
from avrt.model.message import Message, Stamp
from avrt.payload import (
    Box,
    CameraInfo,
    Detection,
    Detections,
    ImageDetections,
    PointCloud,
    Track,
    Tracks,
    TrueObject,
    Truth,
)
from avrt.payload.projection import box_corners
from avrt.report.score.detections import score_detections
from avrt.report.score.images import score_images
from avrt.report.score.run import _read_truth
from avrt.report.score.scenes import Present, Scenes, Sweeps, TrueWorld, on_others
from avrt.report.score.tracks import score_tracks

S = 1_000_000_000
TURNED = TransformSpec(
    parent="map", child="roof", matrix=placed((1.0, 2.0, 3.0), (0.0, 0.0, 90.0)), origin="test"
)


def car(name=1, x=10.0, y=0.0, yaw=0.0, label="car", vx=1.0):
    return TrueObject(name, label, Box(x, y, 0.0, 4.0, 2.0, 1.5, yaw), vx, 0.0)


def world(*scenes):
    return TrueWorld([TrueScene(ns, "roof", "/truth", Truth(tuple(o))) for ns, o in scenes], 0)


def test_truth_lies_on_a_line_between_its_stamps():
    found = world((0, [car(yaw=3.1)]), (S // 10, [car(x=12.0, yaw=-3.1, vx=3.0)]))
    (middle,) = found.at(S // 20)
    assert middle.box.x == pytest.approx(11.0)
    assert abs(middle.box.yaw) == pytest.approx(math.pi)
    assert middle.vx == pytest.approx(2.0)
    assert found.at(0)[0].box.x == 10.0
    assert found.at(S // 10)[0].box.x == 12.0


def test_nothing_is_known_before_after_and_in_a_hole():
    found = world((0, [car()]), (S, [car()]))
    assert found.at(-1) is None
    assert found.at(S + 1) is None
    assert found.at(S // 2) is None
    assert len(found.at(S)) == 1


def test_who_is_in_one_neighbour_only_is_where_that_says():
    found = world((0, [car(1)]), (S // 10, [car(2, x=20.0)]))
    assert [(one.id, one.box.x) for one in found.at(1)] == [(1, 10.0), (2, 20.0)]


def sweep(points, seconds=None):
    xyz = np.array(points, np.float32).reshape(-1, 3)
    return PointCloud(xyz, seconds=None if seconds is None else np.array(seconds, np.float32))


def test_five_points_in_the_box_make_an_object_count():
    there = world((0, [car(1), car(2, x=30.0), car(3, x=50.0, label="unknown")]))
    sweeps = Sweeps()
    inside = [(10.0 + 0.3 * k, 0.9, 0.7) for k in range(5)]
    outside = [(10.0, 1.1, 0.0), (12.1, 0.0, 0.0), (10.0, 0.0, 0.8)]
    others = [(30.0, 0.0, 0.0)] * 4 + [(50.0, 0.0, 0.0)] * 9
    sweeps.add("lidar", 0, sweep(inside + outside + others), IDENTITY, there)
    scenes = Scenes(there, sweeps, Frames([]))
    assert [one.counts for one in scenes.at(0)] == [True, False, False]
    sweeps = Sweeps()
    sweeps.add("lidar", 0, sweep(inside[:4] + outside), IDENTITY, there)
    assert not any(one.counts for one in Scenes(there, sweeps, Frames([])).at(0))


def test_without_a_sweep_every_object_of_a_class_counts():
    there = world((0, [car(1), car(2, label="unknown")]))
    assert [one.counts for one in Scenes(there, Sweeps(), Frames([])).at(0)] == [True, False]


def test_a_sweep_too_far_away_says_nothing():
    there = world(*((k * S // 10, [car()]) for k in range(5)))
    sweeps = Sweeps()
    sweeps.add("lidar", 0, sweep([(10.0, 0.0, 0.0)] * 5), IDENTITY, there)
    scenes = Scenes(there, sweeps, Frames([]))
    assert scenes.at(S // 10)[0].counts
    assert scenes.at(3 * S // 10) is None


def test_points_count_where_the_object_was_when_they_were_measured():
    there = world((0, [car(x=10.0)]), (S // 10, [car(x=20.0)]))
    sweeps = Sweeps()
    points = [(19.0, 0.0, 0.0)] * 5
    sweeps.add("late", 0, sweep(points, [0.095] * 5), IDENTITY, there)
    assert sweeps.seen(0) == {1}
    sweeps = Sweeps()
    sweeps.add("early", 0, sweep(points, [0.0] * 5), IDENTITY, there)
    assert sweeps.seen(0) == set()


def test_what_is_found_at_an_object_that_does_not_count_is_not_false():
    there = [
        Present(car(1), counts=True),
        Present(car(2, x=30.0), counts=False),
        Present(car(3, x=50.0, yaw=math.pi / 2), counts=False),
    ]
    places = [(10.5, 0.0), (30.0, 0.5), (31.9, 0.9), (50.0, 1.9), (51.9, 0.0), (10.0, 0.9)]
    pairs = [(0, 0), (1, 1)]
    assert on_others(there, places, pairs) == {1, 2, 3}


def test_another_frame_is_turned_and_moved():
    scenes = Scenes(world((0, [car(x=10.0)])), Sweeps(), Frames([TURNED]))
    (one,) = scenes.in_frame(0, "map")
    assert one.place == pytest.approx((1.0, 12.0))
    assert one.object.box.yaw == pytest.approx(math.pi / 2)
    assert (one.object.vx, one.object.vy) == pytest.approx((0.0, 1.0))
    assert one.object.box.z == pytest.approx(3.0)
    with pytest.raises(DataFault):
        scenes.in_frame(0, "nowhere")


def seen(boxes, labels, *, info=True):
    projection = np.array([[500.0, 0, 320, 0], [0, 500, 240, 0], [0, 0, 1, 0]])
    model = CameraInfo(640, 480, projection) if info else None
    payload = ImageDetections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.ones(len(boxes), np.float32),
        labels,
        640,
        480,
        model,
    )
    return [Message(Stamp("camera", 0, 0, 0, 0, "cam"), payload)]


OPTICAL = TransformSpec(
    parent="roof", child="cam", matrix=placed((0.0, 0.0, 0.0), (-90.0, 0.0, -90.0)), origin="test"
)
# near face at x = 8: 500 / 8 pixels a metre; 2 m wide and 1.5 m high
OUTLINE = (320 - 62.5, 240 - 46.875, 320 + 62.5, 240 + 46.875)


@pytest.mark.parametrize(
    ("label", "boxes", "found", "right", "of"),
    [
        ("car", [OUTLINE], 1, 1, 1),
        ("car", [(0.0, 0.0, 50.0, 50.0)], 0, 0, 1),
        ("car", [(0.0, 0.0, 20.0, 20.0)], 0, 0, 0),  # lower than 25 pixels: neither
        ("car", [OUTLINE, OUTLINE], 1, 1, 2),
        ("pedestrian", [OUTLINE], 0, 0, 1),
    ],
)
def test_a_box_is_right_where_it_overlaps_an_object_of_its_kind(label, boxes, found, right, of):
    scenes = Scenes(world((0, [car()])), Sweeps(), Frames([OPTICAL]))
    score = score_images(seen(boxes, (label,) * len(boxes)), scenes)
    assert (score.recall.count, score.recall.of) == (found, 1)
    assert (score.precision.count, score.precision.of) == (right, of)
    assert score.by_height[1] == [found, 1]
    assert score.by_range[1] == [found, 1]


def test_what_does_not_count_is_neither_found_nor_missed():
    behind, beside = car(1, x=-10.0), car(2, x=10.0, y=8.0)
    nameless = car(3, label="unknown")
    scenes = Scenes(world((0, [behind, beside, nameless])), Sweeps(), Frames([OPTICAL]))
    score = score_images(seen([OUTLINE], ("car",)), scenes)
    assert score.recall.of == 0
    assert score.precision.of == 0


def test_a_camera_without_a_model_is_told():
    scenes = Scenes(world((0, [car()])), Sweeps(), Frames([OPTICAL]))
    with pytest.raises(DataFault, match="no model"):
        score_images(seen([OUTLINE], ("car",), info=False), scenes)


def test_what_a_stage_says_of_no_place_is_false_and_of_no_probability_nothing():
    scenes = Scenes(world((0, [car()])), Sweeps(), Frames([]))
    nowhere, none = Box(math.nan, math.inf, 0.0, 4.0, 2.0, 1.5, 0.0), np.zeros((0, 3), np.float32)
    stamp = Stamp("lidar", 0, 0, 0, 0, "roof")
    found = Detections((Detection(nowhere, "car", None, none, 0, math.nan),))
    detections = score_detections([Message(stamp, found)], scenes)
    assert (detections.whole.precision.count, detections.whole.precision.of) == (0, 1)
    track = Track(
        1, "car", nowhere, 0.0, 0.0, 0.0, np.eye(5), math.nan, 1, 0, True, (), math.nan, none
    )  # fmt: skip
    tracks = score_tracks([Message(stamp, Tracks((track,), 0.0))], scenes)
    assert tracks.said == ()
    assert tracks.data()["existence"]["brier"] is None


def test_the_corners_of_a_turned_box():
    found = box_corners(Box(1.0, 2.0, 3.0, 4.0, 2.0, 1.5, math.pi / 2))
    assert found.max(axis=0) == pytest.approx((2.0, 4.0, 3.75))
    assert found.min(axis=0) == pytest.approx((0.0, 0.0, 2.25))


def truths(path, *topics, x=10.0):
    with LogWriter(path) as log:
        for topic in topics:
            log.add_truth(topic, "roof", S, Truth((car(x=x),)))
    return path


def test_another_topic_of_truth_is_told(tmp_path):
    damage = []
    scenes = _read_truth(truths(tmp_path / "log.mcap", "/gt", "/gt2"), damage)
    assert [scene.topic for scene in scenes] == ["/gt", "/gt2"]
    assert TrueWorld(scenes, 0).topic == "/gt"
    assert damage == []


def test_truth_that_cannot_be_used_is_damage(tmp_path):
    damage = []
    assert _read_truth(truths(tmp_path / "log.mcap", "/gt", x=math.nan), damage) == []
    assert "no number" in damage[0]
