"""Reports from the field of transforms that were missing, not quite unit, old, or sent for ever."""

import math

import numpy as np
import pytest

import avrt
from avrt.errors import SpecError
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.transforms import read_transforms
from avrt.model.frames import Frames
from avrt.model.spec import SourceSpec
from avrt.payload.projection import moved
from cases import field

REPORTS = ("TF-01", "TF-03", "TF-05", "TF-07")
PIPELINE = """
pipeline: field
sources:
  lidar: {{type: lidar, topic: /lidar}}
calibration: {{tf: {tf}{more}}}
stages:
  detect:
    run: avrt.stages.lidar.detector:Detector
    params: {{frame: base_link}}
    inputs: {{cloud: lidar}}
    wcet: 1 ms
    deadline: 1 s
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return field.generated(tmp_path_factory.mktemp("transforms"), "gen_a_img.py", REPORTS)


@pytest.fixture
def replay(folder, tmp_path):
    """Return a function that replays the log of TF-01 with a calibration."""

    def run(tf, more=""):
        path = tmp_path / "field.yaml"
        path.write_text(PIPELINE.format(tf=tf, more=more), encoding="utf-8")
        return avrt.Pipeline.load(path).replay(folder / "TF-01_nostatic.mcap").data

    return run


def test_tf_01_what_is_missing_is_named_with_its_frames_and_its_topic(folder, replay):
    """Every job fails with the same reason at once; nothing waits for a transform."""
    answer = field.answer(folder, "TF-01")
    data = replay("[/tf]")
    assert data["faults"] == {"detect: no_transform": 10}
    reason = data["stages"]["detect"]["first_fault"]
    assert [name for name in answer["must_name"] if name not in reason] == []
    assert "known are base_link, odom; told by /tf, none by /tf_static" in reason
    assert "calibration.frames" in reason


def test_tf_01_a_topic_that_the_log_lacks_is_told_before_the_run(replay):
    with pytest.raises(SpecError, match=r"no topic '/tf_static'; .*/tf.* calibration\.frames"):
        replay("[/tf, /tf_static]")


def test_tf_01_the_pipeline_file_may_say_where_the_sensor_is(replay):
    place = "{parent: base_link, translation: [1 m, 0 m, 1.8 m], rotation: [0 deg, 0 deg, 0 deg]}"
    data = replay("[/tf]", f", frames: {{lidar: {place}}}")
    assert data["faults"] == {}
    assert data["stages"]["detect"]["jobs"]["met"] == 10


def test_tf_03_a_quaternion_within_a_hundredth_of_unit_length_is_made_one(folder):
    """Further off it is no rotation: told and left out, as tf2 does at the same limit."""
    answer = field.answer(folder, "TF-03")
    with open_log(folder / "TF-03_norm.mcap") as log:
        (spec,), (odd,) = read_transforms(log, ["/tf"])
    assert (odd.kind, odd.count) == ("transform_invalid", len(answer["norms"]) - 3)
    assert "odom to base_link" in odd.detail
    assert math.atan2(spec.matrix[4], spec.matrix[0]) == pytest.approx(answer["yaw"])
    turned = moved(np.array([[3.0, -4.0, 12.0]]), spec.matrix)
    assert np.linalg.norm(turned) == pytest.approx(13.0, abs=1e-9)


@pytest.mark.parametrize("name", ["oldstatic", "zerostatic"])
def test_tf_05_a_mounting_is_valid_at_all_times(folder, name):
    answer = field.answer(folder, "TF-05")
    with open_log(folder / f"TF-05_{name}.mcap") as log:
        specs, odd = read_transforms(log, ["/tf_static"])
        messages = list(MergedLog(log, [SourceSpec(name="lidar", type="lidar", topic="/lidar")]))
    frames = Frames(specs)
    placed = [moved(m.payload.xyz, frames.between(m.frame, "base_link")) for m in messages]
    assert len(placed) == answer["lookups_ok"]
    for xyz in placed:
        assert xyz[0] == pytest.approx(answer["point_in_base"])
    assert odd == []


@pytest.mark.slow
def test_tf_07_a_transform_that_is_sent_again_is_kept_once_and_told_never(folder):
    answer = field.answer(folder, "TF-07")
    with open_log(folder / "TF-07_samestamp.mcap") as log:
        assert log.topics()["/tf"].messages == answer["messages"]
        specs, odd = read_transforms(log, ["/tf"])
    assert len(specs) == answer["kept"]
    assert sum(anomaly.count for anomaly in odd) <= answer["warnings_max"]
    assert odd == []
