"""What a survey tells of a log: its topics, how regular they are, what is odd, what was read."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import Writer

from avrt.logs import open_log
from avrt.logs.survey.steps import Steps
from avrt.logs.survey.survey import EVERYTHING, Limit, survey_log
from avrt.logs.survey.topic import TopicSurvey
from avrt.logs.writer import LogWriter

S = 1_000_000_000
MS = 1_000_000
START_NS = 1_700_000_000 * S


def write(path, stamps, *, lags=None, topic="/imu"):
    """Write an Imu for each stamp (ns from the start), logged so much later."""
    lags = lags or [0] * len(stamps)
    with LogWriter(path, chunk_bytes=2000) as log:
        for stamp_ns, lag_ns in zip(stamps, lags, strict=True):
            at_ns = START_NS + stamp_ns + lag_ns
            log.add_raw(topic, "sensor_msgs/msg/Imu", at_ns, imu(log, START_NS + stamp_ns))
    return path


def imu(log, stamp_ns):
    from rosbags.typesys.stores import ros2_jazzy as ros  # noqa: PLC0415

    head = ros.std_msgs__msg__Header(
        ros.builtin_interfaces__msg__Time(stamp_ns // S, stamp_ns % S), "imu"
    )
    zero = ros.geometry_msgs__msg__Vector3(0.0, 0.0, 0.0)
    turn = ros.geometry_msgs__msg__Quaternion(0.0, 0.0, 0.0, 1.0)
    nine = np.zeros(9)
    message = ros.sensor_msgs__msg__Imu(head, turn, nine, zero, nine, zero, nine)
    return bytes(log._store.serialize_cdr(message, "sensor_msgs/msg/Imu"))


def anomalies(survey):
    return {(a.kind, a.topic): a.count for a in survey.anomalies}


def test_a_regular_log_has_its_rate_and_nothing_odd(tmp_path):
    found = survey_log(write(tmp_path / "a.mcap", [100 * MS * i for i in range(50)]))
    (topic,) = found.topics
    assert (topic.kind, topic.frames, topic.messages, topic.read) == ("imu", ["imu"], 50, 50)
    assert topic.stamps.hz == pytest.approx(10.0)
    assert (topic.stamps.median_ns, topic.stamps.missing, topic.lag) == (100 * MS, 0, (0, 0, 0))
    assert found.anomalies == []
    assert (found.complete, found.damage) == (True, None)
    assert (found.first_ns, found.last_ns) == (START_NS, START_NS + 4_900 * MS)


def test_messages_that_are_missing_are_counted_by_the_room_for_them(tmp_path):
    steps = [100 * MS * i for i in range(50) if i not in {20, 30, 31}]
    found = survey_log(write(tmp_path / "a.mcap", steps))
    assert anomalies(found) == {("missing", "/imu"): 3}
    assert "300 ms" in found.anomalies[0].detail


def test_a_recorder_that_stalls_and_writes_bursts_is_told(tmp_path):
    stamps = [50 * MS * i for i in range(100)]
    lags = [(i % 20) * 50 * MS for i in range(100)]
    lags = [1_000 * MS - lag for lag in lags]
    found = survey_log(write(tmp_path / "a.mcap", stamps, lags=lags))
    assert anomalies(found) == {("bursts", "/imu"): 1}


def test_a_log_by_another_clock_is_told_with_its_offset(tmp_path):
    stamps = [50 * MS * i for i in range(20)]
    found = survey_log(write(tmp_path / "a.mcap", stamps, lags=[-64 * S] * 20))
    assert anomalies(found) == {("clock_offset", "/imu"): 1}
    assert "64.000 s behind the stamps" in found.anomalies[0].detail


def test_of_a_large_log_the_beginning_is_read_and_its_index(tmp_path):
    path = write(tmp_path / "a.mcap", [10 * MS * i for i in range(300)])
    part = survey_log(path, Limit(messages=40))
    whole = survey_log(path, EVERYTHING)
    assert (part.read, part.complete, part.indexed) == (40, False, True)
    assert (whole.read, whole.complete, whole.indexed) == (300, True, False)
    assert part.topics[0].log == whole.topics[0].log
    assert part.topics[0].stamps.count == 40
    assert part.read_to_ns == START_NS + 390 * MS


@pytest.mark.parametrize("limit", [Limit(0), Limit(1), Limit(6), EVERYTHING])
def test_log_times_that_are_none_are_told_and_in_no_figure(tmp_path, limit):
    path = tmp_path / "a.mcap"
    with LogWriter(path) as log:
        for at_ns in [*range(0, 8 * MS, MS), 2**62 + 1, 2**63, 2**63 + 1, 2**64 - 1]:
            log.add_raw("/a", "std_msgs/msg/String", at_ns, b"")
    found = survey_log(path, limit)
    assert anomalies(found) == {("log_time", "/a"): 4}
    assert found.topics[0].log == Steps.of(range(0, 8 * MS, MS))
    assert (found.first_ns, found.last_ns) == (0, 7 * MS)


@pytest.mark.parametrize("stamps", [[-START_NS, 0, MS], [0, MS, 90_000 * S]])
def test_a_hole_of_days_is_told_for_a_replay_ends_or_begins_there(tmp_path, stamps):
    found = survey_log(write(tmp_path / "a.mcap", stamps))
    (told,) = [a for a in found.anomalies if (a.kind, a.topic) == ("log_time", "/imu")]
    assert told.detail.startswith("log time jumps ")


def test_a_log_of_thousands_of_topics_takes_no_time_for_each_pair_of_them(tmp_path, monkeypatch):
    path, compared = tmp_path / "a.mcap", []
    with LogWriter(path) as log:
        for number in range(500):
            log.add_raw(f"/t{number:04}", "std_msgs/msg/String", number, b"")
    monkeypatch.setattr(TopicSurvey, "topic", Counting(compared), raising=False)
    assert len(survey_log(path).topics) == 500
    assert len(compared) < 500 * 20


class Counting:
    """An attribute that notes when it is read."""

    def __init__(self, seen):
        self._seen = seen

    def __get__(self, owner, _kind):
        self._seen.append(owner)
        return owner.__dict__["topic"]

    def __set__(self, owner, value):
        owner.__dict__["topic"] = value


def test_each_run_of_a_log_has_clocks_of_its_own(tmp_path):
    path = tmp_path / "a.mcap"
    with LogWriter(path, chunk_bytes=2000) as log:
        for begin_ns in (100 * S, 0):
            log._counts.clear()
            for at_ns in range(START_NS + begin_ns, START_NS + begin_ns + 3 * S, 100 * MS):
                log.add_raw("/imu", "sensor_msgs/msg/Imu", at_ns, imu(log, at_ns))
    found = survey_log(path)
    assert anomalies(found) == {("runs", None): 2}
    assert found.topics[0].log.usual_hz == pytest.approx(10.0)


def test_two_that_write_to_one_topic_have_a_clock_each(tmp_path):
    path = tmp_path / "a.mcap"
    with LogWriter(path) as log, (tmp_path / "b.mcap").open("wb") as file:
        messages = [(at, imu(log, at - lag)) for at, lag in alternating(40)]
        writer = Writer(file)
        writer.start()
        kind = writer.register_schema("sensor_msgs/msg/Imu", "ros2msg", b"")
        channels = [
            writer.register_channel("/imu", "cdr", kind, {"node": node}) for node in ("a", "b")
        ]
        for index, (at_ns, data) in enumerate(messages):
            writer.add_message(channels[index % 2], at_ns, data, at_ns)
        writer.finish()
    assert anomalies(survey_log(tmp_path / "b.mcap")) == {}


def alternating(count):
    """Yield log times of two sensors in turn, one of which is 300 ms behind (ns, ns)."""
    for index in range(count):
        yield START_NS + S + 100 * MS * index, 300 * MS * (index % 2)


def test_messages_without_an_index_are_told_to_be_unknown(tmp_path):
    path = write(tmp_path / "a.mcap", [10 * MS * i for i in range(300)])
    path.write_bytes(path.read_bytes()[:-30])
    part = survey_log(path, Limit(messages=40))
    assert (part.complete, part.indexed) == (False, False)
    assert part.topics[0].log.count == 40
    assert part.topics[0].messages == 300


@pytest.mark.parametrize("name", ["sick_lidar_radar_bag", "rosbags_misc/rosbag2", "comma"])
def test_the_index_tells_the_log_times_of_the_messages(shared, name):
    paths = {
        "sick_lidar_radar_bag": [*(shared / "sick_lidar_radar_bag").glob("*.bag")],
        "rosbags_misc/rosbag2": [*(shared / "nebula_packets" / "vlp16").iterdir()],
        "comma": [shared / "radiate_tiny_foggy" / "radiate_tiny_foggy.mcap"],
    }[name]
    for path in paths:
        if path.suffix == ".pcd":
            continue
        with open_log(path) as log:
            known = log.log_times()
            found = {}
            for message in log.messages():
                found.setdefault(message.topic, []).append(message.log_ns)
        assert {topic: sorted(times.tolist()) for topic, times in known.items()} == found


TOLD = {
    "radiate_tiny_foggy/radiate_tiny_foggy.mcap": {
        ("clock_offset", "/gnss/fix"): 1,
        ("clock_offset", "/imu/data"): 1,
        ("stamp_duplicate", "/gnss/fix"): 125,
        ("stamp_duplicate", "/imu/data"): 125,
        ("stamp_gap", "/imu/data"): 1,
        ("missing", "/camera/front_left/image/compressed"): 1,
    },
    "sick_lidar_radar_bag/rms_1xxx_lms_1xx_movement_off.bag": {
        ("stamp_duplicate", "/cloud_radar_rawtarget"): 121,
        ("stamp_duplicate", "/cloud_radar_track"): 90,
    },
    "rosbags_misc/tilt_laser.bag": {("bursts", "/scan"): 1, ("bursts", "/imu_data"): 1},
    "nebula_packets/ars548/1708578204": {
        ("clock_offset", "/sensing/radar/front_center/nebula_packets"): 1
    },
    "nebula_packets/srr520/1708578209": {
        ("stamp_duplicate", "/sensing/radar/front_left/nebula_packets"): 1
    },
    "comma2k19_example1": {("same_time", "/can/frames"): 50_502},
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "told"), TOLD.items())
def test_what_is_known_to_be_odd_about_a_real_log_is_told(shared, name, told):
    found = anomalies(survey_log(shared / name))
    assert told.items() <= found.items()


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40))
def test_steps_count_what_goes_on_stands_and_goes_back(times):
    steps = Steps.of(times)
    pairs = list(itertools.pairwise(times))
    onward = sorted(b - a for a, b in pairs if b > a)
    assert steps.equal == sum(a == b for a, b in pairs)
    assert steps.back == sum(b < a for a, b in pairs)
    assert (steps.first_ns, steps.last_ns) == (min(times), max(times))
    assert steps.max_ns == (onward[-1] if onward else 0)
    if onward:
        assert (steps.longest_at_ns, steps.longest_at_ns + steps.max_ns) in pairs
        assert steps.median_ns in onward


@given(st.sets(st.integers(9, 190), max_size=12), st.integers(1_000, 10**9))
def test_every_message_that_is_left_out_of_a_regular_topic_is_missed(left_out, period_ns):
    times = [i * period_ns for i in range(200) if i not in left_out]
    assert Steps.of(times).missing == len(left_out)
