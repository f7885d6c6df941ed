"""Recording on a thread of its own: order, and what becomes of errors."""

import threading

import pytest

from avrt.drivers.backlog import MESSAGES_MAX, WAITING_MAX
from avrt.drivers.recorder import Recorder
from avrt.model.message import Message, Stamp

FOREVER_S = 60
FULL = OSError(28, "No space left on device")


class Written:
    """A record that keeps what it is told; it fails at the entry it is told to fail at."""

    def __init__(self, fails_at=None, error=FULL):
        self.lines = []
        self.fails_at = fails_at
        self.error = error

    def journal(self, line, at_ns):
        if line == self.fails_at:
            raise self.error
        self.lines.append((at_ns, line))


def test_everything_is_written_in_order_before_close_returns():
    record = Written()
    recorder = Recorder(record)
    for i in range(1000):
        recorder.journal(i, f"line {i}")
    recorder.close()
    assert record.lines == [(i, f"line {i}") for i in range(1000)]


@pytest.mark.parametrize("error", [FULL, ValueError("a bug")])
def test_what_cannot_be_written_is_raised_and_nothing_is_written_after_it(error):
    record = Written(fails_at="line 3", error=error)
    recorder = Recorder(record)

    def write_on():
        for i in range(100_000):
            recorder.journal(i, f"line {i}")

    with pytest.raises(type(error), match=str(error.args[-1])):
        write_on()
    with pytest.raises(type(error), match=str(error.args[-1])):
        recorder.close()
    assert [line for _, line in record.lines] == ["line 0", "line 1", "line 2"]


def test_without_a_record_nothing_is_kept_and_no_thread_is_needed():
    recorder = Recorder(None)
    recorder.journal(0, "line")
    recorder.close()
    assert recorder.not_recorded == {}


def test_ctrl_c_while_closing_gives_up_what_waits_and_nothing_is_written_after_it():
    """The record is closed by whoever opened it, so its thread must not write any more."""
    entered, gate = threading.Event(), threading.Event()

    class Slow(Written):
        def journal(self, line, at_ns):
            entered.set()
            assert gate.wait(FOREVER_S)
            super().journal(line, at_ns)

    record = Slow()
    recorder = Recorder(record)
    wait, calls = recorder._backlog._ended.wait, []

    def stop_and_wait():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        gate.set()
        wait()

    recorder._backlog._ended.wait = stop_and_wait
    for i in range(100):
        recorder.journal(i, f"line {i}")
    assert entered.wait(FOREVER_S)
    with pytest.raises(KeyboardInterrupt):
        recorder.close()
    assert recorder._backlog._ended.is_set()
    assert record.lines == [(0, "line 0")]


def test_few_messages_wait_and_many_lines(make_message):
    """A disk slower than the sensors must not fill the memory with clouds."""
    gate, held = threading.Event(), []

    class Slow(Written):
        def output(self, _stage, message):
            held.append(message)
            assert gate.wait(FOREVER_S)
            return True

    recorder = Recorder(Slow())
    taken = []

    def give():
        for _ in range(2 * MESSAGES_MAX):
            recorder.output("stage", make_message())
            taken.append(1)

    giver = threading.Thread(target=give)
    giver.start()
    while len(taken) < MESSAGES_MAX:
        giver.join(0.001)
    for i in range(WAITING_MAX - MESSAGES_MAX):
        recorder.journal(i, "line")  # does not wait
    assert len(taken) == MESSAGES_MAX
    gate.set()
    giver.join(FOREVER_S)
    recorder.close()
    assert len(held) == 2 * MESSAGES_MAX


def test_whoever_waits_for_room_learns_that_nothing_is_written_any_more(make_message):
    class Full(Written):
        def output(self, _stage, _message):
            raise FULL

    recorder = Recorder(Full())

    def write_on():
        for _ in range(100_000):
            recorder.output("stage", make_message())

    with pytest.raises(OSError, match="No space left"):
        write_on()
    with pytest.raises(OSError, match="No space left"):
        recorder.close()


@pytest.fixture
def make_message():
    return lambda: Message(Stamp("stage", 0, 0, 0, 0), {"n": 1})
