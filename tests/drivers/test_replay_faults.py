"""Stages that fail or hang: a fault of that job, and the run goes on."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from small_stages import FOREVER_S, failing, lives_on, total

import avrt
from avrt.drivers import replay as driver
from avrt.errors import SpecError
from avrt.logs.record.run_file import read_outputs
from avrt.model.records import FaultRecord, MissRecord
from avrt.payload import PointCloud

MS = 1_000_000


# Stages that fail


def test_a_stage_that_raises_ends_that_job_only(
    make_drive, make_pipeline, tmp_path, read_ends, read_records
):
    pipeline = make_pipeline()
    pipeline.add(failing, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(count_points_of, name="next", inputs={"cloud": "failing"}, wcet="1 ms",
                 deadline="1 s")  # fmt: skip
    out = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(5), out=out)
    assert read_ends(out, "failing") == [("met", ""), ("aborted", "failure")] * 2 + [("met", "")]
    assert report.data["stages"]["next"]["jobs"]["met"] == 3
    faults = read_records(out, FaultRecord)
    assert [(f.task, f.at_ns, f.fault) for f in faults] == [
        ("failing", 105 * MS, "exception"),
        ("failing", 305 * MS, "exception"),
    ]
    assert report.data["faults"] == {"failing: exception": 2}
    first = report.data["stages"]["failing"]["first_fault"]
    assert first.startswith(f"exception: ValueError: odd at {failing.__code__.co_filename}:")
    assert report.summary.reproducible
    assert [m.stamp.sequence for m in read_outputs(out, "failing")] == [0, 1, 2]


def count_points_of(cloud):
    return cloud.payload


@pytest.mark.parametrize(
    ("payload", "kind"), [(None, "no_payload"), ({1}, "bad_payload"), (object(), "bad_payload")]
)
def test_what_is_no_payload_is_a_fault(make_drive, make_pipeline, payload, kind):
    pipeline = make_pipeline()
    pipeline.add(lambda cloud: payload, name="it", inputs={"cloud": "lidar"}, wcet="5 ms",  # noqa: ARG005
                 deadline="1 s")  # fmt: skip
    report = pipeline.replay(make_drive(3))
    assert report.data["faults"] == {f"it: {kind}": 3}
    assert report.jobs["aborted"] == 3


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit()])
def test_not_even_an_exit_in_a_stage_ends_the_run(make_drive, make_pipeline, error):
    def leave(cloud):  # noqa: ARG001 - by its name
        raise error

    pipeline = make_pipeline()
    pipeline.add(leave, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(make_drive(3))
    assert report.jobs["aborted"] == 3
    assert report.summary.hangs == 0
    assert not report.summary.interrupted


def test_a_stage_that_cannot_warm_up_is_named(make_drive, make_pipeline, tmp_path):
    class Cold(avrt.Stage):
        def warm(self):
            raise RuntimeError("no weights")

        def process(self, cloud):
            return cloud.payload.count

    pipeline = make_pipeline()
    pipeline.add(Cold, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    with pytest.raises(SpecError, match=r"stages.Cold.run: warm\(\) failed: RuntimeError: no weig"):
        pipeline.replay(make_drive(3), out=tmp_path / "run.mcap")
    assert not [t for t in threading.enumerate() if t.name == "avrt-Cold" and lives_on(t)]


def test_warming_up_runs_where_the_stage_runs_and_its_time_is_kept_apart(make_drive, make_pipeline):
    threads = set()

    class Warm(avrt.Stage):
        def warm(self):
            threads.add(threading.get_ident())

        def process(self, cloud):
            threads.add(threading.get_ident())
            return cloud.payload.count

    pipeline = make_pipeline()
    pipeline.add(Warm, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    warmup = pipeline.replay(make_drive(3)).data["stages"]["Warm"]["warmup"]
    assert len(threads) == 1
    assert warmup["warm_ns"] >= 1
    assert warmup["first_job_ns"] >= 1


def malformed(cloud):
    return PointCloud(np.zeros((4, 3)), intensity=7) if cloud.stamp.sequence else 1


@pytest.mark.filterwarnings("ignore")
def test_a_payload_that_cannot_be_recorded_is_counted_and_the_run_goes_on(
    make_drive, make_pipeline, tmp_path
):
    pipeline = make_pipeline()
    pipeline.add(malformed, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(lambda cloud: np.array(["text"]), name="words", inputs={"cloud": "lidar"},  # noqa: ARG005
                 wcet="5 ms", deadline="1 s")  # fmt: skip
    report = pipeline.replay(make_drive(3), out=tmp_path / "run.mcap")
    assert report.jobs["met"] == 6
    lost = report.data["not_recorded"]
    assert {name: item["count"] for name, item in lost.items()} == {"malformed": 2, "words": 3}
    assert lost["malformed"]["why"]


@dataclass(frozen=True)
class Lanes:
    """A payload of the user's own."""

    left: np.ndarray
    names: tuple[str, ...]


def test_a_payload_class_of_the_users_own_is_recorded_and_in_the_digest(
    make_drive, make_pipeline, tmp_path
):
    def run(name, out=None):
        pipeline = make_pipeline()
        pipeline.add(
            lambda cloud: Lanes(cloud.payload.xyz[:2], (name,)),
            name="lanes",
            inputs={"cloud": "lidar"},
            wcet="5 ms",
            deadline="1 s",
        )
        return pipeline.replay(make_drive(2), out=out).data["digests"]["payloads"]

    assert run("left") != run("right", tmp_path / "run.mcap")
    (output, _) = read_outputs(tmp_path / "run.mcap", "lanes")
    assert output.payload["$type"] == "Lanes"
    assert output.payload["names"] == ("right",)
    assert output.payload["left"].shape == (2, 3)


# Stages that hang


class Hang:
    """A stage that stands still at message 1 until the test is over."""

    def __init__(self):
        self.entered = threading.Event()
        self.gate = threading.Event()

    def stage(self, cloud):
        if cloud.stamp.sequence == 1:
            self.entered.set()
            self.gate.wait()
        return cloud.stamp.sequence


@pytest.fixture
def hang(monkeypatch):
    """A stage called `stuck` that hangs; its timeout passes as soon as it stands still.

    So no test depends on how fast the host is; the timeout itself has its test in tests/exec.
    """
    hang = Hang()
    awaited = driver.StageWorker._awaited

    def wait_or_hang(self, running):
        if (running.stage.name, running.index) != ("stuck", 1) or running.future is None:
            return awaited(self, running)
        assert hang.entered.wait(FOREVER_S)
        running.future = None
        return None

    monkeypatch.setattr(driver.StageWorker, "_awaited", wait_or_hang)
    yield hang
    hang.gate.set()


@pytest.mark.parametrize("timing", ["model", "measured"])
def test_a_stage_that_hangs_loses_its_stream_and_the_others_go_on(
    make_drive, make_pipeline, tmp_path, read_ends, hang, timing
):
    """`hang` sees to it that under measured times a hang is waited for once."""
    pipeline = make_pipeline()
    pipeline.add(hang.stage, name="stuck", inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    out = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(4), out=out, timing=timing)
    assert read_ends(out, "stuck") == [
        ("met", ""), ("aborted", "hang"), ("aborted", "lost"), ("aborted", "lost"),
    ]  # fmt: skip
    assert read_ends(out, "total") == [("met", "")] * 4
    assert report.summary.hangs == 1
    assert not report.summary.reproducible
    assert report.data["faults"] == {"stuck: hang": 1}
    assert [r["name"] for r in report.data["resources"]] == ["stuck"]


def test_a_hung_job_whose_due_time_passed_is_a_miss_as_well(
    make_drive, make_pipeline, tmp_path, read_records, hang
):
    pipeline = make_pipeline()
    pipeline.add(hang.stage, name="stuck", inputs={"cloud": "lidar"}, wcet="50 ms",
                 deadline="20 ms")  # fmt: skip
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(3), out=out)
    misses = read_records(out, MissRecord)
    assert [miss.at_ns for miss in misses] == [20 * MS, 120 * MS]
    jobs = {job.index: job for job in read_records(out)}
    assert (jobs[1].outcome, jobs[1].reason, jobs[1].end_ns) == ("aborted", "hang", 150 * MS)
