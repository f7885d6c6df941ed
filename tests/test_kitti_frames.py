"""KITTI's labelled frames as they are unpacked: objects where their points are, and a score."""

from __future__ import annotations

from pathlib import Path

import pytest

import avrt
from avrt.logs.decode import decode
from avrt.logs.reader import open_log
from avrt.logs.truth import read_truth
from avrt.report.score.run import score_run
from avrt.report.score.scenes import _inside

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared/data/kitti_object_labelled"
TOPIC = "/lidar/velodyne/points_in_image"
PIPELINE = ROOT / "pipelines/kitti_object.yaml"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


def test_boxes_hold_the_points_that_a_published_reader_counts():
    with open_log(DATA) as reader:
        truth = list(read_truth(reader))[2].truth
        clouds = [decode(raw, "lidar").payload for raw in reader.messages([TOPIC])]
    # frame 000008, six cars in the order of its labels; the first and the third leave the image
    found = [_inside(clouds[2].xyz, one.box) for one in truth.objects]
    assert [found[1], *found[3:]] == pytest.approx([1940, 668, 53, 164], abs=8)


def test_every_object_has_an_id_of_its_own_and_a_place_ahead():
    with open_log(DATA) as reader:
        found = [one for scene in read_truth(reader) for one in scene.truth.objects]
    assert len({one.id for one in found}) == len(found) == 29
    assert all(0 < one.box.x < 80 for one in found)


def test_points_outside_the_image_are_left_out_where_only_labelled_ones_are_wanted():
    with open_log(DATA) as reader:
        whole = [decode(raw, "lidar").payload for raw in reader.messages([TOPIC[:-9]])]
        seen = [decode(raw, "lidar").payload for raw in reader.messages([TOPIC])]
    assert [cloud.count for cloud in whole] == [115_384, 126_891, 122_555, 121_784, 19_097]
    assert all(2 * part.count < cloud.count for cloud, part in zip(whole[:4], seen, strict=False))


def test_the_lidar_detector_is_scored_by_range(tmp_path):
    run = tmp_path / "scored.mcap"
    avrt.Pipeline.load(PIPELINE).replay(DATA, out=run)
    score = score_run(run).stages["lidar_detect"]
    assert (score.whole.recall.count, score.whole.recall.of) == (25, 27)
    assert (score.whole.precision.count, score.whole.precision.of) == (25, 125)
    assert [part.recall.of for part in score.by_range] == [4, 7, 10, 5, 1, 0]
