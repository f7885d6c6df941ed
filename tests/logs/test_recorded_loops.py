"""A drive that was recorded twice, counters going on, is two runs; no other disorder is one."""

from __future__ import annotations

import numpy as np
import pytest
from mcap.writer import CompressionType

from avrt.errors import DamagedInputError
from avrt.logs.mcap.runs import OVERTAKEN_MIN
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec

MS = 1_000_000
S = 1_000 * MS
START = 1_700_000_000 * S
POINT = np.zeros((1, 3), np.float32)


def write(path, rows, chunk_bytes=1000, **options):
    """Write (topic, log time after START, stamp after START) in this order; return the path."""
    with LogWriter(path, chunk_bytes=chunk_bytes, **options) as log:
        for topic, log_ns, stamp_ns in rows:
            log.add_cloud(topic, "roof", START + stamp_ns, POINT, log_ns=START + log_ns)
    return path


def drive(count=30, period=100 * MS, topics=("/a", "/b"), begin=0):
    return [
        (topic, begin + k * period + place * MS, begin + k * period)
        for k in range(count)
        for place, topic in enumerate(topics)
    ]


def read(path, topics=None):
    with open_log(path) as log:
        found = [(m.run, m.topic, m.log_ns - START) for m in log.messages(topics)]
        return found, [anomaly.kind for anomaly in log.anomalies]


@pytest.mark.parametrize("chunk_bytes", [1000, 1 << 20])
@pytest.mark.parametrize("runs", [2, 3])
def test_runs_come_one_after_the_other_whatever_the_chunks(tmp_path, chunk_bytes, runs):
    rows = drive() * runs
    found, anomalies = read(write(tmp_path / "log.mcap", rows, chunk_bytes))
    assert [(topic, at) for _, topic, at in found] == [(topic, at) for topic, at, _ in rows]
    assert [run for run, _, _ in found] == [run for run in range(runs) for _ in drive()]
    assert anomalies == ["runs"]


def test_a_run_is_told_by_each_topic_that_is_read(tmp_path):
    path = write(tmp_path / "log.mcap", drive() * 2)
    assert [run for run, _, _ in read(path, ["/b"])[0]] == [0] * 30 + [1] * 30


@pytest.mark.parametrize(
    "rows",
    [
        drive(topics=("/a",)) + drive(topics=("/b",)),
        drive(begin=3 * S) + drive(),
        drive(60)[:40] + drive(60)[80:] + drive(60)[40:80],
        [drive()[k] for k in np.random.default_rng(2).permutation(60)],
        drive() + drive(begin=2 * S),
        drive(OVERTAKEN_MIN - 1) * 2,
    ],
    ids=["topic by topic", "halves", "chunks", "shuffled", "set back by 1 s", "too few"],
)
@pytest.mark.parametrize("chunk_bytes", [1000, 1 << 20])
def test_another_order_is_no_run(tmp_path, rows, chunk_bytes):
    found, anomalies = read(write(tmp_path / "log.mcap", rows, chunk_bytes))
    assert [(topic, at) for _, topic, at in found] == [
        (topic, at) for topic, at, _ in sorted(rows, key=lambda row: row[1])
    ]
    assert {run for run, _, _ in found} == {0}
    assert anomalies == []


def merged(path, loops=1):
    sources = [
        SourceSpec(name=name, type="lidar", topic=f"/{name}", period_ns=100 * MS) for name in "ab"
    ]
    with open_log(path) as reader:
        log = MergedLog(reader, sources, loops)
        return list(log), log


@pytest.mark.parametrize("later", [0, 500 * MS])
def test_a_run_is_played_as_another_pass_is(tmp_path, later):
    """The second one begins a usual step behind the first, wherever its own times begin."""
    rows = drive() + drive(begin=later)
    messages, log = merged(write(tmp_path / "log.mcap", rows))
    once, _ = merged(write(tmp_path / "once.mcap", drive()))
    span_ns = once[-1].log_ns
    step_ns = span_ns // 59
    first, second = messages[:60], messages[60:]
    assert [m.log_ns for m in first] == [m.log_ns for m in once]
    assert [m.log_ns for m in second] == [m.log_ns + span_ns + step_ns for m in once]
    assert [m.log_ns - m.capture_ns for m in second] == [m.log_ns - m.capture_ns for m in first]
    assert [m.epoch for m in messages] == [0] * 60 + [1] * 60
    assert [m.sequence for m in messages if m.source == "a"] == list(range(60))
    assert [(a.kind, a.count) for a in log.anomalies] == [("runs", 2), ("run", 1)]
    assert {count.delivered for count in log.topics().values()} == {60}


def test_a_log_of_runs_can_be_played_again(tmp_path):
    messages, log = merged(write(tmp_path / "log.mcap", drive() * 2), loops=2)
    times = [m.log_ns for m in messages]
    assert times == sorted(times)
    assert [m.epoch for m in messages] == [epoch for epoch in range(4) for _ in range(60)]
    assert {(c.messages, c.delivered, c.lost) for c in log.topics().values()} == {(120, 120, 0)}
    assert {a.kind: a.count for a in log.anomalies} == {"runs": 2, "run": 2, "loop": 1}


def test_the_clock_of_a_sensor_may_be_another_one_in_each_run(tmp_path):
    rows = drive() + [(topic, log_ns, stamp_ns - 50 * S) for topic, log_ns, stamp_ns in drive()]
    messages, log = merged(write(tmp_path / "log.mcap", rows))
    assert max(abs(m.log_ns - m.capture_ns) for m in messages) <= MS
    assert {a.kind for a in log.anomalies} == {"runs", "run", "clock_offset"}


def test_damage_is_told_once_though_the_log_is_read_twice(tmp_path):
    path = write(tmp_path / "log.mcap", drive() * 2, compression=CompressionType.NONE)
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1  # in the middle of the first run
    path.write_bytes(data)
    runs = []
    with open_log(path) as log:
        with pytest.raises(DamagedInputError):
            runs.extend(message.run for message in log.messages())
        assert set(runs) == {0, 1}
        told = [(a.kind, a.count) for a in log.anomalies if a.topic is None]
        assert told == [("damaged", 1), ("runs", 2)]
