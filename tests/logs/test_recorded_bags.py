"""Every recorded bag at hand either replays or is refused in the right words."""

from collections import Counter

import numpy as np
import pytest

from avrt.errors import InputError, SpecError
from avrt.logs import open_log
from avrt.logs.clock_map import ClockMap
from avrt.logs.merge import MergedLog
from avrt.model.spec import SourceSpec

MISC = "rosbags_misc/"
ROSBAG2 = MISC + "rosbag2/"
NEBULA = "nebula_packets/"
COUNTS = {
    MISC + "bag-with-empty-message-definition.bag": 14,
    MISC + "example-bz2.bag": 8647,
    MISC + "example-lz4.bag": 8647,
    MISC + "no-messages.bag": 0,
    MISC + "tilt_laser.bag": 4093,
    MISC + "plotjuggler_rosbag2_test": 4695,
    MISC + "plotjuggler_rosbag2_test/rosbag2_test_0.db3": 4695,
    ROSBAG2 + "cpp_bags/only_services.mcap": 12,
    ROSBAG2 + "cpp_bags/only_topics.mcap": 7,
    ROSBAG2 + "cpp_bags/topics_and_services.db3": 13,
    ROSBAG2 + "cpp_bags/topics_and_services.mcap": 13,
    ROSBAG2 + "empty_bag": 0,
    ROSBAG2 + "py_mcap/convert_a": 150,
    ROSBAG2 + "py_mcap/reindex_test_bags/multiple_files": 3177,
    ROSBAG2 + "py_mcap/talker": 20,
    ROSBAG2 + "py_mcap/wbag": 6074,
    ROSBAG2 + "py_sqlite3/reindex_test_bags/multiple_files": 3177,
    ROSBAG2 + "py_sqlite3/talker": 20,
    ROSBAG2 + "tests_mcap/bag_with_topics_and_service_events": 10,
    ROSBAG2 + "tests_mcap/cdr_test": 7,
    ROSBAG2 + "tests_mcap/wrong_rmw_test": 7,
    ROSBAG2 + "tests_sqlite3/bag_with_topics_and_service_events": 10,
    ROSBAG2 + "tests_sqlite3/cdr_test": 7,
    ROSBAG2 + "tests_sqlite3/wrong_rmw_test": 7,
    NEBULA + "ars548/1708578204": 2,
    NEBULA + "qt64/1673401195788312575": 4,
    NEBULA + "srr520/1708578209": 4,
    NEBULA + "vlp16/1673400471837873222": 4,
    NEBULA + "vlp32/1713492677464078412": 5,
    "sick_lidar_radar_bag/rms_1xxx_lms_1xx_movement_off.bag": 518,
}
SICK = "sick_lidar_radar_bag/rms_1xxx_lms_1xx_movement_off.bag"
RADIATE = "radiate_tiny_foggy/radiate_tiny_foggy.mcap"


@pytest.mark.parametrize(("path", "count"), COUNTS.items())
def test_every_bag_delivers_what_it_promises_in_order(shared, path, count):
    with open_log(shared / path) as log:
        promised = {topic: info.messages for topic, info in log.topics().items()}
        messages = list(log.messages())
        assert log.anomalies == []
    assert len(messages) == count
    assert Counter(m.topic for m in messages) == Counter(promised)
    assert [m.log_ns for m in messages] == sorted(m.log_ns for m in messages)


def play(path, *sources):
    """Return (messages by source, {(kind, topic): count}) of (type, topic) sources."""
    specs = [SourceSpec(name=topic, type=kind, topic=topic) for kind, topic in sources]
    with open_log(path) as log:
        merged = MergedLog(log, specs)
        messages = list(merged)
        counts = Counter(m.source for m in messages)
        topics = merged.topics()
        assert all(c.delivered == c.messages == counts[t] for t, c in topics.items())
    return messages, {(a.kind, a.topic): a.count for a in merged.anomalies}


@pytest.mark.parametrize(
    ("path", "kind", "topic", "what"),
    [
        (NEBULA + "ars548/1708578204", "radar", "/sensing/radar/front_center/nebula_packets",
         "nebula_msgs/msg/NebulaPackets holds the raw packets of a sensor"),
        (NEBULA + "vlp16/1673400471837873222", "lidar", "/velodyne_packets",
         "velodyne_msgs/msg/VelodyneScan holds the raw packets"),
        (NEBULA + "qt64/1673401195788312575", "lidar", "/pandar_packets",
         "pandar_msgs/msg/PandarScan holds the raw packets"),
        (MISC + "tilt_laser.bag", "imu", "/scan", "found sensor_msgs/msg/LaserScan"),
        (MISC + "tilt_laser.bag", "imu", "/imu", "the log has no topic '/imu'; did you mean"),
        (MISC + "bag-with-empty-message-definition.bag", "radar", "/led_array_status",
         "found led_array_msgs/msg/Status"),
        (ROSBAG2 + "empty_bag", "imu", "/rosout", "found rcl_interfaces/msg/Log"),
    ],
)  # fmt: skip
def test_a_topic_that_a_source_cannot_read_is_refused_in_words(shared, path, kind, topic, what):
    with pytest.raises(SpecError, match=what):
        play(shared / path, (kind, topic))


def test_a_folder_of_different_bags_asks_for_one(shared):
    with pytest.raises(InputError, match=r"found both \.db3 and \.mcap; name the file to read"):
        open_log(shared / ROSBAG2 / "cpp_bags")


def test_an_sqlite_bag_replays_its_imu(shared):
    messages, odd = play(shared / MISC / "plotjuggler_rosbag2_test", ("imu", "/imu"))
    assert len(messages) == 1565
    assert odd == {}


def test_a_ros_1_bag_that_was_logged_in_bursts_is_late_and_not_odd(shared):
    messages, odd = play(
        shared / MISC / "tilt_laser.bag",
        ("imu", "/imu_data"),
        ("gnss", "/position_gps"),
        ("lidar", "/scan"),
        ("can", "/velocity"),
    )
    assert len(messages) == 356 + 356 + 178 + 712
    late = [m.log_ns - m.capture_ns for m in messages]
    assert 1e6 < min(late) < 2e6
    assert 600e6 < max(late) < 700e6
    assert odd == {("stamp_duplicate", "/velocity"): 356}


def test_the_sick_bag_feeds_lidar_and_radar(shared):
    messages, odd = play(
        shared / SICK,
        ("lidar", "/sick_lms_1xx/scan"),
        ("lidar", "/cloud"),
        ("radar", "/cloud_radar_rawtarget"),
        ("radar", "/cloud_radar_track"),
        ("radar", "/radar"),
    )
    assert len(messages) == 89 + 89 + 139 + 108 + 34
    assert odd == {
        ("stamp_duplicate", "/cloud_radar_rawtarget"): 121,
        ("stamp_duplicate", "/cloud_radar_track"): 90,
    }
    by_source = {m.source: [] for m in messages}
    for message in messages:
        by_source[message.source].append(message.payload)
    growing = [p.count for p in by_source["/cloud_radar_track"][:6]]
    assert growing == [1, 2, 3, 4, 5, 6]
    assert by_source["/cloud_radar_track"][5].ids.tolist()[:2] == [52, 68]
    tracked = [p for p in by_source["/radar"] if not np.isnan(p.velocity).all()]
    single = [p for p in by_source["/radar"] if not np.isnan(p.range_rate).all()]
    assert len(tracked) + len(single) == 34
    assert {p.count for p in tracked} == {6}
    assert {i for p in tracked for i in p.ids.tolist()} == {-1}
    scan, cloud = by_source["/sick_lms_1xx/scan"][0], by_source["/cloud"][0]
    assert 0 < scan.count <= cloud.count == 541
    assert scan.seconds.max() <= 0.02


def test_the_radiate_log_tells_what_its_gnss_clock_does(shared):
    messages, odd = play(
        shared / RADIATE,
        ("camera", "/camera/front_left/image/compressed"),
        ("lidar", "/lidar/top/points"),
        ("radar", "/radar/navtech/polar/compressed"),
        ("gnss", "/gnss/fix"),
        ("imu", "/imu/data"),
    )
    assert len(messages) == 50 + 42 + 18 + 250 + 250
    assert odd == {
        (kind, topic): count
        for topic in ("/gnss/fix", "/imu/data")
        for kind, count in (("clock_offset", 1), ("stamp_duplicate", 125), ("stamp_gap", 1))
    }
    fixes = [m for m in messages if m.source == "/gnss/fix"]
    assert all(m.capture_ns == m.log_ns for m in fixes)
    assert {m.epoch for m in messages} == {0}


def test_the_gnss_stamps_in_the_order_of_sending_tell_the_step_back_too(shared):
    """The log was sorted by stamp, which hides a step back: two series of fixes overlap there."""
    messages, _ = play(shared / RADIATE, ("gnss", "/gnss/fix"))
    stamps = [m.raw_header_ns for m in messages]
    assert stamps == sorted(stamps)
    start_ns = stamps[0]
    second = [s for s in stamps[:50] if 30e6 < (s - start_ns) % 50e6 < 45e6]
    first = [s for s in stamps[:50] if s not in second]
    told = []
    clock = ClockMap()
    for k, stamp_ns in enumerate([*first, *second, *stamps[50:]]):
        clock.capture_ns(stamp_ns, start_ns + k * 25_000_000, lambda *odd: told.append(odd))
    assert Counter(kind for kind, _ in told) == {
        "stamp_duplicate": 125, "stamp_back": 1, "stamp_gap": 1,
    }  # fmt: skip
    details = dict(told)
    assert details["stamp_back"] == "the stamp is 360.187 ms before the one before it"
    assert details["stamp_gap"].startswith("no stamp for 460.577 ms")
    assert clock.epoch == 0
