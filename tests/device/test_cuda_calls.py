"""Order of calls of the CUDA device, against a recording stand-in: call order only.

They prove no timing and nothing about a device's memory; that is for the tests marked gpu.
"""

from __future__ import annotations

import pytest
import torch
from recorded_cuda import RecordedCuda, torch_with

from avrt.device import CudaDevice, Executor, OrderChecker, Timeline, conformance, cuda
from avrt.device.base import OutOfMemory, StreamClosed, StreamPoisoned, WaitTimeout
from avrt.device.conformance import copies, failing, memory, ordering
from avrt.errors import HardwareFault, SpecError

MS = 1_000_000


@pytest.fixture
def calls(monkeypatch):
    recorded = RecordedCuda()
    monkeypatch.setattr(cuda, "torch", torch_with(recorded))
    return recorded


@pytest.fixture
def executor(calls):
    made = Executor(CudaDevice(), checker=OrderChecker())
    calls.calls.clear()
    return made


def number(stream):
    return stream.native.number


def test_a_device_that_is_not_there_is_refused(calls):
    with pytest.raises(SpecError, match="no CUDA device 1: there are 1, counted from 0"):
        CudaDevice(1)
    calls.devices = 0
    with pytest.raises(SpecError, match="torch fake finds none"):
        CudaDevice()


def test_a_priority_counts_upwards_and_stops_at_the_devices_range(executor):
    assert executor.caps.priorities == (0, 5)
    natives = [executor.stream(f"s{p}", priority=p).native.priority for p in (-3, 0, 1, 5, 50)]
    assert natives == [0, 0, -1, -5, -5]


def test_a_kernel_runs_within_its_stream_in_inference_mode(executor, calls):
    stream = executor.stream("s")
    seen = []

    def kernel():
        seen.append((calls.current is stream.native, torch.is_inference_mode_enabled()))

    executor.launch(stream, kernel)
    assert seen == [(True, True)]
    assert calls.current is None


def test_a_recording_follows_the_launch_and_each_has_an_event_of_its_own(executor, calls):
    stream = executor.stream("s")
    executor.launch(stream, lambda: calls.note("kernel"))
    event = executor.record(stream)
    executor.record(stream, event)
    names = [call[0] for call in calls.calls if call[0] != "enter"]
    assert names == ["kernel", "record", "record"]
    records = calls.named("record")
    assert records[0][1] == records[1][1] == number(stream)
    assert records[0][2] != records[1][2]


def test_a_wait_is_for_the_recording_of_its_time_on_the_right_stream(executor, calls):
    one, two = executor.stream("one"), executor.stream("two")
    event = executor.record(one)
    first = event.mark.native.number
    executor.wait(two, event)
    executor.record(one, event)
    assert calls.named("wait_event") == [("wait_event", number(two), first)]


def test_an_unrecorded_event_needs_no_call(executor, calls):
    stream = executor.stream("s")
    executor.wait(stream, executor.event())
    executor.synchronize(executor.event())
    assert calls.calls == []


def test_freeing_records_and_reuse_elsewhere_waits_without_the_host(executor, calls):
    one, two = executor.stream("one"), executor.stream("two")
    executor.deallocate(executor.allocate(64, one), one)
    freed = calls.named("record")[-1]
    executor.allocate(64, two)
    assert calls.named("wait_event") == [("wait_event", number(two), freed[2])]
    assert calls.named("synchronize", "query") == []
    assert len(calls.named("empty")) == 1


def test_memory_comes_from_a_stream_on_which_nothing_runs(executor, calls):
    stream = executor.stream("s")
    executor.allocate(64, stream)
    executor.allocate(64, stream, pinned=True)
    memory_stream = executor.device._memory.number
    assert calls.named("empty") == [
        ("empty", 256, f"cuda:0 on {memory_stream}"),
        ("empty", 256, "pinned"),
    ]
    assert number(stream) != memory_stream


def test_a_query_asks_until_it_is_complete_and_then_no_more(executor, calls):
    stream = executor.stream("s")
    event = executor.record(stream)
    calls.pending.add(event.mark.native.number)
    assert not executor.query(event)
    calls.pending.clear()
    assert executor.query(event)
    assert executor.query(event)
    assert len(calls.named("query")) == 2


def test_an_endless_wait_sleeps_in_cuda_and_a_limited_one_asks(executor, calls):
    stream = executor.stream("s")
    executor.synchronize(executor.record(stream))
    assert len(calls.named("synchronize")) == 1
    event = executor.record(stream)
    calls.pending.add(event.mark.native.number)
    with pytest.raises(WaitTimeout, match="s is not there after 1000000 ns"):
        executor.synchronize(event, MS)
    assert len(calls.named("synchronize")) == 1
    calls.pending.clear()
    executor.synchronize(event, MS)


def test_times_of_recordings_lie_on_the_hosts_clock(calls):
    timeline = Timeline()
    executor = Executor(CudaDevice(), timeline=timeline)
    stream = executor.stream("s")
    start = executor.record(stream)
    executor.launch(stream, int, name="net")
    end = executor.record(stream)
    assert executor.elapsed_ns(start, end) == 3 * MS // 2
    (span,) = [s for s in timeline.spans(executor.device) if s.stream == "s"]
    assert span.end_ns - span.start_ns == MS // 2
    assert executor.device.at_ns(end.mark) - executor.device.at_ns(start.mark) == 3 * MS // 2
    assert calls.named("synchronize")


def test_times_need_events_with_timing(executor):
    stream = executor.stream("s")
    plain = executor.record(stream, timing=False)
    with pytest.raises(SpecError, match="recorded with timing"):
        executor.elapsed_ns(plain, executor.record(stream))


def test_a_delay_is_calibrated_once_and_is_never_too_short(executor, calls):
    stream = executor.stream("s")
    for _ in range(2):
        executor.delay(stream, MS)
    ours = [cycles for _, on, cycles in calls.named("sleep") if on == number(stream)]
    others = [on for _, on, _ in calls.named("sleep") if on != number(stream)]
    assert len(others) == 3
    assert set(others) != {executor.device._memory.number}
    cycles_per_ms = cuda.CALIBRATION_CYCLES / 0.5
    assert ours == [int(cuda.DELAY_MARGIN * cycles_per_ms)] * 2


def test_an_error_of_a_kernel_leaves_the_device_alone(executor, calls):
    stream, other = executor.stream("s"), executor.stream("other")
    executor.launch(stream, lambda: 1 / 0)
    ran = []
    executor.launch(stream, ran.append, 1)
    executor.launch(other, ran.append, 2)
    with pytest.raises(ZeroDivisionError):
        executor.synchronize(stream)
    executor.synchronize(other)
    assert executor.device.lost is None
    executor.reset(stream)
    executor.launch(stream, ran.append, 3)
    assert ran == [2, 3]
    assert calls.failure is None


def raises(error):
    def kernel():
        raise error

    return kernel


def test_an_error_of_cuda_in_a_kernel_loses_the_device_for_good(executor):
    stream, other = executor.stream("s"), executor.stream("other")
    executor.launch(stream, raises(torch.AcceleratorError("CUDA error: illegal access\nmore")))
    for one in (stream, other):
        with pytest.raises(HardwareFault, match=r"cuda: CUDA error: illegal access$"):
            executor.synchronize(one)
    executor.reset(stream)
    ran = []
    executor.launch(stream, ran.append, 1)
    assert ran == []
    with pytest.raises(HardwareFault):
        executor.synchronize(stream)
    with pytest.raises(HardwareFault):
        executor.synchronize(executor.stream("late"))


@pytest.mark.parametrize("timeout_ns", [MS, cuda.FOREVER_NS])
def test_an_error_of_cuda_that_shows_later_loses_the_device(executor, calls, timeout_ns):
    stream = executor.stream("s")
    event = executor.record(stream)
    calls.failure = torch.AcceleratorError("CUDA error: unspecified launch failure")
    with pytest.raises(HardwareFault, match="unspecified launch failure"):
        executor.synchronize(event, timeout_ns)
    count = len(calls.calls)
    executor.wait(stream, event)
    assert executor.query(executor.record(stream))
    assert len(calls.calls) == count, "nothing is asked of a device that is lost"


def test_memory_that_runs_out_is_a_fault_and_loses_nothing(executor, calls):
    stream = executor.stream("s")
    calls.failure = torch.OutOfMemoryError("CUDA out of memory.\nTried to")
    with pytest.raises(OutOfMemory, match=r"CUDA out of memory\.$"):
        executor.allocate(64, stream)
    calls.failure = None
    assert executor.pool.statistics.bytes_in_use == 0
    executor.launch(stream, raises(torch.OutOfMemoryError("CUDA out of memory.")))
    with pytest.raises(OutOfMemory):
        executor.synchronize(stream)
    assert executor.device.lost is None


def test_what_is_no_error_of_cuda_passes(executor, calls):
    stream = executor.stream("s")
    calls.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        executor.record(stream)
    assert executor.device.lost is None


def test_the_report_names_streams_that_share_a_native_one(executor):
    for index in range(33):
        executor.stream(f"s{index}", priority=1)
    report = executor.report()
    assert report["device"] == "fake 0 1024 MiB"
    assert report["stream.s31"] == "priority=-1"
    assert report["stream.s32"] == "priority=-1 shares=s0"


def test_closing_waits_for_each_stream_and_names_who_is_late(executor, calls):
    one, two = executor.stream("one"), executor.stream("two")
    native = executor.record(one).mark.native
    calls.pending |= {native.number + 1}
    assert executor.close(timeout_ns=MS) == ["one"]
    assert two.error is None


def test_closing_at_once_marks_what_comes_as_closed(executor):
    stream, other = executor.stream("s"), executor.stream("other")
    executor.close(drain=False)
    assert isinstance(stream.error, StreamClosed)
    assert isinstance(other.error, StreamClosed)


HOST_DECIDED = [
    check
    for check in conformance.CHECKS
    if check.test.__module__ == failing.__name__
    or check.test
    in (
        memory.freeing_twice_raises,
        memory.use_after_free_raises,
        memory.the_bound_of_memory_holds,
        memory.memory_of_a_failed_stream_is_as_good_as_any,
        copies.a_failed_copy_harms_no_other,
        memory.reuse_on_another_stream_waits,
        ordering.a_missing_wait_is_found,
        ordering.a_priority_reaches_the_device,
        ordering.transitive_order_is_accepted,
        ordering.a_host_wait_orders_what_follows,
    )
]


@pytest.mark.parametrize("check", HOST_DECIDED, ids=lambda check: check.test.__name__)
def test_what_the_host_decides_conforms(check, calls):
    verdict = conformance.run_check(check, CudaDevice, "cuda, recorded")
    assert verdict.outcome == "passed", verdict.reason
    assert calls.calls


def test_a_poisoned_recording_reaches_the_next_stream(executor):
    one, two = executor.stream("one"), executor.stream("two")
    executor.launch(one, lambda: 1 / 0)
    executor.wait(two, executor.record(one))
    with pytest.raises(StreamPoisoned, match="stream two waited for work that failed"):
        executor.synchronize(two)
