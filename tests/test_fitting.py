"""The pipeline that `avrt info` makes for a log, and that `avrt replay` runs without one."""

from pathlib import Path

import pytest

from avrt.api import Pipeline
from avrt.api.fitting import fitting_text
from avrt.errors import SpecError
from avrt.logs.survey.survey import survey_log
from avrt.logs.writer import LogWriter

DATA = Path(__file__).parents[2] / "shared" / "data"
SOURCES = {
    "radiate_tiny_foggy/radiate_tiny_foggy.mcap": ["lidar", "camera", "imu", "gnss"],
    "sick_lidar_radar_bag/rms_1xxx_lms_1xx_movement_off.bag": ["lidar", "radar"],
    "rosbags_misc/tilt_laser.bag": ["lidar", "imu", "gnss", "speed"],
    "comma2k19_example1": ["radar", "imu", "gnss", "speed"],
    "kitti_sfnd_seq/kitti_sfnd_7p8s.mcap": ["lidar", "camera"],
    "kitti_object_labelled": ["lidar", "camera"],
}


@pytest.mark.slow
def test_a_log_of_a_lidar_gets_a_detector_a_tracker_and_a_planner(make_drive):
    pipeline = Pipeline.fitting(make_drive(5))
    spec = pipeline.check()
    assert [source.name for source in spec.sources] == ["lidar"]
    assert [stage.name for stage in spec.stages] == ["lidar_detect", "track", "plan"]
    report = pipeline.replay(make_drive(5))
    assert (report.jobs["met"], report.misses) == (15, ())


def test_what_is_assumed_stands_in_the_file(make_drive):
    log = make_drive(5)
    text = fitting_text(log, survey_log(log))
    assert text.startswith(f"# made to fit {log.name}")
    assert "# the log does not say where the lidar is" in text


def test_a_log_that_no_stage_can_read_is_refused_with_what_is_in_it(tmp_path):
    path = tmp_path / "text.mcap"
    with LogWriter(path) as log:
        for at_ns in range(1, 5):
            log.add_raw("/words", "std_msgs/msg/String", at_ns, b"\0\1\0\0\1\0\0\0\0")
    with pytest.raises(SpecError, match=r"no stage reads any of its topics: /words \(std_msgs"):
        Pipeline.fitting(path)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here")
@pytest.mark.parametrize(("name", "sources"), SOURCES.items())
def test_real_logs_get_the_sensors_they_have(name, sources):
    pipeline = Pipeline.fitting(DATA / name)
    assert {source.name for source in pipeline.check().sources} == set(sources)
