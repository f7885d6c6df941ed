import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType

from avrt.errors import DamagedInputError, InputError, SpecError
from avrt.logs import open_log
from avrt.logs.merge import MergedLog
from avrt.logs.ros.types import CLOUD
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec
from avrt.payload import CameraInfo, Image, Lens, PointCloud

START_NS = 1_700_000_000_000_000_000
S = 1_000_000_000
LIDAR = SourceSpec(name="roof", type="lidar", topic="/lidar")
CAMERA = SourceSpec(name="front", type="camera", topic="/camera", info_topic="/camera_info")
ONE = np.ones((1, 3), np.float32)
BENT = Lens("plumb_bob", np.array([-0.3, 0.1, 0, 0, 0]), np.eye(3), np.eye(3))


def info(width):
    return CameraInfo(width, 10, np.zeros((3, 4)))


@pytest.fixture
def merge(tmp_path):
    """Write a log with the given function and merge it; return (log, messages)."""

    def run(write, *sources):
        path = tmp_path / "log.mcap"
        with LogWriter(path) as writer:
            write(writer)
        with open_log(path) as log:
            merged = MergedLog(log, sources)
            return merged, list(merged)

    return run


def test_messages_come_in_pipeline_time_with_their_info(log_path):
    with open_log(log_path) as log:
        merged = MergedLog(log, [CAMERA, LIDAR])
        assert merged.zero_ns == START_NS
        messages = list(merged)
    assert [(m.source, m.sequence, m.log_ns, m.capture_ns) for m in messages[:4]] == [
        ("roof", 0, 0, 0),
        ("front", 0, 10, 10),
        ("roof", 1, 100_000_000, 100_000_000),
        ("front", 1, 100_000_010, 100_000_010),
    ]
    lidar, camera = messages[:2]
    assert lidar.frame == "lidar_roof"
    assert lidar.raw_header_ns == START_NS
    assert lidar.raw.type == CLOUD
    assert isinstance(lidar.payload, PointCloud)
    assert lidar.payload.count == 50
    assert isinstance(camera.payload, Image)
    assert camera.payload.info.width_px == 640
    assert not merged.anomalies
    counts = {t: (c.messages, c.delivered, c.lost) for t, c in merged.topics().items()}
    assert counts == {"/camera": (5, 5, 0), "/camera_info": (5, 5, 0), "/lidar": (5, 5, 0)}


def test_equal_log_times_follow_the_pipeline_file(merge):
    def write(log):
        for sequence in range(2):
            log.add_cloud("/lidar", "l", START_NS + 1, ONE * sequence, log_ns=START_NS)
            log.add_jpeg("/camera", "c", START_NS + 1, b"", log_ns=START_NS)
        log.add_camera_info("/camera_info", "c", START_NS, info(1))

    order = [("front", 0), ("front", 1), ("roof", 0), ("roof", 1)]
    assert [(m.source, m.sequence) for m in merge(write, CAMERA, LIDAR)[1]] == order
    assert [(m.source, m.sequence) for m in merge(write, LIDAR, CAMERA)[1]] == order[2:] + order[:2]


def test_an_image_has_the_latest_info_at_or_before_it(merge):
    def write(log):
        for at_ns, add, width in [(0, "jpeg", 0), (1, "jpeg", 0), (1, "info", 1), (2, "jpeg", 0),
                                  (3, "info", 3), (3, "jpeg", 0)]:  # fmt: skip
            if add == "jpeg":
                log.add_jpeg("/camera", "c", START_NS + at_ns, b"")
            else:
                log.add_camera_info("/camera_info", "c", START_NS + at_ns, info(width))

    merged, messages = merge(write, CAMERA)
    assert [m.payload.info and m.payload.info.width_px for m in messages] == [None, 1, 1, 3]
    assert [(a.kind, a.topic, a.at_ns, a.count) for a in merged.anomalies] == [
        ("info_missing", "/camera", 0, 1)
    ]


@pytest.mark.parametrize(
    ("topic", "lens", "told"),
    [("/raw", BENT, [("lens", "/raw", 2)]), ("/image_rect", BENT, []), ("/raw", None, [])],
)
def test_an_image_that_its_lens_may_bend_is_told(merge, topic, lens, told):
    def write(log):
        log.add_camera_info("/camera_info", "c", START_NS, replace(info(1), lens=lens))
        for at_ns in (1, 2):
            log.add_jpeg(topic, "c", START_NS + at_ns, b"")

    merged, messages = merge(write, replace(CAMERA, topic=topic))
    assert [(a.kind, a.topic, a.count) for a in merged.anomalies] == told
    assert [m.payload.info.lens is None for m in messages] == [lens is None] * 2
    assert all("plumb_bob lens" in anomaly.detail for anomaly in merged.anomalies)


@pytest.mark.parametrize(
    ("ahead_ns", "declared_ns", "capture_ns", "anomalies"),
    [
        (64 * S, None, 0, ["clock_offset"]),
        (-64 * S, None, 0, ["clock_offset"]),
        (S, None, -S, []),
        (S // 2, None, -S // 2, []),
        (64 * S, 63 * S, -S, []),
        (64 * S, 0, -64 * S, []),
    ],
)
def test_clock_offsets_are_declared_or_estimated_beyond_a_second(
    merge, ahead_ns, declared_ns, capture_ns, anomalies
):
    def write(log):
        for k in range(3):
            stamp_ns = START_NS + k * 7 - ahead_ns
            log.add_cloud("/lidar", "l", stamp_ns, ONE, log_ns=START_NS + k * 10)

    source = replace(LIDAR, clock_offset_ns=declared_ns)
    merged, messages = merge(write, source)
    assert [m.capture_ns for m in messages] == [capture_ns + k * 7 for k in range(3)]
    assert [m.raw_header_ns for m in messages] == [START_NS + k * 7 - ahead_ns for k in range(3)]
    assert [(a.kind, a.count) for a in merged.anomalies] == [(kind, 1) for kind in anomalies]


def test_an_invalid_stamp_falls_back_to_the_log_time_and_is_counted(merge):
    def write(log):
        for k, stamp_ns in enumerate([0, START_NS + 3, -5 * S]):
            log.add_cloud("/lidar", "l", stamp_ns, ONE, log_ns=START_NS + k * 10)

    merged, messages = merge(write, LIDAR)
    assert [m.capture_ns for m in messages] == [0, 3, 20]
    assert [(a.kind, a.at_ns, a.count) for a in merged.anomalies] == [("stamp_invalid", 0, 2)]


def test_what_cannot_be_decoded_is_lost_and_told_and_the_rest_goes_on(merge):
    def write(log):
        log.add_raw("/lidar", CLOUD, START_NS - 5, b"\0\1\0\0junk")
        log.add_cloud("/lidar", "l", START_NS, ONE)
        log.add_raw("/lidar", CLOUD, START_NS + 5, b"")
        log.add_cloud("/lidar", "l", START_NS + 9, ONE)

    merged, messages = merge(write, LIDAR)
    assert merged.zero_ns == START_NS
    assert [(m.sequence, m.log_ns) for m in messages] == [(0, 0), (1, 9)]
    counted = merged.topics()["/lidar"]
    assert (counted.messages, counted.delivered, counted.lost) == (4, 2, 2)
    (anomaly,) = merged.anomalies
    assert (anomaly.kind, anomaly.topic, anomaly.at_ns, anomaly.count) == (
        "undecodable", "/lidar", -5, 2,
    )  # fmt: skip
    assert "expected a sensor_msgs/msg/PointCloud2" in anomaly.detail


def test_two_sources_may_read_one_topic(merge):
    def write(log):
        log.add_cloud("/lidar", "l", START_NS, ONE)

    merged, messages = merge(write, LIDAR, replace(LIDAR, name="copy", frame="other"))
    assert [(m.source, m.frame) for m in messages] == [("roof", "l"), ("copy", "other")]
    assert merged.topics()["/lidar"].delivered == 1


@pytest.mark.parametrize(
    ("source", "key", "what"),
    [
        (replace(LIDAR, topic="/lidr"), "topic", "no topic '/lidr'; did you mean '/lidar'?"),
        (replace(CAMERA, info_topic="/info"), "info_topic", "no topic '/info'"),
        (
            replace(LIDAR, topic="/camera"),
            "topic",
            "expected a topic of .*PointCloud2 or .*",
        ),
        (replace(CAMERA, topic="/camera_info"), "topic", "found sensor_msgs/msg/CameraInfo"),
    ],
)
def test_a_source_the_log_cannot_feed_is_refused(log_path, source, key, what):
    with open_log(log_path) as log, pytest.raises(SpecError, match=what) as caught:
        MergedLog(log, [source])
    assert caught.value.key == ("sources", source.name, key)


def test_what_a_damaged_log_lacks_may_have_been_in_it(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", compression=CompressionType.NONE)
    path.write_bytes(path.read_bytes()[:300])
    with open_log(path) as log, pytest.raises(InputError) as caught:
        MergedLog(log, [LIDAR])
    assert caught.value.exit_code == 4
    what = r"^sources\.roof\.topic: the log has no topic '/lidar'; .*; the log is damaged: .*byte"
    assert re.match(what, str(caught.value))


def test_a_log_may_hold_more_than_it_promises(tmp_path, write_log):
    """The sum holds all the same: what is delivered and lost is what was promised or found."""
    path = write_log(tmp_path / "log.mcap", compression=CompressionType.NONE)
    data = path.read_bytes()
    with path.open("rb") as file:
        counts = make_reader(file).get_summary().statistics.channel_message_counts
    told = b"".join(struct.pack("<HQ", *item) for item in counts.items())
    fewer = b"".join(struct.pack("<HQ", id_, 2) for id_ in counts)
    foot = len(data) - 37
    (start,) = struct.unpack_from("<Q", data, foot + 9)
    data = data.replace(told, fewer)
    data = data[:-12] + bytes(4) + data[-8:]  # no CRC vouches for the summary
    assert start < data.index(fewer) < foot
    path.write_bytes(data)
    with open_log(path) as log:
        merged = MergedLog(log, [LIDAR])
        with pytest.raises(DamagedInputError, match="expected 2 messages on /lidar, found 5"):
            list(merged)
        assert {a.kind: a.count for a in merged.anomalies} == {"miscounted": 3, "damaged": 1}
    count = merged.topics()["/lidar"]
    assert (count.messages, count.delivered, count.lost) == (5, 5, 0)


def test_a_source_without_a_topic_cannot_be_read(log_path):
    with open_log(log_path) as log, pytest.raises(SpecError, match="without a topic"):
        MergedLog(log, [replace(LIDAR, topic=None)])


def test_the_last_message_before_damage_is_delivered(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap", frames=20, chunk_bytes=3000)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with open_log(path) as log:
        raw = []
        with pytest.raises(DamagedInputError):
            raw.extend(log.messages(["/lidar", "/camera", "/camera_info"]))
        merged = MergedLog(log, [CAMERA, LIDAR])
        messages = []
        with pytest.raises(DamagedInputError):
            messages.extend(merged)
    assert len(messages) == sum(m.topic != "/camera_info" for m in raw) > 0
    assert sum(c.lost for c in merged.topics().values()) == 0
    assert [a.kind for a in merged.anomalies] == ["damaged"]


def test_a_log_of_which_nothing_is_good_is_unusable(tmp_path, write_log):
    path = write_log(tmp_path / "log.mcap")
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    with open_log(path) as log, pytest.raises(InputError) as caught:
        MergedLog(log, [LIDAR])
    assert caught.value.exit_code == 4


def test_kitti_pairs_every_image_with_its_info(shared):
    with open_log(shared / "kitti_sfnd_seq" / "kitti_sfnd_7p8s.mcap") as log:
        camera = replace(
            CAMERA, topic="/camera/image_02/compressed", info_topic="/camera/image_02/camera_info"
        )
        merged = MergedLog(log, [camera, replace(LIDAR, topic="/lidar/velodyne/points")])
        messages = list(merged)
    assert [m.source for m in messages] == ["roof", "front"] * 78
    assert all(m.payload.info.width_px == 1242 for m in messages[1::2])
    assert all(m.capture_ns == m.log_ns for m in messages)
    assert not merged.anomalies


def test_the_radiate_camera_and_lidar_merge(shared):
    with open_log(shared / "radiate_tiny_foggy" / "radiate_tiny_foggy.mcap") as log:
        merged = MergedLog(log, [replace(LIDAR, topic="/lidar/top/points")])
        messages = list(merged)
    assert len(messages) == 42
