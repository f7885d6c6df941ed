"""Logs that are odd or damaged, and what a replay leaves behind."""

import threading

import numpy as np
import pytest
from small_stages import failing, lives_on, passing_two, total

import avrt
from avrt.drivers.execution import MeasuredTiming, ModelTiming
from avrt.drivers.replay import replay
from avrt.drivers.verify import verify
from avrt.errors import InputError, SpecError
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.record.run_file import read_outputs
from avrt.logs.writer import LogWriter

MS = 1_000_000


# Logs that are damaged, empty, or other than the pipeline expects


def damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    return path


def test_the_good_part_of_a_damaged_log_is_processed(make_drive, make_pipeline, tmp_path):
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    drive = damaged(make_drive(60, points=40, chunk_bytes=2000))
    report = pipeline.replay(drive, out=tmp_path / "run.mcap")
    assert isinstance(report.damage, InputError)
    assert report.damage.exit_code == 3
    delivered = report.summary.topics["/lidar"].delivered
    assert 0 < delivered < 60
    assert report.jobs["met"] == report.jobs["released"] == delivered
    assert report.data["log"]["topics"]["/lidar"]["lost"] == 60 - delivered
    assert report.data["damage"]
    assert report.data["log"]["anomalies"]
    assert report.data["complete"]


def test_a_log_without_a_message_has_no_topic_to_read(make_drive, make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    with pytest.raises(SpecError, match=r"sources\.lidar\.topic: the log has no topic '/lidar'"):
        pipeline.replay(make_drive(0))


def test_a_source_without_a_topic_and_timers_only_end_at_once(make_drive):
    pipeline = avrt.Pipeline("p")
    pipeline.add(lambda: 1, name="beat", period="10 ms", wcet="1 ms", deadline="9 ms")
    report = pipeline.replay(make_drive(5))
    assert report.jobs["released"] == report.jobs["met"] == 1
    assert report.summary.end_ns == 1 * MS


def test_a_topic_that_the_log_lacks_is_told_with_the_nearest_and_nothing_is_written(
    make_drive, make_pipeline, tmp_path
):
    pipeline = make_pipeline("lidr")
    pipeline.add(total, inputs={"cloud": "lidr"}, wcet="5 ms", deadline="1 s")
    with pytest.raises(SpecError, match="no topic '/lidr'; did you mean '/lidar'"):
        pipeline.replay(make_drive(), out=tmp_path / "run.mcap")
    assert not (tmp_path / "run.mcap").exists()


def test_stamps_before_the_first_message_are_negative_times(make_drive, make_pipeline, tmp_path):
    pipeline = make_pipeline()
    pipeline.add(lambda cloud: cloud.payload, name="it", inputs={"cloud": "lidar"}, wcet="5 ms",
                 deadline="1 s", deadline_from="capture")  # fmt: skip
    drive = make_drive(3, stamp_ns=lambda log_ns: log_ns - 999 * MS)
    report = pipeline.replay(drive, out=tmp_path / "run.mcap")
    (first, *_) = read_outputs(tmp_path / "run.mcap", "it")
    assert first.stamp.capture_ns == -999 * MS
    assert report.jobs["late"] == 3
    assert [i for m in report.misses for i in m.intervals]


@pytest.mark.usefixtures("settled")
def test_a_log_that_begins_at_zero_and_stamps_that_are_none(tmp_path, make_pipeline):
    path = tmp_path / "zero.mcap"
    with LogWriter(path) as log:
        for k in range(3):
            log.add_cloud("/lidar", "roof", 0, np.ones((2, 3), np.float32), log_ns=k * 100 * MS)
    pipeline = make_pipeline()
    pipeline.add(lambda cloud: cloud.payload, name="it", inputs={"cloud": "lidar"}, wcet="5 ms",
                 deadline="1 s")  # fmt: skip
    report = pipeline.replay(path, out=tmp_path / "run.mcap")
    assert report.jobs["met"] == 3
    (anomaly,) = report.data["log"]["anomalies"]
    assert (anomaly["kind"], anomaly["count"]) == ("stamp_invalid", 3)


def test_hours_between_two_messages_are_no_problem(make_drive, make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(lambda: 1, name="beat", period="7200 s", wcet="1 ms", deadline="9 ms")
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(make_drive(3, period_ns=3600 * 10**9))
    assert report.jobs["met"] == 3 + 2


def drive_at(path, *days):
    with LogWriter(path) as log:
        for index, day in enumerate(days):
            at_ns = 10**18 + round(day * 86400 * 10**9)
            log.add_cloud("/lidar", "roof", at_ns, np.ones((2, 3), np.float32) * index)
    return path


@pytest.mark.parametrize(
    ("days", "met", "lost", "ended"),
    [
        ((0, 0.5, 2.5, 2.6), 2, 2, True),
        ((0, 2.5, 2.6), 2, 1, False),
        ((0, 2, 4, 4.5), 2, 2, False),
        ((0, 2), 1, 1, False),
    ],
)
def test_a_jump_of_days_ends_the_log_unless_it_only_begins_with_a_wrong_time(
    tmp_path, make_pipeline, days, met, lost, ended
):
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(drive_at(tmp_path / "log.mcap", *days))
    assert report.jobs["met"] == met
    topic = report.data["log"]["topics"]["/lidar"]
    assert (topic["delivered"], topic["lost"], topic["messages"]) == (met, lost, len(days))
    assert ("log time jumps" in str(report.damage)) == ended
    told = [a["kind"] for a in report.data["log"]["anomalies"]]
    assert ("log_time" in told) == (not ended)


def test_a_log_time_that_no_record_can_hold_is_lost_and_told(tmp_path, make_pipeline):
    with LogWriter(tmp_path / "log.mcap") as log:
        for at_ns in (10**18, 10**18 + 100 * MS, (1 << 64) - 1):
            log.add_cloud("/lidar", "roof", 10**18, np.ones((2, 3), np.float32), log_ns=at_ns)
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(tmp_path / "log.mcap", out=tmp_path / "run.mcap")
    assert report.data["log"]["topics"]["/lidar"]["lost"] == 1
    odd = {a["kind"]: a["detail"] for a in report.data["log"]["anomalies"]}
    assert odd["log_time"] == f"log time {(1 << 64) - 1} ns is none"


# What a run leaves behind


@pytest.mark.slow
def test_buffers_are_released_however_long_the_log(make_drive, make_pipeline, workers):
    pipeline = make_pipeline("lidar", "rear", slots=1)
    pipeline.add(failing, name="a", inputs={"cloud": "lidar"}, wcet="60 ms", deadline="50 ms")
    pipeline.add(passing_two, name="b", inputs={"a": "a", "b": {"from": "rear", "optional": True}},
                 trigger="a", wcet="50 ms", deadline="90 ms", on_miss="abort")  # fmt: skip
    pipeline.add(passing_two, name="c", inputs={"a": "lidar", "b": "rear"}, wcet="40 ms",
                 sync={"tolerance": "5 ms", "timeout": "9 ms"}, deadline="70 ms")  # fmt: skip
    report = pipeline.replay(make_drive(500, topics=("/lidar", "/rear"), points=1))
    assert report.jobs["released"] > 1000
    (worker,) = workers
    assert worker.messages_max <= 30
    assert len(worker._running) == 0
    assert len(worker._messages) <= 4
    assert len(worker._drafts) == 0


def test_the_worker_threads_end_with_the_run(make_drive, make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(total, name="once", inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.replay(make_drive(2))
    assert not [t for t in threading.enumerate() if t.name == "avrt-once" and lives_on(t)]


def test_progress_is_told_for_every_message(make_drive, make_pipeline):
    times = []
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.replay(make_drive(3), progress=times.append)
    assert times == [0, 100 * MS, 200 * MS]


def test_interrupted_jobs_are_aborted_and_every_release_is_accounted_for(
    make_drive, make_pipeline, tmp_path
):
    def stop(at_ns):
        if at_ns == 300 * MS:
            raise KeyboardInterrupt

    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="150 ms", deadline="1 s")
    report = pipeline.replay(make_drive(6), out=tmp_path / "run.mcap", progress=stop)
    jobs = report.jobs
    assert report.summary.interrupted
    assert not report.summary.complete
    assert jobs == {"released": 3, "met": 1, "late": 0, "aborted": 2, "skipped": 0, "shed": 0,
                    "open": 0}  # fmt: skip
    assert report.summary.figures.stages["total"].reasons == {"aborted: stop": 2}
    assert verify(tmp_path / "run.mcap").equal


def test_a_run_is_the_same_with_the_driver_called_by_hand(make_drive, make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    drive = make_drive(3)
    with open_log(drive) as log:
        spec = pipeline.spec
        result = replay(spec, pipeline.build(), MergedLog(log, spec.sources), ModelTiming(spec))
    digests = pipeline.replay(drive).data["digests"]
    assert digests == {"decisions": result.decisions, "payloads": result.payloads}
    assert MeasuredTiming().cost_ns("total", 0) is None
