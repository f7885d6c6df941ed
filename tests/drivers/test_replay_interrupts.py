"""Ctrl-C, once and twice: the record is closed, verifies as far as it goes, and no thread stays."""

import signal
import threading

import pytest
from small_stages import total

from avrt.drivers.recorder import Recorder
from avrt.drivers.verify import verify

FOREVER_S = 60


@pytest.fixture
def pipeline(make_pipeline):
    made = make_pipeline()
    made.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    return made


@pytest.mark.live
def test_ctrl_c_while_a_job_runs_ends_the_reading_ahead(make_drive, make_pipeline, tmp_path):
    ended = threading.Event()

    def stuck(cloud):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        ended.wait(FOREVER_S)
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(stuck, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    out = tmp_path / "run.mcap"
    report = pipeline.replay(make_drive(500), out=out, clock="wall")
    readers = [thread for thread in threading.enumerate() if thread.name == "avrt-read"]
    ended.set()
    assert report.summary.interrupted
    assert report.summary.figures.stages["stuck"].reasons == {"aborted: stop": 1}
    assert not readers
    assert verify(out).equal


@pytest.mark.parametrize("clock", ["virtual", pytest.param("wall", marks=pytest.mark.live)])
def test_a_second_ctrl_c_within_a_step_leaves_a_record_that_is_cut_and_not_wrong(
    make_drive, pipeline, tmp_path, monkeypatch, clock
):
    entries = []

    def journal(self, at_ns, line):
        entries.append(line)
        if len(entries) == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        self._put(lambda: self._record.journal(line, at_ns))

    monkeypatch.setattr(Recorder, "journal", journal)
    out = tmp_path / "run.mcap"
    with pytest.raises(KeyboardInterrupt):
        pipeline.replay(make_drive(20), out=out, clock=clock)
    found = verify(out)
    assert (found.entries, found.difference, found.complete) == (4, None, False)


def test_figures_of_lateness_are_there_however_ctrl_c_came(make_drive, pipeline):
    def stop(at_ns):
        if at_ns:
            signal.raise_signal(signal.SIGINT)

    report = pipeline.replay(make_drive(20), clock="wall", rate=50, progress=stop)
    assert report.summary.interrupted
    assert report.data["wakeup_late_ns"]["count"] > 0
