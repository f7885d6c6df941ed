"""Every folder that is a log is told about and replayed without a pipeline file, as small as it is.

`avrt info` and the pipeline that fits, which `avrt replay` takes where none is given.
"""

from __future__ import annotations

import pytest
import small_sets

from avrt.api import Pipeline
from avrt.logs.survey.survey import survey_log

SETS = {
    "KITTI raw drive": (small_sets.write_kitti_raw, {"lidar", "camera", "imu", "gnss", "speed"}),
    "KITTI tracking sequence": (
        small_sets.write_kitti_tracking,
        {"lidar", "camera", "imu", "gnss", "speed"},
    ),
    "KITTI object frames": (small_sets.write_kitti_frames, {"lidar", "camera"}),
    "nuScenes scene": (small_sets.write_nuscenes, {"lidar", "radar", "camera", "speed"}),
}


@pytest.mark.parametrize("name", SETS)
def test_it_is_told_what_is_in_it(tmp_path, name):
    write, _ = SETS[name]
    found = survey_log(write(tmp_path))
    assert found.format == name
    assert found.complete
    assert found.damage is None
    assert [anomaly.kind for anomaly in found.anomalies] == []
    assert all(topic.read == topic.messages > 0 for topic in found.topics)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_it_replays_by_the_pipeline_that_fits(tmp_path, name):
    write, sources = SETS[name]
    log = write(tmp_path)
    pipeline = Pipeline.fitting(log)
    assert {source.name for source in pipeline.check().sources} == sources
    assert "track" in {stage.name for stage in pipeline.check().stages}
    report = pipeline.replay(log, out=tmp_path / "run.mcap")
    assert report.jobs["met"] > 0
