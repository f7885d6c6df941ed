"""Which block a buffer gets, what the bound does, and what the statistics say."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from avrt.device import Executor, OrderChecker, SimulatedDevice
from avrt.device.base import BufferMisused, OutOfMemory

BLOCK = 256


def executor(**options):
    return Executor(SimulatedDevice(), checker=OrderChecker(), **options)


def test_sizes_are_rounded_up_and_views_stay_within_what_was_asked():
    pool = executor()
    buffer = pool.allocate(10, pool.stream("s"))
    assert pool.pool.statistics.bytes_in_use == BLOCK
    assert buffer.view((2,)).shape == (2,)
    assert buffer.view((2,), torch.uint8, 8).data_ptr() == buffer.storage.data_ptr() + 8
    with pytest.raises(BufferMisused, match="12 bytes of a buffer of 10"):
        buffer.view((3,))
    with pytest.raises(BufferMisused, match="a buffer of 0 bytes"):
        pool.allocate(0, pool._streams["s"])


def test_a_block_that_needs_no_wait_is_preferred_to_a_smaller_one():
    pool = executor()
    one, two = pool.stream("one"), pool.stream("two")
    large, small = pool.allocate(2 * BLOCK, one), pool.allocate(BLOCK, two)
    pool.deallocate(large, one)
    pool.deallocate(small, two)
    assert pool.allocate(BLOCK, one).storage is large.storage
    assert pool.pool.statistics.reuse_waits == 0


def test_among_those_the_smallest_then_the_oldest_is_taken():
    pool = executor()
    stream = pool.stream("s")
    held = [pool.allocate(size, stream) for size in (2 * BLOCK, BLOCK, BLOCK)]
    for buffer in held:
        pool.deallocate(buffer, stream)
    taken = [pool.allocate(BLOCK, stream).storage for _ in range(3)]
    assert taken == [held[1].storage, held[2].storage, held[0].storage]


def test_a_block_over_twice_the_size_is_not_wasted():
    pool = executor()
    stream = pool.stream("s")
    pool.deallocate(pool.allocate(3 * BLOCK, stream), stream)
    pool.allocate(BLOCK, stream)
    assert pool.pool.statistics.reuses == 0


def test_pinned_memory_and_other_memory_do_not_mix():
    pool = executor()
    stream = pool.stream("s")
    pool.deallocate(pool.allocate(BLOCK, stream, pinned=True), stream)
    pool.allocate(BLOCK, stream)
    assert pool.pool.statistics.reuses == 0
    pool.allocate(BLOCK, stream, pinned=True)
    assert pool.pool.statistics.reuses == 1


def test_a_block_waits_for_every_stream_that_used_it():
    pool = executor()
    one, two, three = (pool.stream(name) for name in ("one", "two", "three"))
    buffer = pool.allocate(BLOCK, one)
    pool.wait(two, pool.record(one))
    pool.launch(two, int, reads=(buffer,))
    pool.deallocate(buffer, one)
    again = pool.allocate(BLOCK, three)
    pool.launch(three, int, writes=(again,))
    assert pool.pool.statistics.reuse_waits == 2
    assert pool.checker.race_count == 0


def test_a_stream_waits_for_others_that_used_its_own_block():
    pool = executor()
    one, two = pool.stream("one"), pool.stream("two")
    buffer = pool.allocate(BLOCK, one)
    pool.wait(two, pool.record(one))
    pool.launch(two, int, reads=(buffer,))
    pool.deallocate(buffer, one)
    again = pool.allocate(BLOCK, one)
    pool.launch(one, int, writes=(again,))
    assert pool.pool.statistics.reuse_waits == 1
    assert pool.checker.race_count == 0


def test_poison_waits_for_every_stream_that_used_the_block():
    pool = executor(debug=True)
    one, two = pool.stream("one"), pool.stream("two")
    buffer, landing = pool.allocate(8, one), pool.allocate(8, two)
    number = buffer.view((1,), torch.int64)
    pool.launch(one, number.fill_, 7, writes=(buffer,))
    pool.wait(two, pool.record(one))
    pool.delay(two, 10**6)
    pool.copy(landing, buffer, two)
    pool.deallocate(buffer, one)
    pool.synchronize(one)
    pool.synchronize(two)
    assert landing.view((1,), torch.int64).tolist() == [7]
    assert buffer.storage[:8].tolist() == [0xA5] * 8


def test_when_the_bound_is_hit_the_oldest_free_block_goes_after_its_work():
    pool = executor(bytes_max=2 * BLOCK)
    stream = pool.stream("s")
    pool.delay(stream, 5 * 10**6)
    pool.deallocate(pool.allocate(BLOCK, stream), stream)
    before_ns = pool.now_ns()
    pool.allocate(2 * BLOCK, stream)
    assert pool.now_ns() >= before_ns + 4 * 10**6
    assert pool.pool.statistics.evictions == 1
    with pytest.raises(OutOfMemory, match="256 bytes beside 512 in use, of 512"):
        pool.allocate(1, stream)


def test_a_buffer_of_another_executor_is_refused():
    pool, other = executor(), executor()
    stream = pool.stream("s")
    foreign = other.allocate(BLOCK, other.stream("s"))
    with pytest.raises(BufferMisused, match="another executor"):
        pool.launch(stream, int, reads=(foreign,))
    with pytest.raises(BufferMisused, match="another executor"):
        pool.deallocate(foreign, stream)


def test_a_handle_that_is_dropped_keeps_its_memory():
    pool = executor()
    stream = pool.stream("s")
    pool.allocate(BLOCK, stream)
    second = pool.allocate(BLOCK, stream)
    assert pool.pool.statistics.buffers_in_use == 2
    assert pool.pool.statistics.bytes_in_use_max == 2 * BLOCK
    assert second.storage is not None


@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 2), st.booleans()), max_size=60))
def test_live_buffers_never_share_memory_and_sums_hold(steps):
    pool = executor(bytes_max=16 * 1024)
    streams = [pool.stream(f"s{index}") for index in range(3)]
    live = []
    for size_bytes, index, frees in steps:
        if frees and live:
            buffer = live.pop(index % len(live))
            pool.deallocate(buffer, streams[index])
        else:
            try:
                live.append(pool.allocate(size_bytes, streams[index]))
            except OutOfMemory:
                continue
            pool.launch(streams[index], int, writes=(live[-1],))
        held = pool.pool.statistics
        assert len({buffer.storage.data_ptr() for buffer in live}) == len(live)
        assert held.bytes_in_use == sum(buffer.storage.numel() for buffer in live)
        assert held.bytes_in_use + held.bytes_free <= 16 * 1024
        assert held.buffers_in_use == len(live)
    assert pool.checker.race_count == 0


@given(st.lists(st.tuples(st.integers(1, 600), st.integers(0, 1), st.booleans()), max_size=40))
def test_the_same_calls_reuse_the_same_blocks(steps):
    def blocks():
        pool = executor()
        streams = [pool.stream("one"), pool.stream("two")]
        live, seen = [], {}
        for size_bytes, index, frees in steps:
            if frees and live:
                pool.deallocate(live.pop(0), streams[index])
            else:
                live.append(pool.allocate(size_bytes, streams[index]))
                yield seen.setdefault(id(live[-1].storage), len(seen))

    assert list(blocks()) == list(blocks())
