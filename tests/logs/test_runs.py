"""Runs that were put into one MCAP file: told apart, and played one after another."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, Writer
from small_sets import BARE

from avrt.errors import DamagedInputError
from avrt.logs import open_log
from avrt.logs.mcap.runs import RUNS_MARKED_MAX
from avrt.logs.merge import MergedLog
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec

MARK = "session"
MS, S = 1_000_000, 1_000_000_000
LIDAR = SourceSpec(name="roof", type="lidar", topic="/lidar")
ONE = np.ones((1, 3), np.float32)


def write(path, runs, *, mark=MARK, counting=True, begin=0, **options):
    """Write runs of (topic, log time); the payload says which message of the file it is."""
    options = {"compression": CompressionType.NONE, "chunk_size": 200} | options
    count = 0
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        topics = dict.fromkeys(topic for run in runs for topic, _ in run)
        channels = {topic: writer.register_channel(topic, "json", 0) for topic in topics}
        for run in runs:
            counters = dict.fromkeys(channels, begin)
            if mark:
                writer.add_metadata(mark, {})
            for topic, at_ns in run:
                sequence = counters[topic] if counting else 0
                payload = b"message %4d" % count
                writer.add_message(channels[topic], at_ns, payload, at_ns, sequence)
                counters[topic] += 1
                count += 1
        writer.finish()
    return path


def read(path, topics=None):
    """Return (run, number in the file) of each message."""
    with open_log(path) as log:
        return [(message.run, int(message.data[8:])) for message in log.messages(topics)]


def one_after_another(*sizes):
    runs = [run for run, size in enumerate(sizes) for _ in range(size)]
    return list(zip(runs, range(sum(sizes)), strict=True))


def steady(count, first_ns=0, topic="/a"):
    return [(topic, first_ns + k) for k in range(count)]


@pytest.mark.parametrize("options", [{}, BARE, {"use_chunking": False}], ids=range(3))
@pytest.mark.parametrize("again_ns", [0, 3, 15])
def test_two_runs_behind_a_mark_each_come_one_after_another(tmp_path, options, again_ns):
    path = write(tmp_path / "a.mcap", [steady(20), steady(20, again_ns)], **options)
    assert read(path) == one_after_another(20, 20)
    with open_log(path) as log:
        (told,) = log.anomalies
        assert (told.kind, told.count, told.topic) == ("runs", 2, None)
        assert f"0 to 19 ns, {again_ns} to {again_ns + 19} ns" in told.detail
        assert log.topics()["/a"].messages == 40


@pytest.mark.parametrize("options", [{}, BARE], ids=range(2))
def test_counters_that_begin_again_will_do_without_a_mark(tmp_path, options):
    path = write(tmp_path / "a.mcap", [steady(20), steady(20), steady(9)], mark="", **options)
    assert read(path) == one_after_another(20, 20, 9)


def test_a_mark_will_do_where_nothing_counts(tmp_path):
    path = write(tmp_path / "a.mcap", [steady(20), steady(20)], counting=False)
    assert read(path) == one_after_another(20, 20)


@pytest.mark.parametrize("count", [RUNS_MARKED_MAX, RUNS_MARKED_MAX + 1])
def test_what_is_written_all_the_time_marks_no_runs(tmp_path, count):
    path = write(tmp_path / "a.mcap", [steady(2)] * count, counting=False)
    runs = {run for run, _ in read(path)}
    assert runs == (set(range(count)) if count == RUNS_MARKED_MAX else {0})


@given(
    runs=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=20).map(sorted), min_size=1),
    chunk_size=st.integers(1, 1000),
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_runs_that_begin_at_zero_are_told_apart_whatever_the_chunks(tmp_path, runs, chunk_size):
    """Also where several are in one chunk."""
    made = [[("/a", at_ns) for at_ns in (0, *times)] for times in runs]
    path = write(tmp_path / "a.mcap", made, chunk_size=chunk_size)
    assert read(path) == one_after_another(*(len(run) for run in made))


@pytest.mark.parametrize("mark", ["", MARK])
def test_topics_that_lie_one_after_the_other_are_one_run(tmp_path, mark):
    runs = [steady(20, topic="/a"), steady(20, topic="/b")]
    path = write(tmp_path / "a.mcap", runs, mark=mark)
    assert read(path) == [(0, k + half) for k in range(20) for half in (0, 20)]


@pytest.mark.parametrize("mark", ["", MARK])
def test_a_clock_that_goes_back_while_counters_go_on_is_one_run(tmp_path, mark):
    path = write(tmp_path / "a.mcap", [[*steady(20), *steady(20, 5)]], mark=mark)
    assert [run for run, _ in read(path)] == [0] * 40
    with open_log(path) as log:
        times = [message.log_ns for message in log.messages()]
        assert times == sorted(times)
        assert log.anomalies == []


def test_messages_in_no_order_are_one_run(tmp_path):
    """Now and then time and counter begin lower than ever before, by chance."""
    shuffled = sorted(steady(60), key=lambda message: message[1] * 7919 % 61)
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=1)
        writer.start()
        channel = writer.register_channel("/a", "json", 0)
        for _, at_ns in shuffled:
            writer.add_message(channel, at_ns, b"message %4d" % at_ns, at_ns, at_ns)
        writer.finish()
    assert read(path) == [(0, k) for k in range(60)]


def test_another_run_that_begins_later_needs_no_telling_apart(tmp_path):
    path = write(tmp_path / "a.mcap", [steady(20), steady(20, 100)])
    assert [number for _, number in read(path)] == list(range(40))
    with open_log(path) as log:
        assert log.anomalies == []


def test_a_topic_of_the_second_run_alone_is_found(tmp_path):
    second = [*steady(10), *steady(10, 10, "/b")]
    path = write(tmp_path / "a.mcap", [steady(20), second])
    assert read(path, ["/b"]) == [(1, 30 + k) for k in range(10)]


def test_damage_in_the_second_run_stops_a_strict_reader_there(tmp_path):
    path = write(tmp_path / "a.mcap", [steady(20), steady(20)])
    path.write_bytes(path.read_bytes().replace(b"message   34", b"message   3!"))
    found = []
    with open_log(path, strict=True) as log, pytest.raises(DamagedInputError) as caught:
        found.extend((m.run, int(m.data[8:])) for m in log.messages())
    assert found == one_after_another(20, 20)[: len(found)]
    assert 25 <= len(found) <= 34
    assert caught.value.good_messages == len(found)


@pytest.fixture
def two_drives(tmp_path):
    """Two drives in one log; in the second stamps are 100 s ahead, and it begins 50 ms later."""
    path = tmp_path / "drives.mcap"
    with LogWriter(path, chunk_bytes=300) as log:
        for ahead_ns, begin_ns, count in ((0, 0, 5), (100 * S, 50 * MS, 4)):
            log.add_metadata(MARK, {})
            log._counts.clear()
            for k in range(count):
                at_ns = 1000 * S + begin_ns + k * 100 * MS
                log.add_cloud("/lidar", "roof", at_ns + ahead_ns, ONE, log_ns=at_ns)
    return path


@pytest.mark.parametrize("loops", [1, 2])
def test_each_run_begins_a_step_after_the_one_before_with_state_and_clock_anew(two_drives, loops):
    with open_log(two_drives) as log:
        merged = MergedLog(log, [LIDAR], loops)
        messages = list(merged)
        assert merged.topics()["/lidar"].delivered == 9 * loops
        odd = {a.kind: (a.at_ns, a.count) for a in merged.anomalies}
    expected = [k * 100 * MS for k in range(9 * loops)]
    assert [m.log_ns for m in messages] == [m.capture_ns for m in messages] == expected
    assert [m.epoch for m in messages] == ([0] * 5 + [1] * 4 + [2] * 5 + [3] * 4)[: 9 * loops]
    assert [m.raw.log_ns - 1000 * S for m in messages] == expected
    assert odd["run"] == (400 * MS, loops)
    assert odd["runs"] == (0, 2)
    assert odd["clock_offset"] == (500 * MS, 1)
