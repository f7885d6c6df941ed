"""KITTI's labelled frames as a log: objects where their points are, and a score of real data."""

from __future__ import annotations

import sys
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
TOPIC = "/lidar/velodyne/points"
PIPELINE = ROOT / "pipelines/kitti_object.yaml"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here"),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    sys.path.append(str(ROOT / "tools"))
    from kitti_log import write_log  # noqa: PLC0415

    path = tmp_path_factory.mktemp("kitti") / "object.mcap"
    assert write_log(DATA, path) == 5
    return path


def test_boxes_hold_the_points_that_a_published_reader_counts(log):
    with open_log(log) as reader:
        truth = list(read_truth(reader))[2].truth
        clouds = [decode(raw, "lidar").payload for raw in reader.messages([TOPIC])]
    # frame 000008, six cars in the order of its labels; the first and the third leave the image
    found = [_inside(clouds[2].xyz, one.box) for one in truth.objects]
    assert [found[1], *found[3:]] == pytest.approx([1940, 668, 53, 164], abs=8)


def test_every_object_has_an_id_of_its_own_and_a_place_ahead(log):
    with open_log(log) as reader:
        found = [one for scene in read_truth(reader) for one in scene.truth.objects]
    assert len({one.id for one in found}) == len(found) == 29
    assert all(0 < one.box.x < 80 for one in found)


def test_the_lidar_detector_is_scored_by_range(log):
    run = log.with_name("scored.mcap")
    avrt.Pipeline.load(PIPELINE).replay(log, out=run)
    score = score_run(run).stages["lidar_detect"]
    assert (score.whole.recall.count, score.whole.recall.of) == (25, 27)
    assert (score.whole.precision.count, score.whole.precision.of) == (25, 125)
    assert [part.recall.of for part in score.by_range] == [4, 7, 10, 5, 1, 0]
