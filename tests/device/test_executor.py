"""What an executor refuses, and that a refused call changes nothing."""

from __future__ import annotations

import pytest
import torch

from avrt.device import CpuDevice, CudaDevice, Executor, SimulatedDevice, executor, simulated
from avrt.device.base import BufferMisused, StreamClosed, WaitTimeout
from avrt.device.cpu import CpuMark
from avrt.device.simulated import HANG, Costs
from avrt.errors import FaultError, HardwareFault, SpecError

MS = 1_000_000


@pytest.fixture
def made():
    return Executor(SimulatedDevice())


def test_names_of_streams_are_unique_and_bounded(made, monkeypatch):
    monkeypatch.setattr(executor, "STREAMS_MAX", 2)
    made.stream("s")
    with pytest.raises(SpecError, match="a stream 's' already on simulated"):
        made.stream("s")
    made.stream("t")
    with pytest.raises(SpecError, match="more than 2 streams"):
        made.stream("u")


def test_a_stream_of_another_executor_is_refused(made):
    made.stream("s")
    foreign = Executor(SimulatedDevice()).stream("s")
    with pytest.raises(SpecError, match="belongs to another executor"):
        made.launch(foreign, int)
    assert not foreign.steps


def test_an_event_of_another_executor_is_refused(made):
    other = Executor(SimulatedDevice())
    event = other.record(other.stream("s"))
    stream = made.stream("s")
    for call in (
        lambda: made.wait(stream, event),
        lambda: made.synchronize(event),
        lambda: made.query(event),
        lambda: made.record(stream, event),
    ):
        with pytest.raises(SpecError, match="event belongs to another executor"):
            call()
    assert not stream.steps


def test_a_copy_beyond_a_buffer_is_refused(made):
    stream = made.stream("s")
    small, large = made.allocate(8, stream), made.allocate(64, stream)
    for size_bytes in (9, -1):
        with pytest.raises(BufferMisused, match="between buffers that hold 8"):
            made.copy(large, small, stream, size_bytes=size_bytes)
    made.copy(large, small, stream, size_bytes=0)
    made.synchronize(stream)


def test_elapsed_time_needs_two_complete_recordings(made):
    stream = made.stream("s")
    start = made.record(stream)
    with pytest.raises(SpecError, match="were recorded"):
        made.elapsed_ns(start, made.event())
    made.delay(stream, MS)
    with pytest.raises(SpecError, match="are complete"):
        made.elapsed_ns(start, made.record(stream))


def test_a_closed_executor_takes_nothing(made):
    stream = made.stream("s")
    assert made.close() == []
    assert made.close() == []
    for call in (
        lambda: made.launch(stream, int),
        lambda: made.record(stream),
        lambda: made.allocate(8, stream),
        lambda: made.stream("t"),
        lambda: made.synchronize(stream),
    ):
        with pytest.raises(StreamClosed):
            call()


def test_arguments_reach_the_kernel(made):
    stream, got = made.stream("s"), []
    made.launch(stream, lambda one, two: got.append((one, two)), 1, "two")
    made.synchronize(stream)
    assert got == [(1, "two")]


def test_kernels_of_a_simulated_device_run_in_inference_mode(made):
    stream, got = made.stream("s"), []
    made.launch(stream, lambda: got.append(torch.is_inference_mode_enabled()))
    made.synchronize(stream)
    assert got == [True]


def test_virtual_time_counts_calls_costs_and_copies():
    device = SimulatedDevice(costs=Costs(launch_ns=100, bytes_per_us=1, by_name={"net": 7000}))
    made = Executor(device)
    stream = made.stream("s")
    one, two = made.allocate(3, stream), made.allocate(3, stream)
    made.launch(stream, int, name="net", cost_ns=1)
    made.copy(one, two, stream)
    made.synchronize(stream)
    assert made.report() == {"simulated": "engines=2 copy_engines=1"}
    assert [(ran.name, ran.start_ns, ran.end_ns) for ran in device.log] == [
        ("net", 100, 7100),
        ("copy", 7100, 10100),
    ]
    assert made.now_ns() == 10100


def test_copies_take_compute_engines_where_there_are_none_for_copies():
    device = SimulatedDevice(engines=1, copy_engines=0, costs=Costs(0, 1))
    made = Executor(device)
    one, two = made.stream("one"), made.stream("two")
    a, b = made.allocate(2, two), made.allocate(2, two)
    made.delay(one, 5000)
    made.copy(a, b, two)
    made.synchronize(two)
    assert made.now_ns() == 7000


def test_the_log_is_bounded(monkeypatch):
    monkeypatch.setattr(simulated, "LOG_MAX", 3)
    device = SimulatedDevice()
    made = Executor(device)
    stream = made.stream("s")
    for _ in range(5):
        made.launch(stream, int)
    made.synchronize(stream)
    assert len(device.log) == 3


def test_a_hung_stream_lets_others_go_on_and_times_out_for_a_query(made):
    made.device.fault = lambda name: HANG if name == "stuck" else None
    one, two = made.stream("one"), made.stream("two")
    made.launch(one, int, name="stuck")
    event = made.record(one)
    made.launch(two, int)
    made.synchronize(two)
    assert not made.query(event)
    with pytest.raises(WaitTimeout, match="deadlock: nothing can run, hung: one; waiting: none"):
        made.synchronize(event)
    assert made.close() == ["one"]


def test_a_wait_in_virtual_time_ends_when_it_is_up(made):
    stream = made.stream("s")
    made.delay(stream, 10 * MS)
    event = made.record(stream)
    with pytest.raises(WaitTimeout, match="s is not there after 1000000 ns"):
        made.synchronize(event, MS)
    assert MS < made.now_ns() < 2 * MS
    made.synchronize(event)


def test_what_starts_after_the_time_is_up_is_not_begun(made):
    stream, ran = made.stream("s"), []
    made.delay(stream, 10 * MS)
    made.launch(stream, ran.append, 1)
    with pytest.raises(WaitTimeout):
        made.synchronize(stream, MS)
    assert ran == []
    made.synchronize(stream)
    assert ran == [1]


def test_a_query_runs_nothing_that_starts_later_than_now(made):
    stream, ran = made.stream("s"), []
    made.launch(stream, ran.append, 1)
    made.delay(stream, 10 * MS)
    made.launch(stream, ran.append, 2)
    assert not made.query(made.record(stream))
    assert ran == [1]


def test_without_a_checker_memory_is_given_back_all_the_same(made):
    stream = made.stream("s")
    made.deallocate(made.allocate(8, stream), stream)
    made.pool.trim()
    assert made.pool.statistics.evictions == 1


def test_a_recording_that_completes_while_somebody_lies_down_wakes_them(monkeypatch):
    with Executor(CpuDevice()) as made:
        stream = made.stream("s")
        mark = CpuMark(stream)
        monkeypatch.setattr(CpuMark, "_is_done", lambda _mark: True)
        assert mark.sleep()


def test_what_waits_for_a_hung_stream_is_named(made):
    made.device.fault = lambda _name: HANG
    one, two = made.stream("one"), made.stream("two")
    made.launch(one, int)
    made.wait(two, made.record(one))
    with pytest.raises(WaitTimeout, match="hung: one; waiting: two"):
        made.synchronize(two)


@pytest.mark.live
def test_a_cpu_stream_that_waits_sleeps_on_the_recording():
    with Executor(CpuDevice()) as made:
        one, two = made.stream("one"), made.stream("two")
        ran = []
        made.delay(one, 5 * MS)
        made.launch(one, ran.append, 1)
        made.wait(two, made.record(one))
        made.launch(two, ran.append, 2)
        made.synchronize(two)
        assert ran == [1, 2]
        assert "threads=1" in made.report()["stream.one"]


@pytest.mark.live
def test_closing_names_the_stream_that_is_stuck():
    import threading  # noqa: PLC0415

    gate, begun = threading.Event(), threading.Event()
    made = Executor(CpuDevice())
    stream, other = made.stream("stuck"), made.stream("other")
    made.launch(stream, begun.set)
    made.launch(stream, gate.wait)
    made.launch(other, int)
    assert begun.wait(10)
    assert made.close(timeout_ns=MS) in (["stuck"], ["stuck", "other"])
    gate.set()


def test_cuda_says_what_is_missing():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(SpecError, match="finds none; use cpu"):
        CudaDevice()


def test_faults_carry_a_kind_for_the_journal():
    assert WaitTimeout("x").kind == "wait_timeout"
    assert StreamClosed("s").kind == "stream_closed"
    assert isinstance(HANG, FaultError)
    assert not isinstance(HANG, HardwareFault)
