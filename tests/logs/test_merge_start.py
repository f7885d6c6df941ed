"""A log may be played from some time on; what is told once for all counts from before, too."""

from __future__ import annotations

import pytest

from avrt.errors import SpecError
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
LIDAR = SourceSpec(name="roof", type="lidar", topic="/lidar")
CAMERA = SourceSpec(name="front", type="camera", topic="/camera", info_topic="/camera_info")


def play(path, *sources, start_ns, loops=1):
    with open_log(path) as log:
        merged = MergedLog(log, sources, loops, start_ns=start_ns)
        return merged, list(merged)


@pytest.mark.parametrize("start_ns", [0, 1, 100 * MS, 150 * MS, 900 * MS])
@pytest.mark.parametrize("loops", [1, 2])
def test_each_pass_has_the_messages_from_its_start_on(make_drive, start_ns, loops):
    merged, messages = play(make_drive(10), LIDAR, start_ns=start_ns, loops=loops)
    skipped = -(-start_ns // (100 * MS))
    left = 10 - skipped
    stamps = [START_NS + k * 100 * MS for k in range(skipped, 10)]
    assert [m.raw_header_ns for m in messages] == stamps * loops
    assert merged.zero_ns == stamps[0]
    if left > 1:
        assert [m.log_ns for m in messages] == [k * 100 * MS for k in range(left * loops)]
    counted = merged.topics()["/lidar"]
    assert counted.messages == 10 * loops
    assert (counted.delivered, counted.lost, counted.unread) == (left * loops, 0, skipped * loops)


def test_a_start_behind_the_end_is_refused(make_drive):
    with pytest.raises(
        SpecError, match="/lidar: start: nothing of the sources' topics comes later"
    ):
        play(make_drive(10), LIDAR, start_ns=2_000 * MS)


def test_messages_that_are_lost_behind_the_start_are_no_mistake_of_the_user(tmp_path):
    with LogWriter(tmp_path / "a.mcap") as log:
        for at_ns in range(0, 1_000 * MS, 100 * MS):
            log.add_raw("/lidar", "sensor_msgs/msg/PointCloud2", at_ns, b"no cloud")
    merged, messages = play(tmp_path / "a.mcap", LIDAR, start_ns=500 * MS)
    counted = merged.topics()["/lidar"]
    assert (messages, counted.lost, counted.unread) == ([], 5, 5)


def test_a_camera_model_of_before_the_start_counts(log_path):
    """The first image after it has the model that was logged before."""
    _, messages = play(log_path, CAMERA, start_ns=200 * MS)
    assert len(messages) == 3
    assert all(message.payload.info is not None for message in messages)
