"""A CPU stream's thread: order, errors, what it sets for itself, its end, and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref

import pytest
import torch

from avrt.device import CpuDevice, CpuStream, Executor, WorkerSetup
from avrt.device.base import ForkedProcess, StreamClosed

pytestmark = pytest.mark.live

WAIT_NS = 10 * 10**9


@pytest.fixture
def stream():
    made = CpuStream("s")
    yield made
    made.close()
    assert made.join(WAIT_NS)


def after(stream):
    """Wait until the stream has come here."""
    passed = threading.Event()
    stream.submit_always(passed.set)
    assert passed.wait(10)


def test_calls_run_in_order_on_one_thread_of_the_streams_name(stream):
    ran = []
    for index in range(100):
        stream.submit(lambda index=index: ran.append((index, threading.current_thread().name)))
    after(stream)
    assert ran == [(index, "avrt-s") for index in range(100)]


def test_what_a_call_raises_is_kept_and_the_rest_is_skipped_until_a_reset(stream):
    ran = []
    stream.submit(lambda: 1 / 0)
    stream.submit(lambda: ran.append("skipped"))
    stream.submit_always(lambda: ran.append("always"))
    after(stream)
    assert isinstance(stream.error, ZeroDivisionError)
    stream.reset()
    stream.submit(lambda: ran.append("again"))
    after(stream)
    assert ran == ["always", "again"]
    assert stream.error is None


def test_even_an_exit_in_a_call_is_an_error_of_the_stream(stream):
    stream.submit(sys.exit)
    after(stream)
    assert isinstance(stream.error, SystemExit)


def test_what_a_call_holds_is_let_go_when_it_is_done(stream):
    class Held:
        pass

    held, gone = Held(), threading.Event()
    weakref.finalize(held, gone.set)
    stream.submit(lambda held=held: held)
    del held
    assert gone.wait(10)


def test_closing_runs_what_is_queued_and_takes_no_more(stream):
    ran = []
    gate = threading.Event()
    stream.submit(gate.wait)
    stream.submit(lambda: ran.append(1))
    stream.close()
    stream.close()
    gate.set()
    assert stream.join(WAIT_NS)
    assert ran == [1]
    with pytest.raises(StreamClosed, match="s is closed"):
        stream.submit(int)


def test_giving_up_skips_what_is_queued_and_leaves_a_stuck_thread(stream):
    ran = []
    gate, begun = threading.Event(), threading.Event()
    stream.submit(begun.set)
    stream.submit(gate.wait)
    stream.submit(lambda: ran.append(1))
    stream.reset()
    stream.submit(lambda: ran.append(2))
    assert begun.wait(10)
    stream.give_up()
    assert not stream.join(1000)
    gate.set()
    assert stream.join(WAIT_NS)
    assert ran == []
    assert isinstance(stream.error, StreamClosed)


def test_a_thread_sets_itself_up_and_says_what_it_got(stream):
    assert stream.ready(WAIT_NS)
    found = {}
    stream.submit(lambda: found.update(inference=torch.is_inference_mode_enabled()))
    stream.submit(lambda: found.update(tiny=float(torch.tensor(1e-39) * 1.0)))
    after(stream)
    assert stream.granted["threads"] == "1"
    assert stream.granted["scheduler"] == "other"
    assert stream.granted["refused"] == ""
    assert found["inference"]
    if stream.granted["flush_denormal"] == "yes":
        assert found["tiny"] == 0.0


def test_a_setup_that_fails_is_the_streams_error_and_nobody_waits_for_ever():
    stream = CpuStream("s", WorkerSetup(threads=-1))
    assert stream.ready(WAIT_NS)
    after(stream)
    stream.close()
    assert isinstance(stream.error, RuntimeError)


def test_a_setup_may_leave_torch_alone():
    before = torch.get_num_threads()
    setup = WorkerSetup(threads=None, flush_denormal=False, inference=False)
    stream = CpuStream("plain", setup)
    found = []
    stream.submit(lambda: found.append(torch.is_inference_mode_enabled()))
    after(stream)
    assert found == [False]
    assert stream.granted["flush_denormal"] == "no"
    assert stream.granted["threads"] == str(before)
    stream.close()


def test_a_thread_keeps_to_the_core_that_it_was_given():
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    stream = CpuStream("bound", WorkerSetup(cpu=core))
    found = []
    stream.submit(lambda: found.append(os.sched_getaffinity(0)))
    after(stream)
    stream.close()
    assert found == [{core}]
    assert stream.granted["cpus"] == str(core)
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.parametrize(
    ("setup", "what"),
    [(WorkerSetup(cpu=4095), "cpu:"), (WorkerSetup(priority=1000), "priority:")],
)
def test_what_the_system_refuses_is_told_and_the_stream_works(setup, what):
    stream = CpuStream("refused", setup)
    after(stream)
    stream.close()
    assert stream.granted["refused"].startswith(what)


def test_a_real_time_priority_is_granted_or_refused_in_the_report():
    with Executor(CpuDevice(realtime_priority=10)) as executor:
        assert executor.caps.priorities == (0, 89)
        executor.stream("s", priority=5)
        (line,) = executor.report().values()
    assert "scheduler=fifo" in line or "refused=priority:" in line


@pytest.mark.slow
def test_a_forked_child_is_told_and_does_not_hang():
    code = """
import os, warnings
warnings.simplefilter("ignore")
from avrt.device import CpuDevice, Executor
from avrt.device.base import ForkedProcess
executor = Executor(CpuDevice())
stream = executor.stream("s")
import threading
gate = threading.Event()
executor.launch(stream, gate.wait)
event = executor.record(stream)
told = 0
if os.fork() == 0:
    for call in (
        lambda: executor.launch(stream, int),
        lambda: executor.synchronize(stream),
        lambda: executor.synchronize(event),
        lambda: executor.stream("t") and stream.ready(),
        lambda: stream.join(),
    ):
        try:
            call()
        except ForkedProcess as error:
            assert "belongs to the parent" in str(error)
            told += 1
    os._exit(told)
gate.set()
_, status = os.wait()
executor.synchronize(event)
executor.close()
print(os.waitstatus_to_exitcode(status))
"""
    ended = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout.strip(), ended.stderr) == ("5", "")


def test_a_forked_child_closes_nothing(monkeypatch, stream):
    monkeypatch.setattr(stream, "_born", -1)
    stream.close()
    with pytest.raises(ForkedProcess):
        stream.submit(int)
    monkeypatch.undo()
    after(stream)
