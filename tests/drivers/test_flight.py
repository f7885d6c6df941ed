"""The flight recorder: what is around an incident is written, and nothing grows."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.drivers.flight import FlightLimits, FlightRecorder
from avrt.logs.raw import Channel, RawMessage
from avrt.logs.record.run_record import SENSORS
from avrt.model.codec import encode
from avrt.model.commands import Record
from avrt.model.guard import SensorRecord
from avrt.model.message import Message, Stamp
from avrt.model.records import FaultRecord

CHANNEL = Channel(0, "/lidar", "", "cdr")


@dataclass
class Written:
    """A record that keeps the times of what it was given."""

    what: str
    times: list
    closed: bool = False
    fails: bool = False

    def input(self, _topic, raw):
        self.times.append(raw.log_ns)

    def output(self, _stage, message):
        if message.payload == "torn":
            raise ValueError("shapes differ")
        self.times.append(message.stamp.publish_ns)
        return True

    def journal(self, _entry, at_ns):
        if self.fails:
            raise OSError(28, "No space left on device")
        self.times.append(at_ns)

    def note(self, _topic, _item, at_ns):
        self.times.append(at_ns)

    def close(self):
        self.closed = True


class Flown:
    """A flight recorder over a folder that is never made, and its files."""

    def __init__(self, folder, limits, *, fails=False):
        self.files = []

        def create(_path, what):
            self.files.append(Written(what, [], fails=fails))
            return self.files[-1]

        self.recorder = FlightRecorder(folder, 0, create, limits)

    def fly(self, until, incidents=(), step=1):
        for at in range(0, until, step):
            self.recorder.journal("entry", at)
            if at in incidents:
                fault = FaultRecord(0, "see", at, "boom")
                self.recorder.watch(at, (), [Record(fault)])
        self.recorder.close()
        return self


LIMITS = FlightLimits(before_ns=10, after_ns=5, file_ns=40, files=3)


def test_the_time_around_an_incident_is_written(tmp_path):
    (file,) = Flown(tmp_path, LIMITS).fly(100, incidents=[50]).files
    assert file.times == list(range(40, 56))
    assert file.what == "see failed: boom"
    assert file.closed


def test_an_incident_meanwhile_prolongs_the_file_up_to_its_limit(tmp_path):
    (file,) = Flown(tmp_path, LIMITS).fly(70, incidents=[50, 54]).files
    assert file.times == list(range(40, 60))
    first, second, *_ = Flown(tmp_path, LIMITS).fly(200, incidents=range(50, 200)).files
    assert first.times == list(range(40, 81))
    assert second.times[0] == 71  # the seconds before it are in both


def test_a_run_writes_its_share_of_files_and_counts_the_rest(tmp_path):
    flown = Flown(tmp_path, LIMITS).fly(1000, incidents=range(0, 1000, 100))
    assert len(flown.files) == len(flown.recorder.paths) == 3
    assert flown.recorder.unwritten == 7


def test_what_cannot_be_written_is_told_and_flying_goes_on(tmp_path, caplog):
    flown = Flown(tmp_path, LIMITS, fails=True).fly(300, incidents=[50, 150, 250])
    assert "No space left" in flown.recorder.failure
    assert flown.recorder.unwritten == 3
    assert sum("gives up" in message for message in caplog.messages) == 1


def test_an_output_that_cannot_be_encoded_is_counted_and_flying_goes_on(tmp_path):
    flown = Flown(tmp_path, LIMITS)
    for at in (3, 7):
        payload = "torn" if at == 3 else "whole"
        flown.recorder.output("see", Message(Stamp("see", 0, at, at, at, ""), payload, {}))
    (file,) = flown.fly(30, incidents=[9]).files
    assert 7 in file.times[:1]
    assert file.closed
    assert not flown.recorder.failure
    count, why = flown.recorder.left_out["see"]
    assert count == 1
    assert "ValueError: shapes differ" in why


@settings(max_examples=30)
@given(st.lists(st.integers(0, 10**6), max_size=30))
def test_memory_is_bounded_in_bytes(sizes):
    limits = FlightLimits(before_ns=10**9, memory_bytes=2 * 10**6)
    recorder = FlightRecorder(None, 0, None, limits)
    for at, size in enumerate(sizes):
        recorder.input("/lidar", RawMessage(CHANNEL, at, at, 0, bytes(size)))
        stamp = Stamp("see", 0, at, at, at, "")
        recorder.output("see", Message(stamp, [np.zeros(size, np.uint8)], {}))
    assert recorder._kept_bytes == sum(size for _, size, _ in recorder._kept)
    assert recorder._kept_bytes <= 2 * 10**6


@pytest.mark.slow
@pytest.mark.live
def test_a_live_run_without_a_record_leaves_one_of_its_miss(make_drive, make_pipeline, tmp_path):
    import avrt  # noqa: PLC0415
    from avrt.drivers.verify import verify  # noqa: PLC0415
    from avrt.errors import InputError  # noqa: PLC0415
    from avrt.report.summary import read_summary  # noqa: PLC0415

    def failing(cloud):
        if cloud.stamp.sequence == 5:
            raise ValueError("boom")
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(failing, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.run(make_drive(8), rate=10, flight=tmp_path / "flight")
    (path,) = report.data["flight"]["files"]
    summary = read_summary(path)
    assert summary.figures.jobs()["aborted"] == 1
    assert summary.figures.jobs()["open"] == 0
    assert "failing failed: exception" in str(avrt.Report(summary))
    with pytest.raises(InputError, match="found a flight record"):
        verify(path)


@pytest.mark.parametrize(("state", "files"), [("ok", 0), ("blocked", 0), ("blind", 1)])
def test_a_sensor_out_of_use_is_an_incident(tmp_path, state, files):
    flown = Flown(tmp_path / "none", FlightLimits())
    flown.recorder.note(SENSORS, encode(SensorRecord("camera", 5, state, "ok")), 5)
    assert [file.what for file in flown.files] == ["sensor camera is blind"] * files


def test_files_of_earlier_runs_stay_and_numbers_go_on_behind_theirs(tmp_path):
    for name in ("flight-002-100ms.mcap", "flight-mine.mcap", "flight-009-1ms.txt"):
        (tmp_path / name).write_text("of before")
    flown = Flown(tmp_path, FlightLimits(before_ns=1, after_ns=1))
    flown.fly(30, incidents={10, 20})
    assert [path.name[:10] for path in flown.recorder.paths] == ["flight-003", "flight-004"]
