"""Replay at the wall clock: what came is decided by the same kernel, and verifies."""

import threading

import pytest

import avrt
from avrt.drivers.recording import read_recorded
from avrt.drivers.verify import verify
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.exec import stream
from avrt.model.records import JobRecord


def count(cloud):
    return int(cloud.payload.count)


@pytest.fixture
def pipeline(make_pipeline):
    made = make_pipeline()
    made.add(count, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    return made


@pytest.mark.live
def test_a_run_at_the_wall_clock_has_every_message_and_verifies(make_drive, pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(8), out=out, clock="wall", rate=50)
    assert report.jobs["released"] == 8
    assert report.data["timing"] == "measured"
    assert report.data["conditions"]["clock"] == "wall, rate 50"
    assert not report.data["reproducible"]
    assert report.data["wakeup_late_ns"]["count"] >= 8
    assert avrt.read_outputs(out, "count")
    assert verify(out).equal
    assert "clock wall, rate 50" in str(report)


@pytest.mark.live
def test_work_takes_pipeline_time_at_the_rate(make_drive, make_pipeline, tmp_path, read_records):
    """A job that waits for 20 ms of host time takes at least 200 ms at rate 10."""
    waiting = threading.Event()

    def slow(cloud):
        waiting.wait(0.02)
        return int(cloud.payload.count)

    pipeline = make_pipeline()
    pipeline.add(slow, inputs={"cloud": "lidar"}, wcet="1 ms", deadline="150 ms")
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(2), out=out, clock="wall", rate=10)
    jobs = read_records(out, JobRecord)
    assert [job.outcome for job in jobs] == ["late", "late"]
    assert all(job.end_ns - job.start_ns >= 200_000_000 for job in jobs)
    assert all(job.start_ns < job.device_ns <= job.end_ns for job in jobs)


@pytest.mark.live
def test_a_replay_restarts_nothing_and_so_copies_no_state(make_drive, make_pipeline, monkeypatch):
    """Checkpoints are for a stage that is made anew; a copy takes time of the stage's stream."""

    copies = []

    class Counting(avrt.Stage):
        def process(self, cloud):
            return int(cloud.payload.count)

        def freeze(self):
            copies.append(self)
            return 1

        def thaw(self, state):
            pass

    monkeypatch.setattr(stream, "CHECKPOINT_NS", 0)
    pipeline = make_pipeline()
    pipeline.add(Counting, name="see", inputs={"cloud": "lidar"}, wcet="1 ms", deadline="1 s")
    pipeline.replay(make_drive(4), clock="wall", rate=50)
    assert len(copies) == 1  # after its warm-up


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"clock": "wall", "timing": "model"}, "jobs take what they take here"),
        ({"clock": "sundial"}, "expected the clock virtual or wall, found 'sundial'"),
        ({"clock": "wall", "rate": 0.0}, "a rate from 0.001 to 1e"),
        ({"clock": "wall", "rate": float("nan")}, "a rate from 0.001 to 1e"),
        ({"clock": "wall", "rate": 1e-300}, "a rate from 0.001 to 1e"),
        ({"clock": "wall", "rate": 1e300}, "a rate from 0.001 to 1e"),
        ({"rate": 2.0}, "virtual time has no rate"),
    ],
)
def test_what_does_not_go_together_is_refused(make_drive, pipeline, keys, what):
    with pytest.raises(SpecError, match=what):
        pipeline.replay(make_drive(1), **keys)


def test_nothing_is_preempted_at_the_wall_clock(make_drive):
    keys = {"type": "simulated", "preemptive": True}
    pipeline = avrt.Pipeline("p", devices={"sim": keys})
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(count, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    with pytest.raises(SpecError, match=r"devices\.sim\.preemptive"):
        pipeline.replay(make_drive(1), clock="wall")


@pytest.fixture
def server():
    """A pipeline on a device that is there for 2 ms of every 10 ms."""
    supply = {"budget": "2 ms", "every": "10 ms"}
    made = avrt.Pipeline("p", policy="dm", devices={"cpu": {"supply": supply}})
    made.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    made.add(count, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="90 ms")
    return made


@pytest.mark.live
def test_at_the_wall_clock_a_supply_is_the_operating_systems(make_drive, server, tmp_path):
    out = tmp_path / "run.mcap"
    report = server.replay(make_drive(3), out=out, clock="wall", rate=10)
    told = "cpu gets 2 ms of every 10 ms: by the operating system, if at all; not seen"
    assert report.data["conditions"]["supply"] == told
    assert report.data["bounds"]["assumption"]["kind"] == "supply"
    assert verify(out).equal
    recorded = read_recorded(out)
    assert repeat(recorded, recorded.spec).digest == recorded.digest


def test_in_virtual_time_a_job_waits_for_it(make_drive, server, tmp_path, read_records):
    out = tmp_path / "run.mcap"
    report = server.replay(make_drive(3), out=out)
    assert "supply" not in report.data["conditions"]
    assert report.data["bounds"]["verdict"] == "holds"
    assert [(j.response_ns, j.executed_ns) for j in read_records(out, JobRecord)] == [
        (21_000_000, 5_000_000)
    ] * 3
    assert verify(out).equal
