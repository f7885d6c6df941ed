"""The pipeline that `avrt info` makes for a log, and that `avrt replay` runs without one."""

from pathlib import Path

import pytest
from mcap.writer import Writer

from avrt.api import Pipeline
from avrt.api.fitting import fitting_text
from avrt.config.pipeline import parse
from avrt.errors import InputError, SpecError
from avrt.logs.survey.survey import survey_log
from avrt.logs.writer import LogWriter

DATA = Path(__file__).parents[2] / "shared" / "data"
CLOUD = "sensor_msgs/msg/PointCloud2"
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


def write(path, times, *topics, kind=CLOUD):
    """Write a log whose topics have a message at each time (ns); nothing in them can be decoded."""
    with LogWriter(path) as log:
        for at_ns in times:
            for topic in topics:
                log.add_raw(topic, kind, at_ns, b"\0\1\0\0")
    return path


@pytest.mark.parametrize(
    ("step_ns", "rate"),
    [(1, "1000000000 Hz"), (10**5, "10000 Hz"), (20 * 10**9, "0.05 Hz"), (10**13, "0.01 Hz")],
)
def test_a_sensor_may_be_as_fast_or_slow_as_it_likes(tmp_path, step_ns, rate):
    log = write(tmp_path / "a.mcap", [step_ns * k for k in range(5)], "/lidar")
    text = fitting_text(log, survey_log(log))
    assert f"rate: {rate}" in text
    assert parse(text, "fit").spec.stages


@pytest.mark.parametrize("name", ["", "/li\ndar: [x", "/a\0b", "/\x1b[31m", "/a\u2028b"])
def test_a_topic_whose_name_no_file_can_hold_is_left_out_and_told(tmp_path, name):
    log = write(tmp_path / "a.mcap", range(0, 10**9, 10**8), name, "/lidar")
    text = fitting_text(log, survey_log(log))
    assert f"# left out: {name!r}, its name" in text
    assert [source.topic for source in parse(text, "fit").spec.sources] == ["/lidar"]


def test_a_frame_whose_name_no_file_can_hold_is_told_and_the_others_are_placed(tmp_path):
    path = tmp_path / "a.mcap"
    with LogWriter(path) as log:
        for at_ns, frame in enumerate([b"roof", b"li\nd", b"roof"]):
            data = b"\0\1\0\0" + (1).to_bytes(4, "little") + bytes(4) + b"\5\0\0\0" + frame + b"\0"
            log.add_raw("/lidar", CLOUD, at_ns, data)
    text = fitting_text(path, survey_log(path))
    assert r"# the lidar names a frame that no file can hold: 'li\nd'" in text
    assert [placed.child for placed in parse(text, "fit").spec.transforms] == ["roof"]


def test_a_topic_of_several_types_that_a_source_cannot_have_is_left_out(tmp_path):
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        channels = [
            writer.register_channel("/x", "cdr", writer.register_schema(kind, "ros2msg", b""))
            for kind in (CLOUD, "sensor_msgs/msg/Imu")
        ]
        for at_ns in range(0, 10**9, 10**8):
            for channel in channels:
                writer.add_message(channel, at_ns, b"\0\1\0\0", at_ns)
        writer.finish()
    with pytest.raises(SpecError, match=r"/x \(.*PointCloud2: expected a topic of .*, found .*Imu"):
        Pipeline.fitting(path)


@pytest.mark.parametrize(
    ("times", "why"),
    [([5], "it has no rate: expected 2 messages"), ([2**63, 2**63 + 9], "none of its messages")],
)
def test_a_sensor_that_cannot_be_played_is_told_with_the_reason(tmp_path, times, why):
    with pytest.raises(SpecError, match=rf"/lidar \(sensor_msgs/msg/PointCloud2: {why}"):
        Pipeline.fitting(write(tmp_path / "a.mcap", times, "/lidar"))


def test_of_a_log_with_many_topics_that_nothing_reads_the_first_are_named(tmp_path):
    topics = [f"/words{k:02}" for k in range(12)]
    log = write(tmp_path / "a.mcap", [1, 2], *topics, kind="std_msgs/msg/String")
    with pytest.raises(SpecError, match=r"/words09 \(std_msgs/msg/String\), and 2 more$"):
        Pipeline.fitting(log)


def test_a_damaged_log_with_nothing_good_is_not_the_users_mistake(tmp_path):
    path = tmp_path / "cut.mcap"
    path.write_bytes(write(tmp_path / "a.mcap", [1, 2], "/lidar").read_bytes()[:20])
    with pytest.raises(InputError, match=r"no pipeline fits: .* it is damaged: .*byte 8"):
        Pipeline.fitting(path)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here")
@pytest.mark.parametrize(("name", "sources"), SOURCES.items())
def test_real_logs_get_the_sensors_they_have(name, sources):
    pipeline = Pipeline.fitting(DATA / name)
    assert {source.name for source in pipeline.check().sources} == set(sources)
