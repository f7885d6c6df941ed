"""Live runs: what came in is decided by the same kernel, adds up and verifies."""

import resource
import signal
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from mcap.reader import make_reader
from small_stages import FOREVER_S, failing, total

import avrt
from avrt.drivers import probation
from avrt.drivers.host_watch import HostWatch
from avrt.drivers.recording import read_recorded
from avrt.drivers.verify import verify
from avrt.drivers.whatif import repeat
from avrt.errors import HardwareFault, SpecError
from avrt.logs.record.run_file import RunFile
from avrt.model.records import JobRecord, ResourceRecord
from avrt.safety import recovery

pytestmark = pytest.mark.live


@pytest.fixture
def pipeline(make_pipeline):
    made = make_pipeline()
    made.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    return made


def fed(pipeline, source, **params):
    """Let the pipeline's only source read a sensor of this class."""
    keys = {"type": "lidar", "run": f"live_sources:{source}", "params": params}
    pipeline._sources["lidar"] = keys
    return pipeline


@pytest.mark.slow
def test_a_log_that_is_played_live_is_taken_whole_and_verifies(make_drive, pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    report = pipeline.run(make_drive(8), record=out, rate=10)
    assert report.jobs["released"] == 8
    assert sum(report.jobs[o] for o in ("met", "late", "aborted", "skipped", "shed")) == 8
    assert report.data["conditions"]["clock"] == "live, rate 10"
    assert report.data["complete"]
    assert avrt.read_outputs(out, "total")
    assert verify(out).equal
    recorded = read_recorded(out)
    assert repeat(recorded, recorded.spec).digest == recorded.digest


@pytest.mark.slow
def test_messages_come_when_they_come_and_never_before(
    make_drive, pipeline, tmp_path, read_records
):
    out = tmp_path / "run.mcap"
    pipeline.run(make_drive(4), record=out, rate=1)
    jobs = read_records(out, JobRecord)
    assert [job.release_ns // 100_000_000 for job in jobs] == [0, 1, 2, 3]
    assert all(job.arrival_ns >= job.release_ns >= i * 10**8 for i, job in enumerate(jobs))
    assert all(job.start_ns <= job.device_start_ns <= job.device_ns <= job.end_ns for job in jobs)


def test_a_duration_ends_the_releases(make_drive, pipeline):
    report = pipeline.run(make_drive(50), rate=2, duration="950 ms")
    assert report.jobs["released"] == 10
    topic = report.summary.topics["/lidar"]
    assert (topic.messages, topic.delivered, topic.lost, topic.unread) == (10, 10, 0, 0)
    assert report.jobs["open"] == 0


def test_timers_go_on_to_the_end_of_the_time_between_two_messages(make_drive, pipeline):
    pipeline.add(lambda: 1, name="beat", period="10 ms", wcet="1 ms", deadline="10 s")
    report = pipeline.run(make_drive(50), rate=2, duration="950 ms")
    assert report.summary.figures.stages["beat"].jobs()["released"] == 95


@pytest.mark.slow
def test_the_world_lasts_until_the_time_is_up():
    pipeline = avrt.Pipeline("driving")
    pipeline.source("can", type="can", topic="/vehicle/speed")
    pipeline.add(lambda: 1, name="beat", period="1 ms", wcet="0.1 ms", deadline="10 s")
    report = pipeline.run(world="cut_in", duration="1015 ms")
    assert report.jobs["released"] == 1015


def test_a_driver_that_cannot_begin_ends_the_run(make_drive, pipeline, monkeypatch):
    def refuse(_host):
        raise OSError("no rights")

    monkeypatch.setattr(HostWatch, "driver", refuse)
    with pytest.raises(OSError, match="no rights"):
        pipeline.run(make_drive(2), rate=20)
    assert not [t for t in threading.enumerate() if t.name.startswith("avrt-feed")]


def test_timers_end_with_the_messages_and_the_report_is_there(make_drive, make_pipeline):
    """NOD-09: a log that is over, and a timer that could go on for ever."""
    pipeline = make_pipeline()
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(lambda: 1, name="beat", period="100 ms", wcet="1 ms", deadline="50 ms")
    report = pipeline.run(make_drive(20), rate=20)
    jobs = report.summary.figures.stages["beat"].jobs()
    assert jobs["released"] >= 20
    assert report.jobs["open"] == 0


@pytest.mark.slow
def test_a_source_of_the_users_feeds_its_pipeline(pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    report = fed(pipeline, "Counting", count=3).run(record=out)
    assert report.jobs["released"] == 3
    assert [output.payload for output in avrt.read_outputs(out, "total")] == [24.0, 12.0, 0.0]
    with RunFile(out) as run:
        assert run.complete
    assert verify(out).equal


def test_payloads_of_a_live_run_are_checked_and_have_no_digest(make_drive, make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(
        lambda cloud: {cloud.stamp},
        name="odd",
        inputs={"cloud": "lidar"},
        wcet="5 ms",
        deadline="1 s",
    )
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.run(make_drive(3), rate=20)
    stages = report.summary.figures.stages
    assert stages["odd"].jobs()["aborted"] == stages["total"].jobs()["met"] == 3
    assert "bad_payload" in stages["odd"].first_fault
    assert report.data["digests"]["payloads"] == ""


def test_a_source_that_raises_is_told_and_the_rest_goes_on(pipeline):
    report = fed(pipeline, "Broken", count=3).run()
    assert report.jobs["met"] == 2
    (anomaly,) = report.summary.anomalies
    assert (anomaly.kind, anomaly.topic) == ("source_failed", "lidar")
    assert "unplugged" in anomaly.detail


@pytest.mark.parametrize(
    ("source", "what"), [("Unplugged", "no such port"), ("Closing", "cannot be closed")]
)
def test_a_source_that_cannot_be_opened_or_closed_is_told_and_the_run_goes_on(
    pipeline, source, what
):
    pipeline.add(lambda: 1, name="beat", period="10 ms", wcet="1 ms", deadline="10 s")
    report = fed(pipeline, source).run(duration="100 ms")
    (anomaly,) = report.summary.anomalies
    assert anomaly.kind == "source_failed"
    assert what in anomaly.detail
    assert report.jobs["open"] == 0


@pytest.mark.slow
def test_ctrl_c_ends_a_run_whose_sensor_is_silent(pipeline, tmp_path):
    """NOD-03: whatever the run waits for, it ends, and the record is whole."""
    out = tmp_path / "run.mcap"
    looks = []

    def stop(progress):
        looks.append(progress)
        if len(looks) == 2:
            signal.raise_signal(signal.SIGINT)

    report = fed(pipeline, "Silent").run(record=out, look=stop)
    assert report.summary.interrupted
    assert verify(out).equal


def test_sigterm_ends_a_run_as_ctrl_c_does(pipeline):
    looks = []

    def stop(progress):
        looks.append(progress)
        if len(looks) == 1:
            signal.raise_signal(signal.SIGTERM)

    report = fed(pipeline, "Silent").run(look=stop)
    assert report.summary.interrupted
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.slow
def test_what_is_open_at_ctrl_c_finishes(make_drive, make_pipeline, tmp_path):
    gate = threading.Event()

    def waiting(cloud):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert gate.wait(FOREVER_S)
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(waiting, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="60 s")
    out = tmp_path / "run.mcap"
    opener = threading.Timer(0.05, gate.set)
    opener.start()
    report = pipeline.run(make_drive(500), record=out)
    assert report.jobs["met"] == report.jobs["released"] >= 1
    assert verify(out).equal


@pytest.mark.slow
def test_a_second_ctrl_c_gives_up_what_does_not_end(make_drive, make_pipeline, tmp_path):
    gate = threading.Event()

    def stuck(cloud):
        assert gate.wait(FOREVER_S)
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(stuck, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="60 s")
    out = tmp_path / "run.mcap"
    with pytest.raises(KeyboardInterrupt):
        pipeline.run(make_drive(500), record=out, look=lambda _: signal.raise_signal(signal.SIGINT))
    gate.set()
    found = verify(out)
    assert found.difference is None
    assert not found.complete


def test_a_stage_that_fails_is_told_each_time_and_the_others_go_on(make_drive, pipeline, caplog):
    """NOD-07: an exception in a user's code is never lost."""
    pipeline.add(failing, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.run(make_drive(6), rate=4)
    stages = report.summary.figures.stages
    assert stages["failing"].jobs()["aborted"] == 3
    assert stages["total"].jobs()["met"] == 6
    assert sum("ValueError: odd" in message for message in caplog.messages) == 3
    assert "small_stages.py" in caplog.text


class Device:
    """A stage whose device breaks at one call and works again later."""

    def __init__(self, broken_at):
        self.calls = []
        self.broken_at = broken_at

    def __call__(self, cloud):
        self.calls.append(cloud.stamp.sequence)
        if cloud.stamp.sequence == self.broken_at:
            raise HardwareFault("device_lost", "no answer")
        return cloud.stamp.sequence


@pytest.mark.slow
def test_stages_of_a_device_that_breaks_go_on_at_its_fallback(
    make_drive, tmp_path, read_records, monkeypatch
):
    """It is back when a twin of its stage has followed enough jobs on the fallback."""
    monkeypatch.setattr(probation, "SHADOW_FRAMES", 5)
    device = Device(broken_at=3)
    devices = {"npu": {"type": "simulated", "fallback": "cpu"}, "cpu": {"type": "cpu"}}
    pipeline = avrt.Pipeline("p", devices=devices)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")

    def stage(cloud):
        return device(cloud)

    pipeline.add(stage, inputs={"cloud": "lidar"}, device="npu", wcet="5 ms", deadline="90 ms")
    out = tmp_path / "run.mcap"
    report = pipeline.run(make_drive(30), record=out)
    jobs = read_records(out, JobRecord)
    assert [job.outcome for job in jobs if job.index == 3] == ["aborted"]
    assert sum(job.outcome == "aborted" for job in jobs) == 1
    lost, back = read_records(out, ResourceRecord)
    assert [(r.name, r.state) for r in (lost, back)] == [("npu", "lost"), ("npu", "back")]
    repeated = sorted(device.calls)
    for sequence in range(30):
        repeated.remove(sequence)
    golden, *shadows = repeated
    assert golden == 0
    assert len(shadows) >= 5
    assert shadows == sorted(set(shadows))
    ends_ns = [job.end_ns for job in jobs if job.index in shadows[:5]]
    assert back.at_ns >= max(ends_ns)
    assert report.jobs["open"] == 0
    assert verify(out).equal


@pytest.mark.parametrize("checksums", [False, True])
def test_what_changes_on_its_way_is_told_by_its_check_sum(make_drive, monkeypatch, checksums):
    from avrt.drivers import live  # noqa: PLC0415

    class Flipping(live.StageWorker):
        def arrival(self, message):
            if message.stamp.sequence == 2:
                xyz = message.payload.xyz * 2
                message = replace(message, payload=replace(message.payload, xyz=xyz))
            return super().arrival(message)

        def _publish(self, command, at_ns):
            super()._publish(command, at_ns)
            message = self._messages[command.buffer]
            if (message.stamp.source, message.stamp.sequence) == ("total", 3):
                self._messages[command.buffer] = replace(message, payload=1e9)

    monkeypatch.setattr(live, "StageWorker", Flipping)
    pipeline = avrt.Pipeline("p", checksums=checksums)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    after = {"name": "after", "inputs": {"it": "total"}, "wcet": "5 ms", "deadline": "1 s"}
    pipeline.add(lambda it: it.payload, **after)
    stages = pipeline.run(make_drive(6), rate=20).summary.figures.stages
    assert stages["total"].jobs()["met"] == 6 - checksums
    assert stages["after"].jobs()["met"] == 6 - 2 * checksums
    if checksums:
        told = "corrupted: input cloud, lidar 2, is not what was published"
        assert stages["total"].first_fault == told
        assert "input it, total 3, is not what was published" in stages["after"].first_fault


class Drifting(avrt.Stage):
    """A stage that computes wrongly wherever it is made anew."""

    made = 0

    def __init__(self):
        Drifting.made += 1
        self.wrong = Drifting.made > 1

    def process(self, cloud):
        if cloud.stamp.sequence == 3:
            raise HardwareFault("device_lost", "no answer")
        return cloud.stamp.sequence + self.wrong


@pytest.mark.slow
def test_a_device_that_computes_wrongly_stays_out(make_drive, tmp_path, read_records, monkeypatch):
    monkeypatch.setattr(recovery, "WAIT_NS_MIN", 50_000_000)
    monkeypatch.setattr(Drifting, "made", 0)
    devices = {"npu": {"type": "simulated", "fallback": "cpu"}, "cpu": {"type": "cpu"}}
    pipeline = avrt.Pipeline("p", devices=devices)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    keys = {"inputs": {"cloud": "lidar"}, "device": "npu", "wcet": "5 ms", "deadline": "90 ms"}
    pipeline.add(Drifting, name="see", **keys)
    out = tmp_path / "run.mcap"
    report = pipeline.run(make_drive(15), record=out)
    assert [(r.name, r.state) for r in read_records(out, ResourceRecord)] == [("npu", "lost")]
    assert report.jobs["met"] + report.jobs["late"] == 14
    (anomaly,) = report.summary.anomalies
    assert (anomaly.kind, anomaly.topic, anomaly.count) == ("device_out", "npu", 3)
    assert anomaly.detail.endswith("3 times within 10 min: see: its output differs")
    assert verify(out).equal


@pytest.mark.slow
def test_a_job_that_is_lost_with_its_device_is_forgotten(make_drive, monkeypatch):
    """Its inputs would be kept for ever: the driver never hears of its end."""
    from avrt.drivers import live  # noqa: PLC0415

    made, gate = [], threading.Event()

    class Kept(live.StageWorker):
        def __init__(self, *arguments, **keys):
            super().__init__(*arguments, **keys)
            made.append(self)

    monkeypatch.setattr(live, "StageWorker", Kept)

    def breaks(cloud):
        if cloud.stamp.sequence == 3:
            raise HardwareFault("device_lost", "no answer")
        if cloud.stamp.sequence == 4:
            gate.set()
        return cloud.stamp.sequence

    def waits(cloud):
        assert cloud.stamp.sequence != 3 or gate.wait(FOREVER_S)
        return cloud.stamp.sequence

    npu = {"type": "simulated", "slots": 2, "fallback": "cpu"}
    devices = {"npu": npu, "cpu": {"type": "cpu", "slots": 2}}
    pipeline = avrt.Pipeline("p", devices=devices)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    for stage in (waits, breaks):
        keys = {"inputs": {"cloud": "lidar"}, "device": "npu", "wcet": "5 ms", "deadline": "90 ms"}
        pipeline.add(stage, **keys)
    report = pipeline.run(make_drive(6))
    assert report.summary.figures.stages["waits"].reasons == {"aborted: lost": 1}
    assert not made[0]._running
    assert not report.summary.figures.assumptions._work


@contextmanager
def small_files():
    """Let no file of this process and its children grow beyond 64 KiB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.slow
def test_a_disk_that_is_full_stops_the_record_and_not_the_run(make_drive, pipeline, tmp_path):
    """NOD-05: perception goes on, the loss is told, and what was written before is readable."""
    drive, out = make_drive(40, points=200), tmp_path / "run.mcap"
    with small_files():
        report = pipeline.run(drive, record=out, rate=5)
    assert report.jobs["met"] + report.jobs["late"] == 40
    assert "File too large" in report.data["record_failure"]
    assert "recording FAILED" in str(report)
    found = verify(out)
    assert found.entries > 0
    assert not found.complete


def test_a_disk_that_is_full_at_the_end_is_told_in_the_report(make_drive, pipeline, monkeypatch):
    """NOD-05: the last bytes do not fit either, and what was learnt is not lost with them."""
    from avrt.logs.record.process import RemoteRecord  # noqa: PLC0415

    def fail(record, *_given):
        monkeypatch.undo()
        record.close()
        raise OSError("No space left on device")

    monkeypatch.setattr(RemoteRecord, "close", fail)
    report = pipeline.run(make_drive(8), record="/dev/null", rate=20)
    assert report.jobs["met"] + report.jobs["late"] == 8
    assert "No space left" in report.data["record_failure"]


def test_timers_alone_run_until_the_time_is_up(make_pipeline):
    pipeline = make_pipeline()
    pipeline._sources.clear()
    pipeline.add(lambda: 1, name="beat", period="10 ms", wcet="1 ms", deadline="10 s")
    report = pipeline.run(duration="100 ms")
    assert report.jobs["released"] == 10
    assert report.jobs["open"] == 0
    assert "world" not in report.data["conditions"]


def test_messages_of_a_source_are_numbered_in_the_record(pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    fed(pipeline, "Counting", count=3).run(record=out)
    with out.open("rb") as file:
        found = [m.sequence for _, _, m in make_reader(file).iter_messages(["/lidar"])]
    assert found == [0, 1, 2]


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"duration": "0 s"}, "duration: expected more than 0"),
        ({"duration": "soon"}, "duration: expected a duration"),
        ({"rate": 0.0}, "expected a rate"),
        ({"loops": 0}, "expected one loop or more"),
        ({"world": "cut_in"}, "cannot both feed"),
    ],
)
def test_what_cannot_be_is_refused(make_drive, pipeline, keys, what):
    with pytest.raises(SpecError, match=what):
        pipeline.run(make_drive(1), **keys)


def test_a_source_that_nothing_feeds_is_named(pipeline):
    with pytest.raises(SpecError, match="nothing feeds lidar: give a log to play, or write 'run'"):
        pipeline.run()


@pytest.mark.slow
def test_frames_are_in_flight_in_several_stages_at_once(make_drive, make_pipeline):
    """Stage two works on a frame while stage one works on the next: each waits for the other."""
    both_at_work = threading.Barrier(2)

    def first(cloud):
        if cloud.stamp.sequence > 0:
            both_at_work.wait(FOREVER_S)
        return cloud.stamp.sequence

    def second(number):
        if number.payload < 3:
            both_at_work.wait(FOREVER_S)
        return number.payload

    pipeline = make_pipeline(slots=2)
    keys = {"wcet": "10 ms", "deadline": "60 s", "queue": 1}
    pipeline.add(first, inputs={"cloud": "lidar"}, **keys)
    pipeline.add(second, inputs={"number": "first"}, **keys)
    report = pipeline.run(make_drive(4), rate=1)
    assert report.jobs["met"] == 8
    assert report.summary.figures.streams.side_by_side.share() > 0
