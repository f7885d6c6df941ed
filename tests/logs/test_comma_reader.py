import itertools
import os

import numpy as np
import pytest

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.comma.reader import CYCLE_PAUSE_S, OBJECTS_MAX
from avrt.logs.decode import decode, parse
from avrt.logs.merge import MergedLog
from avrt.model.spec import SourceSpec

BOOT_S = 46_408.5
S = 1_000_000_000
KINDS = {
    "/imu": "imu",
    "/gnss/fix": "gnss",
    "/gnss/qcom/fix": "gnss",
    "/can/speed": "can",
    "/can/wheel_speed": "can",
    "/radar/tracks": "radar",
}


def put(folder, name, times, values):
    place = folder / "processed_log" / name
    place.mkdir(parents=True)
    for part, array in (("t", times), ("value", values)):
        with (place / part).open("wb") as file:
            np.save(file, np.asarray(array, float))


def npy(shape):
    """Return the header of an array of such a shape, and a little data."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


@pytest.fixture
def segment(tmp_path):
    """Write a segment in the data set's axes: forward, right, down."""
    times = BOOT_S + np.arange(5) * 0.01
    put(tmp_path, "IMU/accelerometer", times, np.tile([1.0, 2.0, -9.8], (5, 1)))
    put(tmp_path, "IMU/gyro", times, np.tile([0.1, 0.2, 0.3], (5, 1)))
    fix = [[37.7, -122.4, 8.0, 1.5e12, 33.0, 2.0]]
    put(tmp_path, "GNSS/live_gnss_ublox", [BOOT_S + 0.005], fix)
    put(tmp_path, "GNSS/live_gnss_qcom", [BOOT_S + 0.015], fix)
    put(tmp_path, "CAN/speed", times, np.full((5, 1), 8.0))
    put(tmp_path, "CAN/wheel_speed", times, np.tile([8.0, 8.2, 7.8, 8.4], (5, 1)))
    rows = [
        (0.000, 74.5, -2.8, 3.6, 528, 0),
        (0.001, 29.3, 0.0, -3.9, 530, 0),
        (0.050, 74.7, -2.8, 3.6, 528, 0),
        (0.051, 12.0, 1.0, 0.5, 530, 1),
        (0.052, 29.1, 0.0, -3.9, 531, 0),
        (0.055, 74.9, -2.8, 3.6, 528, 0),
    ]
    nan = np.nan
    values = [(x, y, v, nan, nan, slot, new) for _, x, y, v, slot, new in rows]
    put(tmp_path, "CAN/radar", [BOOT_S + row[0] for row in rows], values)
    return tmp_path


def read(path, topic):
    with open_log(path) as log:
        return [(m, decode(m, KINDS[topic])) for m in log.messages([topic])]


def test_every_topic_is_listed_and_comes_by_time(segment):
    with open_log(segment) as log:
        counts = {topic: info.messages for topic, info in log.topics().items()}
        messages = list(log.messages())
    assert counts == {
        "/imu": 5,
        "/gnss/fix": 1,
        "/gnss/qcom/fix": 1,
        "/can/speed": 5,
        "/can/wheel_speed": 5,
        "/radar/tracks": 3,
    }
    assert len(messages) == sum(counts.values())
    assert [m.log_ns for m in messages] == sorted(m.log_ns for m in messages)


def test_motion_is_forward_left_up(segment):
    raw, first = read(segment, "/imu")[0]
    assert raw.log_ns == first.header_ns == round(BOOT_S * S)
    assert first.payload.acceleration.tolist() == [1.0, -2.0, 9.8]
    assert first.payload.angular_rate.tolist() == [0.1, -0.2, -0.3]
    assert first.payload.orientation is None


def test_speed_is_the_mean_of_the_wheels_and_tells_no_yaw_rate(segment):
    for topic, speed in (("/can/speed", 8.0), ("/can/wheel_speed", 8.1)):
        payload = read(segment, topic)[0][1].payload
        assert payload.speed == pytest.approx(speed)
        assert np.isnan(payload.yaw_rate)


def test_a_fix_has_no_accuracy(segment):
    fix = read(segment, "/gnss/fix")[0][1].payload
    assert (fix.latitude, fix.longitude, fix.altitude, fix.valid) == (37.7, -122.4, 33.0, True)
    assert np.isnan(fix.sigma).all()


def test_a_radar_cycle_is_one_message_from_its_first_row_to_its_last(segment):
    cycles = read(segment, "/radar/tracks")
    assert [(d.header_ns, m.log_ns) for m, d in cycles] == [
        (round((BOOT_S + first) * S), round((BOOT_S + last) * S))
        for first, last in ((0.0, 0.001), (0.050, 0.052), (0.055, 0.055))
    ]
    first, second, third = (d.payload for _, d in cycles)
    assert first.xy.tolist() == [[74.5, np.float32(-2.8)], [np.float32(29.3), 0.0]]
    assert first.range_rate.tolist() == [np.float32(3.6), np.float32(-3.9)]
    assert np.isnan(first.velocity).all()
    assert first.ids.tolist() == [528 * OBJECTS_MAX, 530 * OBJECTS_MAX]
    assert second.ids.tolist() == [528 * OBJECTS_MAX, 530 * OBJECTS_MAX + 1, 531 * OBJECTS_MAX]
    assert third.ids.tolist() == [528 * OBJECTS_MAX]


@pytest.mark.parametrize(
    ("part", "content", "what"),
    [
        ("t", None, "expected a numpy array: No such file"),
        ("t", b"", "expected a numpy array"),
        ("t", b"PK\x03\x04 an archive", "expected a numpy array"),
        ("t", b"\x93NUMPY\x01\x00\x10\x00" + b"{" * 16, "expected a numpy array: .*EOF"),
        ("t", npy((10**13,)), "expected a numpy array: Unable to allocate"),
        ("t", npy((10**30,)), "expected a numpy array: .*too large"),
        ("t", np.arange(4.0), "as many times as rows"),
        ("t", np.float64(4.0), "a row of times"),
        ("t", -np.arange(5.0), "do not go back"),
        ("t", np.array([5, 6, 4, 7, 8], "u8"), "do not go back"),
        ("t", np.array([0.0, 1.0, np.nan, 3.0, 4.0]), "from 0 to 2147483647"),
        ("t", np.arange(5.0) - 3.0, "from 0 to 2147483647"),
        ("t", np.arange(5.0) * 1e18, "from 0 to 2147483647"),
        ("value", np.array([["a"]] * 5), "expected an array of numbers"),
        ("value", np.array([[None]] * 5), "expected a numpy array: Object"),
    ],
)
def test_an_array_that_is_damaged_costs_its_own_topic_only(segment, part, content, what):
    path = segment / "processed_log" / "CAN" / "speed" / part
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        with path.open("wb") as file:
            np.save(file, content)
    with open_log(segment) as log:
        assert log.topics()["/can/speed"].messages == 0
        messages = []
        with pytest.raises(DamagedInputError, match=what) as caught:
            messages.extend(log.messages())
        assert [a.kind for a in log.anomalies] == ["damaged"]
    assert caught.value.good_messages == len(messages) == 15


def test_a_segment_without_arrays_is_unusable(tmp_path):
    (tmp_path / "processed_log").mkdir()
    with pytest.raises(InputError, match="expected a numpy array: No such file"):
        open_log(tmp_path)


@pytest.mark.parametrize("address", [np.nan, -1.0, 0.5, 600_000.0, 1e30])
def test_a_radar_address_that_can_be_none_is_told(segment, address):
    path = segment / "processed_log" / "CAN" / "radar" / "value"
    rows = np.load(path)
    rows[2, 5] = address
    with path.open("wb") as file:
        np.save(file, rows)
    with open_log(segment) as log, pytest.raises(DamagedInputError, match="expected whole numbers"):
        list(log.messages())


def test_a_place_that_no_float32_holds_is_no_target(segment):
    path = segment / "processed_log" / "CAN" / "radar" / "value"
    rows = np.load(path)
    rows[0, 0] = 1e300
    with path.open("wb") as file:
        np.save(file, rows)
    assert [d.payload.count for _, d in read(segment, "/radar/tracks")] == [1, 3, 1]


def test_a_log_without_rows_is_a_topic_without_messages(segment):
    for name, columns in (("CAN/radar", 7), ("CAN/speed", 1)):
        for part, shape in (("t", 0), ("value", (0, columns))):
            with (segment / "processed_log" / name / part).open("wb") as file:
                np.save(file, np.zeros(shape))
    with open_log(segment) as log:
        counts = {topic: info.messages for topic, info in log.topics().items()}
        assert len(list(log.messages())) == sum(counts.values())
    assert counts["/radar/tracks"] == counts["/can/speed"] == 0


@pytest.mark.parametrize("name", ["IMU/gyro/t", "log.bag"])
def test_what_is_neither_file_nor_folder_is_not_waited_for(segment, name):
    """Opening a pipe that nobody writes to never returns."""
    path = segment / "processed_log" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    opened = path if name == "log.bag" else segment
    with pytest.raises(InputError, match="expected a file"), open_log(opened) as log:
        list(log.messages())


@pytest.mark.slow
def test_the_recorded_segment_has_the_axes_that_its_pose_shows(shared):
    folder = shared / "comma2k19_example1"
    imu = read(folder, "/imu")
    times = np.array([m.log_ns for m, _ in imu]) / S
    acceleration = np.array([d.payload.acceleration for _, d in imu])
    rate = np.array([d.payload.angular_rate for _, d in imu])
    assert acceleration[:, 2].mean() == pytest.approx(9.8, abs=0.3)
    frames = np.load(folder / "global_pose" / "frame_times")
    velocity = np.load(folder / "global_pose" / "frame_velocities")
    x, y, z = np.load(folder / "global_pose" / "frame_positions")[0]
    longitude, latitude = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))
    east = velocity @ [-np.sin(longitude), np.cos(longitude), 0.0]
    north = velocity @ [
        -np.sin(latitude) * np.cos(longitude),
        -np.sin(latitude) * np.sin(longitude),
        np.cos(latitude),
    ]

    def smooth(values, count):
        return np.convolve(values, np.ones(count) / count, "same")

    def at(places, values):
        return np.interp(times, places, values)[500:-500]

    turning = at(frames, np.gradient(smooth(np.unwrap(np.arctan2(north, east)), 10), frames))
    ground = np.hypot(east, north)
    gaining = at(frames, np.gradient(smooth(ground, 20), frames))
    means = [smooth(column, 50)[500:-500] for column in (*acceleration.T, *rate.T)]
    assert np.corrcoef(gaining, means[0])[0, 1] > 0.7
    assert np.corrcoef(turning * at(frames, ground), means[1])[0, 1] > 0.8
    assert np.corrcoef(turning, means[5])[0, 1] > 0.6


@pytest.mark.slow
def test_the_recorded_radar_has_a_cycle_each_50_ms_and_rates_that_fit_its_distances(shared):
    cycles = read(shared / "comma2k19_example1", "/radar/tracks")
    assert len(cycles) == 1200
    stamps = np.array([d.header_ns for _, d in cycles])
    assert np.diff(stamps).min() > CYCLE_PAUSE_S * S
    assert all(len(set(d.payload.ids)) == d.payload.count for _, d in cycles)
    moved, told = [], []
    for (_, a), (_, b) in itertools.pairwise(cycles):
        before = dict(zip(a.payload.ids.tolist(), a.payload.xy[:, 0], strict=True))
        step_s = (b.header_ns - a.header_ns) / S
        rows = zip(b.payload.ids.tolist(), b.payload.xy[:, 0], b.payload.range_rate, strict=True)
        for id_, x, rate in rows:
            if id_ in before:
                moved.append((x - before[id_]) / step_s)
                told.append(rate)
    assert len(moved) > 8000
    assert np.median(np.abs(np.array(moved) - told)) < 1.0  # distances are steps of 4 cm
    assert np.corrcoef(np.clip(moved, -30, 30), told)[0, 1] > 0.5


@pytest.mark.slow
def test_the_recorded_segment_merges_without_an_alarm(shared):
    with open_log(shared / "comma2k19_example1") as log:
        sources = [SourceSpec(name=t, type=k, topic=t) for t, k in KINDS.items()]
        merged = MergedLog(log, sources)
        count = sum(1 for _ in merged)
        assert count == 6256 + 579 + 30 + 2 * 4974 + 1200
        assert {a.kind for a in merged.anomalies} == set()


def put_frames(folder, **changed):
    place = folder / "processed_log" / "CAN" / "raw_can"
    place.mkdir(parents=True, exist_ok=True)
    arrays = {
        "t": BOOT_S + np.array([0.0, 0.001, 0.001]),
        "src": np.array([0, 128, 1]),
        "address": np.array([608, 740, 1 << 20]),
        "data": np.array([b"\x01\0\0\0\0\0\0\x02", b"\x03", b""], "S8"),
    }
    for name, array in (arrays | changed).items():
        with (place / name).open("wb") as file:
            np.save(file, array)


def test_frames_of_the_bus_are_there_where_the_segment_has_them(segment):
    put_frames(segment)
    with open_log(segment) as log:
        frames = [parse(message) for message in log.messages(["/can/frames"])]
    assert [(f.id, f.is_extended, f.dlc) for f in frames] == [
        (608, False, 8), (740, False, 8), (1 << 20, True, 8),
    ]  # fmt: skip
    assert [bytes(f.data) for f in frames] == [b"\1" + bytes(6) + b"\2", b"\3" + bytes(7), bytes(8)]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"t": BOOT_S + np.arange(2.0)}, "as many times as addresses"),
        ({"data": np.zeros(3)}, "frames of up to 8 bytes"),
        ({"data": np.array([b"123456789"] * 3)}, "frames of up to 8 bytes"),
        ({"address": np.array([0, -1, 2])}, "whole numbers"),
    ],
)
def test_damaged_frames_of_the_bus_cost_their_own_topic_only(segment, changed, what):
    put_frames(segment, **changed)
    with open_log(segment) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=what):
            messages.extend(log.messages())
    assert {message.topic for message in messages} == KINDS.keys()


def test_when_images_were_taken_is_there_without_them(segment):
    (segment / "global_pose").mkdir()
    with (segment / "global_pose" / "frame_times").open("wb") as file:
        np.save(file, BOOT_S + np.arange(4) * 0.05)
    with open_log(segment) as log:
        headers = [parse(message) for message in log.messages(["/camera/frames"])]
    assert [head.stamp.nanosec // 1_000_000 for head in headers] == [500, 550, 600, 650]


def test_a_segment_whose_array_is_damaged_is_not_begun_when_read_strictly(segment):
    (segment / "processed_log" / "CAN" / "speed" / "value").write_bytes(b"none")
    with open_log(segment, strict=True) as log, pytest.raises(DamagedInputError) as caught:
        next(iter(log.messages()))
    assert caught.value.exit_code == 3
    assert "speed" in caught.value.place
