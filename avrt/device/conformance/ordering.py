"""Conformance of streams and events: what is ordered, what is complete, what ends."""

from __future__ import annotations

import resource
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from avrt.device.base import StreamClosed, WaitTimeout
from avrt.device.conformance.rig import MS, SLOW_NS, Rig, integers, races, read
from avrt.errors import raised_by

if TYPE_CHECKING:
    from avrt.device.base import Event

STRESS_SEEDS = 20
STRESS_STEPS = 120
STORM_ROUNDS = 500
LAUNCHES = 100_000
GROWTH_KIB_MAX = 32 * 1024


def a_stream_is_a_fifo(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    buffer, number = integers(executor, stream)
    expected = 0
    for step in range(200):
        call = partial(number.add_, step) if step % 2 else partial(number.mul_, 3)
        executor.launch(stream, call, writes=(buffer,))
        expected = expected + step if step % 2 else expected * 3 % 2**64
    (got,) = read(executor, stream, buffer)
    assert (got - expected) % 2**64 == 0


def an_event_orders_two_streams(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    executor.delay(one, SLOW_NS)
    executor.launch(one, partial(number.fill_, 7), writes=(buffer,))
    executor.wait(two, executor.record(one))
    executor.launch(two, partial(number.mul_, 2), writes=(buffer,))
    assert read(executor, two, buffer) == [14]
    assert races(executor) == 0


def an_unrecorded_event_is_complete(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    event = executor.event()
    assert executor.query(event)
    executor.wait(stream, event)
    executor.synchronize(event)
    executor.synchronize(stream)


def a_wait_means_the_recording_of_that_moment(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    event = executor.record(one)
    executor.wait(two, event)
    release = rig.hold(one)
    executor.record(one, event)
    executor.synchronize(two)
    assert not executor.query(event), "the wait was for the later recording, or nothing was held"
    release()
    executor.synchronize(event)


def a_query_tells_before_and_after(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    release = rig.hold(stream)
    event = executor.record(stream)
    assert not executor.query(event)
    release()
    executor.synchronize(event)
    assert executor.query(event)


def polling_ends(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    executor.delay(stream, MS)
    event = executor.record(stream)
    start_ns = executor.now_ns()
    while not executor.query(event):
        assert executor.now_ns() - start_ns < 10_000 * MS


def elapsed_time_is_at_least_the_work(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    executor.delay(stream, MS)
    start = executor.record(stream)
    executor.delay(stream, SLOW_NS)
    end = executor.record(stream)
    executor.synchronize(end)
    assert executor.elapsed_ns(start, end) >= SLOW_NS * 99 // 100


def a_host_wait_times_out(rig: Rig) -> None:
    executor, stream = rig.executor, rig.executor.stream("s")
    release = rig.hold(stream)
    error = raised_by(partial(executor.synchronize, stream, MS))
    assert isinstance(error, WaitTimeout), error
    release()
    executor.synchronize(stream)


def transitive_order_is_accepted(rig: Rig) -> None:
    executor = rig.executor
    one, two, three = (executor.stream(name) for name in ("one", "two", "three"))
    buffer, number = integers(executor, one)
    executor.wait(two, executor.record(one))
    executor.wait(three, executor.record(two))
    executor.launch(three, partial(number.fill_, 5), writes=(buffer,))
    assert read(executor, three, buffer) == [5]
    assert races(executor) == 0


def a_host_wait_orders_what_follows(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    executor.synchronize(one)
    executor.launch(two, partial(number.fill_, 5), writes=(buffer,))
    late = executor.stream("late")
    executor.synchronize(two)
    executor.launch(late, partial(number.add_, 1), writes=(buffer,))
    assert read(executor, late, buffer) == [6]
    assert races(executor) == 0


def a_missing_wait_is_found(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    executor.launch(two, partial(number.clone), reads=(buffer,))
    executor.synchronize(one)
    executor.synchronize(two)
    assert races(executor) == 1


def random_graphs_run_in_order(rig: Rig) -> None:
    """Each step stores the product of its predecessors' flags: 1 if all of them had run."""
    for seed in range(STRESS_SEEDS):
        generator = np.random.default_rng(seed)
        executor = rig.make()
        streams = [executor.stream(f"s{index}") for index in range(4)]
        flags = [integers(executor, streams[0]) for _ in range(STRESS_STEPS)]
        ready = executor.record(streams[0])
        for stream in streams[1:]:
            executor.wait(stream, ready)
        recorded: list[tuple[int, Event]] = []
        for step, (buffer, flag) in enumerate(flags):
            stream = streams[generator.integers(len(streams))]
            wanted = generator.integers(3) if recorded else 0
            before = [recorded[generator.integers(len(recorded))] for _ in range(wanted)]
            for _, event in before:
                executor.wait(stream, event)
            executor.launch(stream, partial(flag.fill_, 1), writes=(buffer,))
            for earlier, _ in before:
                executor.launch(
                    stream,
                    partial(flag.mul_, flags[earlier][1]),
                    reads=(flags[earlier][0],),
                    writes=(buffer,),
                )
            if generator.random() < 0.6:
                recorded.append((step, executor.record(stream)))
        for stream in streams:
            executor.synchronize(stream)
        assert races(executor) == 0, f"seed {seed}"
        wrong = [i for i, (b, _) in enumerate(flags) if read(executor, streams[0], b) != [1]]
        assert not wrong, f"seed {seed}: steps {wrong} ran before a predecessor"
        executor.close()


def one_event_serves_a_storm_of_recordings(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    event = executor.event()
    for _ in range(STORM_ROUNDS):
        executor.launch(one, partial(number.add_, 1), writes=(buffer,))
        executor.wait(two, executor.record(one, event))
        executor.launch(two, partial(number.add_, 1), writes=(buffer,))
        executor.wait(one, executor.record(two, event))
    assert read(executor, one, buffer) == [2 * STORM_ROUNDS]
    assert races(executor) == 0


def many_launches_do_not_grow(rig: Rig) -> None:
    executor = rig.executor
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    warm_kib = 0
    for step in range(LAUNCHES):
        executor.launch(one, partial(number.add_, 1), writes=(buffer,))
        if step % 100 == 0:
            executor.wait(two, executor.record(one))
            executor.deallocate(executor.allocate(4096, two), two)
            executor.synchronize(two)
        if step == LAUNCHES // 10:
            warm_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(executor, one, buffer) == [LAUNCHES]
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - warm_kib
    assert grown_kib < GROWTH_KIB_MAX, f"{grown_kib} KiB more"
    assert executor.pool.statistics.bytes_in_use_max < 1 << 20


def closing_finishes_what_is_queued(rig: Rig) -> None:
    executor = rig.make()
    one, two = executor.stream("one"), executor.stream("two")
    buffer, number = integers(executor, one)
    executor.delay(one, SLOW_NS)
    executor.launch(one, partial(number.fill_, 3), writes=(buffer,))
    executor.wait(two, executor.record(one))
    landing = executor.allocate(8, two, pinned=True)
    executor.copy(landing, buffer, two)
    assert executor.close() == []
    assert landing.view((1,), number.dtype).tolist() == [3]
    assert isinstance(raised_by(partial(executor.record, one)), StreamClosed)


def closing_at_once_leaves_nobody_waiting(rig: Rig) -> None:
    executor = rig.make()
    one, two = executor.stream("one"), executor.stream("two")
    release = rig.hold(one, executor)
    executor.wait(two, executor.record(one))
    event = executor.record(two)
    executor.launch(two, int)
    left = executor.close(timeout_ns=MS, drain=False)
    assert not executor.caps.kernels_on_host or set(left) == {"one", "two"}
    release()
    assert event.mark is not None
    executor.await_mark(event.mark)
    assert executor.query(event)


def a_priority_reaches_the_device(rig: Rig) -> None:
    """In virtual time the higher one goes first; on CUDA the native stream has it."""
    executor = rig.executor
    low, high = executor.caps.priorities
    rig.need(high > low, "the device has no priorities")
    slow, urgent = executor.stream("slow"), executor.stream("urgent", priority=high)
    if executor.kind != "simulated":
        assert executor.report()["stream.slow"] != executor.report()["stream.urgent"]
        return
    for index in range(executor.caps.compute_engines):
        executor.delay(executor.stream(f"filler{index}"), SLOW_NS)
    ends = []
    for stream in (slow, urgent):
        for _ in range(2 * executor.caps.compute_engines):
            executor.delay(stream, SLOW_NS)
        ends.append(executor.record(stream))
    for end in ends:
        executor.synchronize(end)
    assert executor.elapsed_ns(ends[1], ends[0]) >= 0
