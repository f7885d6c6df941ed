"""A record that another process writes is the one that this process would have written."""

import gc
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.logs.raw import Channel, RawMessage
from avrt.logs.record.frames import read_frame, write_frame
from avrt.logs.record.process import RemoteRecord, is_known
from avrt.logs.record.run_file import RunFile, read_outputs
from avrt.logs.record.run_record import RunRecord
from avrt.model.message import Message, Stamp
from avrt.payload import Plan, PointCloud

CHANNEL = Channel(0, "/lidar", "sensor_msgs/msg/PointCloud2", "cdr", "ros2msg", b"# nothing")


@dataclass(frozen=True)
class Mine:
    """A payload that only this process knows."""

    number: int


class Gear(IntEnum):
    FIRST = 1


class Place(NamedTuple):
    x: int
    y: int


class Samples(np.ndarray):
    """An array of a class that only this process knows."""


def message(payload, at_ns=5):
    return Message(Stamp("see", 0, 1, 2, at_ns, "roof"), payload, {})


def cloud(count=3):
    return PointCloud(np.arange(3 * count, dtype=np.float32).reshape(count, 3), None, None)


def fill(record):
    raw = RawMessage(CHANNEL, 7, 7, 0, memoryview(b"xx12345")[2:])
    record.input("/lidar", raw)
    record.output("see", message(cloud()))
    record.output("mine", message(Mine(3)))
    record.journal('{"index":0}', 4)
    record.note("/avrt/resources", {"rss_bytes": 1}, 6)
    record.close({"decisions": "d"}, {"host": "h", "more": "m"})


def opened(kind, path):
    return kind(path, zero_ns=0, conditions={"host": "h"}, pipeline_json="{}")


@pytest.mark.slow
def test_the_record_is_the_same_wherever_it_is_written(tmp_path):
    here, there = tmp_path / "here.mcap", tmp_path / "there.mcap"
    fill(opened(RunRecord, here))
    fill(opened(RemoteRecord, there))
    with RunFile(here) as one, RunFile(there) as other:
        assert one.conditions == other.conditions == {"host": "h", "more": "m"}
        assert one.result == other.result
        assert [line.text for line in one.journal()] == [line.text for line in other.journal()]
    first, second = read_outputs(here, "see")[0], read_outputs(there, "see")[0]
    assert first.stamp == second.stamp
    assert read_outputs(there, "mine")[0].payload == read_outputs(here, "mine")[0].payload


@pytest.mark.slow
def test_what_has_no_form_is_told_before_the_end(tmp_path):
    record = opened(RemoteRecord, tmp_path / "run.mcap")
    assert record.output("see", message(cloud()))
    assert not record.output("odd", message(object()))
    assert record.settled() == {}
    record.close()


@pytest.mark.slow
def test_a_file_that_cannot_be_made_is_refused(tmp_path):
    with pytest.raises(SpecError, match="cannot create the run record"):
        opened(RemoteRecord, tmp_path / "nowhere" / "run.mcap")


@pytest.mark.slow
def test_a_process_that_is_gone_is_told_as_a_failure_to_write(tmp_path):
    record = opened(RemoteRecord, tmp_path / "run.mcap")
    record._process.kill()
    record._process.wait()
    with pytest.raises(OSError, match="the process that writes") as raised:
        record.journal("{}", 0)
    assert "ended (exit code -9)" in str(raised.value)
    record.close()


@pytest.mark.parametrize("ask", [RemoteRecord.settled, RemoteRecord.close])
def test_a_record_that_failed_keeps_no_descriptor(tmp_path, ask):
    record = opened(RemoteRecord, tmp_path / "run.mcap")
    record._process.kill()
    with pytest.raises(OSError, match="exit code -9"):
        ask(record)
    assert record._process.stdin.closed
    assert record._process.stdout.closed


@pytest.mark.parametrize(
    ("payload", "known"),
    [
        (cloud(), True),
        ([1, 2.0, None, "x", b"y", {"a": np.float64(1)}], True),
        (Mine(1), False),
        ((cloud(), [Mine(1)]), False),
        ({"a": object()}, False),
        (np.array([object()]), False),
        ({"gear": Gear.FIRST}, False),
        (Place(1, 2), False),
        ([np.zeros(2).view(Samples)], False),
    ],
)
def test_only_what_the_other_process_knows_is_sent_as_it_is(payload, known):
    assert is_known(payload) is known


@pytest.mark.slow
def test_an_output_that_cannot_be_shown_costs_its_record_nothing_else(tmp_path):
    path, none = tmp_path / "run.mcap", np.zeros(0)
    torn = Plan(np.zeros(3), np.zeros((2, 2)), none, none, none, none, "cruise", None, None)
    record = opened(RemoteRecord, path)
    for payload in (torn, Gear.FIRST, Place(1, 2), torn):
        assert record.output("see", message(payload))
    count, why = record.settled()["see"]
    record.close()
    assert count == 2
    assert why.startswith("ValueError: zip()")
    assert [output.payload for output in read_outputs(path, "see")] == [1, (1, 2)]


def through_a_pipe(item, along=None):
    reading, writing = os.pipe()
    try:
        write_frame(writing, item, along)
        return read_frame(reading)
    finally:
        os.close(reading)
        os.close(writing)


@settings(max_examples=50)
@given(st.binary(max_size=4000), st.integers(0, 40), st.booleans())
def test_what_goes_through_a_pipe_comes_out_of_it(data, rows, fortran):
    array = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    sent = np.asfortranarray(array) if fortran else array
    (name, found), along = through_a_pipe(("name", sent), memoryview(data))
    assert name == "name"
    assert np.array_equal(found, array)
    assert along == data


def test_a_pipe_that_ends_within_a_frame_is_its_end():
    reading, writing = os.pipe()
    os.write(writing, b"123")
    os.close(writing)
    with pytest.raises(EOFError):
        read_frame(reading)
    os.close(reading)


def test_what_a_failed_write_held_is_collected():
    """A PickleBuffer over a memoryview crashed the collector here."""
    for _ in range(50):
        reading, writing = os.pipe()
        os.close(reading)
        raw = RawMessage(CHANNEL, 1, 1, 0, memoryview(bytes(5000))[10:])
        with pytest.raises(BrokenPipeError) as caught:
            write_frame(writing, ("input", raw.topic), raw.data)
        caught.value.itself = caught.value
        os.close(writing)
        del caught, raw
        gc.collect()
