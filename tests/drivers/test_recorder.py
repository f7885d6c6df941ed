"""Recording on a thread of its own: order, and what becomes of errors."""

import threading

import pytest

from avrt.drivers.recorder import Recorder

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
    wait, calls = recorder._ended.wait, []

    def stop_and_wait():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        gate.set()
        wait()

    recorder._ended.wait = stop_and_wait
    for i in range(100):
        recorder.journal(i, f"line {i}")
    assert entered.wait(FOREVER_S)
    with pytest.raises(KeyboardInterrupt):
        recorder.close()
    assert recorder._ended.is_set()
    assert record.lines == [(0, "line 0")]
