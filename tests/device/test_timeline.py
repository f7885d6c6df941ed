"""Spans that an executor takes: exact in virtual time, in order at the host's clock, bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest

from avrt.device import CpuDevice, Executor, SimulatedDevice, Timeline
from avrt.device.overlap import overlap
from avrt.device.simulated import Costs

MS = 1_000_000
FREE = Costs(launch_ns=0, bytes_per_us=1000)


def recorded(work, **options):
    device = SimulatedDevice(costs=FREE, **options)
    executor = Executor(device, timeline=Timeline())
    work(executor)
    for stream in list(executor._streams.values()):
        executor.device.await_mark(executor.device.record(stream, timing=False), 10**12)
    return executor.timeline.spans(device)


def kinds(spans):
    return [(s.stream, s.name, s.kind, s.start_ns, s.end_ns) for s in spans if s.kind != "host"]


def test_a_copy_beside_compute_overlaps_by_what_virtual_time_says():
    def work(executor):
        one, two = executor.stream("one"), executor.stream("two")
        source, target = executor.allocate(10**6, two), executor.allocate(10**6, two)
        executor.launch(one, int, cost_ns=MS // 2, name="net")
        executor.copy(target, source, two)

    spans = recorded(work)
    assert kinds(spans) == [
        ("one", "net", "compute", 0, MS // 2),
        ("two", "copy", "copy", 0, MS),
    ]
    assert overlap(spans).fraction == 0.5


def test_a_span_starts_when_the_engine_is_free():
    def work(executor):
        for name in ("one", "two"):
            executor.launch(executor.stream(name), int, cost_ns=MS, name="net")

    assert kinds(recorded(work, engines=1)) == [
        ("one", "net", "compute", 0, MS),
        ("two", "net", "compute", MS, 2 * MS),
    ]


def test_a_wait_is_a_span_that_names_the_stream_waited_for():
    def work(executor):
        one, two = executor.stream("one"), executor.stream("two")
        executor.launch(one, int, cost_ns=MS, name="net")
        executor.wait(two, executor.record(one))

    assert ("two", "one", "wait", 0, MS) in kinds(recorded(work))


def test_what_was_skipped_has_no_span():
    def work(executor):
        one = executor.stream("one")
        executor.launch(one, lambda: 1 / 0, cost_ns=MS, name="bad")
        executor.launch(one, int, cost_ns=MS, name="skipped")

    assert kinds(recorded(work)) == []


def test_the_host_prepares_launches_and_waits():
    device = SimulatedDevice()
    executor = Executor(device, timeline=Timeline())
    stream = executor.stream("s")
    with executor.preparing("decode"):
        executor.launch(stream, int, cost_ns=MS, name="net")
    executor.synchronize(stream)
    spans = [s for s in executor.timeline.spans(device) if s.kind == "host"]
    assert {(s.name, s.activity) for s in spans} == {
        ("net", "launching"),
        ("decode", "preparing"),
        ("waiting", "waiting"),
    }
    (waiting,) = [s for s in spans if s.activity == "waiting"]
    assert waiting.end_ns - waiting.start_ns >= MS // 2


def test_spans_are_bounded_and_the_rest_is_counted():
    executor = Executor(SimulatedDevice(), timeline=Timeline(spans_max=4))
    stream = executor.stream("s")
    for _ in range(10):
        executor.launch(stream, int, name="net")
    executor.synchronize(stream)
    assert len(executor.timeline.spans(executor.device)) == 4
    assert executor.timeline.dropped >= 1
    executor.timeline.clear()
    assert executor.timeline.spans(executor.device) == []
    assert executor.timeline.dropped == 0


def test_a_full_timeline_counts_waits_too():
    executor = Executor(SimulatedDevice(), timeline=Timeline(spans_max=0))
    one, two = executor.stream("one"), executor.stream("two")
    executor.wait(two, executor.record(one))
    assert executor.timeline.dropped == 1


@pytest.mark.live
def test_on_the_cpu_spans_of_a_stream_follow_one_another():
    device = CpuDevice()
    with Executor(device, timeline=Timeline()) as executor:
        stream = executor.stream("s")
        for index in range(5):
            executor.launch(stream, sum, range(1000), name=f"net{index}")
        executor.synchronize(stream)
        spans = [s for s in executor.timeline.spans(device) if s.stream == "s"]
    assert [s.name for s in spans] == [f"net{index}" for index in range(5)]
    assert all(one.end_ns <= two.start_ns for one, two in pairwise(spans))
    assert all(s.start_ns < s.end_ns for s in spans)


def test_without_a_timeline_nothing_is_noted():
    executor = Executor(SimulatedDevice())
    with executor.preparing():
        executor.launch(executor.stream("s"), int)
    assert executor.timeline is None
