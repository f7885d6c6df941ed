import numpy as np
import pytest

from avrt.errors import DamagedInputError
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec
from avrt.payload import PointCloud, Targets

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
S = 1000 * MS
LIDAR = SourceSpec(name="roof", type="lidar", topic="/lidar")
CAMERA = SourceSpec(name="front", type="camera", topic="/camera", info_topic="/camera_info")
ONE = np.ones((1, 3), np.float32)


def play(path, *sources, loops=1):
    with open_log(path) as log:
        merged = MergedLog(log, sources, loops)
        return merged, list(merged)


def test_each_pass_goes_on_one_usual_step_after_the_one_before(make_drive):
    merged, messages = play(make_drive(5), LIDAR, loops=3)
    expected = [k * 100 * MS for k in range(15)]
    assert [m.log_ns for m in messages] == [m.capture_ns for m in messages] == expected
    assert [m.sequence for m in messages] == list(range(15))
    assert [m.epoch for m in messages] == [0] * 5 + [1] * 5 + [2] * 5
    assert [m.raw.log_ns - START_NS for m in messages] == expected
    assert [m.raw_header_ns for m in messages] == [START_NS + k * 100 * MS for k in range(5)] * 3
    counted = merged.topics()["/lidar"]
    assert (counted.messages, counted.delivered, counted.lost, counted.unread) == (15, 15, 0, 0)
    assert [(a.kind, a.topic, a.at_ns, a.count) for a in merged.anomalies] == [
        ("loop", None, 400 * MS, 2)
    ]


def test_one_pass_is_as_it_was_and_has_no_note(make_drive):
    merged, messages = play(make_drive(5), LIDAR)
    assert [m.epoch for m in messages] == [0] * 5
    assert merged.anomalies == []


def test_what_is_odd_is_told_for_the_first_pass_only(make_drive):
    drive = make_drive(6, stamp_ns=lambda log_ns: log_ns - 64 * S - log_ns % (200 * MS))
    once = {(a.kind, a.count) for a in play(drive, LIDAR)[0].anomalies}
    thrice, messages = play(drive, LIDAR, loops=3)
    assert once == {("clock_offset", 1), ("stamp_duplicate", 3)}
    assert {(a.kind, a.count) for a in thrice.anomalies} == once | {("loop", 2)}
    assert [m.capture_ns for m in messages[6:12]] == [m.capture_ns + 600 * MS for m in messages[:6]]


def test_lost_messages_count_in_every_pass(tmp_path):
    with LogWriter(tmp_path / "log.mcap") as log:
        log.add_cloud("/lidar", "l", START_NS, ONE)
        log.add_raw("/lidar", "sensor_msgs/msg/PointCloud2", START_NS + 5, b"")
        log.add_cloud("/lidar", "l", START_NS + 10, ONE)
    merged, messages = play(tmp_path / "log.mcap", LIDAR, loops=2)
    counted = merged.topics()["/lidar"]
    assert (counted.messages, counted.delivered, counted.lost) == (6, 4, 2)
    assert len(messages) == 4


def test_an_image_of_a_later_pass_has_the_info_of_its_own_pass(log_path):
    _, once = play(log_path, CAMERA)
    _, twice = play(log_path, CAMERA, loops=2)
    first = [m.payload.info and m.payload.info.width_px for m in once]
    assert [m.payload.info and m.payload.info.width_px for m in twice] == first * 2
    assert [m.raw_info.log_ns for m in twice] == [m.raw.log_ns for m in twice]


def test_a_damaged_log_is_not_played_again(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", frames=20, chunk_bytes=3000)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with open_log(path) as log:
        merged, messages = MergedLog(log, [LIDAR], 3), []
        with pytest.raises(DamagedInputError):
            messages.extend(merged)
    assert {m.epoch for m in messages} == {0}


def test_a_log_of_one_message_is_played_at_one_time(make_drive):
    assert [m.log_ns for m in play(make_drive(1), LIDAR, loops=2)[1]] == [0, 0]


def test_stamps_that_begin_anew_within_a_log_begin_an_epoch_of_their_source(make_drive):
    drive = make_drive(
        60, topics=("/lidar", "/other"), stamp_ns=lambda ns: START_NS + (ns - START_NS) % (2 * S)
    )
    merged, messages = play(drive, LIDAR)
    assert [m.epoch for m in messages] == [k // 20 for k in range(60)]
    assert [m.capture_ns for m in messages] == [k * 100 * MS for k in range(60)]
    assert [(a.kind, a.at_ns, a.count) for a in merged.anomalies] == [("loop", 2 * S, 2)]
    twice = play(drive, LIDAR, loops=2)[1]
    assert [m.epoch for m in twice] == [k // 20 for k in range(120)]


def test_one_cloud_is_a_sweep_to_a_lidar_and_targets_to_a_radar(make_drive):
    radar = SourceSpec(name="front", type="radar", topic="/lidar")
    merged, messages = play(make_drive(2), LIDAR, radar)
    assert [(m.source, type(m.payload)) for m in messages] == [
        ("roof", PointCloud), ("front", Targets),
    ] * 2  # fmt: skip
    assert merged.topics()["/lidar"].delivered == 2


def test_times_of_points_that_are_none_of_their_sweep_are_told(tmp_path):
    from avrt.logs.ros.message import cloud_message, header, structured  # noqa: PLC0415
    from avrt.logs.ros.types import CLOUD, known_types  # noqa: PLC0415

    column = np.ones(3, np.float32)
    rows = structured({"x": column, "y": column, "z": column, "time": column * 100})
    data = known_types().serialize_cdr(cloud_message(header(START_NS, "l"), rows), CLOUD)
    with LogWriter(tmp_path / "log.mcap") as log:
        log.add_raw("/lidar", CLOUD, START_NS, bytes(data))
    merged, (message,) = play(tmp_path / "log.mcap", LIDAR)
    assert message.payload.seconds is None
    assert [a.kind for a in merged.anomalies] == ["point_times"]


def test_passes_over_a_damaged_log_that_were_not_played_are_unread_and_not_lost(make_drive):
    drive = make_drive(60, points=40, chunk_bytes=2000)
    data = bytearray(drive.read_bytes())
    data[len(data) // 2] ^= 0xFF
    drive.write_bytes(bytes(data))
    with open_log(drive) as log:
        merged = MergedLog(log, [LIDAR], 3)
        with pytest.raises(DamagedInputError):
            list(merged)
        counted = merged.topics()["/lidar"]
    assert 0 < counted.delivered < 60
    assert (counted.messages, counted.lost) == (180, 60 - counted.delivered)
    assert counted.unread == 120


@pytest.mark.parametrize("jump", [0, 37 * S])
def test_another_pass_begins_with_the_first_offset(make_drive, jump):
    """Though the clock had jumped in the pass before; what is odd is told in the first one only."""
    drive = make_drive(40, stamp_ns=lambda at: at - 64 * S + jump * (at >= START_NS + 2 * S))
    merged, messages = play(drive, LIDAR, loops=2)
    assert [m.capture_ns for m in messages] == [m.log_ns for m in messages]
    assert [m.epoch for m in messages] == [0] * 40 + [1] * 40
    told = {"clock_offset": 1, "loop": 1} | ({"stamp_jump": 1} if jump else {})
    assert {a.kind: a.count for a in merged.anomalies} == told
